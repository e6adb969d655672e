"""The interface of a reader: the decorator `@source`, what a reader declares, and what it yields."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from carina.cases.model import Case
from carina.sources._defects import DefectPlaces, RecordPlace
from carina.sources._record import RecordError
from carina.store import SourceInfo
from carina.store.options import Option, declared_options
from carina.store.registry import Registry
from carina.store.results import Result
from carina.studies.model import Study

if TYPE_CHECKING:
    import polars as pl

ImageRoot: TypeAlias = Literal["path", "images", "out"]
_FILLED_IN: Final = ("advance", "out")
"""Parameters of a reader that the import fills in."""

Brings: TypeAlias = Literal["studies", "cases"]
"""What a source becomes: a study set, or a benchmark where it carries questions."""


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A record that cannot be used, and why."""

    place: str
    """The file and the record in it, such as `train.csv: row 17`."""
    reason: str
    """What is wrong, in a sentence without the place."""
    field: str = ""
    """Full name of the field that is wrong, such as `content[4].stage`."""
    kind: str = ""
    """A word by which skipped records can be counted, such as `image`."""
    study: str = ""
    target: str = ""
    stage: str = ""

    @classmethod
    def from_error(cls, error: RecordError, place: str, *, study: str = "") -> "Skipped":
        """A record that an error made unusable."""
        return cls(place=place, field=error.field, reason=error.reason, kind=error.kind, study=study)

    @property
    def message(self) -> str:
        """The place, the field and the reason."""
        return ": ".join(part for part in (self.place, self.field, self.reason) if part)


@dataclass(frozen=True, kw_only=True)
class Repaired:
    """A record that is used although something in it was wrong or is unknown."""

    record: Study | Case
    number: int
    """The number of the record as its file counts them: the header of a table is row 1, and the first record of a JSON
    file is 1."""
    defects: Mapping[str, int]
    """How often each defect occurs in the record; the source declares the names."""
    unmapped: tuple[str, ...] = ()
    """Fields of the record that have no place in Carina."""
    file: str = ""
    """Path of the file; may be empty where the path of the source is that of the file."""
    places: DefectPlaces = field(default_factory=dict)
    """By defect, where it stands, where that is not the record as a whole: one of several rows, or a row of a set that
    is joined."""

    @property
    def place(self) -> RecordPlace:
        """Where the record stands."""
        return RecordPlace(self.file, self.number)


@dataclass(frozen=True, kw_only=True)
class WithImages:
    """A record with image files that the reader made, for sources whose `image_root` is "out"."""

    item: Study | Repaired
    files: Mapping[str, bytes]
    """Content of the image files by image key; the import writes them into the study set."""


