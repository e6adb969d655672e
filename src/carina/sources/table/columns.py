"""The map from the columns of a table to what they mean: its YAML file, and the options that name columns."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from carina.sources._frames import BoxForm, Frame
from carina.sources._image_sets import read_categories
from carina.sources._record import SourceError, describe, printable
from carina.store.documents import read_yaml
from carina.store.errors import CarinaError
from carina.studies.vocabulary import SECTIONS, Scope

FILE: Final = "columns.yaml"
"""Name of the map beside the study set."""
ImageBy = Literal["path", "name", "id"]
"""How a table names an image: by its path, by its file name, or by its file name without the ending."""
Dialect = Literal["path", "coco", "siim", "chexmask"]
Blank = Literal["unknown", "absent"]
Decimal = Literal[".", ","]
TEXT: Final = "text"
"""The part of `report` for a column with a whole report."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Strict about unknown fields, so that a spelling mistake does not pass."""


class BoxColumns(_Part, frozen=True, kw_only=True):
    """Boxes: four columns of numbers, or one column with four numbers or a list of boxes."""

    columns: tuple[str, ...]
    form: BoxForm = "xywh"
    frame: str = "pixels"
    """As `Frame.parse` takes it, or "size": pixels of the size that the columns of `size` state."""


class MaskColumn(_Part, frozen=True, kw_only=True):
    """Masks: paths of image files, or run lengths."""

    column: str
    dialect: Dialect = "path"
    frame: str = "pixels"
    """Size of the image that run lengths were made for; they are resized to the image."""


class PolygonColumn(_Part, frozen=True, kw_only=True):
    """Polygons as JSON: a ring of points, or a list of rings."""

    column: str
    frame: str = "pixels"


class ColumnMap(_Part, frozen=True, kw_only=True, omit_defaults=True):
    """What the columns of a table mean."""

    image: str
    image_by: ImageBy = "path"
    study: str | None = None
    """Rows of one study may name several images."""
    patient: str | None = None
    date: str | None = None
    date_format: str | None = None
    """As Python's strptime takes it; without it, dates begin with the year."""
    order: str | None = None
    """Number of the study among those of the patient in time."""
    view: str | None = None
    age: str | None = None
    sex: str | None = None
    split: str | None = None
    annotator: str | None = None
    comparisons: tuple[str, ...] = ()
    """Readers, by their names in the column of annotators, who are compared with the truth and are no part of it."""
    size: tuple[str, str] | None = None
    """Width and height of the image that boxes were drawn on."""
    findings: dict[str, str] = {}
    """Columns with one finding each, and the name of the finding."""
    blank: Blank = "unknown"
    """What an empty cell in a column of a finding means."""
    label: str | None = None
    """A column with the names of findings."""
    separator: str | None = None
    """Between several names in one cell; without it, | and ;."""
    certainty: str | None = None
    """Whether the findings that a row names are present, absent or uncertain."""
    finding: str | None = None
    """Name of the finding that every region shows, for tables that do not name it."""
    names: dict[str, str | None] = {}
    """Names of findings by the labels of the table, where the vocabulary does not decide; null leaves a label out."""
    decimal: Decimal = "."
    """The sign before the decimals of numbers."""
    box: BoxColumns | None = None
    mask: MaskColumn | None = None
    polygon: PolygonColumn | None = None
    report: dict[str, str] = {}
    """Columns of report text by section; `text` is a whole report."""
    looked_for: Scope | None = None
    """What was looked for; without it, the findings with columns of their own where a cell is filled in."""
    ignored: tuple[str, ...] = ()
    """Columns that are not used; only for the reader of the file."""

    def numeric(self) -> tuple[str, ...]:
        """Columns with one number a cell."""
        box = self.box.columns if self.box is not None and len(self.box.columns) > 1 else ()
        single = (column for column in (self.order, self.age) if column is not None)
        return (*box, *(self.size or ()), *single)

    def used(self) -> Iterator[tuple[str, str]]:
        """Fields and the columns that they name."""
        for field in ("image", "study", "patient", "date", "order", "view", "age", "sex", "split", "annotator",
                      "label", "certainty"):  # fmt: skip
            column = getattr(self, field)
            if column is not None:
                yield field, column
        yield from (("size", column) for column in self.size or ())
        yield from (("findings", column) for column in self.findings)
        yield from (("box", column) for column in (self.box.columns if self.box else ()))
        yield from (
            (field, part.column) for field, part in (("mask", self.mask), ("polygon", self.polygon)) if part
        )
        yield from (("report", column) for column in self.report.values())


def read_column_map(path: Path) -> ColumnMap:
    """Read a map that was written or edited.

    Raises:
        SourceError: The file is not such a map.
    """
    try:
        return msgspec.convert(read_yaml(path), ColumnMap, str_keys=True)
    except (CarinaError, msgspec.ValidationError) as error:
        if isinstance(error, CarinaError):
            raise SourceError(str(error)) from error
        raise SourceError(f"{path}: not a map of columns: {explain_invalid_map(error)}") from error


