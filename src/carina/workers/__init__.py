"""Work shared between processes, with the same results in the same order as one process gives.

Knows functions and tasks, not what they are about. Random choices belong into the task (`carina.seeding`), never into
the order of work.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from carina.workers.local import Result, Task, in_order_local
from carina.workers.on_ray import in_order_ray

__all__ = ["Engine", "in_order"]

Engine = Literal["local", "ray"]
"""Who runs the workers: this machine, or a Ray cluster (`pip install 'carina[ray]'`)."""


def in_order(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    workers: int,
    ahead: int = 4,
    engine: Engine = "local",
    address: str | None = None,
) -> Iterator[Result]:
    """The function's results in the order of the tasks; what it raises is raised in the place of its result.

    Tasks are taken as they are needed, and at most `ahead` a worker are begun before their results are asked for.
    One local worker is this process. For more, and on Ray, function, tasks and results must be picklable, so the
    function is one of a module or a `functools.partial` of one; a worker that is killed on Ray loses nothing, so the
    function must be able to run twice.

    `address` is that of a running Ray cluster, whose every core is a worker and where Carina is installed; without one
    (nor `RAY_ADDRESS`), Ray is started here with this many workers.
    """
    if engine == "ray":
        return in_order_ray(function, tasks, workers=workers, ahead=ahead, address=address)
    return in_order_local(function, tasks, workers=workers, ahead=ahead)