Item: TypeAlias = Study | Case | Repaired | WithImages | Skipped
Call: TypeAlias = Callable[[], Iterable[Item]]
"""Items that are made when it is called, such as a `functools.partial` of a function of a module.

The import makes the call in a worker process, and not at all for records that an interrupted import has written.
"""
Stream: TypeAlias = Iterator[Item | Call]
"""What a reader yields."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How a reader understands its files, for sources that find this out before they read."""

    lines: tuple[str, ...] = ()
    """To print."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """Files to write beside the study set or benchmark, by name."""
    notices: tuple[str, ...] = ()
    """Those of the lines that say that something is probably misread, for functions that print nothing."""
    region_columns: tuple[str, ...] = ()
    """Columns that look like regions, used or not."""
    has_coordinates: bool = False
    """Whether options say what the numbers of boxes or polygons count, so that these may be misread."""
    confirmed: tuple[str, ...] = ()
    """Names of findings that the user has mapped labels to, so that they are meant as they are written."""


Inputs: TypeAlias = Mapping[str, Path | Mapping[str, Path] | str]
"""Files by the names under which the manifest records their checksums; or one checksum of many files."""


def _the_file_itself(path: Path) -> Inputs:
    return {"file": path} if path.is_file() else {}


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where studies or questions come from: what `carina sources` lists and what an import needs to know."""

    name: str
    """As on the command line."""
    title: str
    needs: str
    """What must lie on disk, in one sentence."""
    tree: str = ""
    """A picture of the expected files, one a line."""
    licence: str
    truth: tuple[str, ...]
    """Kinds of truth it carries, such as "boxes", "masks", "report"."""
    brings: Brings = "studies"
    url: str | None = None
    """Address of the data set, or of the paper that describes it."""
    citation: str | None = None
    """What to cite, as text."""
    read: Callable[..., Stream] | None = None
    """The reader; None for a source that has a command of its own, such as the phantom."""
    options: tuple[Option, ...] = ()
    """Options of the reader."""
    images_option: Option | None = None
    """The reader's parameter `images`, if it has one."""
    has_advance: bool = False
    """Whether the reader reports its progress itself, by its parameter `advance`."""
    inputs: Callable[[Path], Inputs] = _the_file_itself
    """Files that decide what is read: the manifest records their SHA-256."""
    image_root: ImageRoot = "path"
    """Where image keys start: at the path of the source, at a folder that the user names with `images`, or in the
    study set itself, for a reader that yields `WithImages`."""
    has_out: bool = False
    """Whether the reader wants to know the directory that is written, by its parameter `out`."""
    record_options: Callable[[Path, Mapping[str, Any]], Mapping[str, Any]] | None = None
    """From the path and the options to what the manifest records instead of the options."""
    defects: Mapping[str, str] = field(default_factory=dict)
    """Known defects of records that are used all the same, and what is done about each, in the order of listing."""
    second_id: str | None = None
    """The defect to count when an id comes twice; the second record then gets a number. None refuses such a source."""
    plan: Callable[[Path, Mapping[str, Any]], Plan] | None = None
    """From the path and the options, with `images` among them, to how the reader understands its files."""
    measure: Callable[[Path], int] | None = None
    """How much there is to read, in `unit`, for a progress bar."""
    unit: str = "records"
    """What progress counts. A reader that counts something else has a parameter `advance` and calls it."""
    join: object | None = None
    """How it can be joined to the studies of another source, a `carina.sources._joining.Join`; None if it cannot."""

    def info(self) -> SourceInfo:
        """The entry of a manifest."""
        return SourceInfo(
            name=self.name, licence=self.licence, url=self.url, citation=self.citation or msgspec.UNSET
        )

    def describe(self) -> dict[str, Any]:
        """What a user must know, as plain values."""
        return {
            "name": self.name,
            "title": self.title,
            "brings": self.brings,
            "needs": self.needs,
            "tree": self.tree or None,
            "licence": self.licence,
            "truth": list(self.truth),
            "url": self.url,
            "citation": self.citation,
            "options": [
                {
                    "option": option.flag,
                    "takes": option.expected,
                    "required": option.is_required,
                    "default": None if option.is_required or option.default is None else str(option.default),
                    "help": option.help,
                }
                for option in (*self.options, *([self.images_option] if self.images_option else []))
            ],
        }


SOURCES: Final[Registry[Source]] = Registry(
    "source",
    group="carina.sources",
    package="carina.sources",
    modules=("carina.phantom.make",),
    entry_type=Source,
)
"""Every source by name: those of Carina, and those that other packages announce as entry points."""


