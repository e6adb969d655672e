"""Models that come with the package: two blind ones and one that knows the key, to read all others by, and a classical
image reader, which in a second form believes what was said before.
"""

from collections.abc import Callable
from typing import Final

from carina.cases import Benchmark
from carina.errors import CarinaError
from carina.run.builtin.draw import RandomDraw
from carina.run.builtin.majority import Majority
from carina.run.builtin.oracle import Oracle
from carina.run.examinee import Examinee

PREFIX: Final = "builtin/"


def _reader(*_: object) -> Examinee:
    from carina.run.builtin.reader import Reader  # noqa: PLC0415 - image processing that the others do without

    return Reader()


def _anchored(*_: object) -> Examinee:
    from carina.run.builtin.reader import Anchored  # noqa: PLC0415

    return Anchored()


_MODELS: Final[dict[str, Callable[[Benchmark, int], Examinee]]] = {
    "random": lambda _, seed: RandomDraw(seed),
    "majority": lambda benchmark, _: Majority(benchmark),
    "oracle": lambda benchmark, _: Oracle(benchmark),
    "reader": _reader,
    "anchored": _anchored,
}
NAMES: Final = tuple(f"{PREFIX}{name}" for name in _MODELS)


def open_builtin(name: str, benchmark: Benchmark, *, seed: int) -> Examinee:
    """A built-in model by its name, for one benchmark."""
    make = _MODELS.get(name.removeprefix(PREFIX))
    if make is None:
        raise CarinaError(f"no built-in model {name!r}; there are {', '.join(NAMES)}")
    return make(benchmark, seed)


__all__ = ["NAMES", "PREFIX", "open_builtin"]