def explain_invalid_map(error: msgspec.ValidationError) -> str:
    """What is wrong with a map; of an unknown field also which fields there are."""
    text = str(error)
    if "unknown field" not in text:
        return text
    place = re.search(r"`\$\.(\w+)", text)
    part = {"box": BoxColumns, "mask": MaskColumn, "polygon": PolygonColumn}.get(
        place[1] if place else "", ColumnMap
    )
    return f"{text}; the fields are {', '.join(part.__struct_fields__)}"


def check_column_map(found: ColumnMap, columns: Iterable[str], where: str) -> None:
    """Check a map against the columns of a table, and its parts against each other.

    Raises:
        SourceError: A column is not there, or a field is wrong.
    """
    known = list(columns)
    for field, column in found.used():
        if column not in known:
            there = printable(", ".join(known), longest=200)
            raise SourceError(f"{where}: {field}: no column {describe(column)}; the table has {there}")
    for name in found.report:
        if name not in (*SECTIONS, TEXT):
            raise SourceError(f"{where}: report: {describe(name)}, expected {', '.join((*SECTIONS, TEXT))}")
    for column, name in found.findings.items():
        if not name.strip():
            raise SourceError(f"{where}: findings: {describe(column)} has no name of a finding")
    for label, ours in found.names.items():
        if ours is not None and not ours.strip():
            raise SourceError(
                f"{where}: names: {describe(label)} has no name of a finding; null leaves it out"
            )
    if found.comparisons and found.annotator is None:
        raise SourceError(f"{where}: comparisons: no column of annotators names these readers")
    if found.box is not None and len(found.box.columns) not in (1, 4):
        raise SourceError(
            f"{where}: box: {len(found.box.columns)} columns, expected 4, or 1 that holds all numbers"
        )
    for field, part in (("box", found.box), ("mask", found.mask), ("polygon", found.polygon)):
        if part is not None:
            _check_frame(found, field, part.frame, where)


def _check_frame(found: ColumnMap, field: str, frame: str, where: str) -> None:
    if frame == "size":
        if found.size is None:
            raise SourceError(
                f"{where}: {field}: frame 'size' needs the columns of width and height in `size`"
            )
        return
    try:
        is_padded = Frame.parse(frame).padding != "none"
    except SourceError as error:
        raise SourceError(f"{where}: {field}: {error}") from error
    if field == "mask" and (is_padded or frame in ("unit", "percent", "thousandths")):
        raise SourceError(
            f"{where}: mask: frame {frame!r}, expected pixels, size, or a size such as 1024x1024"
        )


def format_column_map(found: ColumnMap, notes: Iterable[str]) -> str:
    """The map as a YAML file that can be edited and given back; notes become comments at its top."""
    import yaml  # noqa: PLC0415 - few commands write YAML

    values: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found))
    lines = [f"# {printable(note, longest=300)}" for note in notes]
    for name, value in values.items():
        is_listed = name in ("findings", "names", "report") or not isinstance(value, list | tuple | dict)
        text = yaml.safe_dump(
            {name: value} if is_listed else value,
            sort_keys=False,
            allow_unicode=True,
            width=1_000_000,
            default_flow_style=not is_listed,
        )
        lines += (text if is_listed else f"{name}: {text}").rstrip("\n").split("\n")
    return "\n".join(lines) + "\n"


def apply_options(found: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a map, as plain values, with those that options of the command line set."""
    fields = dict(found)
    for option, field in OPTIONS.items():
        if options.get(option) is not None:
            fields[field] = options[option]
    if options.get("comparison_reader"):
        fields["comparisons"] = list(options["comparison_reader"])
    if options.get("categories"):
        fields["names"] = {**fields.get("names", {}), **read_categories(options["categories"])}
    if options.get("finding_column"):
        fields["findings"] = {column: column for column in options["finding_column"]}
    for field, parts in PARTS.items():
        given = {part: options[option] for part, option in parts.items() if options.get(option)}
        if given:
            fields[field] = {**fields.get(field, {}), **given}
    report = {section: options[option] for section, option in REPORT.items() if options.get(option)}
    if report:
        fields["report"] = {**fields.get("report", {}), **report}
    return fields


OPTIONS: Final[Mapping[str, str]] = {
    **{f"{field}_column": field for field in ("image", "study", "patient", "date", "order", "view", "age", "sex",
                                              "split", "annotator", "label", "certainty")},
    **{field: field for field in ("image_by", "date_format", "decimal", "blank", "separator", "finding", "looked_for")},
}  # fmt: skip
"""Fields of a map by the options that set them."""
PARTS: Final[Mapping[str, Mapping[str, str]]] = {
    "box": {"columns": "box_column", "form": "box_form", "frame": "box_frame"},
    "mask": {"column": "mask_column", "dialect": "mask_dialect", "frame": "mask_frame"},
    "polygon": {"column": "polygon_column", "frame": "polygon_frame"},
}
REPORT: Final[Mapping[str, str]] = {
    "findings": "findings_text_column",
    "impression": "impression_text_column",
    "indication": "indication_text_column",
    TEXT: "report_text_column",
}
