"""Small classifiers over features of contours, scored on patients that they were not fitted on.

A linear one (conditional logit), and boosted trees, which also find what several features reveal only together.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from carina.audits.boosted_trees import find_right_by_trees
from carina.audits.conditional_logit import QuestionTable, fit_logit, score_hits

FOLDS: Final = 5
"""Parts of the patients; the classifier for each part is fitted on the others."""
FEWEST: Final = 40
"""Questions below which no classifier is fitted."""

_Values = NDArray[np.float64]


def find_right_options(features: _Values, right: NDArray[np.int64], folds: NDArray[np.int64]) -> _Values:
    """Whether a conditional logit finds the right option of each question; a fraction where options tie.

    Args:
        features: Features of options, (questions, options, features).
        right: Number of the right option of each question.
        folds: Part of the patients to which each question belongs.
    """
    values = features - features.mean(axis=1, keepdims=True)
    values /= np.maximum(values.std(axis=(0, 1)), 1e-9)
    # Of two masks, the less usual one may be the right one, whichever way it is unusual.
    sizes = np.abs(values)
    values = np.concatenate([values, sizes - sizes.mean(axis=1, keepdims=True)], axis=2)
    hits = np.zeros(len(values))
    for fold in range(FOLDS):
        is_tested = folds == fold
        if is_tested.any() and not is_tested.all():
            weights = fit_logit(_make_table(values[~is_tested], right[~is_tested]))
            hits[is_tested] = score_hits(_make_table(values[is_tested], right[is_tested]), weights)
    return hits


def find_right_options_by_trees(
    features: _Values, right: NDArray[np.int64], folds: NDArray[np.int64]
) -> _Values:
    """Whether boosted trees find the right option of each question; arguments as of `find_right_options`."""
    return find_right_by_trees(view_options(features), right, folds)


def view_options(features: _Values) -> _Values:
    """Each feature as it is, less the mean of the options, its distance from this mean, and its rank."""
    centred = features - features.mean(axis=1, keepdims=True)
    sizes = np.abs(centred)
    rounded = np.round(features, 9)
    one, other = rounded[:, :, None], rounded[:, None]
    ranks = (one > other).sum(axis=2) + (one == other).sum(axis=2) / 2
    views = [features, centred, sizes - sizes.mean(axis=1, keepdims=True), ranks]
    return np.concatenate(views, axis=2)


def _make_table(values: _Values, right: NDArray[np.int64]) -> QuestionTable:
    questions, options, width = values.shape
    return QuestionTable(
        features=sparse.csr_matrix(values.reshape(-1, width)),
        starts=np.arange(questions, dtype=np.int64) * options,
        right=np.eye(options)[right].ravel(),
    )


def score_class(
    features: _Values, is_positive: NDArray[np.bool_], groups: NDArray[np.int64], folds: NDArray[np.int64]
) -> _Values:
    """The score of each row by a logistic regression on features within groups: higher for positive rows.

    Args:
        features: Features, (rows, features).
        is_positive: Class of each row.
        groups: Group of each row, such as the target; only differences within groups count.
        folds: Part of the patients to which each row belongs.
    """
    values = features.copy()
    for group in np.unique(groups):
        values[groups == group] -= values[groups == group].mean(axis=0)
    values /= np.maximum(values.std(axis=0), 1e-9)
    # As a question with two options, of which the second has no features: the logistic regression of the first.
    pairs = np.stack([values, np.zeros_like(values)], axis=1)
    right = np.where(is_positive, 0, 1)
    scores = np.zeros(len(values))
    for fold in range(FOLDS):
        is_tested = folds == fold
        if is_tested.any() and not is_tested.all():
            scores[is_tested] = values[is_tested] @ fit_logit(
                _make_table(pairs[~is_tested], right[~is_tested])
            )
    return scores
