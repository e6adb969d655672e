"""Guess what the columns of a table mean, from their names and the first values."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import msgspec

from carina.sources._image_sets import IMAGE_ENDINGS
from carina.sources._record import RecordError, SourceError, describe, printable
from carina.sources._tables import Row
from carina.sources._values import read_age, read_sex, read_split
from carina.sources.table.cells import (
    CERTAINTIES,
    has_decimal_comma,
    is_blank,
    read_date,
    split_labels,
    use_decimal_point,
)
from carina.sources.table.columns import TEXT, ColumnMap, ImageBy, apply_options
from carina.sources.table.images import ImageFinder, has_folder
from carina.studies.terms import find_term, is_no_finding, read_label

SAMPLE: Final = 1000
"""Rows that are looked at."""
_FILES: Final = 50
"""Names of images that are looked for on disk."""
_LONG: Final = 40
"""Characters from which on the cells of a column are text rather than labels, on average."""
_IMAGE_NAMES: Final = (
    "image_path", "img_path", "path_to_image", "filepath", "file_path", "path", "filename", "file_name", "image_file",
    "image_name", "image", "img", "file", "image_index", "image_id", "imageid", "dicom_id", "picture", "key", "id",
)  # fmt: skip
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "study": ("study", "study_id", "studyid", "exam", "exam_id", "examination", "accession", "accession_number"),
    "patient": ("patient", "patient_id", "patientid", "subject", "subject_id", "pid", "deid_patient_id"),
    "date": ("date", "study_date", "studydate", "exam_date", "acquisition_date", "studydate_dicom"),
    "order": ("order", "follow_up", "followup", "visit", "study_order", "patient_report_date_order"),
    "view": ("view", "view_position", "viewposition", "projection", "ap_pa"),
    "age": ("age", "patient_age", "patientage"),
    "sex": ("sex", "gender", "patient_sex", "patient_gender", "patientsex"),
    "split": ("split", "set", "subset", "partition"),
    "annotator": ("annotator", "reader", "rad_id", "radiologist", "rater", "labeler", "labeller"),
    "certainty": ("certainty", "presence", "status"),
}  # fmt: skip
_LABEL_NAMES: Final = (
    "label", "labels", "finding", "findings", "finding_label", "finding_labels", "class_name", "class", "category",
    "category_name", "label_name", "finding_name", "finding_names", "abnormality_name",
    "disease", "diagnosis", "diagnoses", "pathology", "lesion_type",
)  # fmt: skip
_REPORT_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "findings": ("findings", "section_findings", "findings_text"),
    "impression": ("impression", "section_impression", "impression_text", "conclusion"),
    "indication": ("indication", "section_indication", "clinical_history", "history"),
    "comparison": ("comparison", "section_comparison"),
    "technique": ("technique", "section_technique"),
    TEXT: ("report", "text", "report_text", "full_text", "radiology_report"),
}
_BOX_NAMES: Final = (
    (("x", "y", "w", "h"), "xywh"), (("x", "y", "width", "height"), "xywh"),
    (("left", "top", "width", "height"), "xywh"), (("x1", "y1", "x2", "y2"), "xyxy"),
    (("xmin", "ymin", "xmax", "ymax"), "xyxy"), (("x_min", "y_min", "x_max", "y_max"), "xyxy"),
    (("x0", "y0", "x1", "y1"), "xyxy"), (("left", "top", "right", "bottom"), "xyxy"),
    (("cx", "cy", "w", "h"), "centre"), (("cx", "cy", "width", "height"), "centre"),
    (("x_center", "y_center", "width", "height"), "centre"), (("x_centre", "y_centre", "width", "height"), "centre"),
)  # fmt: skip
_NUMBER_NAMES: Final = frozenset(
    f"{prefix}{name}" for names, _ in _BOX_NAMES for name in names for prefix in ("", "bbox_", "box_")
)
"""Names of columns whose numbers show whether the table has decimal commas."""
_SHORT_SIZES: Final = frozenset(("w", "h", "width", "height"))
"""Names that may also mean the size of the image."""
_ONE_BOX: Final = ("bbox", "box", "boxes", "bboxes", "bounding_box")
_SIZE_NAMES: Final = (
    ("image_width", "image_height"), ("img_width", "img_height"), ("width", "height"), ("columns", "rows"),
)  # fmt: skip
_MASK_NAMES: Final = (
    "mask",
    "mask_path",
    "mask_file",
    "mask_filename",
    "segmentation",
    "rle",
    "encodedpixels",
)
_POLYGON_NAMES: Final = ("polygon", "polygons", "points", "contour", "contours")
_NOT_FINDINGS: Final = frozenset(
    ("label", "labels", "target", "abnormal", "abnormality", "any_finding", "class_id", "fold")
)
"""Columns of yes and no that name no finding."""


class _Guess:
    """Fields of a map in the making."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Row], fields: dict[str, Any]) -> None:
        self.columns, self.fields = columns, fields
        self.values = {name: [row.values.get(name, "") for row in rows] for name in columns}
        self.filled = {name: [v for v in cells if not is_blank(v)] for name, cells in self.values.items()}
        self.normal = {_normalise(name): name for name in reversed(columns)}
        self.taken = set(_named_columns(fields))
        self.notes: list[str] = []
        self.reasons: dict[str, str] = {}
        """Why a column is ignored."""

    def find(self, names: Iterable[str], fits: Callable[[list[str]], bool] = bool) -> str | None:
        """The first column with one of the names whose values fit."""
        for name in names:
            column = self.normal.get(name)
            is_free = column is not None and column not in self.taken and column not in self.reasons
            if column is not None and is_free and fits(self.filled[column]):
                return column
        return None

    def take(self, field: str, value: Any, *columns: str) -> None:  # noqa: ANN401 - of a map
        self.fields[field] = value
        self.taken.update(columns)


