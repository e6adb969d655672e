"""Tails, intervals and separations against independent references and by hand."""

from collections import Counter
from itertools import pairwise, permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import roc_auc_score

from carina.audits import chance


@given(st.integers(1, 60), st.integers(0, 60), st.floats(0.01, 0.99))
def test_equal_trials_are_binomial(n, hits, p):
    hits = min(hits, n)
    assert chance.at_least(hits, {p: n}) == pytest.approx(stats.binom.sf(hits - 1, n, p), abs=1e-9)
    assert chance.at_most(hits, {p: n}) == pytest.approx(stats.binom.cdf(hits, n, p), abs=1e-9)


def test_mixed_trials_agree_with_full_enumeration():
    shares = (0.5, 0.5, 0.25, 0.2)
    exact = sum(
        np.prod([p if hit else 1 - p for p, hit in zip(shares, hits, strict=True)])
        for hits in product((0, 1), repeat=4)
        if sum(hits) >= 3
    )
    assert chance.at_least(3, Counter(shares)) == pytest.approx(exact)


def test_many_trials_are_nearly_normal():
    trials = {0.5: 4000, 0.25: 6000}
    exact = chance._distribution(trials)
    assert chance.at_least(3600, trials) == pytest.approx(exact[3600:].sum(), rel=0.01)
    assert chance.at_most(3450, trials) == pytest.approx(exact[:3451].sum(), rel=0.02)


@pytest.mark.parametrize(("n", "p", "level"), [(20, 0.25, 0.05), (100, 0.5, 0.01), (7, 0.1, 0.2)])
def test_the_limit_is_the_largest_share_that_chance_explains(n, p, level):
    hits = round(chance.limit({p: n}, level) * n)
    assert chance.at_least(hits, {p: n}) > level >= chance.at_least(hits + 1, {p: n})


def test_few_trials_have_no_limit():
    assert chance.limit({0.5: 2}, 0.05) == 1.0


@given(
    st.lists(st.integers(0, 9), min_size=2, max_size=30), st.lists(st.integers(0, 9), min_size=2, max_size=30)
)
def test_separation_is_the_area_under_the_curve(first, second):
    area, error, n = chance.separation([(first, second)])
    assert area == pytest.approx(roc_auc_score([1] * len(first) + [0] * len(second), [*first, *second]))
    assert n == len(first) + len(second)
    if len({*first, *second}) > 1:
        reference = stats.mannwhitneyu(
            first, second, method="asymptotic", use_continuity=False, alternative="greater"
        )
        assert stats.norm.sf((area - 0.5) / error) == pytest.approx(reference.pvalue, abs=1e-9)


def test_separation_compares_within_groups_only():
    area, _, n = chance.separation([([1, 2], [1, 2]), ([101, 102], [101, 102]), ([5], [])])
    assert (area, n) == (0.5, 8)


def test_equal_neighbours_against_all_orders():
    labels = "aaabbcc"
    counts = [sum(x == y for x, y in pairwise(order)) for order in permutations(labels)]
    equal, sigma = chance.equal_neighbours(list(labels))
    assert equal == 4
    assert sigma == pytest.approx((4 - np.mean(counts)) / np.std(counts))


def test_the_sign_test_is_a_binomial_test():
    assert chance.sign_test(8, 2) == pytest.approx(stats.binomtest(8, 10, 0.5, alternative="greater").pvalue)
    assert chance.sign_test(0, 0) == chance.sign_test(0, 5) == 1.0
