"""Stage 8: the report, or a section of it.

The key is the study's own report where it has one, else it is composed from the findings, where all of them are known.
Excerpts of a report are no report, and a report that contradicts what the other stages take for true is no key. A
sentence in which de-identification has removed something is left out of the key: nobody can know what it said.
"""

import re
from collections.abc import Iterator
from typing import Final

from carina.reports.conflicts import IN_CONFLICT
from carina.reports.sections import has_removed_words
from carina.studies.model import Report, ReportSection, Sentence
from carina.studies.vocabulary import SIDES
from carina.trek.facts import target_row
from carina.trek.interned import cite
from carina.trek.language import make_sentence
from carina.trek.subject import KINDS, Thing
from carina.trek.turn import NOT_SHOWN, ConversationDraft, Turn

_ONE_TURN: Final = (
    ("impression", ("impression",), 0.59),
    ("full report", ("impression", "findings"), 0.325),
    ("findings section", ("findings",), 0.085),
)
"""Tasks, the sections that each asks for in the order of the answer, and how often each is put."""
_BOTH_SIDES: Final = re.compile(
    r"\b(?:both|bi\w*(?:basal|basilar|apical|hilar|lateral\w*)|lungs|bases|apices|hila)\b", re.I
)
_ONE_SIDE: Final = re.compile(r"\b(right|left)\b", re.IGNORECASE)


def ask_report(draft: ConversationDraft) -> None:
    """Ask for the report in one turn, or for the findings and then for the impression; where the key is known."""
    sampler = draft.sampler
    sections = _list_sections(draft)
    if not sections:
        return
    texts = {section.name: section.text for section in sections}
    if len(texts) > 1 and sampler.chance(draft.quotas.two_report_turns):
        if sampler.chance(0.4):
            # The prompt states the findings, so they are not asked for.
            slots = {"findings": texts["findings"]}
            turn = _ask_sections(draft, "impression from findings", ("impression",), sections, slots)
            turn.restates = True
        else:
            first = _ask_sections(draft, "findings section", ("findings",), sections)
            second = _ask_sections(draft, "impression", ("impression",), sections)
            second.after = [first]
        return
    tasks = [one for one in _ONE_TURN if all(name in texts for name in one[1])]
    task, names, _ = sampler.pick_weighted(tasks, [share for _, _, share in tasks])
    _ask_sections(draft, task, names, sections)


def _ask_sections(
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
        said = [
            number
            for number, one in enumerate(report.sentences)
            if one.section in names and not has_removed_words(report.quote(one))
        ]
        turn.evidence = cite("current", tuple(said))
    return turn


def _list_sections(draft: ConversationDraft) -> list[ReportSection]:
    """Sections of the report; composed from the findings where the study has no report."""
    report = draft.subject.study.report
    if any(draft.subject.disputed.values()) or draft.subject.is_report_overruled:
        draft.leave_out("full report", IN_CONFLICT)
        return []
    if report is None or report.is_excerpt:
        written: list[ReportSection] = []
    else:
        written = [
            ReportSection(name=section.name, text=text)
            for section in report.sections
            if section.name in ("findings", "impression") and (text := _quote_section(draft, report, section))
        ]
    if written:
        return written
    # A report that is composed from the findings is right only where there is nothing else to report.
    return _compose_sections(draft) if draft.is_complete("full report", *KINDS) else []


def _quote_section(draft: ConversationDraft, report: Report, section: ReportSection) -> str:
    """A section in its own words, except for what the images do not show; empty where nothing can be asked for."""
    own = [one for one in report.sentences if one.section == section.name]
    unseen = {one for one in own if draft.speaks_of_unseen(one)}
    if not unseen and not has_removed_words(section.text):
        return section.text.strip()
    said: list[str] = []
    told: set[str] = set()
    end = 0
    for one in sorted(own, key=lambda one: (one.start, -one.end)):
        # A phrase may be quoted from within a sentence.
        if one.start < end:
            continue
        end = one.end
        quote = report.quote(one).strip()
        if has_removed_words(quote):
            continue
        if one not in unseen:
            said.append(quote)
            continue
        restated = list(_restate(draft, one, told))
        if None in restated:
            draft.leave_out(f"{section.name} section", NOT_SHOWN)
            return ""
        said += [sentence for sentence in restated if sentence]
    return " ".join(said)


def _restate(draft: ConversationDraft, sentence: Sentence, told: set[str]) -> Iterator[str | None]:
    """What a sentence states of the images of the current study; None for what is present and cannot be said anew.

    `told` has the ids and names of what the section has already said in this way.
    """
    subject = draft.subject
    missing = {one.id: one.name for one in (*subject.absent_findings, *subject.absent_devices) if one.id}
    missing |= {record.id: name for name, record in subject.resolved.items()}
    quote = "" if subject.study.report is None else subject.study.report.quote(sentence)
    for state in sentence.states:
        if state.kind not in ("finding", "device") or state.certainty is None:
            continue
        thing = subject.by_id.get(state.about)
        if thing is not None and thing.id not in told:
            told.add(thing.id)
            yield _say(draft, thing, is_bare=not _names_sides(quote, thing))
        elif thing is None and state.certainty != "absent":
            yield None
        elif thing is None and (name := missing.get(state.about)) and name not in told:
            told.add(name)
            yield make_sentence(draft.fill_clause(8, "sentence", "absent", slots={"finding": name}))


def _names_sides(quote: str, thing: Thing) -> bool:
    """Whether a sentence names the sides on which a thing lies; what it says of one side may be known from elsewhere to
    hold for another one, too, and is not what this sentence says."""
    if not thing.sides:
        return True
    if _BOTH_SIDES.search(quote):
        return thing.sides.issuperset(SIDES)
    return thing.sides == frozenset(side.lower() for side in _ONE_SIDE.findall(quote))


def _say(draft: ConversationDraft, thing: Thing, *, is_bare: bool = False) -> str:
    """A sentence about a thing: with all that is known of it, or with its bare name."""
    certain = "device" if thing.kind == "device" else "present"
    kind = certain if thing.is_present else "uncertain"
    described = draft.words.name(thing.name).a if is_bare else thing.plain
    return make_sentence(draft.fill_clause(8, "sentence", kind, slots={"described": described}))


def _compose_sections(draft: ConversationDraft) -> list[ReportSection]:
    subject = draft.subject
    findings: list[str] = []
    impression: list[str] = []
    for thing in subject.things:
        findings.append(_say(draft, thing))
        if thing.kind == "finding":
            kind = "present" if thing.is_present else "uncertain"
            slots = {"described": thing.plain}
            impression.append(make_sentence(draft.fill_clause(8, "impression", kind, slots=slots)))
    if not subject.findings and subject.devices:
        # Nothing is abnormal, but with a device the examination is not unremarkable either.
        impression = findings[:]
    findings += [
        make_sentence(draft.fill_clause(8, "sentence", "absent", slots={"finding": missing.name}))
        for missing in subject.absent_findings
        if missing.id
    ]
    if not impression:
        impression = [make_sentence(draft.fill_clause(8, "impression", "normal", slots={}))]
    return [
        ReportSection(name="findings", text=" ".join(findings or impression)),
        ReportSection(name="impression", text=" ".join(impression)),
    ]