def guess_columns(
    columns: Sequence[str],
    rows: Sequence[Row],
    options: Mapping[str, Any],
    images: Path,
    *,
    delimiter: str = ",",
) -> tuple[ColumnMap, list[str]]:
    """Guess a map.

    Args:
        columns: Names of the columns.
        rows: The first rows.
        options: Options of the command line, which count more than any guess.
        images: Folder of the images.
        delimiter: Between the fields of the table.

    Returns:
        The map, and remarks about it.

    Raises:
        SourceError: No column names images, or an option contradicts the table.
    """
    guess = _Guess(columns, rows, apply_options({}, options))
    _guess_decimal(guess, delimiter)
    _guess_image(guess, images)
    fits = {
        **_FITS,
        "date": _most(lambda value: read_date(value, guess.fields.get("date_format")) is not None),
    }
    for field, names in _NAMES.items():
        column = guess.find(names, fits.get(field, bool)) if field not in guess.fields else None
        if column is not None:
            guess.take(field, column, column)
    _guess_boxes(guess)
    _guess_masks(guess)
    _guess_texts(guess)
    _guess_findings(guess)
    _guess_label_by_values(guess)
    ignored = [name for name in columns if name not in guess.taken]
    guess.fields["ignored"] = ignored
    guess.notes += [f"ignored: {name}: {_why_ignored(guess, name)}" for name in ignored]
    try:
        return msgspec.convert(guess.fields, ColumnMap), guess.notes
    except msgspec.ValidationError as error:
        raise SourceError(f"options of the table: {error}") from error


def _guess_decimal(guess: _Guess, delimiter: str) -> None:
    """Whether numbers have a decimal comma: where commas are no delimiter, and most values of a column allow it."""
    with_commas = {
        name: [use_decimal_point(value) for value in values]
        for name, values in guess.filled.items()
        if any(map(has_decimal_comma, values))
        and _are_mostly_numbers([use_decimal_point(value) for value in values])
    }
    named = [name for name in with_commas if _normalise(name) in _NUMBER_NAMES]
    if "decimal" not in guess.fields and delimiter != "," and named:
        guess.fields["decimal"] = ","
        guess.notes.append(
            f"decimal: {named[0]} has numbers with a decimal comma; say otherwise with --decimal"
        )
    if guess.fields.get("decimal") == ",":
        guess.filled |= with_commas
    else:
        reason = "has numbers with a comma; if that is the decimal sign, say so with --decimal ,"
        guess.reasons |= dict.fromkeys(named, reason)


