"""percept's gates and the common ones keep samples of what they measure, so memory does not grow with the cases."""

import importlib.util
import sys
from pathlib import Path

import msgspec
import pytest

from carina.cases.audit import Thresholds, common_gates, duplicates, names
from carina.percept.audit import percept_gates, shortcuts

change = msgspec.structs.replace


@pytest.fixture(scope="module")
def sound():
    if "sound_benchmark" not in sys.modules:
        path = Path(__file__).parents[1] / "cases" / "audit" / "sound.py"
        spec = importlib.util.spec_from_file_location("sound_benchmark", path)
        module = importlib.util.module_from_spec(spec)
        sys.modules["sound_benchmark"] = module
        spec.loader.exec_module(module)
    return sys.modules["sound_benchmark"].benchmark(12)


def repeated(cases, n):
    """The same cases again and again, of other patients."""
    for at in range(n):
        case = cases[at % len(cases)]
        image = change(case.images[0], sha256=f"{at:064}")
        yield change(
            case, id=f"{case.id}-{at}", study=f"s{at}", patient=f"p{at}", images=(image, *case.images[1:])
        )


def seen(sound, n):
    gates = [*common_gates(Thresholds(most_cases=10)), *percept_gates()]
    for case in repeated(sound, n):
        for gate in gates:
            gate.see(case)
    return {type(gate).__name__: gate for gate in gates}


def test_samples_stay_as_large_as_they_may(sound, monkeypatch):
    monkeypatch.setattr(duplicates, "_MOST_IMAGES", 40)
    monkeypatch.setattr(names, "_MOST_ROWS", 40)
    monkeypatch.setattr(shortcuts, "_MOST_VALUES", 5)
    gates = seen(sound, 240)
    assert 10 <= len(gates["Duplicates"]._drawn) <= 40
    assert len(gates["Names"]._rows) == 40
    kept = [
        paths[path].values
        for targets in gates["Shortcuts"]._measures.values()
        for paths in targets.values()
        for path in ("RR", "RF")
    ]
    assert {len(values) for values in kept} == {5}
    assert (
        f"on a sample of {len(gates['Duplicates']._drawn)} images" in gates["Duplicates"].result().threshold
    )


def test_a_small_benchmark_is_looked_at_as_a_whole(sound):
    gates = seen(sound, 24)
    assert len(gates["Names"]._rows) == 24
    assert "sample" not in gates["Duplicates"].result().threshold
