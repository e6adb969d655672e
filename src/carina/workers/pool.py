"""What all workers have in common, wherever they are."""

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


class Pool(Protocol):
    """Workers that are given tasks."""

    def begin(self, function: Callable[[Task], Result]) -> None:
        """Have the workers get ready for a function, and don't wait for them: to be called before other work."""

    def in_order(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, ahead: int = 4
    ) -> Iterator[Result]:
        """The function's results in the order of the tasks; what it raises is raised in the place of its result.

        Tasks are taken as they are needed, and at most `ahead` a worker are begun before their results are asked for.
        """
