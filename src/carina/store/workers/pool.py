"""The interface of all worker pools."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
Listener = Callable[[Any], object]
"""Called with each message of a task."""


class Pool(Protocol):
    """Workers that are given tasks."""

    def begin(self, function: Callable[[Task], Result]) -> None:
        """Have the workers get ready for a function without waiting for them; call it before other work."""

    def in_order(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        *,
        ahead: int = 4,
        on_message: Listener | None = None,
    ) -> Iterator[Result]:
        """The function's results in the order of the tasks; what it raises is raised in the place of its result.

        Args:
            function: Called with each task.
            tasks: Taken as they are needed.
            ahead: Number of tasks a worker that are begun before their results are asked for.
            on_message: Called with what running tasks pass to `send_message`, in this thread and before their results.
                Messages from a Ray cluster are lost.
        """


_send: Listener | None = None


def send_message(message: object) -> None:
    """Send a message from the running task to the caller that waits for its result, such as its progress.

    Does nothing where nobody listens. The message must be picklable.
    """
    if _send is not None:
        _send(message)


@contextmanager
def sending_to(listener: Listener) -> Iterator[None]:
    """Have messages of this process delivered to a listener until the block ends."""
    global _send  # noqa: PLW0603 - a process runs one task at a time
    before, _send = _send, listener
    try:
        yield
    finally:
        _send = before
