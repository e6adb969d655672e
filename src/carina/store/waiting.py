"""Waiting for another thread so that Ctrl-C is noticed."""

from concurrent.futures import Future, wait
from typing import Final, TypeVar

T = TypeVar("T")

_LOOK: Final = 0.1
"""Seconds after which a waiting thread looks for an interrupt."""


def wait_for_result(future: "Future[T]") -> T:
    """The result of work in another thread, or its error; Ctrl-C is raised within a moment.

    A plain `future.result()` may not notice Ctrl-C before the work has ended: some libraries (polars among them) have
    the operating system continue a wait that was interrupted by a signal.
    """
    while not future.done():
        wait((future,), timeout=_LOOK)
    return future.result()
