"""Runs an in-process model: the same turn of many cases at once, so that batches are full."""

import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

from carina.models import ImageReader, Reply
from carina.runs.images import CaseImages
from carina.runs.log import Entry, StepLog
from carina.runs.parse.normalise import make_storable
from carina.runs.records import OnProgress, ProgressCount, StepRow, Turn
from carina.runs.walk import Walk
from carina.store.errors import CarinaError

_OPEN_CASES_PER_TURN: Final = 4.0
"""Open cases for each turn of a batch: as some end, enough others are open to fill it."""


class InProcessModel(Protocol):
    """A model in this process that answers many turns at once.

    `carina.models.ChatModel` with the turns of a run, whose step it may read.
    """

    name: str
    batch: int
    """How many turns `answer` should get at a time."""

    def answer(self, turns: Sequence[Turn], images: ImageReader) -> list[Reply]:
        """One reply per turn, in order. A turn that cannot be answered gets a reply with an error."""


def run_batches(
    walks: Iterable[Walk],
    model: InProcessModel,
    images: CaseImages,
    log: StepLog,
    *,
    progress: OnProgress,
) -> None:
    """Walk all cases to their end; every batch of answers is on disk before the next one is asked."""
    waiting = iter(walks)
    open_walks: deque[Walk] = deque()
    number = max(1, int(_OPEN_CASES_PER_TURN * model.batch))
    progress(ProgressCount(cases=_open_cases(waiting, number, open_walks, images)))
    while open_walks:
        # The least advanced first, so that cases advance together.
        batch = [open_walks.popleft() for _ in range(min(model.batch, len(open_walks)))]
        turns = [_current_turn(walk) for walk in batch]
        began = time.perf_counter()
        replies = _answer(model, turns, images)
        seconds = (time.perf_counter() - began) / len(batch)
        log.append(
            log_entry(walk.take(reply, seconds=seconds), reply)
            for walk, reply in zip(batch, replies, strict=True)
        )
        log.sync()
        ended = 0
        for walk in batch:
            if walk.over:
                images.drop(walk.case)
                ended += 1 + _open_cases(waiting, 1, open_walks, images)
            else:
                open_walks.append(walk)
        progress(ProgressCount(ended, asked=len(batch), failed=sum(reply.text is None for reply in replies)))


def log_entry(row: StepRow, reply: Reply) -> Entry:
    """An entry of the log, which holds the whole reply."""
    text = None if reply.text is None else make_storable(reply.text)
    return Entry(row=row, text=None if row.raw == text else text)


def _current_turn(walk: Walk) -> Turn:
    turn = walk.turn
    assert turn is not None  # noqa: S101 - a walk that is over is not open
    return turn


def _answer(model: InProcessModel, turns: list[Turn], images: CaseImages) -> list[Reply]:
    """The replies to a batch; an error about one turn, such as a missing image, concerns that turn alone."""
    try:
        replies = model.answer(turns, images)
    except CarinaError as error:
        if len(turns) == 1:
            return [Reply(text=None, error=str(error))]
        return [reply for turn in turns for reply in _answer(model, [turn], images)]
    if len(replies) != len(turns):
        raise RuntimeError(f"{model.name}: {len(replies)} replies to {len(turns)} turns")
    return replies


def _open_cases(waiting: Iterator[Walk], number: int, open_walks: deque[Walk], images: CaseImages) -> int:
    """Open some more cases.

    Returns:
        How many of the cases that were skipped had nothing left to ask.
    """
    ended = 0
    while number > 0 and (walk := next(waiting, None)) is not None:
        if walk.over:
            ended += 1
            continue
        images.add(walk.case)
        open_walks.append(walk)
        number -= 1
    return ended
