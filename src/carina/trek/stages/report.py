"""Stage 8: the report, or a section of it; the key is the study's own report where it has one."""

from typing import Final

from carina.studies.model import ReportSection
from carina.trek.facts import target_row
from carina.trek.interned import cite
from carina.trek.language import sentence
from carina.trek.turn import ConversationDraft, Turn

_ONE_TURN: Final = (
    ("impression", ("impression",), 0.59),
    ("full report", ("impression", "findings"), 0.325),
    ("findings section", ("findings",), 0.085),
)
"""Tasks, the sections that each asks for in the order of the answer, and how often each is put."""


def ask_report(draft: ConversationDraft) -> None:
    """One report turn, or the findings followed by the impression."""
    sampler = draft.sampler
    sections = _sections(draft)
    texts = {section.name: section.text for section in sections}
    if len(texts) > 1 and sampler.chance(draft.quotas.two_report_turns):
        if sampler.chance(0.4):
            # The prompt gives the findings away, so they are not asked for.
            slots = {"findings": texts["findings"]}
            turn = _ask(draft, "impression from findings", ("impression",), sections, slots)
            turn.restates = True
        else:
            first = _ask(draft, "findings section", ("findings",), sections)
            second = _ask(draft, "impression", ("impression",), sections)
            second.after = [first]
        return
    tasks = [one for one in _ONE_TURN if all(name in texts for name in one[1])]
    task, names, _ = sampler.weighted(tasks, [share for _, _, share in tasks])
    _ask(draft, task, names, sections)


def _ask(
    draft: ConversationDraft,
    task: str,
    names: tuple[str, ...],
    sections: list[ReportSection],
    slots: dict[str, str] | None = None,
) -> Turn:
    turn = draft.add_question(8, task, "report", slots, facts=[target_row("study", task)])
    turn.facts += [thing.truth for thing in draft.subject.things]
    wanted = [section for section in sections if section.name in names]
    wanted.sort(key=lambda section: names.index(section.name))
    turn.sections = tuple(wanted)
    headed = len(wanted) > 1
    turn.answer = "\n".join(f"{s.name.capitalize()}: {s.text}" if headed else s.text for s in wanted)
    report = draft.subject.study.report
    if report is not None:
        said = [number for number, one in enumerate(report.sentences) if one.section in names]
        turn.evidence = cite("current", tuple(said))
    return turn


def _sections(draft: ConversationDraft) -> list[ReportSection]:
    """Of the report; put together from the findings where there is none."""
    report = draft.subject.study.report
    written = [
        ReportSection(name=section.name, text=section.text.strip())
        for section in (report.sections if report is not None else ())
        if section.name in ("findings", "impression") and section.text.strip()
    ]
    return written or _composed(draft)


def _composed(draft: ConversationDraft) -> list[ReportSection]:
    subject = draft.subject
    findings: list[str] = []
    impression: list[str] = []
    for thing in subject.things:
        certain = "device" if thing.kind == "device" else "present"
        kind = certain if thing.is_present else "uncertain"
        slots = {"described": thing.plain}
        findings.append(sentence(draft.fill_clause(8, "sentence", kind, slots=slots)))
        if thing.kind == "finding":
            impression.append(sentence(draft.fill_clause(8, "impression", kind, slots=slots)))
    if not subject.findings and subject.devices:
        # Nothing abnormal, but not an unremarkable examination either.
        impression = findings[:]
    findings += [
        sentence(draft.fill_clause(8, "sentence", "absent", slots={"finding": missing.name}))
        for missing in subject.absent_findings
        if missing.id
    ]
    if not impression:
        impression = [sentence(draft.fill_clause(8, "impression", "normal", slots={}))]
    return [
        ReportSection(name="findings", text=" ".join(findings or impression)),
        ReportSection(name="impression", text=" ".join(impression)),
    ]
