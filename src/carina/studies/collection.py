"""Reading a study set: a lazy, immutable view that streams, filters and looks up studies.

Nothing is loaded when a set is opened but its manifest. Parts are checked against it when first touched, and
studies are decoded a row group at a time, so memory does not grow with the set.
"""

import glob
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, get_args

import pyarrow as pa

from carina.errors import ImageError, StudySetError
from carina.files import sha256
from carina.studies.faults import faults
from carina.studies.manifest import Manifest, manifest_path, read_manifest
from carina.studies.model import Image, Study
from carina.studies.parts import PartReader
from carina.studies.pixels import Pixels, read_header, read_pixels
from carina.studies.schema import OPTIONAL_COLUMNS, STUDY_LEAVES, STUDY_SCHEMA, Row
from carina.studies.vocabulary import Certainty, Split, View

if TYPE_CHECKING:
    import duckdb
    import polars as pl

Choice = str | Collection[str]
"""One value, or several of which any will do."""

_KEY_LEAF: Final = "images.list.element.key"


def open_studies(path: str | Path, *, verify: bool = True) -> "Studies":
    """The study set in a directory (or named by its `studies.json`).

    `verify=False` skips the checksum of each part, for a set that was verified before.
    """
    manifest_file = manifest_path(Path(path))
    return Studies(_StudySet(manifest_file.parent, read_manifest(manifest_file.parent), verify=verify))


@dataclass(frozen=True)
class Problem:
    """Something wrong in a study set, as `Studies.check` finds it."""

    message: str
    """Names part, row, study and field, as far as they are known."""
    study: str | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class _Filter:
    """Conditions that a study meets all of; None stands for any."""

    patient: frozenset[str] | None = None
    split: frozenset[str] | None = None
    finding: frozenset[str] | None = None
    certainty: frozenset[str] | None = None
    view: frozenset[str] | None = None

    def leaves(self) -> list[str]:
        """The few columns that decide, read before any other."""
        return [
            *(["patient"] if self.patient is not None else []),
            *(["split"] if self.split is not None else []),
            *(["findings.list.element.name"] if self.finding is not None else []),
            *(["findings.list.element.certainty"] if self.certainty is not None else []),
            *(["images.list.element.view"] if self.view is not None else []),
        ]

    def matches(self, row: Row) -> bool:
        if self.patient is not None and row["patient"] not in self.patient:
            return False
        if self.split is not None and row["split"] not in self.split:
            return False
        if self.view is not None and not any(image["view"] in self.view for image in row["images"]):
            return False
        if self.finding is None and self.certainty is None:
            return True
        return any(
            (self.finding is None or found["name"] in self.finding)
            and (self.certainty is None or found["certainty"] in self.certainty)
            for found in row["findings"]
        )


class _StudySet:
    """What all views of one opened set share: its parts, and what was learnt of them."""

    def __init__(self, directory: Path, manifest: Manifest, *, verify: bool) -> None:
        minor = manifest.version[1]
        self.directory = directory
        self.manifest = manifest
        self.parts = tuple(PartReader(directory, info, minor=minor, verify=verify) for info in manifest.parts)

    @cached_property
    def image_root(self) -> Path:
        return (self.directory / self.manifest.image_root).resolve()

    @cached_property
    def places(self) -> dict[str, tuple[int, int]]:
        """Part and row of every study by id."""
        places: dict[str, tuple[int, int]] = {}
        for index, part in enumerate(self.parts):
            for row, values in part.rows(["id"]):
                if values["id"] in places:
                    raise _duplicate(part, row, values["id"])
                places[values["id"]] = (index, row)
        return places

    def place_of_image(self, key: str) -> str:
        """Part, row and study of an image, for messages about it."""
        for part in self.parts:
            for row, values in part.rows(["id", _KEY_LEAF]):
                if any(image["key"] == key for image in values["images"]):
                    return part.place(row, values["id"])
        return str(self.directory)