def _guess_image(guess: _Guess, images: Path) -> None:
    column = guess.fields.get("image")
    candidates = [column] if column else _image_candidates(guess)
    finder = ImageFinder(images, guess.fields.get("image_by", "path"))
    if not candidates:
        there = printable(", ".join(guess.columns), longest=200)
        raise SourceError(
            f"no column with paths or names of images; name it with --image-column. Columns: {there}"
        )
    if "image_by" in guess.fields:
        guess.take("image", candidates[0], candidates[0])
        return
    ways: tuple[ImageBy, ...] = ("path", "name", "id")
    for by in ways:
        for name in candidates:
            found = [text for text in guess.filled.get(name, ())[:_FILES] if finder.by(by).can_find(text)]
            if found:
                guess.take("image", name, name)
                guess.fields["image_by"] = by
                _note_name(guess, found, finder.by(by))
                return
    guess.take("image", candidates[0], candidates[0])
    guess.notes.append(
        f"image: none of the first {_FILES} names in {candidates[0]} is a file in the folder of images"
    )


def _image_candidates(guess: _Guess) -> list[str]:
    """Columns that may name images: by their own name, then by values that end as image files do."""
    named = [guess.normal[name] for name in _IMAGE_NAMES if name in guess.normal]
    by_value = [
        name
        for name in guess.columns
        if guess.filled[name] and all(value.strip().lower().endswith(IMAGE_ENDINGS) for value in guess.filled[name])
        and "mask" not in _normalise(name)
    ]  # fmt: skip
    found = [
        name for name in dict.fromkeys([*by_value, *named]) if name not in guess.taken and guess.filled[name]
    ]
    return sorted(found, key=lambda name: (name not in by_value, name not in named))


def _note_name(guess: _Guess, cells: Sequence[str], finder: ImageFinder) -> None:
    """Say so where a cell names a folder, and only its file name is used."""
    cell = next(filter(has_folder, cells), None)
    if guess.fields["image_by"] == "path" or cell is None:
        return
    try:
        used = finder.find(cell)
    except RecordError:
        return  # its rows are skipped, with the reason
    guess.notes.append(
        f"image: {describe(cell)} is not in the folder of images; its file name is, so {used} is used. If that is "
        "another image, name the right folder with --images"
    )


def _guess_boxes(guess: _Guess) -> None:
    given = guess.fields.get("box", {})
    if "columns" not in given:
        _guess_box_columns(guess, given)
    if "size" not in guess.fields:
        for names in _SIZE_NAMES:
            columns = [guess.find([name], _are_mostly_numbers) for name in names]
            if all(columns):
                guess.take("size", columns, *[column for column in columns if column])
                break
    box = guess.fields.get("box")
    if box is not None and "frame" not in box:
        box["frame"] = _guess_frame(guess, box["columns"])


def _guess_box_columns(guess: _Guess, given: Mapping[str, Any]) -> None:
    for names, form in _BOX_NAMES:
        columns = _find_box_columns(guess, names)
        if all(columns):
            guess.take(
                "box", {"columns": columns, "form": form, **given}, *[name for name in columns if name]
            )
            return
    column = guess.find(_ONE_BOX)
    if column is not None:
        guess.take("box", {"columns": [column], **given}, column)
        if "form" not in given:
            guess.notes.append(
                f"box: {column} is taken for x, y, width, height; say otherwise with --box-form"
            )
    elif given:
        raise SourceError("no columns with boxes found; name them with --box-column, once for each number")
    else:
        _note_lost_column(guess)


