import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats as reference

from carina.stats import (
    Interval,
    balanced_accuracy,
    mean_interval,
    ratio_intervals,
    ratio_replicates,
    survival,
)
from carina.stats.resampling import resampled_sums, weights
from carina.store.errors import CarinaError

NAN = float("nan")


def clustered(seed: int, patients: int = 40, columns: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Fractions of patients with one to five rows, unlike from patient to patient."""
    draw = np.random.default_rng(seed)
    labels = np.repeat(np.arange(patients), draw.integers(1, 6, patients))
    values = draw.random((len(labels), columns)) + draw.random(patients)[labels, None]
    return values, labels


def slow_replicates(
    values: np.ndarray, labels: np.ndarray, *, replicates: int, seed: int
) -> list[list[float]]:
    """The same draws, row by row and patient by patient, each patient written out as often as it was drawn."""
    names = sorted(set(labels.tolist()))
    columns = values.shape[1]
    members = {
        name: [row for row, label in zip(values, labels, strict=True) if label == name] for name in names
    }

    def profile(name: int) -> list[float]:
        rows = members[name]
        kept = [[row[c] for row in rows if not math.isnan(row[c])] for c in range(columns)]
        return [math.fsum(column) for column in kept] + [float(len(column)) for column in kept]

    ordered = sorted(names, key=profile)
    found = []
    blocks = weights(np.ones(len(names), dtype=np.int64), replicates=replicates, seed=seed)
    for drawn in itertools.chain.from_iterable(blocks):
        rows = [row for name, times in zip(ordered, drawn, strict=True) for row in members[name] * int(times)]
        means = []
        for column in range(columns):
            present = [row[column] for row in rows if not math.isnan(row[column])]
            means.append(math.fsum(present) / len(present) if present else NAN)
        found.append(means)
    return found


def test_replicates_are_those_of_slow_loops_with_the_same_draws() -> None:
    values, labels = clustered(1, patients=12, columns=3)
    values[np.random.default_rng(2).random(values.shape) < 0.4] = NAN

    fast = ratio_replicates(values, labels, replicates=200, seed=5)

    slow = slow_replicates(values, labels, replicates=200, seed=5)
    np.testing.assert_allclose(fast, slow, rtol=1e-12)


def test_an_interval_is_the_middle_of_the_replicates() -> None:
    values, labels = clustered(3)

    found = mean_interval(values[:, 0], labels, level=0.9, replicates=400, seed=8)

    slow = sorted(row[0] for row in slow_replicates(values, labels, replicates=400, seed=8))
    # 5% of 399 gaps is place 19.95, 95% is place 379.05, counted from 0.
    assert found.low == pytest.approx(slow[19] + 0.95 * (slow[20] - slow[19]), rel=1e-12)
    assert found.high == pytest.approx(slow[379] + 0.05 * (slow[380] - slow[379]), rel=1e-12)
    assert found.value == pytest.approx(values.mean(), rel=1e-12)
    assert (found.n, found.clusters) == (len(values), 40)


def test_all_27_resamples_of_three_patients_come_as_often_as_they_should() -> None:
    sums = np.array([[1.0, 2.0], [5.0, 3.0], [30.0, 4.0]])  # sum and number of rows of each
    exact: dict[tuple[float, float], float] = {}
    for drawn in itertools.product(range(3), repeat=3):
        key = tuple(sums[list(drawn)].sum(axis=0))
        exact[key] = exact.get(key, 0) + 1 / 27

    seen = resampled_sums(sums, replicates=27_000, seed=0)

    kinds, counts = np.unique(seen, axis=0, return_counts=True)
    assert {tuple(kind) for kind in kinds} == set(exact)
    expected = [27_000 * exact[tuple(kind)] for kind in kinds]
    assert reference.chisquare(counts, expected).pvalue > 0.001


def test_equal_patients_drawn_by_kind_give_the_same_distribution() -> None:
    # Two kinds of 70 and 30 patients: how many of the first are drawn is binomial, exactly.
    sums = np.repeat([[0.0, 1.0], [1.0, 1.0]], [70, 30], axis=0)

    drawn = resampled_sums(sums, replicates=20_000, seed=3)

    np.testing.assert_array_equal(drawn[:, 1], 100)
    right, counts = np.unique(drawn[:, 0], return_counts=True)
    middle = (right >= 18) & (right <= 42)
    expected = 20_000 * reference.binom.pmf(right[middle], 100, 0.3)
    distances = (counts[middle] - expected) / np.sqrt(expected)
    assert np.abs(distances).max() < 4.5
    assert drawn[:, 0].mean() == pytest.approx(30, abs=4 * math.sqrt(21 / 20_000))


@pytest.mark.parametrize("kind", ["right or wrong", "fractions"])
def test_independent_rows_get_the_interval_of_scipy(kind: str) -> None:
    values = np.random.default_rng(4).random(150)
    if kind == "right or wrong":
        values = (values < 0.3).astype(float)

    ours = mean_interval(values, replicates=20_000)

    theirs = reference.bootstrap(
        (values,), np.mean, n_resamples=20_000, method="percentile", rng=np.random.default_rng(5)
    ).confidence_interval
    # A quantile of 20,000 replicates has a Monte Carlo error of about 0.02 standard errors of the mean.
    error = values.std() / math.sqrt(150)
    assert ours.low == pytest.approx(theirs.low, abs=0.1 * error)
    assert ours.high == pytest.approx(theirs.high, abs=0.1 * error)


def test_clustered_intervals_cover_the_truth_and_those_that_ignore_patients_do_not() -> None:
    draw = np.random.default_rng(6)
    labels = np.repeat(np.arange(60), 6)
    covered = ignored = 0
    for repetition in range(300):
        # Beta(1.2, 0.8) has mean 0.6; the correlation of two rows of one patient is 1 / (1.2 + 0.8 + 1) = 1/3.
        right = draw.random(360) < draw.beta(1.2, 0.8, 60)[labels]
        ours = mean_interval(right, labels, replicates=1000, seed=repetition)
        alone = mean_interval(right, replicates=1000, seed=repetition)
        covered += ours.low <= 0.6 <= ours.high
        ignored += alone.low <= 0.6 <= alone.high
    assert 0.90 <= covered / 300 <= 0.99
    assert ignored / 300 < 0.85


rows = st.lists(
    st.tuples(
        st.one_of(st.sampled_from([0.0, 1.0, 0.1, 0.7]), st.floats(-100, 100), st.just(NAN)),
        st.one_of(st.sampled_from([0.0, 1.0]), st.just(NAN)),
        st.integers(0, 5),
    ),
    max_size=25,
)


@settings(max_examples=60)
@given(rows, st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_the_names_of_patients_matter(rows, random) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    names = ["x", ("y", 1), None, 3.5, frozenset({1}), b"z"]
    random.shuffle(names)

    one = ratio_intervals(
        np.array([row[:2] for row in rows]).reshape(-1, 2), [row[2] for row in rows], replicates=50
    )
    other = ratio_intervals(
        np.array([row[:2] for row in shuffled]).reshape(-1, 2),
        [names[row[2]] for row in shuffled],
        replicates=50,
    )

    assert list(one) == list(other)


@settings(max_examples=40)
@given(rows, st.sampled_from([0.25, 2.0, 1024.0]))
def test_values_twice_as_large_have_intervals_twice_as_large(rows, factor) -> None:
    values, labels = np.array([row[0] for row in rows], dtype=float), [row[2] for row in rows]

    one = mean_interval(values, labels, replicates=50)
    other = mean_interval(factor * values, labels, replicates=50)

    for ours, theirs in zip(
        (one.value, one.low, one.high), (other.value, other.low, other.high), strict=True
    ):
        assert theirs == (None if ours is None else pytest.approx(factor * ours, rel=1e-12, abs=1e-300))


@pytest.mark.parametrize("alike", [1, 400], ids=["each its own", "of few kinds"])
def test_draws_do_not_depend_on_the_size_of_blocks(alike: int) -> None:
    counts = np.full(5000 if alike == 1 else 3, alike)

    few, many = (np.concatenate(list(weights(counts, replicates=70, seed=1, least=n))) for n in (1, 64))

    np.testing.assert_array_equal(few, many)
    np.testing.assert_array_equal(few.sum(axis=1), counts.sum())


def test_the_seed_decides_the_result() -> None:
    values, labels = clustered(7)

    one, same, other = (mean_interval(values, labels, replicates=300, seed=seed) for seed in (1, 1, 2))

    assert one == same
    assert one.low != other.low
    assert one.value == other.value


def test_labels_may_be_arrays_of_names_or_numbers() -> None:
    values, labels = clustered(8)
    expected = mean_interval(values, labels.tolist(), replicates=100)

    assert mean_interval(values, labels, replicates=100) == expected
    assert mean_interval(values, np.array([f"p{label}" for label in labels]), replicates=100) == expected
    assert (
        mean_interval(values, np.array([f"p{label}" for label in labels], dtype=object), replicates=100)
        == expected
    )


def test_missing_values_in_any_order_of_rows() -> None:
    draw = np.random.default_rng(11)
    for _ in range(30):
        # Sums are often alike while numbers of values are not: the numbers then decide who comes first.
        table = draw.choice([0.0, 1.0, NAN, NAN], (12, 3))
        patients, order = draw.integers(0, 6, 12), draw.permutation(12)
        one = ratio_intervals(table, patients, replicates=25)
        assert list(one) == list(ratio_intervals(table[order], patients[order], replicates=25))


def test_columns_share_their_resamples() -> None:
    values, labels = clustered(9)
    table = np.hstack([values, values + 1.0, np.full_like(values, NAN)])

    drawn = ratio_replicates(table, labels, replicates=100)

    np.testing.assert_allclose(drawn[:, 1] - drawn[:, 0], 1.0, rtol=1e-12)
    assert np.isnan(drawn[:, 2]).all()
    found = ratio_intervals(table, labels, replicates=100)
    assert found[2] == Interval(None, None, None, 0, 0)
    assert found[1].low == pytest.approx(found[0].low + 1.0, rel=1e-12)
    assert len(found) == 3


def test_replicates_without_a_value_in_a_column_are_left_out_there() -> None:
    # Two patients; the second column has values of the first patient only, the third of both.
    table = [[1.0, 5.0, 1.0], [0.0, NAN, 0.0]]

    drawn = ratio_replicates(table, replicates=400, seed=1)
    found = ratio_intervals(table, replicates=400, seed=1)

    assert 0.15 < np.isnan(drawn[:, 1]).mean() < 0.35  # a quarter of the draws is the second patient twice
    assert found[1] == Interval(5.0, None, None, 1, 1)
    assert found[2] == Interval(0.5, 0.0, 1.0, 2, 2)


@pytest.mark.parametrize(
    ("values", "labels", "expected"),
    [
        ([], [], Interval(None, None, None, 0, 0)),
        ([NAN, None], [1, 2], Interval(None, None, None, 0, 0)),
        ([1.0, 0.0, 1.0, 1.0], ["p"] * 4, Interval(0.75, None, None, 4, 1)),
        ([0.1] * 7, [1, 1, 1, 2, 2, 3, 3], Interval(0.1, 0.1, 0.1, 7, 3)),
        ([True, True], None, Interval(1.0, 1.0, 1.0, 2, 2)),
        ([1.0, NAN, 0.0, NAN], [1, 1, 2, 3], Interval(0.5, 0.0, 1.0, 2, 2)),
    ],
    ids=["empty", "all missing", "one patient", "constant", "all right", "some missing"],
)
def test_an_interval_needs_two_patients_with_values(values, labels, expected) -> None:
    assert mean_interval(values, labels, replicates=500) == expected


def test_a_patient_with_nearly_all_rows_makes_the_interval_wide() -> None:
    values = np.r_[np.ones(10_000), np.zeros(20)]
    labels = np.r_[np.zeros(10_000, int), np.arange(1, 21)]

    found = mean_interval(values, labels, replicates=2000)

    assert found.value == pytest.approx(10_000 / 10_020)
    assert found.low == 0.0  # that patient is missing from a third of the draws
    assert found.high > 0.999


def test_balanced_accuracy_is_the_mean_of_the_groups_means() -> None:
    # 30 of 40 sick and 100 of 200 healthy are right: (0.75 + 0.5) / 2.
    correct = [1] * 30 + [0] * 10 + [1] * 100 + [0] * 100
    group = ["sick"] * 40 + ["healthy"] * 200

    found = balanced_accuracy(correct, group, replicates=5000)

    assert found.value == 0.625
    assert (found.n, found.clusters) == (240, 240)
    # Its standard error is sqrt(0.75 * 0.25 / 40 + 0.5 * 0.5 / 200) / 2 = 0.0385.
    assert found.low == pytest.approx(0.625 - 1.96 * 0.0385, abs=0.01)
    assert found.high == pytest.approx(0.625 + 1.96 * 0.0385, abs=0.01)


def test_balanced_accuracy_agrees_with_slow_loops() -> None:
    correct = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0])
    group = np.array(["b", "a", "a", "b", "b", "b", "b"])
    patients = np.array([0, 0, 1, 1, 2, 3, 3])
    columns = np.stack([np.where(group == name, correct, NAN) for name in ("a", "b")], axis=1)
    slow = np.array(slow_replicates(columns, patients, replicates=300, seed=2)).mean(axis=1)

    found = balanced_accuracy(correct, group, patients, replicates=300, seed=2)

    whole = slow[~np.isnan(slow)]
    assert 0 < len(whole) < 300
    assert found.value == pytest.approx((1 / 2 + 3 / 5) / 2)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(whole, [0.025, 0.975])))


def test_balanced_accuracy_leaves_out_rows_without_group_or_value() -> None:
    found = balanced_accuracy([1, 0, 1, NAN, 0], ["a", "a", None, "b", "c"], replicates=200)

    assert found.value == 0.25
    assert (found.n, found.clusters) == (3, 3)
    assert balanced_accuracy([NAN], ["a"]) == Interval(None, None, None, 0, 0)
    assert balanced_accuracy([], []) == Interval(None, None, None, 0, 0)
    assert balanced_accuracy([1, 0], ["a", "b"], ["p", "p"]) == Interval(0.5, None, None, 2, 1)


def test_balanced_accuracy_gives_a_huge_group_no_extra_weight() -> None:
    correct = np.r_[np.ones(5000), np.zeros(5)]
    group = [True] * 5000 + [False] * 5

    found = balanced_accuracy(correct, group, replicates=300)

    assert found == Interval(0.5, 0.5, 0.5, 5005, 5005)


def test_survival_counts_cases_that_were_never_wrong() -> None:
    right = [[1, 1, 1], [1, 0, 1], [0, 1, 1], [1, 1, NAN]]

    found = survival(right, replicates=300)

    np.testing.assert_allclose(found.value, [0.75, 0.5, 1 / 3])
    np.testing.assert_array_equal(found.n, [4, 4, 3])
    reached = [[True, True, True], [True, False, False], [False, False, False], [True, True, NAN]]
    assert list(survival(reached, replicates=300)) == list(found)


def test_survival_never_rises_in_any_replicate() -> None:
    right = np.random.default_rng(10).random((50, 6)) < 0.8

    found = survival(right, np.arange(50) // 3, replicates=300)

    assert (np.diff(found.value) <= 0).all()
    assert (np.diff(found.low) <= 0).all()
    assert (np.diff(found.high) <= 0).all()
    assert len(survival(np.zeros((0, 3), bool))) == 3


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: mean_interval([1.0, 2.0], ["a"]), r"clusters: .* found 1"),
        (lambda: mean_interval([1.0, math.inf]), r"values: .* infinity"),
        (lambda: mean_interval([[1.0, 2.0]]), r"values: .* found 2"),
        (lambda: mean_interval([1.0, 2.0], level=1.0), "level"),
        (lambda: mean_interval([1.0, 2.0], replicates=0), "replicates"),
        (lambda: ratio_intervals(np.zeros((2, 2, 2))), r"values: .* found 3"),
        (lambda: balanced_accuracy([1.0], ["a", "b"]), "group"),
    ],
)
def test_errors_name_the_argument(call, words) -> None:
    with pytest.raises(CarinaError, match=words):
        call()