@dataclass(frozen=True, eq=False, repr=False)
class Studies:
    """A study set, or the part of it that meets the conditions given to `where`."""

    _set: _StudySet
    _parts: tuple[int, ...] | None = None
    _filters: tuple[_Filter, ...] = ()
    _left_out: frozenset[str] = field(default=frozenset())

    @property
    def directory(self) -> Path:
        return self._set.directory

    @property
    def manifest(self) -> Manifest:
        """What the set says of itself; of the whole set, whatever this view is limited to."""
        return self._set.manifest

    def __repr__(self) -> str:
        filters = "".join(f".where({_shown(condition)})" for condition in self._filters)
        return f"<Studies {self.directory}{filters}>"

    # Narrowing ----------------------------------------------------------------------------------------------

    def where(
        self,
        *,
        patient: Choice | None = None,
        split: Choice | None = None,
        finding: Choice | None = None,
        certainty: Choice | None = None,
        view: Choice | None = None,
    ) -> "Studies":
        """Studies that meet all conditions; each is a value or several, of which any will do.

        A `finding` is meant to be present unless `certainty` says otherwise.
        """
        if finding is not None and certainty is None:
            certainty = "present"
        condition = _Filter(
            patient=_choices(patient),
            split=_choices(split, "split", get_args(Split)),
            finding=_choices(finding),
            certainty=_choices(certainty, "certainty", get_args(Certainty)),
            view=_choices(view, "view", get_args(View)),
        )
        return replace(self, _filters=(*self._filters, condition))

    def without(self, *columns: str) -> "Studies":
        """The same studies with some fields not read and left at their defaults: `without("anatomy")`."""
        for column in columns:
            if column not in OPTIONAL_COLUMNS:
                raise StudySetError(
                    f"cannot leave out {column!r}, only: {', '.join(sorted(OPTIONAL_COLUMNS))}"
                )
        return replace(self, _left_out=self._left_out | frozenset(columns))

    def by_part(self) -> tuple["Studies", ...]:
        """One view a part, for sharing work between processes."""
        return tuple(replace(self, _parts=(index,)) for index, _ in self._readers())

    # Reading ------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Study]:
        seen: set[str] = set()
        for part, row, values in self._scan(self._leaves()):
            study = part.study(row, values)
            if study.id in seen:
                raise _duplicate(part, row, study.id)
            seen.add(study.id)
            yield study

    def __len__(self) -> int:
        if not self._filters:
            return sum(part.info.rows for _, part in self._readers())
        return sum(1 for _ in self._scan(["id"]))

    def ids(self) -> list[str]:
        """Ids in the order of the set."""
        return [values["id"] for _, _, values in self._scan(["id"])]

    def __getitem__(self, study_id: str) -> Study:
        found = self._find(study_id)
        if found is None:
            raise StudySetError(
                f"{self.directory}: no study {study_id!r}{' that matches' if self._filters else ''}"
            )
        return found

    def __contains__(self, study_id: object) -> bool:
        return isinstance(study_id, str) and self._find(study_id) is not None

    def prior(self, study: Study) -> Study | None:
        """The study before this one; None where there is none, or the set does not hold it.

        Looked up in the whole set: a prior need not meet the conditions of this view.
        """
        return self._neighbour(study.prior)

    def later(self, study: Study) -> Study | None:
        """The study after this one, in the same way as `prior`."""
        return self._neighbour(study.later)

    # Images -------------------------------------------------------------------------------------------------

    def image_path(self, image: Image) -> Path:
        """Where an image lies; `StudySetError` for a key that leads out of the image root."""
        try:
            return _inside(self._set.image_root, image.key)
        except ValueError as error:
            raise self._image_error(image, str(error)) from error

    def pixels(self, image: Image) -> Pixels:
        """The stored grey values of an image, of shape (height, width)."""
        path = self.image_path(image)
        if not path.is_file():
            raise self._image_error(image, f"is missing: no file {path}")
        pixels = read_pixels(path)
        if pixels.shape != (image.height, image.width):
            stated, found = f"{image.width} x {image.height}", f"{pixels.shape[1]} x {pixels.shape[0]}"
            raise self._image_error(image, f"has {found} pixels, the study says {stated}")
        return pixels

    # Tables -------------------------------------------------------------------------------------------------

    def table(self, columns: Sequence[str] | None = None) -> "pl.LazyFrame":
        """The studies as a lazy polars table with nested columns."""
        import polars as pl  # noqa: PLC0415 - a quarter of the time that importing a Study would take

        paths = self._paths()
        frame = (
            pl.scan_parquet(paths, glob=False)
            if paths
            else pl.LazyFrame(pl.from_arrow(STUDY_SCHEMA.empty_table()))
        )
        if self._filters:
            frame = frame.filter(pl.col("id").is_in(self.ids()))
        return frame.select(columns if columns is not None else [pl.exclude(self._left_out)])

    def sql(self, query: str) -> "duckdb.DuckDBPyRelation":
        """A DuckDB query over the table `studies`: `sql("SELECT view, count(*) FROM studies, ...").pl()`."""
        import duckdb  # noqa: PLC0415 - as above

        connection = duckdb.connect()
        paths = self._paths()
        if paths:
            # DuckDB takes every name for a pattern.
            studies = connection.read_parquet([glob.escape(str(path)) for path in paths])
        else:
            studies = connection.from_arrow(STUDY_SCHEMA.empty_table())
        if self._filters:
            connection.register("kept", pa.table({"id": pa.array(self.ids(), pa.string())}))
            studies = studies.filter("id IN (SELECT id FROM kept)")
        try:
            answer = studies.query("studies", query)
        except duckdb.Error as error:
            raise StudySetError(f"{self.directory}: DuckDB refuses the query: {error}") from error
        if answer is None:
            raise StudySetError(f"{self.directory}: the query returns no rows: {query}")
        return answer

    # Checking -----------------------------------------------------------------------------------------------

    def check(self, *, images: bool) -> Iterator[Problem]:
        """Everything wrong with the set: parts, rows, links, regions and, if asked, every image file and its checksum.

        Checks all of each part, whatever the conditions of this view.
        """
        seen: set[str] = set()
        for _, part in self._readers():
            yield from self._check_part(part, seen, images=images)
        stated = self.manifest.counts.studies
        if self._parts is None and stated != sum(part.rows for part in self.manifest.parts):
            yield Problem(
                f"{manifest_path(self.directory)}: states {stated} studies, its parts hold another number"
            )

    def _check_part(self, part: PartReader, seen: set[str], *, images: bool) -> Iterator[Problem]:
        try:
            for row, values in part.rows(STUDY_LEAVES):
                try:
                    study = part.study(row, values)
                except StudySetError as error:
                    yield Problem(str(error), values.get("id"))
                    continue
                if study.id in seen:
                    yield Problem(str(_duplicate(part, row, study.id)), study.id)
                for fault in faults(study):
                    yield Problem(f"{part.place(row, study.id)}: {fault}", study.id)
                seen.add(study.id)
                if images:
                    for image in study.images:
                        wrong = self._image_fault(image)
                        if wrong:
                            yield Problem(
                                f"{part.place(row, study.id)}, image {image.key!r} {wrong}", study.id
                            )
        except StudySetError as error:
            yield Problem(str(error))

    def _image_fault(self, image: Image) -> str | None:
        try:
            path = _inside(self._set.image_root, image.key)
            if not path.is_file():
                return f"is missing: no file {path}"
            header = read_header(path)
            if (header.width, header.height) != (image.width, image.height):
                stated = f"{image.width} x {image.height}"
                return f"has {header.width} x {header.height} pixels, the study says {stated}"
            if image.sha256 is not None and sha256(path) != image.sha256:
                return "has not the SHA-256 of the study"
        except ImageError as error:
            return f"cannot be read: {error}"
        except ValueError as error:
            return str(error)
        return None

    # Inside -------------------------------------------------------------------------------------------------

    def _readers(self) -> Iterable[tuple[int, PartReader]]:
        parts = range(len(self._set.parts)) if self._parts is None else self._parts
        return [(index, self._set.parts[index]) for index in parts]

    def _paths(self) -> list[Path]:
        readers = [part for _, part in self._readers()]
        for part in readers:
            part.touch()
        return [part.path for part in readers]

    def _leaves(self) -> list[str]:
        return [leaf for leaf in STUDY_LEAVES if leaf.partition(".")[0] not in self._left_out]

    def _kept(self, part: PartReader) -> list[bool] | None:
        """Which rows of a part meet the conditions; None where there are no conditions."""
        if not self._filters:
            return None
        leaves = sorted({leaf for condition in self._filters for leaf in condition.leaves()}) or ["id"]
        return [all(condition.matches(row) for condition in self._filters) for _, row in part.rows(leaves)]

    def _scan(self, leaves: Sequence[str]) -> Iterator[tuple[PartReader, int, Row]]:
        for _, part in self._readers():
            for row, values in part.rows(leaves, keep=self._kept(part)):
                yield part, row, values

    def _find(self, study_id: str) -> Study | None:
        index, place = self._set.places.get(study_id, (-1, -1))
        for listed, part in self._readers():
            if listed == index:
                kept = self._kept(part)
                keep = [row == place and (kept is None or kept[row]) for row in range(part.info.rows)]
                rows = part.rows(self._leaves(), keep=keep)
                return next((part.study(row, values) for row, values in rows), None)
        return None

    def _neighbour(self, study_id: str | None) -> Study | None:
        return None if study_id is None else replace(self, _filters=(), _parts=None)._find(study_id)

    def _image_error(self, image: Image, wrong: str) -> StudySetError:
        return StudySetError(f"{self._set.place_of_image(image.key)}, image {image.key!r} {wrong}")


