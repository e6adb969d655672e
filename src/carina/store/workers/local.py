"""Work shared between processes of this machine.

Tasks go through one queue, from which idle workers take them; each worker returns messages and results through a pipe
of its own. The process that shares out the work has no thread that waits for another, and no lock that a worker could
hold: an interrupt at any moment ends in killed workers, never in waiting for them.
"""

import multiprocessing
import multiprocessing.connection
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.reduction import ForkingPickler
from multiprocessing.util import Finalize
from typing import Any, Final, NamedTuple

from carina.store.errors import CarinaError
from carina.store.waiting import interrupt_soon
from carina.store.workers.pool import Listener, Pool, Result, Task, sending_to

_GRACE: Final = 5.0
"""Seconds that an interrupted worker has to remove its temporary files before it is killed."""


@contextmanager
def local_pool(workers: int) -> Iterator[Pool]:
    """As `carina.store.workers.pool`; one worker is this process.

    When the block ends or raises an exception, running tasks are finished, so that nothing is lost that they write.
    When it is interrupted, or nobody asks for more results, they are ended.
    """
    if workers <= 1:
        yield _ThisProcess()
        return
    processes = _Processes(workers)
    try:
        yield processes
        processes.finish()
    except Exception:
        processes.finish()
        raise
    finally:
        processes.stop()


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


class _Worker(NamedTuple):
    process: "_WorkerProcess"
    results: Connection


class _Outcome(NamedTuple):
    """What a worker returns for a task: messages first, then one value or error."""

    number: int
    value: Any
    is_message: bool = False
    is_error: bool = False


class _Processes:
    def __init__(self, workers: int) -> None:
        self._context = _WorkerContext()
        self._most = workers
        self._workers: list[_Worker] = []
        with _starting():
            self._tasks = self._context.Queue()
            self._first_wanted = self._context.RawValue("q", 0)
        self._tasks.cancel_join_thread()  # tasks that nobody takes any more are dropped
        self._next = 0
        """Number of the next task."""
        self._wanted: dict[int, Listener | None] = {}
        """Listeners by number of each task whose result is still wanted."""
        self._outcomes: dict[int, _Outcome] = {}
        """Results that came before they were asked for."""
        self._is_broken = False
        """Whether a worker is lost: it may have held the lock of the queue, on which the others then wait."""
        # At the end of the program, where a generator was never closed: before Python waits for its processes.
        Finalize(self, _kill, args=(self._workers,), exitpriority=100)

    def begin(self, function: Callable[[Task], Result]) -> None:
        """Start all workers; receiving the function imports its module."""
        packed = _pack(function)
        while len(self._workers) < self._most:
            self._start_worker(packed)

    def in_order(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        *,
        ahead: int = 4,
        on_message: Listener | None = None,
    ) -> Iterator[Result]:
        """As `Pool.in_order`."""
        waiting: deque[int] = deque()
        todo = iter(tasks)
        try:
            while True:
                for task in islice(todo, ahead * self._most - len(waiting)):
                    waiting.append(self._submit(function, task, on_message))
                if not waiting:
                    return
                yield self._result(waiting.popleft())
        finally:
            self._give_up(waiting)

    def finish(self) -> None:
        """Wait for running tasks, and end the workers; where one is lost, for none."""
        self._give_up(tuple(self._wanted))
        for _ in self._workers:
            self._tasks.put(None)
        running = {worker.results: worker.process for worker in self._workers}
        while running and not self._is_broken:
            for results in _wait_for(running):
                try:
                    results.recv_bytes()
                except (EOFError, OSError):
                    process = running.pop(results)
                    process.join()
                    self._is_broken |= process.exitcode != 0

    def stop(self) -> None:
        """End all workers that are still there; those that do not end by themselves soon are killed."""
        processes = [worker.process for worker in self._workers if worker.process.pid is not None]
        until = time.monotonic() + _GRACE
        with _delay_interrupts():
            for process in processes:
                process.terminate()
            for process in processes:
                process.join(max(0.0, until - time.monotonic()))
            _kill(self._workers)
            self._tasks.close()

    def _submit(self, function: Callable[[Task], Result], task: Task, on_message: Listener | None) -> int:
        number = self._next
        # Packed here: an error of packing is raised here, not lost in the thread of the queue.
        packed = _pack((function, task))
        self._next += 1
        self._wanted[number] = on_message
        self._tasks.put((number, on_message is not None, packed))
        if len(self._workers) < min(self._most, len(self._wanted)):
            self._start_worker(None)
        return number

    def _start_worker(self, function: bytes | None) -> None:
        with _starting():
            results, sending = self._context.Pipe(duplex=False)
            process = self._context.Process(
                target=_work, args=(self._tasks, sending, self._first_wanted, function)
            )
            process.start()
            sending.close()  # so that the pipe ends with the worker
            self._workers.append(_Worker(process, results))

    def _result(self, number: int) -> Any:  # noqa: ANN401 - whatever the task returns
        """The result of a task, after all of its messages."""
        while number not in self._outcomes:
            self._receive()
        outcome = self._outcomes.pop(number)
        del self._wanted[number]
        if outcome.is_error:
            raise outcome.value
        return outcome.value

    def _receive(self) -> None:
        """Wait for the workers; deliver their messages and keep their results."""
        for results in _wait_for(worker.results for worker in self._workers):
            try:
                packed = results.recv_bytes()
            except (EOFError, OSError):
                self._is_broken = True
                raise CarinaError(
                    "a worker process ended unexpectedly: it was killed, or memory ran out. Run the same command again "
                    "to resume, with fewer workers or processes if memory is short"
                ) from None
            outcome: _Outcome = pickle.loads(packed)  # noqa: S301 - from our own worker
            if outcome.number not in self._wanted:
                continue
            if not outcome.is_message:
                self._outcomes[outcome.number] = outcome
                continue
            listener = self._wanted[outcome.number]
            if listener is not None:
                listener(outcome.value)

    def _give_up(self, numbers: Iterable[int]) -> None:
        """Forget tasks; those that no worker has begun are never begun."""
        for number in numbers:
            self._wanted.pop(number, None)
            self._outcomes.pop(number, None)
        self._first_wanted.value = min(self._wanted, default=self._next)


