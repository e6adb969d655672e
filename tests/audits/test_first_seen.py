"""What gates remember of earlier cases: correct, and in a few bytes per case."""

import tracemalloc

import numpy as np
import pytest

from carina.audits import first_seen
from carina.audits.first_seen import CaseRegister, FirstSeen, Reservoir
from carina.cases.model import Case
from carina.store.seeding import rng


def case(number, *, patient="p", split="test"):
    return Case(
        id=f"c{number}",
        protocol="trek",
        study=f"s{number}",
        patient=patient,
        source="made",
        split=split,
        images=(),
        steps=(),
    )


@pytest.mark.parametrize(("buffer", "longest", "things"), [(32, 128, 1000), (8192, 1 << 16, 20_000)])
def test_the_first_number_of_each_thing_is_found_among_many(monkeypatch, buffer, longest, things):
    monkeypatch.setattr(first_seen, "_BUFFER", buffer)
    monkeypatch.setattr(first_seen, "_LONGEST", longest)
    drawn = rng(1, "things").integers(0, things, 3 * things).tolist()
    firsts, expected = FirstSeen(), {}
    for number, thing in enumerate(drawn):
        assert firsts.first(f"study {thing}", number) == expected.setdefault(f"study {thing}", number)
    assert len(firsts) == len(expected)
    assert firsts._runs
    assert {thing: firsts.get(thing) for thing in expected} == expected
    assert firsts.get("study of nobody") is None


def test_things_differ_by_any_of_their_parts():
    firsts = FirstSeen()
    assert firsts.first(("trek", "s1", None), 0) == 0
    assert firsts.first(("trek", "s1", "edema"), 1) == 1
    assert firsts.first(("trek", "s1", None), 2) == 0


def memory_of(make, sizes):
    """Bytes that remain in memory for each of some numbers of things."""
    kept = []
    for size in sizes:
        tracemalloc.start()
        made = make(size)
        kept.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        del made
    return kept


def test_memory_does_not_grow_with_the_number_of_things(monkeypatch):
    monkeypatch.setattr(first_seen, "_BUFFER", 128)
    monkeypatch.setattr(first_seen, "_LONGEST", 1024)

    def make(size):
        firsts = FirstSeen()
        for number in range(size):
            firsts.first(f"patient {number}", number)
        return firsts

    # Neither ends with a full buffer. The 8,192 further things take twelve bytes each on disk, and 8 bytes per block
    # of 512 and some 500 bytes per run of 1,024 in memory.
    small, large = memory_of(make, (2_048 + 1, 10_240 + 1))
    assert large - small < 4 * 8_192


def test_memory_does_not_grow_with_the_number_of_cases(monkeypatch):
    monkeypatch.setattr(first_seen, "_TEXTS", 1000)

    def make(size):
        cases = CaseRegister()
        for number in range(size):
            cases.number(case(number))
        return cases

    small, large = memory_of(make, (1_000, 11_000))
    # A byte for the split of each, and not its id.
    assert large - small < 2 * 10_000


def test_ids_and_patients_are_read_back_from_the_file(monkeypatch):
    monkeypatch.setattr(first_seen, "_TEXTS", 50)
    cases = CaseRegister()
    for number in range(100):
        assert cases.number(case(number, patient=f"é{number}" if number % 3 else None)) == number
        assert cases.id(number) == f"c{number}"
    assert [cases.id(number) for number in range(100)] == [f"c{number}" for number in range(100)]
    assert [cases.patient(number) for number in range(100)] == [
        f"é{number}" if number % 3 else None for number in range(100)
    ]


def test_earlier_cases_are_known_by_number():
    cases = CaseRegister()
    seen = [case(0), case(1, patient=None), case(2, patient="", split=None)]
    assert [cases.number(one) for one in seen for _gate in range(2)] == [0, 0, 1, 1, 2, 2]
    assert [cases.id(number) for number in range(3)] == ["c0", "c1", "c2"]
    assert [cases.patient(number) for number in range(3)] == ["p", None, ""]
    assert [cases.split(number) for number in range(3)] == ["test", "test", None]


def test_a_reservoir_keeps_all_of_a_few_and_some_of_many():
    kept = Reservoir(100, width=2)
    for number in range(100):
        kept.add(f"c{number}", number, -number)
    assert list(kept.values) == [value for number in range(100) for value in (number, -number)]
    for number in range(100, 10_000):
        kept.add(f"c{number}", number, -number)
    rows = np.array(kept.values).reshape(-1, 2)
    assert len(rows) == 100
    assert (rows[:, 0] == -rows[:, 1]).all()
    # Each is kept with the same chance: the mean place of 100 of 10,000 has a standard error of 290.
    assert abs(rows[:, 0].mean() - 5000) < 4 * 290
