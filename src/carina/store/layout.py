"""The layout of a set on disk: the name of its manifest and of the folder of its parts show its kind.

The store knows no kind by name. A package that keeps sets on disk declares their layout in its module `layout`
(`carina.studies.layout`, `carina.cases.layout`, ...), another installed package through the entry-point group
`carina.sets`. Those modules are imported when a directory has to be identified.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from carina.store.errors import CarinaError
from carina.store.registry import Registry
from carina.store.resume import is_empty, lock_directory, read_marker


class Layout(NamedTuple):
    """Names by which one kind of set is recognised."""

    holds: str
    """One word for what it holds, as `what_is` returns it: "studies"."""
    title: str
    """What messages call a set of this kind: "study set"."""
    file: str
    """Name of the manifest: "studies.json"."""
    folder: str
    """Folder of the parts, and the plural of what they hold: "studies"."""
    made_by: str
    """What messages advise where such a set is missing: "make one with `carina phantom` or `carina import`"."""

    @property
    def kind(self) -> str:
        """The kind that the manifest states: "carina/studies"."""
        return f"carina/{self.holds}"


LAYOUTS: Final[Registry[Layout]] = Registry(
    "kind of set", group="carina.sets", room_module="layout", entry_type=Layout
)
"""Every kind of set, by what it holds."""


def declare_layout(layout: Layout) -> Layout:
    """Register the layout of a kind of set.

    Args:
        layout: Names by which the kind is recognised.

    Returns:
        The same layout.

    Raises:
        ValueError: Another layout has the same `holds`.

    Example:
        >>> declare_layout(Layout("notes", "note set", "notes.json", "notes", "my_package.open_notes")).kind
        'carina/notes'
    """
    LAYOUTS.register(layout.holds, layout)
    return layout


def what_is(path: str | Path) -> str | None:
    """Tell which kind of set a directory holds.

    A set that is begun and not complete is recognised too, by its parts.

    Args:
        path: A directory, or the manifest in it.

    Returns:
        "studies", "benchmark" or another name in `LAYOUTS`; None for anything else.

    Example:
        >>> what_is("studies"), what_is("bench"), what_is("no/such/directory")
        ('studies', 'benchmark', None)
    """
    layout = layout_of(Path(path))
    return layout.holds if layout else None


def layout_of(path: Path) -> Layout | None:
    """The layout of the set in a directory, or of the set with this manifest; None for anything else."""
    if is_empty(path):
        return None
    # First the kinds that are in use: most directories are of one of these, and nothing has to be imported.
    return _match(path, LAYOUTS.registered) or _match(path, LAYOUTS.entries)


def _match(path: Path, layouts: Callable[[], dict[str, Layout]]) -> Layout | None:
    known = layouts().values()
    for matches in (_is_manifest, _has_manifest, has_parts):
        for layout in known:
            if matches(path, layout):
                return layout
    return None


@contextmanager
def lock_output(directory: Path, title: str, *, folders: Sequence[str] = ()) -> Iterator[None]:
    """Lock a directory for files that are no set: pages, a report, scores.

    Args:
        directory: Created where it is missing.
        title: What is written, for messages: "the report".
        folders: Folders of the directory that are written to.

    Raises:
        CarinaError: The path is a file, the directory holds a set, another process writes there, or one of the folders
            is a link that leads out of the directory.
    """
    if directory.exists() and not directory.is_dir():
        raise CarinaError(f"{directory}: is a file, expected a directory for {title}")
    layout = layout_of(directory)
    if layout is not None:
        raise CarinaError(f"{directory}: is a {layout.title}; choose another directory for {title}")
    with lock_directory(directory, folders=folders, is_shared=True):
        if read_marker(directory) is not None:
            raise CarinaError(
                f"{directory}: holds the beginning of a set; choose another directory for {title}"
            )
        yield


def part_paths(directory: Path, layout: Layout) -> Iterator[Path]:
    """All parts in a directory, whether or not a manifest lists them."""
    return (directory / layout.folder).glob("part-*.parquet")


def has_parts(directory: Path, layout: Layout) -> bool:
    """Whether a directory holds at least one part of this kind."""
    return any(part_paths(directory, layout))


def _is_manifest(path: Path, layout: Layout) -> bool:
    return path.name == layout.file and path.is_file()


def _has_manifest(directory: Path, layout: Layout) -> bool:
    return (directory / layout.file).is_file()
