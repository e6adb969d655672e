"""The memory of gates hardly grows with the number of cases: a few bytes per case."""

import gc
import sys
from types import BuiltinFunctionType, FunctionType, ModuleType

from tests.audits import gates
from tests.audits.trek.breaking import change

from carina.audits import AuditContext, first_seen

FEW = 300
BYTES = 100
"""Of a case that a gate may keep: digests of twelve bytes, and once the ids of case and patient."""
_NOT_HELD = (type, ModuleType, FunctionType, BuiltinFunctionType, AuditContext)
"""The context knows what gates share; each of them holds its own part of that."""


def repeated(cases, n):
    """The same conversations again and again, of other patients, each with little to read."""
    for at in range(n):
        case = cases[at % len(cases)]
        names = {
            name: f"{value}-{at}" if (value := getattr(case, name)) else None
            for name in ("study", "patient", "reference_study", "later_study")
        }
        images = tuple(
            change(image, key=f"{at}/{image.key}", sha256=f"{at:064}{place}")
            for place, image in enumerate(case.images)
        )
        yield change(case, id=f"{case.id}-{at}", images=images, steps=case.steps[:4], split="test", **names)


def held(gate):
    """Bytes of all objects that a gate refers to, however far."""
    seen, found, size = set(), [gate], 0
    while found:
        here = [one for one in found if id(one) not in seen and not isinstance(one, _NOT_HELD)]
        unique = {id(one): one for one in here}
        seen |= unique.keys()
        size += sum(map(sys.getsizeof, unique.values()))
        found = gc.get_referents(*unique.values())
    return size


class Nowhere:
    """Images that lie nowhere."""

    def __init__(self, folder):
        self.folder = folder

    def image_path(self, image):
        return self.folder / image.key


def gates_of(folder):
    limits = {
        "text-only-baseline": {"max_questions": 20},
        "history-baseline": {"max_questions": 20},
        "option-shortcuts": {"max_boxes": 20},
    }
    return gates.gates_of(gates.COMMON, gates.TREK, limits=limits, images=Nowhere(folder), render=0)


def sizes(examined):
    for gate in examined:
        # The conversation at hand is not what is kept.
        if (decoder := gate.decoder) is not None:
            decoder.read(change(decoder._case, protocol="none", steps=()))
    return {gate.name: held(gate) for gate in examined}


def test_gates_keep_counts_and_digests_but_no_cases(tmp_path, sound, monkeypatch):
    monkeypatch.setattr(first_seen, "_BUFFER", 16)
    examined, after = gates_of(tmp_path), {}
    for at, case in enumerate(repeated(sound, 10 * FEW), start=1):
        for gate in examined:
            gate.see(case)
        if at in (FEW, 10 * FEW):
            after[at] = sizes(examined)
    grown = {name: (size - after[FEW][name]) / (9 * FEW) for name, size in after[10 * FEW].items()}
    assert {name: round(each) for name, each in grown.items() if each > BYTES} == {}
    assert sum(grown.values()) < 4 * BYTES


def test_the_measure_of_memory_notices_a_gate_that_keeps_cases(sound):
    class Keeps:
        def __init__(self):
            self.cases = []

    gate, few = Keeps(), list(repeated(sound, 20))
    gate.cases = few[:10]
    before = held(gate)
    gate.cases = few
    assert held(gate) - before > 10 * BYTES
