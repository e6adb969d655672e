"""Stage 8: the report, or a section of it; in the words of the study's own report where it has one."""

from typing import Final

from carina.studies.model import ReportSection
from carina.trek.language import sentence
from carina.trek.records import cited, target
from carina.trek.turn import Examiner, Turn

_ONE_TURN: Final = (
    ("impression", ("impression",), 0.59),
    ("full report", ("impression", "findings"), 0.325),
    ("findings section", ("findings",), 0.085),
)
"""Tasks, the sections that each asks for in the order of the answer, and how often each is put."""


def ask_report(examiner: Examiner) -> None:
    """One report turn, or the findings followed by the impression."""
    draw = examiner.draw
    sections = _sections(examiner)
    texts = {section.name: section.text for section in sections}
    if len(texts) > 1 and draw.chance(examiner.quotas.two_report_turns):
        if draw.chance(0.4):
            # The prompt gives the findings away, so they are not asked for.
            slots = {"findings": texts["findings"]}
            turn = _ask(examiner, "impression from findings", ("impression",), sections, slots)
            turn.restates = True
        else:
            first = _ask(examiner, "findings section", ("findings",), sections)
            second = _ask(examiner, "impression", ("impression",), sections)
            second.after = [first]
        return
    tasks = [one for one in _ONE_TURN if all(name in texts for name in one[1])]
    task, names, _ = draw.weighted(tasks, [share for _, _, share in tasks])
    _ask(examiner, task, names, sections)


def _ask(
    examiner: Examiner,
    task: str,
    names: tuple[str, ...],
    sections: list[ReportSection],
    slots: dict[str, str] | None = None,
) -> Turn:
    turn = examiner.ask(8, task, "report", slots, facts=[target("study", task)])
    turn.facts += [thing.truth for thing in examiner.subject.things]
    wanted = [section for section in sections if section.name in names]
    wanted.sort(key=lambda section: names.index(section.name))
    turn.sections = tuple(wanted)
    headed = len(wanted) > 1
    turn.answer = "\n".join(f"{s.name.capitalize()}: {s.text}" if headed else s.text for s in wanted)
    report = examiner.subject.study.report
    if report is not None:
        said = [number for number, one in enumerate(report.sentences) if one.section in names]
        turn.evidence = cited("current", tuple(said))
    return turn


def _sections(examiner: Examiner) -> list[ReportSection]:
    """Of the report; put together from the findings where there is none."""
    report = examiner.subject.study.report
    written = [
        ReportSection(name=section.name, text=section.text.strip())
        for section in (report.sections if report is not None else ())
        if section.name in ("findings", "impression") and section.text.strip()
    ]
    return written or _composed(examiner)


def _composed(examiner: Examiner) -> list[ReportSection]:
    subject = examiner.subject
    findings: list[str] = []
    impression: list[str] = []
    for thing in subject.things:
        certain = "device" if thing.kind == "device" else "present"
        kind = certain if thing.is_present else "uncertain"
        slots = {"described": thing.plain}
        findings.append(sentence(examiner.clause(8, "sentence", kind, slots=slots)))
        if thing.kind == "finding":
            impression.append(sentence(examiner.clause(8, "impression", kind, slots=slots)))
    if not subject.findings and subject.devices:
        # Nothing abnormal, but not an unremarkable examination either.
        impression = findings[:]
    findings += [
        sentence(examiner.clause(8, "sentence", "absent", slots={"finding": missing.name}))
        for missing in subject.absent_findings
        if missing.id
    ]
    if not impression:
        impression = [sentence(examiner.clause(8, "impression", "normal", slots={}))]
    return [
        ReportSection(name="findings", text=" ".join(findings or impression)),
        ReportSection(name="impression", text=" ".join(impression)),
    ]
