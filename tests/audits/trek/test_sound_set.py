"""A sound set passes every gate of trek, and is counted as it is."""

from collections import Counter

import pytest
from tests.audits import gates
from tests.audits.trek.breaking import audited, change, row


def test_a_sound_set_passes_every_gate(sound):
    result = gates.audited(sound, gates.COMMON, gates.TREK, protocols=("trek",))
    assert {gate.name: gate.status for gate in result.gates if gate.status != "pass"} == {
        "key-margins": "not applicable",
        "image-files": "not applicable",
    }
    assert (result.cases, result.patients) == (150, 150)
    assert all(gate.threshold and gate.meaning for gate in result.gates)


def test_each_rate_has_an_interval(sound):
    for gate in audited(sound).gates:
        if gate.name != "conversation-statistics":
            assert gate.rate is not None, gate.name
            assert gate.low - 1e-9 <= gate.rate <= gate.high + 1e-9, gate.name


def test_cases_of_other_protocols_are_ignored(sound):
    others = [change(case, protocol="percept") for case in sound[:20]]
    assert {gate.status for gate in audited(others).gates} == {"not applicable"}


def test_no_case_at_all_is_not_applicable():
    assert {gate.status for gate in audited([]).gates} == {"not applicable"}


def test_the_order_of_cases_does_not_change_counts_and_samples(sound):
    one, other = audited(sound, history=True), audited(sound[::-1], history=True)
    for name in ("answer-balance", "template-frequency", "negative-origins", "history-baseline"):
        assert one.gate(name) == other.gate(name)


def test_statistics_stand_beside_those_of_the_original_sample(sound):
    result = audited(sound)
    turns = [len(case.steps) for case in sound]
    formats = Counter(step.format for case in sound for step in case.steps)
    mean = row(result, "conversation-statistics", "turns per conversation, mean")
    assert mean.value == pytest.approx(sum(turns) / len(turns))
    assert mean.low < mean.value < mean.high
    assert mean.note == "the original's sample: 26.06"
    assert row(result, "conversation-statistics", "turns per conversation, most").value == max(turns)
    assert row(result, "conversation-statistics", "turns per conversation, least").value == min(turns)
    yes_no = row(result, "conversation-statistics", "format yes_no")
    assert (yes_no.value, yes_no.n) == (pytest.approx(formats["yes_no"] / sum(turns)), sum(turns))
    assert yes_no.note == "the original's sample: 20.9%"
    images = sum(len(case.images) for case in sound) / len(sound)
    assert row(result, "conversation-statistics", "images per conversation, mean").value == pytest.approx(
        images
    )
    assert row(
        result, "conversation-statistics", "device presence: yes among yes and no"
    ).value == pytest.approx(0.5, abs=0.03)
    shares = [
        r.value
        for r in result.gate("conversation-statistics").rows
        if r.name.endswith("share of answer words")
    ]
    assert sum(shares) == pytest.approx(1.0)
    several = row(result, "conversation-statistics", "choices with several right")
    assert 0.05 < several.value < 0.15
