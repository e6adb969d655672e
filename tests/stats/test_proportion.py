import pytest
from scipy.stats import binomtest

from carina.stats import Interval, clopper_pearson, wilson
from carina.store.errors import CarinaError

COUNTS = [(0, 1), (1, 1), (0, 20), (20, 20), (1, 20), (7, 20), (500, 1000), (999, 1000), (3, 100_000)]


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_both_intervals_equal_scipy(k: int, n: int, level: float) -> None:
    for ours, method in (
        (wilson(k, n, level=level), "wilson"),
        (clopper_pearson(k, n, level=level), "exact"),
    ):
        theirs = binomtest(k, n).proportion_ci(level, method=method)
        assert ours.value == k / n
        # scipy's exact bounds are the root of a search, good to 1e-12.
        assert ours.low == pytest.approx(theirs.low, rel=1e-9, abs=1e-12)
        assert ours.high == pytest.approx(theirs.high, rel=1e-9, abs=1e-12)
        assert (ours.n, ours.clusters) == (n, n)


def test_the_interval_of_all_right_equals_a_value_worked_out_by_hand() -> None:
    # The rule of three, exactly: 0.025 ** (1/20).
    assert clopper_pearson(20, 20).low == pytest.approx(0.8315665)
    assert clopper_pearson(20, 20).high == 1.0
    # 20 / (20 + 1.959964²).
    assert wilson(20, 20).low == pytest.approx(0.8388748)


@pytest.mark.parametrize("interval", [wilson, clopper_pearson])
def test_no_trials_have_no_interval_and_wrong_counts_are_refused(interval) -> None:
    assert interval(0, 0) == Interval(None, None, None, 0, 0)
    with pytest.raises(CarinaError, match=r"k: .* n = 3, found 4"):
        interval(4, 3)
    with pytest.raises(CarinaError, match="level"):
        interval(1, 3, level=0)


def test_wilson_accepts_a_fraction_of_a_success() -> None:
    low, middle, high = (wilson(k, 20) for k in (7, 7.5, 8))
    assert middle.value == 7.5 / 20
    assert low.low < middle.low < high.low
    assert low.high < middle.high < high.high
