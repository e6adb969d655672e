"""A conditional logit: which of a question's options is right, learned from what options have in common.

Small, sparse and regularised; deterministic, because it has no random part. It needs no more than scipy.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_RIDGE: Final = 1.0
"""Strength of the pull towards 0; about one example's worth of evidence for each feature."""
_STEPS: Final = 60
_MEMORY: Final = 8
_ARMIJO: Final = 1e-4
_SHORTEST: Final = 1e-6
_ENOUGH: Final = 1e-7
"""Relative gain below which it stops."""

_Loss = Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]]


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
        value = float(np.log(sums).sum()) - _dot(data.right, scores) + _RIDGE / 2 * _dot(weights, weights)
        slope = transposed @ (powers / np.repeat(sums, sizes) - data.right) + _RIDGE * weights
        return value, np.asarray(slope, np.float64)

    return _lowest(loss, np.zeros(data.features.shape[1]))


def _lowest(loss: _Loss, start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Where a smooth convex function is lowest, by L-BFGS.

    scipy's own waits thousands of times for the threads of its linear algebra, which takes longer than the sums.
    """
    weights, (value, slope) = start, loss(start)
    moves: deque[tuple[NDArray[np.float64], NDArray[np.float64], float]] = deque(maxlen=_MEMORY)
    for _ in range(_STEPS):
        way = _direction(slope, moves)
        steep = _dot(way, slope)
        stride = 1.0 if moves else 1.0 / max(1.0, float(np.abs(slope).sum()))
        while True:
            there = weights + stride * way
            lower, new = loss(there)
            if lower <= value + _ARMIJO * stride * steep or stride < _SHORTEST:
                break
            stride /= 2
        move, bend = there - weights, new - slope
        curved = _dot(move, bend)
        done = value - lower <= _ENOUGH * max(abs(value), 1.0)
        weights, value, slope = there, lower, new
        if done:
            break
        if curved > 0:
            moves.append((move, bend, 1 / curved))
    return weights


def _direction(
    slope: NDArray[np.float64], moves: "deque[tuple[NDArray[np.float64], NDArray[np.float64], float]]"
) -> NDArray[np.float64]:
    """Downhill, with the curvature of the last moves."""
    way = -slope
    shares = []
    for move, bend, scale in reversed(moves):
        share = scale * _dot(move, way)
        shares.append(share)
        way = way - share * bend
    if moves:
        move, bend, scale = moves[-1]
        way = way / (scale * _dot(bend, bend))
    for (move, bend, scale), share in zip(moves, reversed(shares), strict=True):
        way = way + (share - scale * _dot(bend, way)) * move
    return way


def _dot(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """By this thread alone: processes that share the cores would wait for the threads of each other's `@`."""
    return float(np.einsum("i,i->", one, other))


def hits(data: Questions, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each question, whether the best option is right; the mean over options that tie."""
    scores = np.round(data.features @ weights, 9)
    sizes = np.diff(np.append(data.starts, data.right.size))
    best = scores == np.repeat(np.maximum.reduceat(scores, data.starts), sizes)
    good = np.add.reduceat((best & (data.right > 0)).astype(np.float64), data.starts)
    return np.asarray(good / np.add.reduceat(best.astype(np.float64), data.starts), np.float64)