def source(
    *,
    name: str,
    title: str,
    needs: str,
    licence: str,
    truth: Iterable[str],
    brings: Brings = "studies",
    tree: str = "",
    url: str | None = None,
    citation: str | None = None,
    inputs: Callable[[Path], Inputs] = _the_file_itself,
    image_root: ImageRoot = "path",
    record_options: Callable[[Path, Mapping[str, Any]], Mapping[str, Any]] | None = None,
    defects: Mapping[str, str] | None = None,
    second_id: str | None = None,
    plan: Callable[[Path, Mapping[str, Any]], Plan] | None = None,
    measure: Callable[[Path], int] | None = None,
    unit: str = "records",
    join: object | None = None,
) -> Callable[[Callable[..., Stream]], Callable[..., Stream]]:
    """Register a reader.

    The function takes the path that the user gives and yields `Study` or `Case` records, `Skipped` for records that
    cannot be used, and `Repaired` for records that are used in spite of a defect. Its keyword-only parameters are the
    options of the source: annotate each with its type and `msgspec.Meta(description=...)`, the help text. These names
    are filled in by the import: `images`, the folder of the image files (a `Path` or None), and `advance`, a function
    to call with the number of `unit`s that have been read. A third, `out`, is the directory that the import writes, for
    a reader that has to keep other files out of it.

    Args:
        name: As on the command line; a module of Carina has the same name, with `_` for `-`.
        title: What the source is, in a few words.
        needs: What must lie on disk, in one sentence.
        licence: Licence or terms of the data.
        truth: Kinds of truth it carries, such as "boxes", "masks", "report", "questions".
        brings: "studies", or "cases" for a source that carries questions.
        tree: A picture of the expected files, one a line; lines are indented as the folders are.
        url: Address of the data set or of its paper.
        citation: What to cite, as text.
        inputs: From the path to the files that decide what is read, by name; the manifest records their checksums.
            Without it, the path itself where it is a file.
        image_root: Where image keys start: at the "path" of the source, at the folder that the user names with
            "images", or in the study set ("out"), for a reader that yields `WithImages`.
        record_options: From the path and the options to what the manifest records instead of the options, for options
            that must not be recorded as they are.
        defects: Defects that `Repaired` may name, and what is done about each.
        second_id: The defect to count when an id comes twice; the second record then gets a number.
        plan: From the path and the options to how the reader understands its files, which the import prints.
        measure: From the path to the amount to read, in `unit`, for a progress bar.
        unit: What `measure` and `advance` count.
        join: How the source can be joined to another with `--with`, a `Join`.

    Returns:
        A decorator, which returns the function as it is.

    Example:
        >>> from carina.sources import SOURCES
        >>> SOURCES["swift-chat"].brings
        'cases'
    """

    def register(read: Callable[..., Stream]) -> Callable[..., Stream]:
        declared = {option.name: option for option in declared_options(read, reserved=_FILLED_IN)}
        SOURCES.register(
            name,
            Source(
                name=name,
                title=title,
                needs=needs,
                licence=licence,
                truth=tuple(truth),
                brings=brings,
                tree=inspect.cleandoc(tree),
                url=url,
                citation=citation,
                read=read,
                options=tuple(option for option in declared.values() if option.name != "images"),
                images_option=declared.get("images"),
                has_advance="advance" in inspect.signature(read).parameters,
                has_out="out" in inspect.signature(read).parameters,
                record_options=record_options,
                inputs=inputs,
                image_root=image_root,
                defects=dict(defects or {}),
                second_id=second_id,
                plan=plan,
                measure=measure,
                unit=unit,
                join=join,
            ),
        )
        return read

    return register


@dataclass(frozen=True, repr=False)
class SourceList(Result):
    """The known sources, by name."""

    sources: tuple[Source, ...]

    @property
    def path(self) -> Path:
        """The folder of the sources that come with Carina."""
        return Path(__file__).parent

    def to_frame(self) -> "pl.DataFrame":
        """One row a source: name, title, what it brings and needs, licence, truth, address, options."""
        import polars as pl  # noqa: PLC0415 - takes longer to import than the list takes to make

        rows = [
            {
                **source.describe(),
                "truth": ", ".join(source.truth),
                "options": ", ".join(option["option"] for option in source.describe()["options"]),
            }
            for source in self.sources
        ]
        return pl.DataFrame(rows)

    def __iter__(self) -> Iterator[Source]:
        return iter(self.sources)

    def __len__(self) -> int:
        return len(self.sources)

    def _summary(self) -> Mapping[str, object]:
        return {"sources": [source.name for source in self.sources]}


def list_sources() -> SourceList:
    """All sources that can be imported, and the phantom.

    Returns:
        The sources in order of name; `to_frame()` gives what each needs, its licence, and what it knows
        about each study.

    Example:
        >>> "nih" in [source.name for source in list_sources()]
        True
    """
    return SourceList(tuple(SOURCES.entries().values()))
