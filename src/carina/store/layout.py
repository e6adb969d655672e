"""Which sets there are on disk, and how a directory shows what it holds."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

Holding = Literal["studies", "benchmark", "maps"]


class Layout(NamedTuple):
    """Names by which a kind of set is recognised."""

    holds: Holding
    title: str
    """As messages call the whole."""
    file: str
    """Of the manifest."""
    folder: str
    """Of the parts, which is also the plural of what they hold."""
    opener: str
    """What reads it."""

    @property
    def kind(self) -> str:
        """As the manifest states it."""
        return f"carina/{self.holds}"


STUDIES: Final = Layout("studies", "study set", "studies.json", "studies", "carina.studies.open_studies")
BENCHMARK: Final = Layout("benchmark", "benchmark", "bench.json", "cases", "carina.cases.open_benchmark")
MAPS: Final = Layout(
    "maps", "set of localisation maps", "maps.json", "maps", "carina.ground.explain.open_maps"
)
_ALL: Final = (STUDIES, BENCHMARK, MAPS)

UNFINISHED: Final = ".unfinished"
"""Holds, while there is no manifest, the fingerprint of the set whose beginning lies in a directory."""


def what_is(path: str | Path) -> Holding | None:
    """What a directory (or the manifest in it) holds, begun or complete; None for anything else."""
    found = holding(Path(path))
    return found.holds if found else None


def holding(path: Path) -> Layout | None:
    """As `what_is`, with all its names."""
    for layout in _ALL:
        if path.name == layout.file and path.is_file():
            return layout
    for sign in (_has_manifest, has_parts):
        for layout in _ALL:
            if sign(path, layout):
                return layout
    return None


def part_paths(directory: Path, layout: Layout) -> Iterator[Path]:
    """All parts that lie in a directory, whether or not a manifest lists them."""
    return (directory / layout.folder).glob("part-*.parquet")


def has_parts(directory: Path, layout: Layout) -> bool:
    return any(part_paths(directory, layout))


def _has_manifest(directory: Path, layout: Layout) -> bool:
    return (directory / layout.file).is_file()
