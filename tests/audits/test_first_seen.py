"""What gates remember of earlier cases: correct, and in a few bytes per case."""

import sys
from array import array

import numpy as np

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


def test_the_first_number_of_each_thing_is_found_among_many():
    drawn = rng(1, "things").integers(0, 20_000, 60_000).tolist()
    firsts, expected = FirstSeen(), {}
    for number, thing in enumerate(drawn):
        assert firsts.first(f"study {thing}", number) == expected.setdefault(f"study {thing}", number)
    assert len(firsts) == len(expected) > 5 * first_seen._BUFFER // 2
    assert {thing: firsts.get(thing) for thing in expected} == expected
    assert firsts.get("study of nobody") is None


def test_things_differ_by_any_of_their_parts():
    firsts = FirstSeen()
    assert firsts.first(("trek", "s1", None), 0) == 0
    assert firsts.first(("trek", "s1", "edema"), 1) == 1
    assert firsts.first(("trek", "s1", None), 2) == 0


def test_a_thing_takes_twelve_bytes():
    firsts = FirstSeen()
    for number in range(50 * first_seen._BUFFER):
        firsts.first(f"patient {number}", number)
    kept = [value for value in vars(firsts).values() if isinstance(value, array)]
    assert sum(map(sys.getsizeof, kept)) < 13 * len(firsts)
    assert len(firsts._buffer) <= max(first_seen._BUFFER, len(firsts) // first_seen._BUFFER_SHARE)


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
