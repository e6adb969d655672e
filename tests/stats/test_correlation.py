import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from carina.stats import Interval, pearson, spearman
from carina.stats.resampling import weights
from carina.store.errors import CarinaError

NAN = float("nan")
rows = st.lists(
    st.tuples(
        st.integers(-3, 3).map(float),
        st.one_of(st.integers(0, 2).map(float), st.floats(-9, 9)),
        st.integers(0, 9),
    ),
    min_size=2,
    max_size=25,
)


@pytest.mark.parametrize(("ours", "theirs"), [(pearson, reference.pearsonr), (spearman, reference.spearmanr)])
@settings(max_examples=60)
@given(rows)
def test_both_correlations_equal_scipy(ours, theirs, rows) -> None:
    x, y = np.array(rows)[:, :2].T
    found = ours(x, y, replicates=10)

    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert found == Interval(None, None, None, len(x), len(x))
    elif np.ptp(y) > 1e-3:  # below, scipy warns of what rounding leaves
        assert found.value == pytest.approx(theirs(x, y).statistic, abs=1e-9)


@pytest.mark.parametrize(("ours", "theirs"), [(pearson, reference.pearsonr), (spearman, reference.spearmanr)])
def test_replicates_are_those_of_written_out_draws(ours, theirs) -> None:
    draw = np.random.default_rng(0)
    x = np.arange(9.0) - 4.0
    y = np.round(x + draw.normal(0, 3, 9))

    found = ours(x, y, replicates=200, seed=6)

    # Each row is a patient. Both put them in order: pearson by x about its mean, spearman by x; here the same.
    slow = [
        theirs(np.repeat(x, drawn.astype(int)), np.repeat(y, drawn.astype(int))).statistic
        for block in weights(np.ones(9, dtype=np.int64), replicates=200, seed=6)
        for drawn in block
    ]
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(slow, [0.025, 0.975])), abs=1e-9)


def test_patients_count_once() -> None:
    draw = np.random.default_rng(1)
    x, y = draw.normal(size=(2, 30))
    y = y + x

    for correlation in (pearson, spearman):
        single = correlation(x, y, replicates=3000)
        copied = correlation(np.repeat(x, 5), np.repeat(y, 5), np.repeat(np.arange(30), 5), replicates=3000)
        assert copied.value == pytest.approx(single.value)
        assert (copied.low, copied.high) == pytest.approx((single.low, single.high), abs=1e-9)
        assert (copied.n, copied.clusters) == (150, 30)


@pytest.mark.parametrize("correlation", [pearson, spearman])
@settings(max_examples=40)
@given(rows, st.randoms(use_true_random=False))
def test_order_and_names_do_not_matter(correlation, rows, random) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    one, other = np.array(rows), np.array(shuffled)

    assert correlation(one[:, 0], one[:, 1], one[:, 2], replicates=30) == correlation(
        other[:, 0], other[:, 1], [f"p{9 - label}" for label in other[:, 2]], replicates=30
    )


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_degenerate_columns_have_no_correlation(correlation) -> None:
    assert correlation([], []) == Interval(None, None, None, 0, 0)
    assert correlation([1.0, NAN, 2.0], [NAN, 1.0, 2.0]) == Interval(None, None, None, 1, 1)
    assert correlation([0.1] * 5, [1, 2, 3, 4, 5]) == Interval(None, None, None, 5, 5)
    assert correlation([1, 2, 3], [2, 4, 6], ["p"] * 3) == Interval(1.0, None, None, 3, 1)
    line = correlation(np.arange(50), 5.0 - np.arange(50), replicates=100)
    assert (line.value, line.low, line.high) == pytest.approx((-1.0, -1.0, -1.0))
    far = correlation([1e200, 2e200, 4e200], [1e-200, 3e-200, 2e-200], replicates=50)
    assert far.value == pytest.approx(correlation([1, 2, 4], [1, 3, 2], replicates=50).value)
    with pytest.raises(CarinaError, match=r"x and y: .* 2 and 1"):
        correlation([1, 2], [1])