def _wait_for(pipes: Iterable[Connection]) -> list[Connection]:
    """The pipes from which something can be read, or which have ended; waits until there is one."""
    return [ready for ready in multiprocessing.connection.wait(list(pipes)) if isinstance(ready, Connection)]


def _kill(workers: Iterable[_Worker]) -> None:
    for worker in workers:
        worker.process.kill()
    for worker in workers:
        worker.process.join()
        worker.results.close()


def _pack(value: object) -> bytes:
    return bytes(ForkingPickler.dumps(value))


# ---- starting processes ----------------------------------------------------------------------------------------------


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


_start_lock: Final = threading.Lock()


@contextmanager
def _starting() -> Iterator[None]:
    """Start processes in the block: they see no Ctrl-C, and import nothing from the current directory.

    One thread at a time, because the block changes what belongs to the whole process: environment and main module.
    """
    with _delay_interrupts(), _start_lock, _block_interrupts(), _environment_of_workers():
        yield


@contextmanager
def _delay_interrupts() -> Iterator[None]:
    """Have a Ctrl-C that comes within the block raise shortly after it.

    Not at its end: the block may run while Python finalises a generator, where an exception would be printed and lost.
    Where Ctrl-C does not raise, it is left alone: the program is ended, or ignores it.
    """
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if received:
            interrupt_soon()


@contextmanager
def _block_interrupts() -> Iterator[None]:
    """Start processes that never receive a Ctrl-C, not even before they can ignore it."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _environment_of_workers() -> Iterator[None]:
    """Start Python processes that import nothing from the current directory, where a user keeps downloaded files.

    The process that removes the semaphores of a command that was ended at once does so without a warning.
    """
    warnings = ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), "ignore:resource_tracker")))
    wanted = {"PYTHONSAFEPATH": "1", "PYTHONWARNINGS": warnings}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


# ---- in a worker ----------------------------------------------------------------------------------------------------


def _work(tasks: Any, results: Connection, first_wanted: Any, function: bytes | None) -> None:  # noqa: ANN401
    """Run tasks until there are no more."""
    _prepare_process()
    outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
    # Sent by a thread: the next task begins while the parent is busy with something else.
    sender = threading.Thread(target=_send, args=(outbox, results), daemon=True)
    sender.start()
    if function is not None:
        with suppress(Exception):  # raised again by the first task
            pickle.loads(function)  # noqa: S301 - from our own parent
    while (item := tasks.get()) is not None:
        number, is_heard, packed = item
        if number >= first_wanted.value:
            outbox.put(_run(number, packed, outbox if is_heard else None))
    outbox.put(None)
    sender.join()


def _run(number: int, packed: bytes, outbox: "queue.SimpleQueue[bytes | None] | None") -> bytes:
    """Run one task; returns its packed result or error."""
    try:
        function, task = pickle.loads(packed)  # noqa: S301 - from our own parent
        if outbox is None:
            value = function(task)
        else:
            with sending_to(lambda message: outbox.put(_pack(_Outcome(number, message, is_message=True)))):
                value = function(task)
        return _pack(_Outcome(number, value))
    except Exception as error:  # raised again where the result is asked for
        return _pack(_Outcome(number, _portable(error), is_error=True))


def _portable(error: Exception) -> Exception:
    """The error in a form that another process can raise; its traceback becomes a note, except for users' errors."""
    text = "".join(traceback.format_exception(error)).rstrip()
    if not isinstance(error, CarinaError):
        error.add_note(f"in a worker process:\n{text}")
    try:
        pickle.loads(_pack(error))  # noqa: S301 - what was packed on this line
    except Exception:  # whatever its constructor raises
        return RuntimeError(text)
    return error


def _send(outbox: "queue.SimpleQueue[bytes | None]", results: Connection) -> None:
    with suppress(OSError):  # the parent has ended
        while (packed := outbox.get()) is not None:
            results.send_bytes(packed)


def _prepare_process() -> None:
    """One thread a worker, since workers share the cores; and none outlives the command that started it."""
    import cv2  # noqa: PLC0415 - slow to import, and this process may not need it

    cv2.setNumThreads(1)
    # Ctrl-C reaches the whole group; the parent ends its workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    signal.signal(signal.SIGTERM, _exit)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _exit(*_: object) -> None:
    """End through the `finally` blocks of the running task, which remove its temporary files.

    Nothing is printed any more: an event loop would report its tasks, which end in the middle of their work.
    """
    with suppress(OSError):
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, sys.stderr.fileno())
    raise SystemExit(128 + signal.SIGTERM)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
