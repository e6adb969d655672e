"""Waiting for another thread so that Ctrl-C is noticed, and repeating a Ctrl-C that came at a bad moment."""

import _thread
import signal
import threading
from concurrent.futures import Future, wait
from typing import Final, TypeVar

T = TypeVar("T")

_LOOK: Final = 0.1
"""Seconds after which a waiting thread looks for an interrupt."""
_AGAIN: Final = 0.01
"""Seconds after which an interrupt is repeated that came at a moment when it could not be raised."""


def wait_for_result(future: "Future[T]") -> T:
    """The result of work in another thread, or its error; Ctrl-C is raised within a moment.

    A plain `future.result()` may not notice Ctrl-C before the work has ended: some libraries (polars among them) have
    the operating system continue a wait that was interrupted by a signal.
    """
    while not future.done():
        wait((future,), timeout=_LOOK)
    return future.result()


def interrupt_soon() -> None:
    """Interrupt the main thread in a moment, as Ctrl-C does."""
    again = threading.Timer(_AGAIN, _interrupt_main_thread)
    again.daemon = True
    again.start()


def _interrupt_main_thread() -> None:
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:  # Windows
        _thread.interrupt_main()
