"""A conditional logit: which of a question's options is right, learned from what options have in common.

Small, sparse and regularised; deterministic, because it has no random part. It needs no more than scipy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import minimize

_RIDGE: Final = 1.0
"""Strength of the pull towards 0; about one example's worth of evidence for each feature."""
_STEPS: Final = 60


@dataclass(frozen=True, kw_only=True)
class Questions:
    """Options in rows, features in columns; the options of one question follow each other."""

    features: sparse.csr_matrix
    starts: NDArray[np.int64]
    """Row of each question's first option."""
    right: NDArray[np.float64]
    """Share of each option in the right answer; they add up to 1 in each question."""

    def some(self, chosen: NDArray[np.bool_]) -> "Questions":
        """Only the chosen questions."""
        sizes = np.diff(np.append(self.starts, self.right.size))
        rows = np.repeat(chosen, sizes)
        starts = np.concatenate([[0], np.cumsum(sizes[chosen])[:-1]]).astype(np.int64)
        return Questions(features=self.features[rows], starts=starts, right=self.right[rows])


def questions(examples: Sequence[tuple[Sequence[Sequence[int]], Sequence[float]]], width: int) -> Questions:
    """From, for each question, the features of each option and the option's share in the right answer."""
    rows = [features for options, _ in examples for features in options]
    right = np.array([share for _, shares in examples for share in shares], np.float64)
    sizes = np.array([len(options) for options, _ in examples], np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    indices = np.array([feature for row in rows for feature in row], np.int64)
    matrix = sparse.csr_matrix((np.ones(indices.size), indices, indptr), shape=(len(rows), width))
    return Questions(features=matrix, starts=starts, right=right)


def fit(data: Questions) -> NDArray[np.float64]:
    """Weights of the features."""
    sizes = np.diff(np.append(data.starts, data.right.size))
    transposed = data.features.T.tocsr()

    def loss(weights: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        scores = data.features @ weights
        scores -= np.repeat(np.maximum.reduceat(scores, data.starts), sizes)
        powers = np.exp(scores)
        sums = np.add.reduceat(powers, data.starts)
        value = float(np.log(sums).sum() - data.right @ scores + _RIDGE / 2 * weights @ weights)
        slope = transposed @ (powers / np.repeat(sums, sizes) - data.right) + _RIDGE * weights
        return value, np.asarray(slope, np.float64)

    found = minimize(
        loss, np.zeros(data.features.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}
    )
    return np.asarray(found.x, np.float64)


def hits(data: Questions, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each question, whether the best option is right; the mean over options that tie."""
    scores = np.round(data.features @ weights, 9)
    sizes = np.diff(np.append(data.starts, data.right.size))
    best = scores == np.repeat(np.maximum.reduceat(scores, data.starts), sizes)
    good = np.add.reduceat((best & (data.right > 0)).astype(np.float64), data.starts)
    return np.asarray(good / np.add.reduceat(best.astype(np.float64), data.starts), np.float64)