def _choices(value: Choice | None, name: str = "", allowed: tuple[str, ...] = ()) -> frozenset[str] | None:
    if value is None:
        return None
    chosen = frozenset([value] if isinstance(value, str) else value)
    for choice in sorted(chosen):
        if allowed and choice not in allowed:
            raise StudySetError(f"{name} is never {choice!r}, but one of {', '.join(allowed)}")
    return chosen


def _inside(root: Path, key: str) -> Path:
    """The path of an image key; `ValueError` for one that is no path or leads out of the root."""
    parts = PurePosixPath(key).parts
    if not parts or parts[0] == "/" or ".." in parts or "\\" in key or "\0" in key:
        raise ValueError("is not a plain relative path")
    path = root.joinpath(*parts)
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError) as error:  # a name too long, a loop of links
        raise ValueError(f"is not a path: {error}") from error
    if not resolved.is_relative_to(root):
        raise ValueError(f"leads out of the image root {root}")
    return path


def _duplicate(part: PartReader, row: int, study_id: str) -> StudySetError:
    return StudySetError(f"{part.place(row, study_id)}: the id is taken by an earlier study of the set")


def _shown(condition: _Filter) -> str:
    given = {name: value for name, value in vars(condition).items() if value is not None}
    return ", ".join(f"{name}={sorted(value)}" for name, value in given.items())
