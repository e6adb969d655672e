"""The reader of a table of one's own: rows become studies, with the columns that a map names."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta

from carina.sources._encodings import describe_encoding
from carina.sources._frames import FRAMES, BoxForm
from carina.sources._image_sets import (
    COMPARED_ANATOMY,
    DEFECTS,
    Categories,
    assess,
    gather,
    name_studies,
)
from carina.sources._record import RecordError, SourceError, describe, printable
from carina.sources._series import UNKNOWN, Place, order_studies
from carina.sources._source import Plan, Skipped, Stream, source
from carina.sources._tables import Row
from carina.sources.table.cells import is_blank, read_date, split_labels, use_decimal_point
from carina.sources.table.checks import check_box_numbers, check_masks
from carina.sources.table.columns import (
    FILE,
    Blank,
    ColumnMap,
    Decimal,
    Dialect,
    ImageBy,
    apply_options,
    check_column_map,
    explain_invalid_map,
    format_column_map,
    read_column_map,
)
from carina.sources.table.guess import SAMPLE, guess_columns, list_region_columns
from carina.sources.table.images import ImageFinder
from carina.sources.table.rows import Table
from carina.sources.table.study import NamedRow, Settings, is_comparison, read_study
from carina.studies.vocabulary import Scope


def plan_table(path: Path, options: Mapping[str, Any]) -> Plan:
    """The map of columns: what is printed is the file that is written."""
    table = Table.open(path, options.get("encoding"))
    found, notes = _find_map(table, options)
    names = tuple(ours for ours in found.names.values() if ours is not None)
    understood = [note for note in notes if note.startswith(("decimal:", "image:"))]
    if table.is_delimited and table.encoding is None and (notice := describe_encoding(path)):
        notes = [f"{notice}; say otherwise with --encoding", *notes]
        understood.insert(0, notes[0])
    notices = [*check_masks(table, found, _mask_folders(path, options))]
    if options.get("box_frame") is None and options.get("columns") is None:
        images = _image_folder(path, options)
        rows = islice(_each_row(table, found), SAMPLE)
        notices += check_box_numbers(rows, found, ImageFinder(images, found.image_by), images)
    notes += notices
    text = format_column_map(
        found, [f"Columns of {path.name}; edit a copy and give it back with --columns", *notes]
    )
    return Plan(
        lines=tuple(text.rstrip("\n").split("\n")),
        files={FILE: text.encode()},
        notices=(*understood, *notices),
        region_columns=list_region_columns(table.columns, found),
        has_coordinates=found.box is not None or found.polygon is not None,
        confirmed=names,
    )


@source(
    name="table",
    title="A table of your own with a folder of images",
    needs="a CSV, Parquet or Excel file with a row for each image or finding, and the image files below --images, or "
    "beside the table.",
    tree="""
    labels.csv    or .parquet, .xlsx
    images/       or beside the table, or --images with their folder
      0001.png
    """,
    licence="Yours",
    truth=("labels", "boxes", "masks", "polygons", "report", "series"),
    defects={
        **DEFECTS,
        "mask missing": "a mask whose file is not in the folder of masks is left out; name that folder with --masks",
        "unnamed": "a region whose row names no finding, or several, is left out; use --label-column or --finding",
        COMPARED_ANATOMY: "anatomy that a reader for comparison drew is left out: only findings are compared",
        "certainty": "a label whose cell of certainty is empty is not stated; where drawn or looked for, uncertain",
        "date": "a date that cannot be read is unknown",
        "age": "an age that cannot be read is unknown",
        "sex": "a sex that is not F, M or O is unknown",
        "view": "a view that is not PA, AP or lateral is unknown",
    },
    plan=plan_table,
    unit="studies",
)
def read_table(
    path: Path,
    *,
    images: Annotated[
        Path | None, Meta(description="Folder of the images; by default that of the table.")
    ] = None,
    columns: Annotated[
        Path | None, Meta(description=f"YAML file that says what the columns mean, such as an edited {FILE}.")
    ] = None,
    encoding: Annotated[
        str | None,
        Meta(
            description="Encoding of a CSV file, such as cp1250. By default UTF-8, or UTF-16 where the file is marked "
            "so; a file that is neither is read as cp1252."
        ),
    ] = None,
    image_column: Annotated[str | None, Meta(description="Column that names the image.")] = None,
    image_by: Annotated[
        ImageBy | None,
        Meta(
            description="How it names the image: path below the folder, file name, or file name without ending."
        ),
    ] = None,
    study_column: Annotated[
        str | None, Meta(description="Column of the study, where it has several images.")
    ] = None,
    patient_column: Annotated[str | None, Meta(description="Column of the patient.")] = None,
    date_column: Annotated[str | None, Meta(description="Column of the date of the study.")] = None,
    date_format: Annotated[
        str | None, Meta(description="Format of dates that do not begin with the year, such as %d.%m.%Y.")
    ] = None,
    order_column: Annotated[
        str | None, Meta(description="Column with the number of the study in time, where there is no date.")
    ] = None,
    view_column: Annotated[str | None, Meta(description="Column of the view: PA, AP or lateral.")] = None,
    age_column: Annotated[str | None, Meta(description="Column of the age in years.")] = None,
    sex_column: Annotated[str | None, Meta(description="Column of the sex.")] = None,
    split_column: Annotated[str | None, Meta(description="Column of the split: train, val or test.")] = None,
    annotator_column: Annotated[str | None, Meta(description="Column that names who drew a region.")] = None,
    comparison_reader: Annotated[
        tuple[str, ...],
        Meta(
            description="Reader, by the name in the column of annotators, whose regions are compared with the truth "
            "and are no part of it; repeat for several."
        ),
    ] = (),
    finding_column: Annotated[
        tuple[str, ...],
        Meta(description="Column of one finding (1, 0, -1, yes, no, ...); repeat for several."),
    ] = (),
    blank: Annotated[
        Blank | None,
        Meta(description="What an empty cell in such a column means: unknown (default) or absent."),
    ] = None,
    label_column: Annotated[
        str | None, Meta(description="Column with the name of a finding, or several.")
    ] = None,
    separator: Annotated[
        str | None, Meta(description="Between several names in one cell; by default | or ;.")
    ] = None,
    certainty_column: Annotated[
        str | None,
        Meta(description="Column that says whether what the row names is present, absent or uncertain."),
    ] = None,
    categories: Categories = None,
    finding: Annotated[
        str | None,
        Meta(description="Name of the finding that every region shows, for tables that do not name it."),
    ] = None,
    looked_for: Annotated[
        Scope | None,
        Meta(
            description="What was looked for: every finding, the listed names (those of the columns, and all names in "
            "the column of labels), or unknown. By default the findings with a column of their own."
        ),
    ] = None,
    decimal: Annotated[
        Decimal | None,
        Meta(
            description="Sign before the decimals of numbers in columns of their own. By default a point; a comma "
            "where fields are not separated by commas and the numbers of boxes have one."
        ),
    ] = None,
    box_column: Annotated[
        tuple[str, ...],
        Meta(description="Column of a box: four times for its numbers, or once for all of them."),
    ] = (),
    box_form: Annotated[
        BoxForm | None, Meta(description="Corner and size, two corners, or centre and size.")
    ] = None,
    box_frame: Annotated[str | None, Meta(description=f"What the numbers of boxes count: {FRAMES}.")] = None,
    mask_column: Annotated[str | None, Meta(description="Column of masks: paths, or run lengths.")] = None,
    mask_dialect: Annotated[Dialect | None, Meta(description="What it holds.")] = None,
    mask_frame: Annotated[
        str | None, Meta(description="Size of the image that run lengths were made for, such as 1024x1024.")
    ] = None,
    masks: Annotated[
        Path | None, Meta(description="Folder of the masks; by default that of the images, or of the table.")
    ] = None,
    polygon_column: Annotated[str | None, Meta(description="Column of polygons as JSON.")] = None,
    polygon_frame: Annotated[str | None, Meta(description="As --box-frame, for polygons.")] = None,
    report_text_column: Annotated[
        str | None, Meta(description="Column of whole reports, which are split at their headings.")
    ] = None,
    findings_text_column: Annotated[
        str | None, Meta(description="Column of the findings of a report.")
    ] = None,
    impression_text_column: Annotated[
        str | None, Meta(description="Column of the impression of a report.")
    ] = None,
    indication_text_column: Annotated[
        str | None, Meta(description="Column of the indication of a report.")
    ] = None,
) -> Stream:
    """Read one study for each image, or for each value of the column of studies."""
    options = dict(locals())  # the options by name, as `plan_table` gets them
    del options["path"]
    table = Table.open(path, encoding)
    found, _ = _find_map(table, options)
    finder = ImageFinder(_image_folder(path, options), found.image_by)
    overview = _read_overview(table, found, finder)
    _check_comparisons(path, found, overview.annotators)
    settings = Settings(_image_folder(path, options), _mask_folders(path, options), found)
    listed = assess(found.looked_for, overview.labels, found.names) if found.looked_for else None
    yield from overview.skipped
    for name, rows in gather(_read_rows(table, found, finder), overview.sizes):
        yield partial(
            read_study, overview.ids[name], rows, overview.places.get(name, UNKNOWN), settings, listed
        )


def _each_row(table: Table, found: ColumnMap) -> Iterator[Row]:
    """The rows of a table, with a point before the decimals of numbers."""
    if found.decimal == ".":
        return table.rows()
    numeric = found.numeric()
    return (_use_decimal_points(row, numeric) for row in table.rows())


def _use_decimal_points(row: Row, columns: Iterable[str]) -> Row:
    numbers = {name: use_decimal_point(row.values[name]) for name in columns if name in row.values}
    return Row(row.file, row.number, {**row.values, **numbers}, row.fault)


def _image_folder(path: Path, options: Mapping[str, Any]) -> Path:
    return options.get("images") or path.parent


def _mask_folders(path: Path, options: Mapping[str, Any]) -> tuple[Path, ...]:
    if options.get("masks") is not None:
        return (options["masks"],)
    return tuple(dict.fromkeys((_image_folder(path, options), path.parent)))


def _find_map(table: Table, options: Mapping[str, Any]) -> tuple[ColumnMap, list[str]]:
    """The map of a file, or a guess; options of the command line count more than either."""
    file = options.get("columns")
    if file is None:
        rows = list(islice(table.rows(), SAMPLE))
        images = _image_folder(table.path, options)
        found, notes = guess_columns(table.columns, rows, options, images, delimiter=table.delimiter)
        check_column_map(found, table.columns, str(table.path))
        return found, notes
    fields = apply_options(msgspec.to_builtins(read_column_map(file)), options)
    used = {column for _, column in msgspec.convert({**fields, "ignored": ()}, ColumnMap).used()}
    fields["ignored"] = [name for name in table.columns if name not in used]
    try:
        found = msgspec.convert(fields, ColumnMap)
    except msgspec.ValidationError as error:
        reason = explain_invalid_map(error)
        raise SourceError(f"{file}, with the options of the command line: {reason}") from error
    check_column_map(found, table.columns, str(file))
    return found, [f"ignored: {name}: not in {file.name}" for name in found.ignored]


# ---- the first pass -------------------------------------------------------------------------------------------------


@dataclass
class _Overview:
    """What must be known about all rows before the first study is made."""

    sizes: Counter[str] = field(default_factory=Counter)
    """Number of rows by study."""
    ids: dict[str, str] = field(default_factory=dict)
    places: Mapping[str, Place] = field(default_factory=dict)
    labels: set[str] = field(default_factory=set)
    """All names of findings."""
    annotators: set[str] = field(default_factory=set)
    """All names in the column of annotators."""
    skipped: list[Skipped] = field(default_factory=list)


class _Study(NamedTuple):
    """What a row says about its study."""

    patient: str
    study: str
    key: str

    @property
    def name(self) -> str:
        """A text that no other study has: an image, or a study of a patient."""
        return f"{self.patient}\0{self.study}" if self.study else self.key


def _read_overview(table: Table, found: ColumnMap, finder: ImageFinder) -> _Overview:
    overview = _Overview(labels=set(found.findings.values()) | ({found.finding} if found.finding else set()))
    studies: dict[str, _Study] = {}
    times: dict[str, Any] = {}
    for row in _each_row(table, found):
        if found.annotator is not None:
            overview.annotators.add(row.values.get(found.annotator, "").strip())
        try:
            one = _identify(row, found, finder)
        except RecordError as error:
            overview.skipped.append(Skipped.from_error(error, row.place))
            continue
        overview.sizes[one.name] += 1
        if one.name not in studies:
            studies[one.name] = one
        if times.get(one.name) is None:
            times[one.name] = _time(row, found)
        if found.label is not None and not is_comparison(row, found):
            overview.labels.update(split_labels(row.values.get(found.label, ""), found.separator))
    overview.ids = _name_all(studies.values())
    if found.patient is not None:
        known = (
            (overview.ids[name], one.patient, times[name]) for name, one in studies.items() if one.patient
        )
        by_id = order_studies(known)
        overview.places = {name: by_id.get(overview.ids[name], UNKNOWN) for name in studies}
    return overview


def _check_comparisons(path: Path, found: ColumnMap, annotators: set[str]) -> None:
    """Check that readers for comparison have rows: by a wrong name, a reader would be part of the truth.

    Raises:
        SourceError: One has none.
    """
    for name in found.comparisons:
        if name not in annotators:
            there = printable(", ".join(sorted(annotators - {""})), longest=200)
            raise SourceError(
                f"{path}: comparisons: no reader {describe(name)} in the column {describe(found.annotator)}; it names "
                f"{there or 'nobody'}. Correct --comparison-reader, or `comparisons` in the map of columns"
            )


def _identify(row: Row, found: ColumnMap, finder: ImageFinder) -> _Study:
    key = finder.find(row.required(found.image))
    study = row.text(found.study) if found.study is not None else ""
    patient = row.text(found.patient) if found.patient is not None else ""
    return _Study(patient, study, key)


def _time(row: Row, found: ColumnMap) -> Any:  # noqa: ANN401 - a date or a number
    if found.date is not None:
        text = row.values.get(found.date, "")
        return None if is_blank(text) else read_date(text, found.date_format)
    if found.order is not None:
        try:
            return row.optional_number(found.order)
        except RecordError:
            return None
    return None


def _name_all(studies: Iterable[_Study]) -> dict[str, str]:
    """Ids: of a study as the table has it, with its patient where several patients have one of the name."""
    studies = list(studies)
    ids = name_studies(one.key for one in studies if not one.study)
    times = Counter(one.study for one in studies if one.study)
    named = {
        one.name: one.study if times[one.study] == 1 else f"{one.patient}/{one.study}"
        for one in studies
        if one.study
    }
    taken = set(named.values())
    return named | {key: name if name not in taken else key for key, name in ids.items()}


# ---- the second pass ------------------------------------------------------------------------------------------------


def _read_rows(table: Table, found: ColumnMap, finder: ImageFinder) -> Iterator[tuple[str, NamedRow]]:
    """The rows of studies that can be told, each with the path of its image."""
    used = [column for _, column in found.used()]
    for row in _each_row(table, found):
        try:
            one = _identify(row, found, finder)
        except RecordError:
            continue  # reported by the first pass
        values = {name: row.values[name] for name in used if name in row.values}
        yield one.name, NamedRow(Row(row.file, row.number, values, row.fault), one.key)
