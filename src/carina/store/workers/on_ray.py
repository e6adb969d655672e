"""Work shared between the machines of a Ray cluster. Ray is imported only when it is used."""

import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

from carina.store.errors import CarinaError, install
from carina.store.workers.pool import Listener, Pool, Result, Task

_QUIET: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""Nothing is sent to Ray's makers, and nothing is said that a user could not act on."""
_RETRIES: Final = 5
"""Times that a task is begun anew after its worker or machine is gone; one that kills each worker ends somewhere."""
_PATIENCE: Final = 5.0
"""Seconds that a machine has to answer at an address."""

_SETTINGS: Final = bytes.fromhex("000000 04 00 00000000")
"""An empty frame of settings, whose kind is the fourth byte."""
_GREETING: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _SETTINGS
"""Preface of a connection to Ray's server (HTTP/2, RFC 9113, 3.4), which replies with its settings."""


@contextmanager
def ray_pool(workers: int, address: str | None) -> Iterator[Pool]:
    """As `carina.store.workers.pool`. A Ray that this process already uses is used, and left running."""
    with _connect(address, workers) as ray:
        yield _Cluster(ray)


class _Cluster:
    def __init__(self, ray: Any) -> None:  # noqa: ANN401 - Ray is optional, and Any to us
        self._ray = ray

    def begin(self, function: Callable[[Task], Result]) -> None:
        """Ray starts workers as it needs them."""

    def in_order(
        self,
        function: Callable[[Task], Result],
        tasks: Iterable[Task],
        *,
        ahead: int = 4,
        on_message: Listener | None = None,
    ) -> Iterator[Result]:
        """As `Pool.in_order`; messages are lost."""
        del on_message
        ray = self._ray
        begin = ray.remote(num_cpus=1, max_retries=_RETRIES)(_attempt).remote
        # Once for all tasks: a partial may hold much.
        given = ray.put(function)
        most = ahead * max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting: deque[Any] = deque()
        todo = iter(tasks)
        try:
            while True:
                waiting.extend(begin(given, task) for task in islice(todo, most - len(waiting)))
                if not waiting:
                    return
                yield _result(ray, waiting.popleft())
        finally:
            for reference in waiting:
                ray.cancel(reference)


def _attempt(function: Callable[[Task], Result], task: Task) -> tuple[Result | None, Exception | None]:
    """The result or the error of a task, both as values, because Ray would raise an error of its own."""
    import cv2  # noqa: PLC0415 - slow to import, and only workers need it

    cv2.setNumThreads(1)  # workers share the cores
    try:
        return function(task), None
    except Exception as error:  # raised again where the result is asked for
        return None, error


def _result(ray: Any, reference: Any) -> Any:  # noqa: ANN401 - Ray is optional, and Any to us
    try:
        value, error = ray.get(reference)
    except ray.exceptions.RayError as lost:
        said = str(lost).strip().splitlines()
        raise CarinaError(f"Ray lost a task for good: {said[-1] if said else type(lost).__name__}") from lost
    if error is not None:
        raise error
    return value


@contextmanager
def _connect(address: str | None, workers: int) -> Iterator[Any]:
    """Connect to Ray; the module is ready for tasks within the block."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray  # noqa: PLC0415 - optional
    except ImportError:
        raise CarinaError(f"this needs ray: {install('ray')}") from None
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    here = {"num_cpus": max(1, workers), "include_dashboard": False} if address == "local" else {}
    _must_answer(address)
    # Marked so, the job does not put the current directory, where a user keeps downloaded files, on the workers' path.
    job = ray.job_config.JobConfig(_client_job=True)
    try:
        ray.init(address=address, job_config=job, logging_level=logging.ERROR, log_to_driver=False, **here)
    except (ConnectionError, ImportError, RuntimeError, ValueError) as error:
        said = str(error).strip().splitlines()
        raise CarinaError(f"no Ray cluster at {address!r}: {said[0] if said else error}") from error
    try:
        yield ray
    finally:
        ray.shutdown()


def _must_answer(address: str) -> None:
    """Whether a cluster can be at an address; asked first, because Ray itself tries for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if address in ("auto", "local"):
        return
    if not (host and port.isdecimal()):
        raise CarinaError(
            f"{address!r} is no address of a Ray cluster: expected host:port, such as 10.0.0.1:6379"
        )
    try:
        with socket.create_connection((host, int(port)), timeout=_PATIENCE) as connection:
            if os.environ.get("RAY_USE_TLS", "0") != "0":
                return
            connection.sendall(_GREETING)
            answer = connection.recv(len(_SETTINGS))
    except TimeoutError:
        answer = b""
    except (OSError, OverflowError) as error:
        told = getattr(error, "strerror", None) or error
        raise CarinaError(f"no Ray cluster answers at {address}: {told}") from None
    if answer[3:4] != _SETTINGS[3:4]:
        raise CarinaError(f"no Ray cluster answers at {address}: what is there speaks otherwise")
