"""What a metric with weights is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

Pair = tuple[str, str]
"""The text of the key and that of the answer; neither is empty."""


@dataclass(frozen=True)
class TextMetric:
    """One loaded model that compares texts."""

    name: str
    weights: str
    """SHA-256 of its weights, shortened: figures compare where it is the same."""
    columns: tuple[str, ...]
    """Of `StepRow`, one for each figure."""
    score: Callable[[Sequence[Pair]], list[tuple[float, ...]]]
    """The figures of each pair, from 0 to 1."""


def f1(key: frozenset[object], answer: frozenset[object]) -> float:
    """F1 of two sets, 0 where they share nothing."""
    return 2 * len(key & answer) / (len(key) + len(answer)) if key & answer else 0.0
