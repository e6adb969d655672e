"""One study from its rows in a table of one's own."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar, cast

from carina.reports.sections import split_sections, split_sentences
from carina.sources._frames import Frame, box_corners
from carina.sources._image_sets import ImageSetDraft, assess
from carina.sources._record import RecordError, describe
from carina.sources._series import Place
from carina.sources._source import Item, Skipped
from carina.sources._tables import Row
from carina.sources._values import read_age, read_sex, read_split, read_view
from carina.sources.table.cells import (
    read_boxes,
    read_date,
    read_mask_file,
    read_polygons,
    read_runs,
    read_word,
    split_labels,
)
from carina.sources.table.columns import TEXT, ColumnMap
from carina.store.errors import RegionError
from carina.studies.model import Assessed, Image, Report, ReportSection
from carina.studies.vocabulary import SECTIONS, Certainty, Section

T = TypeVar("T")
ANNOTATOR: Final = "table"
"""Who drew a region where the table does not say."""
_PROPORTIONS: Final = 0.02
"""Share by which width / height may differ between an image and the stated size."""


class NamedRow(NamedTuple):
    """A row, and the path of its image."""

    row: Row
    key: str


class Settings(NamedTuple):
    """What is the same for all studies."""

    images: Path
    masks: Path
    columns: ColumnMap


def read_study(
    study: str, rows: Sequence[NamedRow], place: Place, settings: Settings, listed: Assessed | None
) -> list[Item]:
    """The study of some rows, or the reason why there is none."""
    maker = _StudyMaker(study, rows, settings)
    try:
        return [maker.make(place, listed)]
    except RecordError as error:
        return [Skipped.from_error(error, maker.place, study=study)]


class _StudyMaker:
    """Makes one study; `place` is the row that is being read."""

    def __init__(self, study: str, rows: Sequence[NamedRow], settings: Settings) -> None:
        self.study, self.rows, self.settings, self.columns = study, rows, settings, settings.columns
        self.place = rows[0].row.place

    def make(self, place: Place, listed: Assessed | None) -> Item:
        patient = self._agreed(self.columns.patient, str)
        if len(patient) > 1:
            names = " and ".join(describe(name) for name in patient[:2])
            raise RecordError(
                self.columns.patient or "", f"the rows of the study name {names}", kind="patient"
            )
        draft = ImageSetDraft(
            self.study, patient=next(iter(patient), None), source="table", number=self.rows[0].row.number,
        )  # fmt: skip
        self._add_images(draft)
        for one in self._each_row():
            _add_regions(draft, one, self.settings)
        stated: set[str] = set()
        for one in self._each_row():
            _add_labels(draft, one.row, self.columns)
            stated.update(_add_findings(draft, one.row, self.columns))
        if self.columns.blank == "absent":
            stated.update(_add_absent(draft, stated, self.columns))
        draft.facts |= {
            "order": place.order,
            "prior": place.prior,
            "later": place.later,
            **self._facts(draft),
        }
        return draft.finish(assessed=listed or assess("listed" if stated else "unknown", stated, {}))

    def _each_row(self) -> Iterator[NamedRow]:
        for one in self.rows:
            self.place = one.row.place
            yield one

    def _agreed(self, column: str | None, read: Callable[[str], T]) -> list[T]:
        """The values of a column in the rows of the study, each once; empty cells say nothing."""
        if column is None:
            return []
        texts = dict.fromkeys(one.row.text(column) for one in self._each_row())
        return list(dict.fromkeys(read(text) for text in texts if text))

    def _add_images(self, draft: ImageSetDraft) -> None:
        views = dict.fromkeys((one.key for one in self.rows), "")
        for one in self._each_row():
            if self.columns.view is not None:
                views[one.key] = views[one.key] or one.row.text(self.columns.view)
        for key, text in views.items():
            view = read_view(text)
            draft.defects.update(["view"] if text and view == "unknown" else [])
            draft.add_image(self.settings.images, key, view)

    def _facts(self, draft: ImageSetDraft) -> dict[str, Any]:
        columns = self.columns
        dates = self._agreed(columns.date, lambda text: read_date(text, columns.date_format))
        values: dict[str, list[Any]] = {
            "date": [date.date() if date is not None else None for date in dates],
            "age": self._agreed(columns.age, read_age),
            "sex": self._agreed(columns.sex, read_sex),
            "split": self._agreed(columns.split, read_split),
        }
        facts: dict[str, Any] = {}
        for name, found in values.items():
            known = [value for value in found if value is not None]
            facts[name] = known[0] if known else None
            draft.defects.update([name] * (len(found) - len(known)))
            draft.defects.update(["conflict"] * (len(known) - 1))
        facts["report"] = self._report(draft)
        return facts

    def _report(self, draft: ImageSetDraft) -> Report | None:
        """Sections from their own columns; from a whole report those that have none."""
        sections: dict[str, str] = {}
        for section in (*SECTIONS, TEXT):
            texts = self._agreed(self.columns.report.get(section), str)
            draft.defects.update(["conflict"] * (len(texts) - 1))
            if texts and section == TEXT:
                sections = {part.name: part.text for part in split_sections(texts[0]).sections} | sections
            elif texts:
                sections[section] = texts[0]
        if not sections:
            return None
        parts = (ReportSection(name=cast(Section, name), text=text) for name, text in sections.items())
        return split_sentences(Report(sections=tuple(parts)))


# ---- labels ---------------------------------------------------------------------------------------------------------


def _labels(row: Row, columns: ColumnMap) -> list[str]:
    return split_labels(row.text(columns.label), columns.separator) if columns.label is not None else []


def _certainty(row: Row, columns: ColumnMap) -> Certainty:
    """Whether what the row names is there: present, unless a column says otherwise."""
    stated = (
        read_word(row.text(columns.certainty), columns.certainty) if columns.certainty is not None else None
    )
    return stated or "present"


def _add_labels(draft: ImageSetDraft, row: Row, columns: ColumnMap) -> None:
    for label in _labels(row, columns):
        draft.state_category(label, _certainty(row, columns))


def _add_findings(draft: ImageSetDraft, row: Row, columns: ColumnMap) -> Iterator[str]:
    """State the findings that have columns of their own; yields those that were assessed."""
    for column, name in columns.findings.items():
        certainty = read_word(row.text(column), column)
        if certainty is not None:
            draft.state_category(name, certainty)
            yield name


def _add_absent(draft: ImageSetDraft, stated: set[str], columns: ColumnMap) -> list[str]:
    """State that findings are absent whose cells are empty in all rows of the study."""
    absent = [name for name in columns.findings.values() if name not in stated]
    for name in absent:
        draft.state_category(name, "absent")
    return absent


# ---- regions --------------------------------------------------------------------------------------------------------


def _add_regions(draft: ImageSetDraft, one: NamedRow, settings: Settings) -> None:
    columns, row = settings.columns, one.row
    texts = [
        (text, add)
        for text, add in (
            (_box_text(row, columns), _add_boxes),
            (row.text(columns.mask.column) if columns.mask else "", _add_mask),
            (row.text(columns.polygon.column) if columns.polygon else "", _add_polygons),
        )
        if text
    ]
    if not texts:
        return
    labels = _labels(row, columns) or _sole_finding(row, columns)
    certainty = _certainty(row, columns)
    if len(labels) != 1:
        draft.defects["unnamed"] += len(texts)
        return
    if certainty == "absent":
        draft.defects["conflict"] += len(texts)
        return
    annotator = (row.text(columns.annotator) if columns.annotator else "") or ANNOTATOR
    pen = _Pen(draft, labels[0], one.key, annotator, certainty)
    for text, add in texts:
        try:
            add(pen, text, row, settings)
        except RegionError:
            draft.state_category(labels[0], certainty)
            draft.defects["region"] += 1


def _sole_finding(row: Row, columns: ColumnMap) -> list[str]:
    """The finding that a region shows where the row has no label: the stated one, or the only one that is present."""
    if columns.finding is not None:
        return [columns.finding]
    return [
        name
        for column, name in columns.findings.items()
        if read_word(row.text(column), column) in ("present", "uncertain")
    ]


class _Pen(NamedTuple):
    """What is the same for all regions of a row."""

    draft: ImageSetDraft
    label: str
    key: str
    annotator: str
    certainty: Certainty

    @property
    def image(self) -> Image:
        return self.draft.image(self.key)


def _box_text(row: Row, columns: ColumnMap) -> str:
    """The cells of a box, joined; empty where all are."""
    if columns.box is None:
        return ""
    cells = [row.text(column) for column in columns.box.columns]
    return " ".join(cell or "nan" for cell in cells) if any(cells) else ""


def _add_boxes(pen: _Pen, text: str, row: Row, settings: Settings) -> None:
    box = settings.columns.box
    assert box is not None  # noqa: S101 - there is a text of it
    frame = _frame(box.frame, pen.image, row, settings.columns)
    for numbers in read_boxes(text):
        corners = frame.to_pixels(
            box_corners(numbers, box.form), width=pen.image.width, height=pen.image.height
        )
        pen.draft.draw_box(
            pen.label, pen.key, corners.tolist(), annotator=pen.annotator, certainty=pen.certainty
        )


def _add_polygons(pen: _Pen, text: str, row: Row, settings: Settings) -> None:
    polygon = settings.columns.polygon
    assert polygon is not None  # noqa: S101 - there is a text of it
    frame = _frame(polygon.frame, pen.image, row, settings.columns)
    rings = [
        frame.to_pixels(ring, width=pen.image.width, height=pen.image.height) for ring in read_polygons(text)
    ]
    pen.draft.draw_polygons(pen.label, pen.key, rings, annotator=pen.annotator, certainty=pen.certainty)


def _add_mask(pen: _Pen, text: str, row: Row, settings: Settings) -> None:
    mask, image = settings.columns.mask, pen.image
    assert mask is not None  # noqa: S101 - there is a text of it
    if mask.dialect == "path":
        region = read_mask_file(settings.masks, text)
    else:
        width, height = _frame(mask.frame, image, row, settings.columns).size or (image.width, image.height)
        region = read_runs(text, mask.dialect, width=width, height=height)
        if (width, height) != (image.width, image.height):
            region = region.resize(image.height, image.width)
    if mask.dialect != "path" and region.is_empty:
        return  # run lengths that state that there is nothing
    pen.draft.draw_region(
        pen.label, pen.key, lambda: region, annotator=pen.annotator, certainty=pen.certainty
    )


def _frame(name: str, image: Image, row: Row, columns: ColumnMap) -> Frame:
    if name != "size":
        return Frame.parse(name)
    assert columns.size is not None  # noqa: S101 - checked with the map
    width, height = (row.integer(column) for column in columns.size)
    if min(width, height) < 1:
        raise RecordError(columns.size[0], f"{width} x {height} is no size", kind="size")
    if abs(width * image.height / (height * image.width) - 1) > _PROPORTIONS:
        stated = f"{width} x {height}, the image is {image.width} x {image.height}"
        raise RecordError(columns.size[0], f"the stated size is {stated}: other proportions", kind="size")
    return Frame((width, height))
