"""Boosted trees: which option of a question is right, learned from features of options and their interactions.

A conditional logit (`carina.audits.conditional_logit`) weighs features one by one; trees also find what only two or
three features reveal together. Small, in numpy, and deterministic: features are sorted into bins once, trees of a few
levels are grown level by level from sums over bins, and each tree sees a random half of the features.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.store.seeding import rng

BINS: Final = 32
"""Bins of each feature, with about as many options each."""
_TREES: Final = 80
_DEPTH: Final = 3
"""Questions about features on the way to a leaf: the largest number of features that interact in one tree."""
_RATE: Final = 0.08
"""Share of each tree's step that is made."""
_RIDGE: Final = 2.0
"""Strength of the L2 penalty on the value of a leaf."""
_LEAST_WEIGHT: Final = 3.0
"""Least sum of second derivatives in a leaf: about 16 options of questions with four."""
_FEATURES_OF_TREE: Final = 0.5
"""Share of the features that a tree may use."""

_Values = NDArray[np.float64]
_Bins = NDArray[np.uint8]


@dataclass(frozen=True)
class _Tree:
    """A complete tree; the children of node n are 2n + 1 (up to the limit) and 2n + 2 (above it)."""

    features: NDArray[np.int64]
    limits: NDArray[np.int64]
    """The last bin that goes to the first child."""
    leaves: _Values


@dataclass(frozen=True)
class BoostedTrees:
    """Trees whose values add up to the score of an option."""

    trees: tuple[_Tree, ...]

    def score(self, bins: _Bins) -> _Values:
        """The score of every option.

        Args:
            bins: Bins of features, (questions, options, features).

        Returns:
            Scores, (questions, options); only differences within a question have a meaning.
        """
        rows = bins.reshape(-1, bins.shape[2]).astype(np.int64)
        scores = np.zeros(len(rows))
        for tree in self.trees:
            scores += tree.leaves[_find_leaves(tree, rows)]
        return scores.reshape(bins.shape[:2])


def sort_into_bins(features: _Values) -> _Bins:
    """The bin of each value among all values of its feature, (questions, options, features)."""
    rows = np.round(features.reshape(-1, features.shape[2]), 9)
    places = np.linspace(0, 1, BINS + 1)[1:-1]
    edges = np.quantile(rows, places, axis=0, method="lower")
    bins = [np.searchsorted(edges[:, at], rows[:, at], side="left") for at in range(rows.shape[1])]
    return np.stack(bins, axis=1).astype(np.uint8).reshape(features.shape)


def fit_trees(bins: _Bins, right: NDArray[np.int64]) -> BoostedTrees:
    """Trees that increase the likelihood of the right option among the options of its question.

    Args:
        bins: Bins of features, (questions, options, features).
        right: Number of the right option of each question.
    """
    questions, options, width = bins.shape
    rows = bins.reshape(-1, width).astype(np.int64)
    is_right = np.eye(options)[right].ravel()
    scores = np.zeros(questions * options)
    trees = []
    for number in range(_TREES):
        powers = np.exp(scores.reshape(questions, options))
        expected = (powers / powers.sum(axis=1, keepdims=True)).ravel()
        used = rng(number, "features of a tree").permutation(width)[
            : max(1, round(_FEATURES_OF_TREE * width))
        ]
        tree = _grow_tree(rows, np.sort(used), is_right - expected, expected * (1 - expected))
        scores += tree.leaves[_find_leaves(tree, rows)]
        trees.append(tree)
    return BoostedTrees(tuple(trees))


def find_right_by_trees(features: _Values, right: NDArray[np.int64], folds: NDArray[np.int64]) -> _Values:
    """Whether trees fitted on the other folds find the right option of each question; a fraction where options tie.

    Args:
        features: Features of options, (questions, options, features).
        right: Number of the right option of each question.
        folds: Part of the patients to which each question belongs.
    """
    bins = sort_into_bins(features)
    hits = np.full(len(bins), 1 / bins.shape[1])
    for fold in np.unique(folds):
        is_tested = folds == fold
        if not is_tested.all():
            scores = np.round(fit_trees(bins[~is_tested], right[~is_tested]).score(bins[is_tested]), 9)
            best = scores == scores.max(axis=1, keepdims=True)
            of_right = np.take_along_axis(best, right[is_tested][:, None], axis=1)[:, 0]
            hits[is_tested] = of_right / best.sum(axis=1)
    return hits


def _grow_tree(rows: NDArray[np.int64], used: NDArray[np.int64], gradient: _Values, weight: _Values) -> _Tree:
    count = 2**_DEPTH - 1
    features, limits = np.zeros(count, np.int64), np.full(count, BINS, np.int64)
    cells = rows[:, used] + np.arange(len(used)) * BINS
    node = np.zeros(len(rows), np.int64)
    for level in range(_DEPTH):
        first, nodes = 2**level - 1, 2**level
        place = ((node - first) * (len(used) * BINS))[:, None] + cells
        shape = (nodes, len(used), BINS)
        sums, weights = (
            np.bincount(place.ravel(), np.repeat(values, len(used)), nodes * len(used) * BINS)
            .reshape(shape)
            .cumsum(axis=2)
            for values in (gradient, weight)
        )
        gains = np.round(_measure_gains(sums, weights), 9).reshape(nodes, -1)
        best = gains.argmax(axis=1)
        is_split = gains[np.arange(nodes), best] > 0
        at = first + np.arange(nodes)
        features[at] = used[best // BINS]
        limits[at] = np.where(is_split, best % BINS, BINS)
        node = 2 * node + 1 + (rows[np.arange(len(rows)), features[node]] > limits[node])
    leaf = node - count
    sums, weights = (np.bincount(leaf, values, 2**_DEPTH) for values in (gradient, weight))
    return _Tree(features, limits, _RATE * sums / (weights + _RIDGE))


def _measure_gains(sums: _Values, weights: _Values) -> _Values:
    """What a split after each bin adds to the likelihood, about; none where a child would be too small.

    Args:
        sums: First derivatives up to each bin, (nodes, features, bins).
        weights: Second derivatives up to each bin.
    """
    total, weight = sums[:, :, -1:], weights[:, :, -1:]
    gains = (
        sums**2 / (weights + _RIDGE)
        + (total - sums) ** 2 / (weight - weights + _RIDGE)
        - total**2 / (weight + _RIDGE)
    )
    is_large = (weights >= _LEAST_WEIGHT) & (weight - weights >= _LEAST_WEIGHT)
    return np.asarray(np.where(is_large, gains, 0.0), np.float64)


def _find_leaves(tree: _Tree, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    node = np.zeros(len(rows), np.int64)
    every = np.arange(len(rows))
    for _ in range(_DEPTH):
        node = 2 * node + 1 + (rows[every, tree.features[node]] > tree.limits[node])
    return node - (2**_DEPTH - 1)
