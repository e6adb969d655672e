"""A text metric with weights, and how its figures get into the rows of a run."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from carina.runs.records import StepRow

Pair = tuple[str, str]
"""Text of the key and text of the answer; neither is empty."""


@dataclass(frozen=True)
class TextMetric:
    """A loaded model that compares two texts."""

    name: str
    weights: str
    """Shortened SHA-256 of the weights; figures can be compared only where it is the same."""
    columns: tuple[str, ...]
    """Columns of `StepRow`, one for each figure."""
    score: Callable[[Sequence[Pair]], list[tuple[float, ...]]]
    """Computes the figures of each pair, from 0 to 1."""


def f1(key: frozenset[object], answer: frozenset[object]) -> float:
    """F1 of two sets; 0 where they share nothing."""
    return 2 * len(key & answer) / (len(key) + len(answer)) if key & answer else 0.0


# ---- rows of a run ----

_BATCH: Final = 128
"""Answers whose tokens are held in memory together."""
_PROGRESS_INTERVAL: Final = 15.0
"""Seconds between two progress messages."""
_TEXT_FORMATS: Final = frozenset({"open", "report"})


class TextScorer:
    """Adds the figures of learned metrics to rows with an answer in words.

    Args:
        metrics: Loaded metrics.
        tell: Called with a progress message every 15 seconds.
    """

    def __init__(
        self, metrics: Sequence[TextMetric], tell: Callable[[str], object] = lambda _line: None
    ) -> None:
        self._metrics = metrics
        self._tell = tell
        self._done = 0
        self._last_message = time.monotonic()

    def __call__(self, rows: Sequence[StepRow]) -> list[StepRow]:
        """Score rows; those without an answer in words stay as they are."""
        scored = list(rows)
        places = [place for place, row in enumerate(rows) if _has_text_answer(row)] if self._metrics else []
        for start in range(0, len(places), _BATCH):
            some = places[start : start + _BATCH]
            for place, row in zip(some, self._score([rows[place] for place in some]), strict=True):
                scored[place] = row
            self._report_progress(len(some))
        return scored

    def _score(self, rows: Sequence[StepRow]) -> list[StepRow]:
        pairs = [_pair(row) for row in rows]
        compared = [pair for pair in pairs if pair is not None]
        figures: list[dict[str, float]] = [{} for _ in rows]
        for metric in self._metrics:
            results = iter(metric.score(compared) if compared else ())
            # As in all scores of words, a refusal scores 0.
            nothing = (0.0,) * len(metric.columns)
            for own, pair in zip(figures, pairs, strict=True):
                own.update(zip(metric.columns, next(results) if pair is not None else nothing, strict=True))
        return [msgspec.structs.replace(row, **own) for row, own in zip(rows, figures, strict=True)]

    def _report_progress(self, more: int) -> None:
        self._done += more
        if time.monotonic() - self._last_message > _PROGRESS_INTERVAL:
            self._last_message = time.monotonic()
            names = ", ".join(metric.name for metric in self._metrics)
            self._tell(f"{self._done} answers in words compared with their keys ({names})")


def _has_text_answer(row: StepRow) -> bool:
    return row.state == "answered" and row.format in _TEXT_FORMATS


def _pair(row: StepRow) -> Pair | None:
    """Key and answer; None where one of them is empty."""
    answer = row.text if row.status == "ok" and row.text is not None else ""
    return (row.gold, answer) if row.gold.strip() and answer.strip() else None
