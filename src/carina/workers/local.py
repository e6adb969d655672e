"""Work shared between processes of this machine."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from itertools import islice

import cv2

from carina.workers.pool import Pool, Result, Task


@contextmanager
def local_pool(workers: int) -> Iterator[Pool]:
    """As `carina.workers.pool`; one worker is this process."""
    if workers <= 1:
        yield _ThisProcess()
        return
    # Spawned, not forked: threads of numerical libraries do not survive a fork.
    with ProcessPoolExecutor(
        workers, mp_context=multiprocessing.get_context("spawn"), initializer=_start_worker
    ) as processes:
        yield _Processes(processes, workers)


class _ThisProcess:
    def begin(self, function: Callable[[Task], Result]) -> None:
        """It is ready."""

    def in_order(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, ahead: int = 4
    ) -> Iterator[Result]:
        """As `Pool.in_order`; no task is begun before its result is asked for."""
        del ahead
        return map(function, tasks)


class _Processes:
    def __init__(self, processes: ProcessPoolExecutor, workers: int) -> None:
        self._processes = processes
        self._workers = workers

    def begin(self, function: Callable[[Task], Result]) -> None:
        """A process is started for every task that finds none idle, and receiving the function imports its module."""
        for _ in range(self._workers):
            self._processes.submit(_receive, function)

    def in_order(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, ahead: int = 4
    ) -> Iterator[Result]:
        """As `Pool.in_order`."""
        waiting: deque[Future[Result]] = deque()
        todo = iter(tasks)
        try:
            while True:
                waiting.extend(
                    self._processes.submit(function, task)
                    for task in islice(todo, ahead * self._workers - len(waiting))
                )
                if not waiting:
                    return
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _receive(_function: Callable[[Task], Result]) -> None:
    """Nothing is left to do."""


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
