"""A sound set passes every gate of trek, and is counted as it is."""

from collections import Counter

import pytest
from gates_trek import COMMON, audited, change, row

from carina.cases.audit import audit, common_gates
from carina.trek.audit import trek_gates


def test_a_sound_set_passes_every_gate(sound):
    result = audit(sound, [*common_gates(COMMON), *trek_gates(COMMON)])
    assert {gate.name: gate.status for gate in result.gates if gate.status != "pass"} == {
        "margins": "not applicable",
        "views": "not applicable",
    }
    assert (result.cases, result.patients) == (150, 150)
    assert all(gate.threshold and gate.meaning for gate in result.gates)


def test_each_rate_has_an_interval(sound):
    for gate in audited(sound).gates:
        if gate.name != "statistics":
            assert gate.rate is not None, gate.name
            assert gate.low - 1e-9 <= gate.rate <= gate.high + 1e-9, gate.name


def test_other_protocols_pass_by(sound):
    others = [change(case, protocol="percept") for case in sound[:20]]
    assert {gate.status for gate in audited(others).gates} == {"not applicable"}


def test_no_case_at_all_is_not_applicable():
    assert {gate.status for gate in audited([]).gates} == {"not applicable"}


def test_the_order_of_cases_does_not_matter_much(sound):
    one, other = audited(sound, history=True), audited(sound[::-1], history=True)
    for name in ("balance", "templates", "negatives", "history"):
        assert one.gate(name) == other.gate(name)


def test_statistics_count_what_is_there_beside_the_sample(sound):
    result = audited(sound)
    turns = [len(case.steps) for case in sound]
    formats = Counter(step.format for case in sound for step in case.steps)
    mean = row(result, "statistics", "turns per conversation, mean")
    assert mean.value == pytest.approx(sum(turns) / len(turns))
    assert mean.low < mean.value < mean.high
    assert mean.note == "the original's sample: 26.06"
    assert row(result, "statistics", "turns per conversation, most").value == max(turns)
    assert row(result, "statistics", "turns per conversation, least").value == min(turns)
    yes_no = row(result, "statistics", "format yes_no")
    assert (yes_no.value, yes_no.n) == (pytest.approx(formats["yes_no"] / sum(turns)), sum(turns))
    assert yes_no.note == "the original's sample: 20.9%"
    images = sum(len(case.images) for case in sound) / len(sound)
    assert row(result, "statistics", "images per conversation, mean").value == pytest.approx(images)
    assert row(result, "statistics", "device presence: yes among yes and no").value == pytest.approx(
        0.5, abs=0.03
    )
    shares = [r.value for r in result.gate("statistics").rows if r.name.endswith("share of answer words")]
    assert sum(shares) == pytest.approx(1.0)
    several = row(result, "statistics", "choices with several right")
    assert 0.05 < several.value < 0.15
