"""Work shared between processes of this machine."""

import multiprocessing
import multiprocessing.connection
import os
import queue
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import count, islice
from multiprocessing.context import SpawnContext, SpawnProcess
from typing import Any, Final

from carina.store.errors import CarinaError
from carina.store.workers.pool import Listener, Pool, Result, Task, sending_to

_LISTEN: Final = 0.1
"""Seconds to wait for a message before looking whether the task has ended."""


@contextmanager
def local_pool(workers: int) -> Iterator[Pool]:
    """As `carina.store.workers.pool`; one worker is this process."""
    if workers <= 1:
        yield _ThisProcess()
        return
    context = _WorkerContext()
    messages = context.Queue()
    stop, keep_running = context.Pipe(duplex=False)
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start_worker, initargs=(stop, messages)
    ) as processes:
        try:
            yield _Processes(processes, workers, messages)
        except KeyboardInterrupt:
            keep_running.close()  # ends the workers: a task may take hours, and the same command resumes
            raise


class _WorkerProcess(SpawnProcess):
    """A process that does not run the user's script again, so that a script needs no `if __name__ == "__main__"`.

    Functions for workers stand in modules of Carina, which are imported where they are needed.
    """

    def start(self) -> None:
        """Start the process while the main module names no file that the new process would run."""
        main = sys.modules["__main__"]
        spec, file = main.__spec__, main.__dict__.pop("__file__", None)
        main.__spec__ = None
        try:
            super().start()
        finally:
            main.__spec__ = spec
            if file is not None:
                main.__file__ = file


class _WorkerContext(SpawnContext):
    """Processes are spawned, not forked: threads of numerical libraries do not survive a fork."""

    Process = _WorkerProcess


class _ThisProcess:
    def begin(self, function: Callable[[Task], Result]) -> None:
        """It is ready."""

    def in_order(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        *,
        ahead: int = 4,
        on_message: Listener | None = None,
    ) -> Iterator[Result]:
        """As `Pool.in_order`; no task is begun before its result is asked for."""
        del ahead
        if on_message is None:
            yield from map(function, tasks)
            return
        for task in tasks:
            with sending_to(on_message):
                result = function(task)
            yield result


class _Processes:
    def __init__(self, processes: ProcessPoolExecutor, workers: int, messages: Any) -> None:  # noqa: ANN401
        self._processes = processes
        self._workers = workers
        self._messages = messages
        self._received: Counter[int] = Counter()
        """Number of messages by number of the task."""
        self._numbers = count()

    def begin(self, function: Callable[[Task], Result]) -> None:
        """A process is started for every task that finds none idle, and receiving the function imports its module."""
        for _ in range(self._workers):
            self._processes.submit(_receive, function)

    def in_order(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        *,
        ahead: int = 4,
        on_message: Listener | None = None,
    ) -> Iterator[Result]:
        """As `Pool.in_order`."""
        waiting: deque[tuple[int, Future[tuple[Result, int]]]] = deque()
        todo = iter(tasks)
        try:
            while True:
                for task in islice(todo, ahead * self._workers - len(waiting)):
                    number = next(self._numbers)
                    told = None if on_message is None else number
                    waiting.append((number, self._processes.submit(_run, function, told, task)))
                if not waiting:
                    return
                yield self._result(*waiting.popleft(), on_message)
        except BrokenProcessPool:
            raise CarinaError(
                "a worker process ended unexpectedly: it was killed, or memory ran out. Run the same command again to "
                "resume, with fewer workers if memory is short"
            ) from None
        finally:
            for _, future in waiting:
                future.cancel()

    def _result(self, number: int, future: Future[tuple[Result, int]], on_message: Listener | None) -> Result:
        """The result of a task, after all of its messages."""
        if on_message is None:
            return future.result()[0]
        while not future.done():
            self._listen(on_message, _LISTEN)
        result, sent = future.result()
        while self._received[number] < sent:
            self._listen(on_message, None)
        del self._received[number]
        return result

    def _listen(self, on_message: Listener, seconds: float | None) -> None:
        try:
            number, message = self._messages.get(timeout=seconds)
        except queue.Empty:
            return
        self._received[number] += 1
        on_message(message)


# ---- in a worker ----------------------------------------------------------------------------------------------------

_messages: Any = None


def _receive(_function: Callable[[Task], Result]) -> None:
    """Nothing is left to do."""


def _run(function: Callable[[Task], Result], number: int | None, task: Task) -> tuple[Result, int]:
    """The result of a task, and how many messages it has sent; none where it has no number."""
    if number is None:
        return function(task), 0
    sent = 0

    def send(message: object) -> None:
        nonlocal sent
        sent += 1
        _messages.put((number, message))

    with sending_to(send):
        return function(task), sent


def _start_worker(stop: Any, messages: Any) -> None:  # noqa: ANN401 - a connection and a queue
    """One thread a worker, since workers share the cores; and none outlives the command that started it."""
    import cv2  # noqa: PLC0415 - slow to import, and this process may not need it

    global _messages  # noqa: PLW0603 - once a process
    _messages = messages
    messages.cancel_join_thread()  # unread messages are dropped
    cv2.setNumThreads(1)
    # Ctrl-C reaches the whole group; the parent ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(stop,), daemon=True).start()


def _end_with_parent(stop: Any) -> None:  # noqa: ANN401
    parent = multiprocessing.parent_process()
    if parent is not None:
        # The parent ends, or closes its end of the connection.
        multiprocessing.connection.wait([parent.sentinel, stop])
        os._exit(1)
