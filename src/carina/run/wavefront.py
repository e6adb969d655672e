"""Models in this process: the same depth of many cases at once, so that batches are full."""

import time
from collections import deque
from collections.abc import Iterable, Iterator

from carina.errors import CarinaError
from carina.models.served import Reply
from carina.run.examinee import Examinee
from carina.run.log import Entry, StepLog
from carina.run.parse.normalise import storable
from carina.run.pictures import CasePictures
from carina.run.records import StepRow, Turn
from carina.run.tally import Tally, Told
from carina.run.walk import Walk

_DEPTH: float = 4.0
"""Cases on the way for each turn of a batch: as some end, others are deep enough to fill it."""


def run_wavefront(
    walks: Iterable[Walk],
    examinee: Examinee,
    pictures: CasePictures,
    log: StepLog,
    *,
    told: Told,
) -> None:
    """Walk all cases to their end; every batch of answers is on disk before the next one is asked."""
    waiting = iter(walks)
    on_the_way: deque[Walk] = deque()
    told(Tally(cases=_start(waiting, max(1, int(_DEPTH * examinee.batch)), on_the_way, pictures)))
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
        ended = 0
        for walk in batch:
            if walk.over:
                pictures.drop(walk.case)
                ended += 1 + _start(waiting, 1, on_the_way, pictures)
            else:
                on_the_way.append(walk)
        told(Tally(ended, asked=len(batch), failed=sum(reply.text is None for reply in replies)))


def entry(row: StepRow, reply: Reply) -> Entry:
    """A line of the log, which holds the whole reply."""
    text = None if reply.text is None else storable(reply.text)
    return Entry(row=row, text=None if row.raw == text else text)


def _turn_of(walk: Walk) -> Turn:
    turn = walk.turn
    assert turn is not None  # noqa: S101 - walks that are over are not on the way
    return turn


def _answers(examinee: Examinee, turns: list[Turn], pictures: CasePictures) -> list[Reply]:
    """The replies to a batch; what keeps one turn from being answered, such as a missing image, concerns it alone."""
    try:
        replies = examinee.answer(turns, pictures)
    except CarinaError as error:
        if len(turns) == 1:
            return [Reply(text=None, error=str(error))]
        return [reply for turn in turns for reply in _answers(examinee, [turn], pictures)]
    if len(replies) != len(turns):
        raise RuntimeError(f"{examinee.name}: {len(replies)} replies to {len(turns)} turns")
    return replies


def _start(
    waiting: Iterator[Walk],
    number: int,
    on_the_way: deque[Walk],
    pictures: CasePictures,
) -> int:
    """Take up so many more cases; how many have nothing left to ask, and have ended."""
    ended = 0
    while number > 0 and (walk := next(waiting, None)) is not None:
        if walk.over:
            ended += 1
            continue
        pictures.add(walk.case)
        on_the_way.append(walk)
        number -= 1
    return ended
