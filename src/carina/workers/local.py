"""Work shared between processes of this machine."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from typing import TypeVar

import cv2

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_order_local(
    function: Callable[[Task], Result], tasks: Iterable[Task], *, workers: int, ahead: int
) -> Iterator[Result]:
    """As `carina.workers.in_order`; one worker is this process."""
    if workers <= 1:
        yield from map(function, tasks)
        return
    waiting: deque[Future[Result]] = deque()
    todo = iter(tasks)
    # Spawned, not forked: threads of numerical libraries do not survive a fork.
    with ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker
    ) as pool:
        try:
            while True:
                waiting.extend(
                    pool.submit(function, task) for task in islice(todo, ahead * workers - len(waiting))
                )
                if not waiting:
                    return
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _start_worker() -> None:
    """One thread a worker, since workers share the cores; and none outlives the command that started it."""
    cv2.setNumThreads(1)
    # Ctrl-C reaches the whole group; the parent says what there is to say.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
