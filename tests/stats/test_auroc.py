"""The area under the ROC curve and its interval."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from carina.stats import auroc
from carina.store.errors import CarinaError

rows = st.lists(st.tuples(st.integers(0, 6), st.booleans(), st.integers(0, 9)), min_size=1, max_size=60)


def test_auroc_equals_counted_pairs():
    # Pairs of a positive and a negative: 3 > 1, 3 > 2, 2 > 1 and a tie of 2 with 2.
    found = auroc([3, 2, 1, 2], np.array([True, True, False, False]), replicates=100)
    assert (found.value, found.n, found.clusters) == (3.5 / 4, 4, 4)


@given(rows)
def test_auroc_agrees_with_scikit_learn(made):
    scores, positive, _ = map(np.array, zip(*made, strict=True))
    found = auroc(scores, positive, replicates=20).value
    if positive.all() or not positive.any():
        assert found is None
    else:
        assert found == pytest.approx(roc_auc_score(positive, scores))


@given(rows, st.randoms(use_true_random=False))
def test_neither_order_nor_names_of_patients_matter(made, chance):
    shuffled = made[:]
    chance.shuffle(shuffled)
    names = {n: f"patient {9 - n}" for n in range(10)}

    def found(rows, name):
        scores, positive, patients = zip(*rows, strict=True)
        return auroc(scores, np.array(positive), [name(p) for p in patients], replicates=50)

    assert found(made, str) == found(shuffled, names.get)


def test_the_bootstrap_samples_patients_not_rows():
    """Rows that are copies of one patient's widen nothing; the same rows of many patients narrow the interval."""
    chance = np.random.default_rng(0)
    scores = chance.normal(size=60) + np.repeat([0.0, 1.0], 30)
    positive = np.repeat([False, True], 30)
    once = auroc(scores, positive, range(60), replicates=2000)
    copied = auroc(np.tile(scores, 5), np.tile(positive, 5), np.tile(np.arange(60), 5), replicates=2000)
    alone = auroc(np.tile(scores, 5), np.tile(positive, 5), replicates=2000)
    assert copied.value == pytest.approx(once.value)
    assert copied.high - copied.low == pytest.approx(once.high - once.low, rel=0.1)
    assert alone.high - alone.low < 0.6 * (once.high - once.low)
    # A bootstrap by hand: the same interval but for chance.
    drawn = [chance.integers(0, 60, 60) for _ in range(2000)]
    areas = [roc_auc_score(positive[d], scores[d]) for d in drawn]
    assert [once.low, once.high] == pytest.approx(np.percentile(areas, [2.5, 97.5]).tolist(), abs=0.02)


def test_rows_without_score_are_left_out_and_wrong_shapes_are_refused():
    found = auroc([1, np.nan, 2], np.array([False, True, True]), replicates=10)
    assert (found.value, found.n) == (1.0, 2)
    assert auroc([], np.zeros(0, bool)).value is None
    with pytest.raises(CarinaError, match="true or false for each of 2 scores"):
        auroc([1, 2], [1, 0])


def test_a_class_of_one_patient_has_no_bounds():
    """Every replicate with both classes holds that patient: bounds would be too narrow, or of no width at all."""
    scores, positive = [0.9, 0.8, 0.2, 0.1], np.array([True, True, False, False])
    assert auroc(scores, positive, list("abcd")).low is not None
    for patients in ("aabc", "abcc"):
        found = auroc(scores, positive, list(patients))
        assert (found.value, found.low, found.high, found.n, found.clusters) == (1.0, None, None, 4, 3)
    assert auroc([0.3, 0.4], np.array([True, False])).low is None