def _find_box_columns(guess: _Guess, names: Iterable[str]) -> list[str | None]:
    """Columns of the numbers of a box; a cell that is no number is a defect of its row, and not of the column."""
    return [guess.find((f"bbox_{name}", f"box_{name}", name), _are_mostly_numbers) for name in names]


def _note_lost_column(guess: _Guess) -> None:
    """Say so where three of the four columns of a box are there."""
    for names, _ in _BOX_NAMES:
        columns = _find_box_columns(guess, names)
        known = [column for column in columns if column is not None]
        if len(known) == len(names) - 1:
            lost = names[columns.index(None)]
            reason = (
                f"{', '.join(known)} look like a box, but the fourth column is missing: no {lost} with numbers; "
                "name all four with --box-column"
            )
            guess.reasons |= dict.fromkeys(known, reason)
            return


def _guess_frame(guess: _Guess, columns: Sequence[str]) -> str:
    if "size" in guess.fields:
        return "size"
    values = [value for name in columns for value in guess.filled.get(name, ())]
    numbers = [
        float(number)
        for value in values
        for number in re.findall(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", value)
    ]
    if numbers and max(numbers) <= 1 and any(not number.is_integer() for number in numbers):
        return "unit"
    return "pixels"


def _guess_masks(guess: _Guess) -> None:
    given = guess.fields.get("mask", {})
    column = given.get("column") or guess.find(_MASK_NAMES)
    if column is not None and "dialect" not in given:
        values = guess.filled.get(column, [])
        if _most(lambda value: value.strip().lower().endswith(IMAGE_ENDINGS))(values):
            given = {**given, "dialect": "path"}
        elif _most(lambda value: value.lstrip().startswith("{"))(values):
            given = {**given, "dialect": "coco"}
        elif "column" in given:
            raise SourceError(f"mask column {describe(column)}: say what it holds with --mask-dialect")
        else:
            guess.reasons[column] = (
                "holds neither paths nor COCO's objects; use --mask-column and --mask-dialect"
            )
            column = None
    if column is not None:
        guess.take("mask", {**given, "column": column}, column)
    if "polygon" not in guess.fields:
        column = guess.find(_POLYGON_NAMES, _most(lambda value: value.lstrip().startswith("[")))
        if column is not None:
            guess.take("polygon", {"column": column}, column)


def _guess_texts(guess: _Guess) -> None:
    if "label" not in guess.fields:
        column = guess.find(_LABEL_NAMES, _are_labels)
        if column is not None:
            guess.take("label", column, column)
    report = dict(guess.fields.get("report", {}))
    for section, names in _REPORT_NAMES.items():
        column = guess.find(names, lambda values: bool(values) and not _are_numbers(values))
        if section not in report and column is not None:
            report[section] = column
            guess.taken.add(column)
    if report:
        guess.fields["report"] = report


def _guess_findings(guess: _Guess) -> None:
    if "findings" in guess.fields:
        return
    found = {}
    for name in guess.columns:
        values = guess.filled[name]
        if name in guess.taken or name in guess.reasons or not values:
            continue
        other = next((value for value in values if value.strip().lower() not in CERTAINTIES), None)
        if other is not None:
            if find_term(name) is not None and _most(lambda value: value.strip().lower() in CERTAINTIES)(
                values
            ):
                guess.reasons[name] = (
                    f"has cells such as {describe(other)}, which say neither yes nor no; correct them, or name the "
                    "column with --finding-column to skip their studies"
                )
            continue
        if is_no_finding(name):
            guess.reasons[name] = "says that nothing was found, which the columns of findings say themselves"
        elif _normalise(name) in _NOT_FINDINGS:
            guess.reasons[name] = (
                f"names no finding; if it means one, write it in the map: findings: {{{name}: ...}}"
            )
        else:
            found[name] = name
            if find_term(name) is None:
                guess.notes.append(f"finding: {name} is not in the vocabulary and keeps its name")
    guess.taken.update(found)
    if found:
        guess.fields["findings"] = found


def _guess_label_by_values(guess: _Guess) -> None:
    """Take the first column whose cells are mostly findings of the vocabulary, where no column is known by its name."""
    if any(field in guess.fields for field in ("label", "findings", "finding")):
        return
    for name in guess.columns:
        values = guess.filled[name]
        if name not in guess.taken and _are_labels(values) and _most(_names_finding)(values):
            guess.take("label", name, name)
            guess.notes.append(
                f"label: {name} is taken for the names of findings, as {describe(values[0])} and most of its cells "
                "are; say otherwise with --label-column"
            )
            return


def _names_finding(cell: str) -> bool:
    """Whether a cell names findings or devices of the vocabulary, or says that there is none."""
    labels = split_labels(cell, None)
    terms = [find_term(read_label(label).words) for label in labels if not is_no_finding(label)]
    return bool(labels) and all(term is not None and term.kind != "anatomy" for term in terms)


def list_region_columns(columns: Iterable[str], found: ColumnMap) -> tuple[str, ...]:
    """Columns that the map uses for regions, or whose names say that they hold some."""
    used = {column for field, column in found.used() if field in ("box", "mask", "polygon")}
    names = (_NUMBER_NAMES - _SHORT_SIZES) | {*_ONE_BOX, *_MASK_NAMES, *_POLYGON_NAMES}
    return tuple(name for name in columns if name in used or _normalise(name) in names)


def _why_ignored(guess: _Guess, name: str) -> str:
    if not guess.filled[name]:
        return "empty"
    if _normalise(name) in _NAMES["date"] and "date" not in guess.fields:
        return (
            f"has dates such as {describe(guess.filled[name][0])}, which do not begin with the year; "
            "say how they are written with --date-format, such as %d.%m.%Y"
        )
    return guess.reasons.get(name, "not known by its name and values")


def _normalise(name: str) -> str:
    """A name in small letters, with one underscore between words."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name)
    return "_".join(re.findall(r"[a-z0-9]+", split.lower()))


def _named_columns(fields: Mapping[str, Any]) -> list[str]:
    """Columns that options name."""
    try:
        return [column for _, column in msgspec.convert({"image": "", **fields}, ColumnMap).used()]
    except msgspec.ValidationError:
        # A part without its columns, which are guessed.
        whole = {name: value for name, value in fields.items() if name not in ("box", "mask", "polygon")}
        parts = [fields[name] for name in ("box", "mask", "polygon") if name in fields]
        named = [
            column for part in parts for column in (*part.get("columns", ()), part.get("column")) if column
        ]
        return [*named, *(column for _, column in msgspec.convert({"image": "", **whole}, ColumnMap).used())]


def _are_numbers(values: Sequence[str]) -> bool:
    try:
        return bool(values) and all(abs(float(value)) >= 0 for value in values)
    except ValueError:
        return False


def _are_mostly_numbers(values: Sequence[str]) -> bool:
    """Whether more than half of the values are numbers."""
    return 2 * sum(_are_numbers([value]) for value in values) > len(values)


def _are_labels(values: Sequence[str]) -> bool:
    if not values or _are_numbers(values) or all(value.strip().lower() in CERTAINTIES for value in values):
        return False
    sentences = sum(value.rstrip().endswith(".") for value in values)
    is_short = fmean(len(piece) for value in values for piece in re.split(r"[|;]", value)) < _LONG
    return is_short and 2 * sentences < len(values)


def _are_splits(values: Sequence[str]) -> bool:
    try:
        return bool(values) and all(read_split(value) is not None for value in values)
    except RecordError:
        return False


def _most(fits: Callable[[str], object]) -> Callable[[list[str]], bool]:
    """Whether at least half of the values fit."""
    return lambda values: bool(values) and 2 * sum(bool(fits(value)) for value in values) >= len(values)


_FITS: Final[Mapping[str, Callable[[list[str]], bool]]] = {
    "split": _are_splits,
    "order": _are_mostly_numbers,
    "age": _most(lambda value: read_age(value) is not None),
    "sex": _most(lambda value: read_sex(value) is not None),
    "certainty": _most(lambda value: value.strip().lower() in CERTAINTIES),
}
