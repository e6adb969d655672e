import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from carina.stats import Interval, cohen_kappa, krippendorff_alpha
from carina.store.errors import CarinaError

NAN = float("nan")
pairs = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.integers(0, 6)), min_size=1, max_size=30
)


@settings(max_examples=60)
@given(pairs)
def test_kappa_is_that_of_sklearn(rows) -> None:
    a, b, patients = (list(column) for column in zip(*rows, strict=True))

    found = cohen_kappa(a, b, patients, replicates=20)

    if len(set(a) | set(b)) == 1:
        assert found.value is None
    else:
        assert found.value == pytest.approx(cohen_kappa_score(a, b), abs=1e-12)


def test_kappa_by_hand_with_an_interval() -> None:
    # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: p_o = 0.7, p_e = 0.5 * 0.6 + 0.5 * 0.4 = 0.5; kappa 0.4.
    a = ["yes"] * 25 + ["no"] * 25
    b = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15

    found = cohen_kappa(a, b)

    assert found.value == pytest.approx(0.4)
    assert (found.n, found.clusters) == (50, 50)
    # By Fleiss' large-sample formula the standard error is about 0.127.
    assert found.low == pytest.approx(0.4 - 1.96 * 0.127, abs=0.03)
    assert found.high == pytest.approx(0.4 + 1.96 * 0.127, abs=0.03)


def test_kappa_replicates_are_those_of_written_out_draws() -> None:
    from carina.stats.resampling import weights

    a, b = list("aabbabbc"), list("abbbaabc")
    found = cohen_kappa(a, b, replicates=200, seed=3)

    def profile(row: tuple[str, str]) -> list[float]:
        return (
            [float(row[0] == row[1])]
            + [float(row[0] == x) for x in "abc"]
            + [float(row[1] == x) for x in "abc"]
        )

    ordered = sorted(zip(a, b, strict=True), key=profile)
    slow = []
    for block in weights(np.ones(8, dtype=np.int64), replicates=200, seed=3):
        for drawn in block:
            rows = [row for row, times in zip(ordered, drawn, strict=True) for _ in range(int(times))]
            if len({label for row in rows for label in row}) > 1:
                slow.append(cohen_kappa_score(*zip(*rows, strict=True)))
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(slow, [0.025, 0.975])))


@settings(max_examples=30)
@given(pairs, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, random) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)
    one, other = (list(zip(*some, strict=True)) for some in (rows, shuffled))

    assert cohen_kappa(*one, replicates=30) == cohen_kappa(*other, replicates=30)
    assert krippendorff_alpha(list(zip(*one[:2], strict=True)), one[2], replicates=30) == krippendorff_alpha(
        list(zip(*other[:2], strict=True)), other[2], replicates=30
    )


def test_rows_that_only_one_reader_labelled_do_not_count() -> None:
    with_holes = cohen_kappa(["a", None, "b", "a", NAN], ["a", "b", "b", "b", "a"], replicates=100)

    assert with_holes == cohen_kappa(["a", "b", "a"], ["a", "b", "b"], replicates=100)
    assert with_holes.n == 3


def test_kappa_is_undefined_for_constant_or_missing_ratings() -> None:
    assert cohen_kappa([], []) == Interval(None, None, None, 0, 0)
    assert cohen_kappa(["a", "a"], ["a", "a"]) == Interval(None, None, None, 2, 2)
    assert cohen_kappa(["a", "b"], ["a", "b"], ["p", "p"]) == Interval(1.0, None, None, 2, 1)
    assert cohen_kappa([1, 2] * 20, [1, 2] * 20, replicates=100) == Interval(1.0, 1.0, 1.0, 40, 40)
    assert cohen_kappa(np.array([True, False]), np.array([1, 0]), replicates=50).value == 1.0
    with pytest.raises(CarinaError, match=r"a and b: .* 1 and 2"):
        cohen_kappa(["a"], ["a", "b"])


def test_alpha_of_two_readers_and_two_labels() -> None:
    # Krippendorff 2011, worked example: 4 of 10 units differ, 14 noughts and 6 ones: 1 - 19 * 8 / (2 * 14 * 6).
    first, second = [0, 1, 0, 0, 0, 0, 0, 0, 1, 0], [1, 1, 1, 0, 0, 1, 0, 0, 0, 0]

    found = krippendorff_alpha(list(zip(first, second, strict=True)), replicates=500)

    assert found.value == pytest.approx(1 - 19 * 8 / 168)
    assert found.value == pytest.approx(0.095, abs=5e-4)
    assert (found.n, found.clusters) == (10, 10)
    assert found.low < found.value < found.high


def test_alpha_of_four_readers_with_missing_labels() -> None:
    # Krippendorff 2011, worked example with missing data: 0.743.
    readers = [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
        [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
    ]

    found = krippendorff_alpha(list(zip(*readers, strict=True)), replicates=500)

    assert found.value == pytest.approx(0.743, abs=5e-4)
    assert found.n == 11  # the last unit has one label only, which agrees with nothing
    as_numbers = np.array(
        [[NAN if label is None else label for label in unit] for unit in zip(*readers, strict=True)]
    )
    assert krippendorff_alpha(as_numbers, replicates=500) == found


def test_alpha_is_undefined_for_constant_or_missing_ratings() -> None:
    assert krippendorff_alpha([]) == Interval(None, None, None, 0, 0)
    assert krippendorff_alpha([["a", None], [None, None]]) == Interval(None, None, None, 0, 0)
    assert krippendorff_alpha([["a", "a"], ["a", "a"]]) == Interval(None, None, None, 2, 2)
    assert krippendorff_alpha([["a", "a"], ["b", "b"]], ["p", "p"]) == Interval(1.0, None, None, 2, 1)
    with pytest.raises(CarinaError, match="ratings: "):
        krippendorff_alpha([["a", "b"], ["a"]])
