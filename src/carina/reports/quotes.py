"""Phrases that are quoted from a report whose other sentences nobody has read: kept while the report is read."""

from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from carina.reports.sections import HEADED, sentence_spans
from carina.studies.model import Device, Finding, Report, Sentence, Study
from carina.studies.vocabulary import Section

Thing = TypeVar("Thing", Finding, Device)

_SECTIONS: Final[tuple[Section, ...]] = ("findings", "impression")
_NEARLY_ALL: Final = 0.9
"""Share of the text that sentences of a report that was read hold at least; the rest is space and headings. Below it,
each sentence is looked at."""

replace = msgspec.structs.replace


def has_unlinked_sentences(report: Report) -> bool:
    """Whether a sentence of the findings or the impression has no part among the stored sentences of the report.

    Example:
        >>> from carina.studies import ReportSection
        >>> text = "There is a small effusion. No pneumothorax."
        >>> report = Report(
        ...     sections=(ReportSection(name="findings", text=text),),
        ...     sentences=(Sentence(section="findings", start=11, end=25),),
        ... )
        >>> has_unlinked_sentences(report)
        True
    """
    for name in _SECTIONS:
        text = report.text(name) or ""
        stored = [(one.start, one.end) for one in report.sentences if one.section == name]
        if sum(end - start for start, end in stored) >= _NEARLY_ALL * len(text):
            continue
        for start, end in sentence_spans(text, headed=name in HEADED):
            if not any(other < end and start < other_end for other, other_end in stored):
                return True
    return False


def drop_quotes(study: Study) -> Study:
    """The study as if no sentence of its report were linked to a record; it is the same where none is."""
    if study.report is None or not _has_statements(study.report):
        return study
    return replace(
        study,
        report=replace(study.report, sentences=()),
        findings=tuple(replace(one, evidence=()) for one in study.findings),
        devices=tuple(replace(one, evidence=()) for one in study.devices),
        relations=tuple(replace(one, evidence=()) for one in study.relations),
        recommendations=tuple(replace(one, evidence=()) for one in study.recommendations),
    )


def append_quotes(combined: Study, stored: Study) -> Study:
    """The study with the quotes of the stored one behind the sentences of its report.

    What a quote states, no other sentence states: the quote was chosen for the record, and a sentence around it would
    repeat it.
    """
    if stored.report is None or combined.report is None or not _has_statements(stored.report):
        return combined
    offset = len(combined.report.sentences)
    things: list[Finding | Device] = [*combined.findings, *combined.devices]
    kept = {thing.id for thing in things}
    quotes = [
        replace(one, states=tuple(state for state in one.states if state.about in kept))
        for one in stored.report.sentences
    ]
    quoted = {state.about for one in quotes for state in one.states}
    read = [_drop_statements(one, quoted) for one in combined.report.sentences]
    own: list[Finding | Device] = [*stored.findings, *stored.devices]
    evidence = {thing.id: tuple(offset + place for place in thing.evidence) for thing in own}
    return replace(
        combined,
        report=replace(combined.report, sentences=(*read, *quotes)),
        findings=_add_evidence(combined.findings, evidence),
        devices=_add_evidence(combined.devices, evidence),
    )


def _has_statements(report: Report) -> bool:
    return any(sentence.states for sentence in report.sentences)


def _drop_statements(sentence: Sentence, about: set[str]) -> Sentence:
    return replace(sentence, states=tuple(state for state in sentence.states if state.about not in about))


def _add_evidence(things: tuple[Thing, ...], evidence: Mapping[str, tuple[int, ...]]) -> tuple[Thing, ...]:
    return tuple([replace(one, evidence=one.evidence + evidence.get(one.id, ())) for one in things])
