"""Any text at all: never an error, spans that fit, evidence that exists, the same answer twice, linear time."""

import time
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
from carina.trek.reports import read_report, with_report_truth
from carina.trek.reports.sentences import spans

WORDS = (
    "no not without possible may represent versus or and but , . ; : ( ) \n\n 1. 2) - XXXX the a is are left right "
    "bilateral upper lower lobe zone lung lungs heart clear normal enlarged small large effusion pneumothorax "
    "consolidation opacity density nodule mass pneumonia atelectasis edema fracture ribs new unchanged increased "
    "resolved removed tube tip carina chest recommend CT follow-up due to with consistent with FINDINGS: "
    "IMPRESSION: Lungs: 2.1 cm Dr. cannot be excluded has been prior since 01/02/2003"
)
PIECES = st.sampled_from(WORDS.split(" "))
REPORTS = st.lists(PIECES, max_size=60).map(" ".join) | st.text(max_size=300)
slow = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=150)


@slow
@given(REPORTS)
def test_every_link_leads_somewhere(text: str) -> None:
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
    found = list(spans(text))
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
def test_time_grows_no_faster_than_the_text(unit: str) -> None:
    def seconds(length: int) -> float:
        return min(once(length) for _ in range(3))

    def once(length: int) -> float:
        start = time.process_time()
        read_report(unit * (length // len(unit)))
        return time.process_time() - start

    read_report(unit)
    seconds(10_000)
    # Eight times the text: eight times the time, with room for a noisy machine; a square would be sixty-four.
    assert seconds(160_000) < 30 * max(seconds(20_000), 0.01)
