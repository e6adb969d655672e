"""Work shared between processes, with the same results in the same order as one process gives.

Knows functions and tasks, not what they are about. Random choices belong into the task (`carina.store.seeding`),
never into the order of work.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Literal

from carina.store.workers.local import local_pool
from carina.store.workers.on_ray import ray_pool
from carina.store.workers.pool import Listener, Pool, Result, Task, send_message

__all__ = ["Engine", "Pool", "in_order", "pool", "send_message"]

Engine = Literal["local", "ray"]
"""Backend of the workers: this machine, or a Ray cluster (`pip install 'carina[ray]'`)."""


def pool(
    *, workers: int, engine: Engine = "local", address: str | None = None
) -> AbstractContextManager[Pool]:
    """Workers for several pieces of work one after the other, until the block ends.

    One local worker is this process. For more, and on Ray, function, tasks and results must be picklable, so the
    function is one of a module or a `functools.partial` of one; a worker that is killed on Ray loses nothing, so the
    function must be able to run twice.

    `address` is that of a running Ray cluster, whose every core is a worker and where Carina is installed; without one
    (nor `RAY_ADDRESS`), Ray is started here with this many workers.
    """
    return ray_pool(workers, address) if engine == "ray" else local_pool(workers)


def in_order(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    workers: int,
    ahead: int = 4,
    engine: Engine = "local",
    address: str | None = None,
    on_message: Listener | None = None,
) -> Iterator[Result]:
    """The function's results in the order of the tasks, by workers that are started for this alone.

    Args:
        function: Called with each task; for more than one worker it must be picklable.
        tasks: Taken as they are needed.
        workers: Number of processes; 1 for this process.
        ahead: Number of tasks a worker that are begun before their results are asked for.
        engine: "local" for processes of this machine, "ray" for a Ray cluster.
        address: Address of a running Ray cluster; None to start Ray here.
        on_message: Called with what running tasks pass to `send_message`.

    Example:
        >>> list(in_order(str.upper, ["a", "b"], workers=1))
        ['A', 'B']
    """
    with pool(workers=workers, engine=engine, address=address) as opened:
        yield from opened.in_order(function, tasks, ahead=ahead, on_message=on_message)
