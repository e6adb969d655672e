import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from carina.stats import Difference, mean_interval, paired_difference
from carina.stats.comparison import sign_flip_p
from carina.store.errors import CarinaError

NAN = float("nan")


def slow_p(sums: list[float]) -> float:
    """Every pattern of signs, one after the other."""
    seen = [abs(math.fsum(sign * size for sign, size in zip(signs, sums, strict=True)))
            for signs in itertools.product((-1, 1), repeat=len(sums))]  # fmt: skip
    return sum(total >= abs(math.fsum(sums)) - 1e-9 for total in seen) / len(seen)


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(st.integers(-3, 3).map(float), st.floats(-5, 5).map(lambda x: round(x, 3))), max_size=9
    )
)
def test_few_clusters_are_enumerated(sums) -> None:
    assert sign_flip_p(np.array(sums)) == slow_p(sums)


def test_the_paired_difference_equals_a_value_worked_out_by_hand() -> None:
    # Sums 3, 2, -1 of three patients: |±3 ±2 ±1| is at least 4 for 3+2+1, 3+2-1 and their opposites: 4 of 8.
    a = [1, 1, 1, 1, 1, 0, 0]
    b = [0, 0, 0, 0, 0, 1, 0]
    patients = ["x", "x", "x", "y", "y", "z", "w"]

    found = paired_difference(a, b, patients, replicates=500)

    assert found.p == 0.5
    assert found.value == pytest.approx(4 / 7)
    assert (found.n, found.clusters) == (7, 4)


@pytest.mark.parametrize(("more", "less"), [(5, 1), (9, 3), (20, 9), (60, 40)])
def test_independent_rows_get_the_exact_test_of_mcnemar(more: int, less: int) -> None:
    a = np.r_[np.ones(more), np.zeros(less), np.ones(50)]
    b = np.r_[np.zeros(more), np.ones(less), np.ones(50)]

    found = paired_difference(a, b, replicates=20_000)

    exact = reference.binomtest(more, more + less).pvalue
    tolerance = 1e-12 if more + less <= 12 else 4 * math.sqrt(exact * (1 - exact) / 20_000)
    assert found.p == pytest.approx(exact, abs=tolerance)


def test_many_clusters_of_fractions_agree_with_enumeration() -> None:
    sums = np.random.default_rng(0).normal(0.8, 1, 15)

    drawn = sign_flip_p(sums, replicates=20_000)

    exact = slow_p(sums.tolist())
    assert 0.01 < exact < 0.5
    assert drawn == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 20_000))
    theirs = reference.permutation_test(
        (sums,), np.sum, permutation_type="samples", n_resamples=1 << 15, alternative="two-sided"
    )
    assert theirs.pvalue == pytest.approx(exact, abs=2 / 20_000)


def test_drawn_p_values_are_never_zero_and_follow_the_formula() -> None:
    far = sign_flip_p(np.ones(400), replicates=999)
    fractions = sign_flip_p(1 + np.random.default_rng(1).random(400), replicates=999)

    assert far == fractions == 1 / 1000
    assert sign_flip_p(np.r_[np.ones(50), -np.ones(50)], replicates=99) == 1.0


def test_p_values_are_uniform_for_equal_models() -> None:
    draw = np.random.default_rng(2)
    patients = np.repeat(np.arange(30), 3)
    found = []
    for repetition in range(300):
        hard = draw.random(30)[patients]
        a, b = draw.random(90) < hard, draw.random(90) < hard
        found.append(paired_difference(a, b, patients, replicates=200, seed=repetition).p)
    for threshold in (0.05, 0.2, 0.5):
        error = math.sqrt(threshold * (1 - threshold) / 300)
        assert np.mean(np.array(found) <= threshold) <= threshold + 3 * error
    assert np.mean(np.array(found) <= 0.5) > 0.35


def test_the_interval_is_that_of_the_differences() -> None:
    draw = np.random.default_rng(3)
    a, b, patients = draw.random(60) + 0.2, draw.random(60), draw.integers(0, 20, 60)
    a[3] = b[7] = NAN

    found = paired_difference(a, b, patients, replicates=400, seed=4)

    expected = mean_interval(a - b, patients, replicates=400, seed=4)
    assert (found.value, found.low, found.high) == (expected.value, expected.low, expected.high)
    assert (found.n, found.clusters) == (58, expected.clusters)


differences = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 0.3, NAN]), st.sampled_from([0.0, 1.0, 0.6]), st.integers(0, 15)),
    max_size=40,
)


@settings(max_examples=60)
@given(differences, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter_and_swapping_changes_the_sign(rows, random) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)

    one = paired_difference([r[0] for r in rows], [r[1] for r in rows], [r[2] for r in rows], replicates=60)
    same = paired_difference(
        [r[0] for r in shuffled], [r[1] for r in shuffled], [f"p{r[2]}" for r in shuffled], replicates=60
    )
    back = paired_difference([r[1] for r in rows], [r[0] for r in rows], [r[2] for r in rows], replicates=60)

    assert one == same
    assert back.p == one.p
    if one.value is not None and abs(one.value) > 1e-9:  # nearer to nought it may be rounding
        assert (back.value, back.low, back.high) == (
            -one.value,
            None if one.high is None else -one.high,
            None if one.low is None else -one.low,
        )


@pytest.mark.parametrize(
    ("a", "b", "patients", "expected"),
    [
        ([], [], None, Difference(None, None, None, None, 0, 0)),
        ([NAN], [1.0], None, Difference(None, None, None, None, 0, 0)),
        ([1.0, 1.0], [0.0, 0.0], ["p", "p"], Difference(1.0, None, None, 1.0, 2, 1)),
        ([0.3] * 20, [0.3] * 20, None, Difference(0.0, 0.0, 0.0, 1.0, 20, 20)),
        ([1.0] * 3, [0.0] * 3, None, Difference(1.0, 1.0, 1.0, 0.25, 3, 3)),
    ],
    ids=["empty", "missing", "one patient", "alike", "always better"],
)
def test_a_difference_needs_two_patients_for_an_interval(a, b, patients, expected) -> None:
    assert paired_difference(a, b, patients, replicates=100) == expected


def test_rows_that_do_not_match_are_refused() -> None:
    with pytest.raises(CarinaError, match=r"a and b: .* 2 and 1"):
        paired_difference([1.0, 2.0], [1.0])
    with pytest.raises(CarinaError, match="replicates"):
        sign_flip_p(np.ones(20), replicates=0)
