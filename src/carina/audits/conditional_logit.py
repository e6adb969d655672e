"""A conditional logit: which option of a question is right, learned from features of options.

Small, sparse, with an L2 penalty, and deterministic. The optimiser is L-BFGS in numpy. `scipy.optimize` was tried: with
the same tolerance single near-ties change, with a tolerance at which they do not it takes 1.8 times as long, it adds a
third of a second to the start of every audit, and its threads have to be switched off.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

_RIDGE: Final = 1.0
"""Strength of the L2 penalty: about one question's worth of evidence for each feature."""
_ITERATIONS: Final = 60
_MEMORY: Final = 8
"""Earlier steps from which L-BFGS estimates the curvature."""
_ARMIJO: Final = 1e-4
"""Share of the decrease predicted by the slope that a step must reach."""
_SHORTEST_STEP: Final = 1e-6
_TOLERANCE: Final = 1e-7
"""Relative decrease of the loss below which the optimiser stops."""

_Vector = NDArray[np.float64]
_Loss = Callable[[_Vector], tuple[float, _Vector]]
_Update = tuple[_Vector, _Vector, float]
"""A step, the change of the gradient along it, and the inverse of their product."""


@dataclass(frozen=True, kw_only=True)
class QuestionTable:
    """Options in rows, features in columns; the options of one question follow each other."""

    features: sparse.csr_matrix
    starts: NDArray[np.int64]
    """Row of each question's first option."""
    right: NDArray[np.float64]
    """Share of each option in the right answer; the shares of one question add up to 1."""

    def select(self, chosen: NDArray[np.bool_]) -> "QuestionTable":
        """Only the chosen questions."""
        sizes = np.diff(np.append(self.starts, self.right.size))
        rows = np.repeat(chosen, sizes)
        starts = np.concatenate([[0], np.cumsum(sizes[chosen])[:-1]]).astype(np.int64)
        return QuestionTable(features=self.features[rows], starts=starts, right=self.right[rows])


def fit_logit(table: QuestionTable) -> _Vector:
    """Weights of the features that minimise the penalised loss."""
    sizes = np.diff(np.append(table.starts, table.right.size))
    transposed = table.features.T.tocsr()

    def loss(weights: _Vector) -> tuple[float, _Vector]:
        scores = table.features @ weights
        scores -= np.repeat(np.maximum.reduceat(scores, table.starts), sizes)
        powers = np.exp(scores)
        sums = np.add.reduceat(powers, table.starts)
        value = float(np.log(sums).sum()) - _dot(table.right, scores) + _RIDGE / 2 * _dot(weights, weights)
        gradient = transposed @ (powers / np.repeat(sums, sizes) - table.right) + _RIDGE * weights
        return value, np.asarray(gradient, np.float64)

    return _minimise(loss, np.zeros(table.features.shape[1]))


def score_hits(table: QuestionTable, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each question, whether the best option is right; the mean over options that tie."""
    scores = np.round(table.features @ weights, 9)
    sizes = np.diff(np.append(table.starts, table.right.size))
    best = scores == np.repeat(np.maximum.reduceat(scores, table.starts), sizes)
    right = np.add.reduceat((best & (table.right > 0)).astype(np.float64), table.starts)
    return np.asarray(right / np.add.reduceat(best.astype(np.float64), table.starts), np.float64)


def _minimise(loss: _Loss, start: _Vector) -> _Vector:
    """The minimum of a smooth convex function, by L-BFGS with step halving."""
    weights, (value, gradient) = start, loss(start)
    updates: deque[_Update] = deque(maxlen=_MEMORY)
    for _ in range(_ITERATIONS):
        direction = _descent_direction(gradient, updates)
        slope = _dot(direction, gradient)
        length = 1.0 if updates else 1.0 / max(1.0, float(np.abs(gradient).sum()))
        while True:
            candidate = weights + length * direction
            lower, new_gradient = loss(candidate)
            if lower <= value + _ARMIJO * length * slope or length < _SHORTEST_STEP:
                break
            length /= 2
        step, change = candidate - weights, new_gradient - gradient
        curvature = _dot(step, change)
        is_done = value - lower <= _TOLERANCE * max(abs(value), 1.0)
        weights, value, gradient = candidate, lower, new_gradient
        if is_done:
            break
        if curvature > 0:
            updates.append((step, change, 1 / curvature))
    return weights


def _descent_direction(gradient: _Vector, updates: "deque[_Update]") -> _Vector:
    """The negative gradient, scaled by the curvature that the last steps show (two-loop recursion)."""
    direction = -gradient
    factors = []
    for step, change, scale in reversed(updates):
        factor = scale * _dot(step, direction)
        factors.append(factor)
        direction = direction - factor * change
    if updates:
        step, change, scale = updates[-1]
        direction = direction / (scale * _dot(change, change))
    for (step, change, scale), factor in zip(updates, reversed(factors), strict=True):
        direction = direction + (factor - scale * _dot(change, direction)) * step
    return direction


def _dot(one: _Vector, other: _Vector) -> float:
    """Inner product by this thread alone: processes that share the cores would wait for each other's threads of `@`."""
    return float(np.einsum("i,i->", one, other))
