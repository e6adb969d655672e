"""The figures of learned metrics, filled into the rows of a run when it is closed."""

import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from carina.run.records import StepRow
from carina.run.score.learned.metric import Pair, TextMetric

_AT_A_TIME: Final = 128
"""Answers whose tokens are held in memory together."""
_PATIENCE: Final = 15.0
"""Seconds after which something is told again."""
_IN_WORDS: Final = frozenset({"open", "report"})


class TextScorer:
    """Gives answered rows in words their figures. `tell` hears now and then how far it has come."""

    def __init__(
        self, metrics: Sequence[TextMetric], tell: Callable[[str], object] = lambda _line: None
    ) -> None:
        self._metrics = metrics
        self._tell = tell
        self._done = 0
        self._told = time.monotonic()

    def __call__(self, rows: Sequence[StepRow]) -> list[StepRow]:
        """The rows in their order; what was not answered in words stays as it is."""
        scored = list(rows)
        places = [place for place, row in enumerate(rows) if _is_in_words(row)] if self._metrics else []
        for start in range(0, len(places), _AT_A_TIME):
            some = places[start : start + _AT_A_TIME]
            for place, row in zip(some, self._scored([rows[place] for place in some]), strict=True):
                scored[place] = row
            self._count(len(some))
        return scored

    def _scored(self, rows: Sequence[StepRow]) -> list[StepRow]:
        pairs = [_pair(row) for row in rows]
        compared = [pair for pair in pairs if pair is not None]
        figures: list[dict[str, float]] = [{} for _ in rows]
        for metric in self._metrics:
            found = iter(metric.score(compared) if compared else ())
            # As with all scores of words, what a refusal says counts for nothing.
            nothing = (0.0,) * len(metric.columns)
            for own, pair in zip(figures, pairs, strict=True):
                own.update(zip(metric.columns, next(found) if pair is not None else nothing, strict=True))
        return [msgspec.structs.replace(row, **own) for row, own in zip(rows, figures, strict=True)]

    def _count(self, more: int) -> None:
        self._done += more
        if time.monotonic() - self._told > _PATIENCE:
            self._told = time.monotonic()
            names = ", ".join(metric.name for metric in self._metrics)
            self._tell(f"{self._done} answers in words compared with their keys ({names})")


def _is_in_words(row: StepRow) -> bool:
    return row.state == "answered" and row.format in _IN_WORDS


def _pair(row: StepRow) -> Pair | None:
    """What is compared; None where nothing was said that could be."""
    said = row.text if row.status == "ok" and row.text is not None else ""
    return (row.gold, said) if row.gold.strip() and said.strip() else None
