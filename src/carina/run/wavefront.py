"""Models in this process: the same depth of many cases at once, so that batches are full."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from carina.models.served import Reply
from carina.run.examinee import Examinee
from carina.run.log import Entry, StepLog
from carina.run.pictures import CasePictures
from carina.run.records import StepRow, Turn
from carina.run.walk import Walk

_DEPTH: float = 4.0
"""Cases on the way for each turn of a batch: as some end, others are deep enough to fill it."""


def run_wavefront(
    walks: Iterable[Walk],
    examinee: Examinee,
    pictures: CasePictures,
    log: StepLog,
    *,
    done: Callable[[], object],
) -> None:
    """Walk all cases to their end; every batch of answers is on disk before the next one is asked."""
    waiting = iter(walks)
    on_the_way: deque[Walk] = deque(_started(waiting, max(1, int(_DEPTH * examinee.batch)), pictures))
    while on_the_way:
        # The least advanced first: cases keep step with each other.
        batch = [on_the_way.popleft() for _ in range(min(examinee.batch, len(on_the_way)))]
        turns = [_turn_of(walk) for walk in batch]
        began = time.perf_counter()
        replies = _answers(examinee, turns, pictures)
        seconds = (time.perf_counter() - began) / len(batch)
        log.append(
            entry(walk.take(reply, seconds=seconds), reply)
            for walk, reply in zip(batch, replies, strict=True)
        )
        log.sync()
        for walk in batch:
            if walk.over:
                pictures.drop(walk.case)
                done()
                on_the_way.extend(_started(waiting, 1, pictures))
            else:
                on_the_way.append(walk)


def entry(row: StepRow, reply: Reply) -> Entry:
    """A line of the log, which holds the whole reply."""
    return Entry(row=row, text=None if row.raw == reply.text else reply.text)


def _turn_of(walk: Walk) -> Turn:
    turn = walk.turn
    assert turn is not None  # noqa: S101 - walks that are over are not on the way
    return turn


def _answers(examinee: Examinee, turns: list[Turn], pictures: CasePictures) -> list[Reply]:
    replies = examinee.answer(turns, pictures)
    if len(replies) != len(turns):
        raise RuntimeError(f"{examinee.name}: {len(replies)} replies to {len(turns)} turns")
    return replies


def _started(waiting: Iterator[Walk], number: int, pictures: CasePictures) -> Iterator[Walk]:
    for walk in waiting:
        if number < 1:
            return
        number -= 1
        pictures.add(walk.case)
        yield walk
        if number < 1:
            return
