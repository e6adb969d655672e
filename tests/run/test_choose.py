"""Which cases are run: the same for the same seed, fair to every cell, and more hold those of fewer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.run.conftest import CASES

from carina.errors import CarinaError
from carina.run.choose import chosen_cases


def test_all_without_a_limit(bench):
    assert chosen_cases(bench, limit=None, sample_per_cell=None, seed=0) is None


def test_the_first_few(bench):
    assert chosen_cases(bench, limit=2, sample_per_cell=None, seed=0) == ("lf", "rr")


def test_as_many_of_each_cell(bench):
    chosen = chosen_cases(bench, limit=None, sample_per_cell=2, seed=1)
    assert sorted(name.partition("-")[0] for name in chosen) == ["lf", "lf", "rr", "rr", "talk", "talk"]
    assert list(chosen) == [name for name in bench.ids() if name in chosen]


def test_a_larger_sample_holds_the_smaller(bench):
    for seed in range(5):
        few = chosen_cases(bench, limit=None, sample_per_cell=1, seed=seed)
        assert set(few) < set(chosen_cases(bench, limit=None, sample_per_cell=3, seed=seed))


NUMBER = st.none() | st.integers(1, len(CASES) + 2)


def more(one, other):
    """Whichever chooses more; none of a kind is no bound."""
    return None if one is None or other is None else max(one, other)


@given(
    limits=st.tuples(NUMBER, NUMBER),
    samples=st.tuples(st.integers(1, 5), st.integers(1, 5)) | st.tuples(st.none(), st.none()),
    seed=st.integers(0, 50),
)
def test_whatever_is_raised_all_that_was_chosen_stays_chosen(bench, limits, samples, seed):
    def chosen(limit, sample):
        found = chosen_cases(bench, limit=limit, sample_per_cell=sample, seed=seed)
        return [case.id for case in CASES] if found is None else list(found)

    few, many = chosen(limits[0], samples[0]), chosen(more(*limits), more(*samples))
    assert set(few) <= set(many) <= set(chosen(None, None))
    assert few == [name for name in bench.ids() if name in few]


def test_a_limit_on_a_sample_takes_one_of_every_cell_before_a_second(bench):
    for seed in range(5):
        chosen = chosen_cases(bench, limit=3, sample_per_cell=4, seed=seed)
        assert sorted(name.partition("-")[0] for name in chosen) == ["lf", "rr", "talk"]


def test_the_lot_depends_on_the_seed(bench):
    drawn = {chosen_cases(bench, limit=None, sample_per_cell=2, seed=seed) for seed in range(8)}
    assert len(drawn) > 1


@pytest.mark.parametrize(
    ("given", "told"), [({"limit": 0}, "--limit 0"), ({"sample_per_cell": -1}, "--sample-per-cell -1")]
)
def test_numbers_below_one_are_refused(bench, given, told):
    with pytest.raises(CarinaError, match=told):
        chosen_cases(bench, **{"limit": None, "sample_per_cell": None, **given}, seed=0)
