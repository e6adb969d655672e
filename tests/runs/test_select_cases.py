"""Which cases are run: the same for the same seed, fair to every cell, and more hold those of fewer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.runs.conftest import CASES

from carina.runs.options import select_cases
from carina.store.errors import CarinaError


def test_all_cases_are_selected_without_a_limit(bench):
    assert select_cases(bench, limit=None, sample_per_stratum=None, seed=0) is None


def test_a_limit_selects_the_first_cases(bench):
    assert select_cases(bench, limit=2, sample_per_stratum=None, seed=0) == ("lf", "rr")


def test_a_sample_has_the_same_number_of_cases_per_stratum(bench):
    chosen = select_cases(bench, limit=None, sample_per_stratum=2, seed=1)
    assert sorted(name.partition("-")[0] for name in chosen) == ["lf", "lf", "rr", "rr", "talk", "talk"]
    assert list(chosen) == [name for name in bench.ids() if name in chosen]


def test_a_larger_sample_contains_the_smaller_one(bench):
    for seed in range(5):
        few = select_cases(bench, limit=None, sample_per_stratum=1, seed=seed)
        assert set(few) < set(select_cases(bench, limit=None, sample_per_stratum=3, seed=seed))


NUMBER = st.none() | st.integers(1, len(CASES) + 2)


def more(one, other):
    """Whichever chooses more; none of a kind is no bound."""
    return None if one is None or other is None else max(one, other)


@given(
    limits=st.tuples(NUMBER, NUMBER),
    samples=st.tuples(st.integers(1, 5), st.integers(1, 5)) | st.tuples(st.none(), st.none()),
    seed=st.integers(0, 50),
)
def test_a_larger_number_keeps_all_selected_cases(bench, limits, samples, seed):
    def chosen(limit, sample):
        found = select_cases(bench, limit=limit, sample_per_stratum=sample, seed=seed)
        return [case.id for case in CASES] if found is None else list(found)

    few, many = chosen(limits[0], samples[0]), chosen(more(*limits), more(*samples))
    assert set(few) <= set(many) <= set(chosen(None, None))
    assert few == [name for name in bench.ids() if name in few]


def test_a_limited_sample_takes_one_case_of_every_stratum_before_a_second(bench):
    for seed in range(5):
        chosen = select_cases(bench, limit=3, sample_per_stratum=4, seed=seed)
        assert sorted(name.partition("-")[0] for name in chosen) == ["lf", "rr", "talk"]


def test_the_sample_depends_on_the_seed(bench):
    drawn = {select_cases(bench, limit=None, sample_per_stratum=2, seed=seed) for seed in range(8)}
    assert len(drawn) > 1


@pytest.mark.parametrize(
    ("given", "message"), [({"limit": 0}, "limit 0"), ({"sample_per_stratum": -1}, "sample_per_stratum -1")]
)
def test_numbers_below_one_are_refused(bench, given, message):
    with pytest.raises(CarinaError, match=message):
        select_cases(bench, **{"limit": None, "sample_per_stratum": None, **given}, seed=0)
