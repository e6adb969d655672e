"""Gates keep bounded samples of what they measure, so memory does not grow with the number of cases."""

import msgspec
import pytest
from tests.audits.gates import COMMON, PERCEPT, gates_of
from tests.audits.sound import benchmark

from carina.audits.common import duplicate_cases, revealing_names
from carina.audits.percept import contour_shortcuts

change = msgspec.structs.replace


@pytest.fixture(scope="module")
def sound():
    return benchmark(12)


def repeated(cases, n):
    """The same cases again and again, of other patients."""
    for at in range(n):
        case = cases[at % len(cases)]
        image = change(case.images[0], sha256=f"{at:064}")
        yield change(
            case, id=f"{case.id}-{at}", study=f"s{at}", patient=f"p{at}", images=(image, *case.images[1:])
        )


def gates_after(sound, n):
    gates = gates_of(COMMON, PERCEPT, limits={"text-only-baseline": {"max_questions": 10}})
    for case in repeated(sound, n):
        for gate in gates:
            gate.see(case)
    return {gate.name: gate for gate in gates}


def test_samples_do_not_exceed_their_size(sound, monkeypatch):
    monkeypatch.setattr(duplicate_cases, "_MOST_IMAGES", 40)
    monkeypatch.setattr(revealing_names, "_MOST_ROWS", 40)
    monkeypatch.setattr(contour_shortcuts, "_MOST_VALUES", 5)
    gates = gates_after(sound, 240)
    assert 10 <= len(gates["duplicate-cases"]._masks) <= 40
    assert len(gates["revealing-names"]._rows) == 40
    kept = [
        paths[path].values
        for targets in gates["contour-shortcuts"]._measures.values()
        for paths in targets.values()
        for path in ("RR", "RF")
    ]
    assert {len(values) for values in kept} == {5}
    assert (
        f"on a sample of {len(gates['duplicate-cases']._masks)} images"
        in gates["duplicate-cases"].result().threshold
    )


def test_a_small_benchmark_is_not_sampled(sound):
    gates = gates_after(sound, 24)
    assert len(gates["revealing-names"]._rows) == 24
    assert "sample" not in gates["duplicate-cases"].result().threshold
