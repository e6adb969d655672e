"""Which cases are run: the same for the same seed, and fair to every cell."""

import pytest

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


def test_the_lot_depends_on_the_seed(bench):
    drawn = {chosen_cases(bench, limit=None, sample_per_cell=2, seed=seed) for seed in range(8)}
    assert len(drawn) > 1


@pytest.mark.parametrize(
    ("given", "told"), [({"limit": 0}, "--limit 0"), ({"sample_per_cell": -1}, "--sample-per-cell -1")]
)
def test_numbers_below_one_are_refused(bench, given, told):
    with pytest.raises(CarinaError, match=told):
        chosen_cases(bench, **{"limit": None, "sample_per_cell": None, **given}, seed=0)
