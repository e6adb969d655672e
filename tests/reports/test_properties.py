"""Any text at all: no error, spans that fit, evidence that exists, the same answer twice, work linear in length."""

import sys
from itertools import pairwise
from types import FrameType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from carina.reports import read_report, with_report_truth
from carina.reports.observations import parse_sentence
from carina.reports.sections import sentence_spans
from carina.studies.faults import faults
from carina.studies.model import (
    Device,
    Finding,
    Image,
    Recommendation,
    Relation,
    Report,
    ReportSection,
    Study,
)
from carina.studies.vocabulary import SECTIONS, Section

WORDS = (
    "no not without possible may represent versus or and but , . ; : ( ) \n\n 1. 2) - XXXX the a is are left right "
    "bilateral upper lower lobe zone lung lungs heart clear normal enlarged small large effusion pneumothorax "
    "consolidation opacity density nodule mass pneumonia atelectasis edema fracture ribs new unchanged increased "
    "resolved removed tube tip carina chest recommend CT follow-up due to with consistent with FINDINGS: "
    "IMPRESSION: Lungs: 2.1 cm Dr. cannot be excluded has been prior since 01/02/2003"
)
PIECES = st.sampled_from(WORDS.split(" "))
REPORTS = st.lists(PIECES, max_size=60).map(" ".join) | st.text(max_size=300)
slow = settings(suppress_health_check=[HealthCheck.too_slow], max_examples=150)


@slow
@given(REPORTS)
def test_evidence_and_statements_refer_to_each_other(text: str) -> None:
    reading = read_report(text)
    count = len(reading.report.sentences)
    facts: list[Finding | Device | Relation | Recommendation] = [
        *reading.findings,
        *reading.devices,
        *reading.relations,
        *reading.recommendations,
    ]
    assert len({fact.id for fact in facts}) == len(facts)
    for fact in facts:
        assert fact.evidence
        assert all(0 <= index < count for index in fact.evidence)
        assert list(fact.evidence) == sorted(set(fact.evidence))
        for index in fact.evidence:
            assert any(state.about == fact.id for state in reading.report.sentences[index].states)
    stated = {
        state.about for s in reading.report.sentences for state in s.states if state.kind != "comparison"
    }
    assert stated == {fact.id for fact in facts}


@slow
@given(REPORTS)
def test_reading_again_gives_the_same(text: str) -> None:
    assert read_report(text) == read_report(text)


@slow
@given(REPORTS)
def test_sentences_are_spans_of_their_text(text: str) -> None:
    found = list(sentence_spans(text))
    assert all(0 <= start < end <= len(text) for start, end in found)
    assert all(one[1] <= two[0] for one, two in pairwise(found))
    assert all(text[start:end] == text[start:end].strip() for start, end in found)
    report = read_report(text).report
    for sentence in report.sentences:
        section = report.text(sentence.section)
        assert section is not None
        assert report.quote(sentence) == section[sentence.start : sentence.end] != ""


@slow
@given(st.lists(st.tuples(st.sampled_from(SECTIONS), REPORTS), max_size=4))
def test_a_study_from_any_report_is_sound(parts: list[tuple[Section, str]]) -> None:
    report = Report(sections=tuple(ReportSection(name=name, text=text) for name, text in parts))
    image = Image(key="a.png", view="PA", width=8, height=8)
    study = Study(id="s", patient="p", source="x", order=0, images=(image,), report=report)
    assert list(faults(with_report_truth(study))) == []


@pytest.mark.parametrize(
    "unit",
    [
        "no effusion ", "effusion, ", "effusion or ", "may be possible effusion versus ", " ", "\n", "1. ", "e.g. ",
        "Lungs: ", "FINDINGS: ", "heart is enlarged and ", "effusion with atelectasis due to ", "a", "...", "((", "- ",
        "left upper and ", "possible effusion. Effusion. ", "Effusion. Stable chest. ", "CT is advised. ",
    ],
)  # fmt: skip
def test_work_grows_no_faster_than_the_text(unit: str) -> None:
    """Counts executed lines instead of seconds, so that the speed of the machine does not matter."""
    read_report(unit)
    # Eight times the text: eight times the lines; a square would be sixty-four times.
    assert lines_executed(unit, 32_000) < 16 * max(lines_executed(unit, 4_000), 500)
    read_report(unit * (160_000 // len(unit)))


def lines_executed(unit: str, length: int) -> int:
    """Lines of Python that reading a text of some length takes, each pass of a loop counted."""
    count = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> object:
        nonlocal count
        count += event == "line"
        return trace

    parse_sentence.cache_clear()
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        read_report(unit * (length // len(unit)))
    finally:
        sys.settrace(before)
    return count
