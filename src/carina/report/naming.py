"""Runs of one report: each given once, and each told from the others."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import Field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from carina.errors import CarinaError


class _Named(Protocol):
    """What is told from others by its id, and by name where it would read the same."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def id(self) -> str: ...

    @property
    def named(self) -> str: ...


Named = TypeVar("Named", bound=_Named)


def read_apart(
    paths: Sequence[Path], read: Callable[[Path], Named], alike: Callable[[Named], tuple[str, ...]]
) -> list[Named]:
    """What `read` gives of each path, with ids that differ; `named` where `alike` says the same of several."""
    places = [path.resolve() for path in paths]
    for path, place in zip(paths, places, strict=True):
        if places.count(place) > 1:
            raise CarinaError(f"{path}: is given more than once, expected each run once")
    runs = [read(path) for path in paths]
    ids = Counter(run.id for run in runs)
    # Runs of one model on two benchmarks may well lie in folders of one name.
    told = [
        replace(run, id=run.id if ids[run.id] == 1 else f"{place.parent.name}/{run.id}")
        for run, place in zip(runs, places, strict=True)
    ]
    again = [name for name, count in Counter(run.id for run in told).items() if count > 1]
    if again:
        raise CarinaError(f"{len(paths)} runs: several are {again[0]!r}; expected folders of different names")
    same = Counter(alike(run) for run in told)
    return [replace(run, named=run.id if same[alike(run)] > 1 else "") for run in told]
