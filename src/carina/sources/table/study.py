"""One study from its rows in a table of one's own."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import msgspec

from carina.reports.sections import split_sections, split_sentences
from carina.sources._defects import DefectCounts
from carina.sources._frames import Frame, box_corners
from carina.sources._image_sets import ImageSetDraft, assess
from carina.sources._labels import name_of
from carina.sources._record import RecordError, describe
from carina.sources._series import Place
from carina.sources._source import Item, Skipped
from carina.sources._study_draft import Drawing
from carina.sources._tables import Row
from carina.sources._values import read_age, read_sex, read_split, read_view
from carina.sources._votes import Vote, state_votes
from carina.sources.table.cells import (
    MissingMaskError,
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
from carina.studies.terms import is_no_finding
from carina.studies.vocabulary import SECTIONS, Certainty, Section

T = TypeVar("T")
ANNOTATOR: Final = "table"
"""Who drew a region where the table does not say."""
_NO_RUNS: Final = "-1"
"""How SIIM writes a mask without pixels."""
_PROPORTIONS: Final = 0.02
"""Share by which width / height may differ between an image and the stated size."""


class NamedRow(NamedTuple):
    """A row, and the path of its image."""

    row: Row
    key: str


class Settings(NamedTuple):
    """What is the same for all studies."""

    images: Path
    masks: tuple[Path, ...]
    """Folders in which masks are looked for, the first that has a file counts."""
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
        self.defects: DefectCounts | None = None
        """Of the study, as soon as there is a draft of it."""

    def make(self, place: Place, listed: Assessed | None) -> Item:
        patient = self._agreed(self.columns.patient, str)
        if len(patient) > 1:
            self._read(patient[1].row)
            names = " and ".join(describe(each.value) for each in patient[:2])
            raise RecordError(
                self.columns.patient or "", f"the rows of the study name {names}", kind="patient"
            )
        draft = ImageSetDraft(
            self.study,
            patient=patient[0].value if patient else None,
            source="table",
            number=self.rows[0].row.number,
            file=self.rows[0].row.file,
            categories=self.columns.names,
        )
        self.defects = draft.defects
        self._add_images(draft)
        # What was looked for and is not stated would be absent.
        is_listed = listed is not None and listed.findings != "unknown"
        stated = _State(draft, self.columns, "uncertain" if is_listed else None)
        readers = self._state_votes(stated)
        for one in self._each_row(is_truth=True):
            _add_regions(draft, one, self.settings)
        if not readers:
            for one in self._each_row(is_truth=True):
                stated.add_row(one.row)
        has_truth = any(not is_comparison(one.row, self.columns) for one in self.rows)
        if self.columns.blank == "absent" and has_truth:
            stated.add_absent()
        self._add_comparisons(stated)
        draft.facts |= {
            "order": place.order,
            "prior": place.prior,
            "later": place.later,
            **self._facts(draft),
        }
        if not has_truth:
            return draft.finish()  # nobody whose word is the truth has looked
        assessed = listed or assess("listed" if stated.names else "unknown", stated.names, self.columns.names)
        return draft.finish(assessed=msgspec.structs.replace(assessed, readers=readers))

    def _state_votes(self, stated: "_State") -> tuple[str, ...]:
        """State what several readers say, and give their names; a single reader does not vote."""
        columns = self.columns
        if columns.annotator is None:
            return ()
        readers: dict[str, dict[str, None]] = {one.key: {} for one in self.rows}
        for one in self._each_row(is_truth=True):
            if one.row.text(columns.annotator) or _has_statement(one.row, columns):
                readers[one.key][_reader(one.row, columns)] = None
        names = sorted({reader for own in readers.values() for reader in own})
        if len(names) < 2:
            return ()
        drawn: list[Vote] = []
        others: list[Vote] = []
        for one in self._each_row(is_truth=True):
            own = [
                Vote(one.key, _reader(one.row, columns), label, certainty, place=stated.draft.defects.place)
                for label, certainty in stated.read_row(one.row, with_drawn=True)
                if not (stated.draft.is_anatomy(label) or stated.draft.is_left_out(label))
            ]
            (drawn if _has_region(one.row, columns) else others).extend(own)
        # What a reader has drawn counts more than what the reader states without a region.
        state_votes(stated.draft, [*drawn, *others], readers)
        return tuple(names)

    def _add_comparisons(self, stated: "_State") -> None:
        """Add what readers drew for comparison with the truth, and what they looked for and did not draw."""
        draft, columns = stated.draft, self.columns
        compared = _State(draft, columns, "uncertain")
        named: defaultdict[_Look, set[str]] = defaultdict(set)
        denied: defaultdict[_Look, set[str]] = defaultdict(set)
        for one in self._each_row(is_truth=False):
            look = _Look(one.key, _reader(one.row, columns))
            for label, certainty in compared.read_row(one.row, with_drawn=True):
                name, comes_to = draft.read_statement(label, certainty)
                if comes_to == "absent":
                    denied[look].update(draft.list_present() if is_no_finding(label) else [name])
                elif name and comes_to is not None:
                    named[look].add(name)
            if columns.blank == "absent":
                denied[look].update(map(name_of, columns.findings.values()))
            _add_comparison(draft, one, self.settings)
        for look, names in denied.items():
            # Who names a finding in one row, and denies it in another, has not missed it.
            for name in sorted(names - named[look] - {""}):
                draft.compare_region(Drawing(name, look.image, "box", look.reader), None)

    def _each_row(self, *, is_truth: bool | None = None) -> Iterator[NamedRow]:
        """The rows, or those that are part of the truth, or those of readers who are compared with it."""
        for one in self.rows:
            if is_truth is not None and is_truth == is_comparison(one.row, self.columns):
                continue
            self._read(one.row)
            yield one

    def _read(self, row: Row) -> None:
        """Say that what is wrong from now on is wrong in this row."""
        self.place = row.place
        if self.defects is not None:
            self.defects.read_row(row)

    def _agreed(self, column: str | None, read: Callable[[str], T]) -> "list[_Cell[T]]":
        """The values of a column in the rows of the study, each once; empty cells say nothing."""
        if column is None:
            return []
        found: dict[T, Row] = {}
        for one in self._each_row():
            text = one.row.text(column)
            if text:
                found.setdefault(read(text), one.row)
        return [_Cell(value, row) for value, row in found.items()]

    def _add_images(self, draft: ImageSetDraft) -> None:
        views: dict[str, _Cell[str]] = {}
        for one in self._each_row():
            text = one.row.text(self.columns.view) if self.columns.view is not None else ""
            if one.key not in views or (text and not views[one.key].value):
                views[one.key] = _Cell(text, one.row)
        for key, (text, row) in views.items():
            self._read(row)
            view = read_view(text)
            draft.defects["view"] += bool(text) and view == "unknown"
            draft.add_image(self.settings.images, key, view)

    def _facts(self, draft: ImageSetDraft) -> dict[str, Any]:
        columns = self.columns
        values: dict[str, Sequence[_Cell[Any]]] = {
            "date": self._agreed(columns.date, lambda text: _read_day(text, columns.date_format)),
            "age": self._agreed(columns.age, read_age),
            "sex": self._agreed(columns.sex, read_sex),
            "split": self._agreed(columns.split, read_split),
        }
        facts: dict[str, Any] = {}
        for name, found in values.items():
            known = [cell for cell in found if cell.value is not None]
            facts[name] = known[0].value if known else None
            self._count(draft, name, [cell for cell in found if cell.value is None])
            self._count(draft, "conflict", known[1:])
        facts["report"] = self._report(draft)
        return facts

    def _count(self, draft: ImageSetDraft, defect: str, cells: "Iterable[_Cell[Any]]") -> None:
        for cell in cells:
            self._read(cell.row)
            draft.defects[defect] += 1

    def _report(self, draft: ImageSetDraft) -> Report | None:
        """Sections from their own columns; from a whole report those that have none."""
        sections: dict[str, str] = {}
        for section in (*SECTIONS, TEXT):
            texts = self._agreed(self.columns.report.get(section), str)
            self._count(draft, "conflict", texts[1:])
            if texts and section == TEXT:
                sections = {
                    part.name: part.text for part in split_sections(texts[0].value).sections
                } | sections
            elif texts:
                sections[section] = texts[0].value
        if not sections:
            return None
        parts = (ReportSection(name=cast(Section, name), text=text) for name, text in sections.items())
        return split_sentences(Report(sections=tuple(parts)))


class _Cell(NamedTuple, Generic[T]):
    """A value, and the row that states it."""

    value: T
    row: Row


class _Look(NamedTuple):
    """A reader who looked at an image."""

    image: str
    reader: str


def _read_day(text: str, date_format: str | None) -> date | None:
    moment = read_date(text, date_format)
    return None if moment is None else moment.date()


# ---- labels ---------------------------------------------------------------------------------------------------------


def _labels(row: Row, columns: ColumnMap) -> list[str]:
    return split_labels(row.text(columns.label), columns.separator) if columns.label is not None else []


def _certainty(row: Row, columns: ColumnMap) -> Certainty | None:
    """Whether what the row names is there: present where no column says otherwise; None where its cell is empty."""
    return (
        "present" if columns.certainty is None else read_word(row.text(columns.certainty), columns.certainty)
    )


def _reader(row: Row, columns: ColumnMap) -> str:
    return (row.text(columns.annotator) if columns.annotator else "") or ANNOTATOR


def is_comparison(row: Row, columns: ColumnMap) -> bool:
    """Whether a row is by a reader who is compared with the truth, and no part of it."""
    if columns.annotator is None or not columns.comparisons:
        return False
    return row.values.get(columns.annotator, "").strip() in columns.comparisons


def _has_statement(row: Row, columns: ColumnMap) -> bool:
    cells = (row.text(column) for column in columns.findings)
    return bool(_labels(row, columns)) or _has_region(row, columns) or any(cells)


class _State:
    """States what rows say without a region.

    Args:
        draft: The study.
        columns: What the columns mean.
        unstated: What labels are whose cell of certainty is empty; None where they are not stated.
    """

    def __init__(self, draft: ImageSetDraft, columns: ColumnMap, unstated: Certainty | None) -> None:
        self.draft, self._columns, self._unstated = draft, columns, unstated
        self.names: set[str] = set()
        """Findings with columns of their own that were assessed."""

    def add_row(self, row: Row) -> None:
        for label, certainty in self.read_row(row):
            self.draft.state_category(label, certainty)

    def add_absent(self) -> None:
        """State that findings are absent whose cells are empty in all rows of the study."""
        for name in self._columns.findings.values():
            if name not in self.names:
                self.draft.state_category(name, "absent")
                self.names.add(name)

    def read_row(self, row: Row, *, with_drawn: bool = False) -> Iterator[tuple[str, Certainty]]:
        """The statements of a row; also of what it shows only by a region, where that is asked for."""
        columns, has_region = self._columns, _has_region(row, self._columns)
        labels = _labels(row, columns)
        certainty = _certainty(row, columns)
        for label in labels:
            if certainty is not None or is_no_finding(label):
                yield label, certainty or "present"
                continue
            self.draft.defects["certainty"] += 1
            if has_region or self._unstated is not None:
                yield label, "uncertain"
        if with_drawn and has_region and not labels:
            yield from ((label, certainty or "uncertain") for label in _sole_finding(row, columns))
        for column, name in columns.findings.items():
            stated = read_word(row.text(column), column)
            if stated is not None:
                self.names.add(name)
                yield name, stated


# ---- regions --------------------------------------------------------------------------------------------------------


def _region_texts(row: Row, columns: ColumnMap) -> "list[tuple[str, _AddRegions]]":
    """The cells of a row that hold regions, each with the function that adds them."""
    cells = (
        (join_box_cells(row, columns), _add_boxes),
        (row.text(columns.mask.column) if columns.mask else "", _add_mask),
        (row.text(columns.polygon.column) if columns.polygon else "", _add_polygons),
    )
    return [(text, add) for text, add in cells if text]


def _has_region(row: Row, columns: ColumnMap) -> bool:
    return any(text.strip() != _NO_RUNS for text, _ in _region_texts(row, columns))


def _add_regions(draft: ImageSetDraft, one: NamedRow, settings: Settings) -> None:
    columns, row = settings.columns, one.row
    texts = _region_texts(row, columns)
    if not texts:
        return
    named = _labels(row, columns)
    labels = [label for label in named if not is_no_finding(label)] or named or _sole_finding(row, columns)
    # A region whose certainty is left open was drawn, so that something may be there.
    certainty = _certainty(row, columns) or "uncertain"
    if len(labels) != 1:
        draft.defects["unnamed"] += len(texts)
        return
    if certainty == "absent":
        draft.defects["conflict"] += len(texts)
        return
    _draw(_Pen(draft, labels[0], one.key, _reader(row, columns), certainty), texts, row, settings)


def _add_comparison(draft: ImageSetDraft, one: NamedRow, settings: Settings) -> None:
    """Add what a reader drew for comparison with the truth."""
    columns, row = settings.columns, one.row
    texts = _region_texts(row, columns)
    certainty = _certainty(row, columns) or "uncertain"
    named = [label for label in _labels(row, columns) if not is_no_finding(label)]
    labels = named or _sole_finding(row, columns)
    if certainty == "absent":
        return
    if len(labels) != 1:
        draft.defects["unnamed"] += len(texts)
        return
    pen = _Pen(draft, labels[0], one.key, _reader(row, columns), certainty, is_comparison=True)
    _draw(pen, texts, row, settings)


def _draw(pen: "_Pen", texts: "Iterable[tuple[str, _AddRegions]]", row: Row, settings: Settings) -> None:
    """Add the regions of a row; where one cannot be read, what it shows is stated all the same."""
    for text, add in texts:
        try:
            add(pen, text, row, settings)
        except RegionError as error:
            if not pen.is_comparison:
                pen.draft.state_category(pen.label, pen.certainty)
            pen.draft.defects["mask missing" if isinstance(error, MissingMaskError) else "region"] += 1


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
    is_comparison: bool = False

    @property
    def image(self) -> Image:
        return self.draft.image(self.key)


_AddRegions = Callable[[_Pen, str, Row, Settings], None]


def join_box_cells(row: Row, columns: ColumnMap) -> str:
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
            pen.label,
            pen.key,
            corners.tolist(),
            annotator=pen.annotator,
            certainty=pen.certainty,
            is_comparison=pen.is_comparison,
        )


def _add_polygons(pen: _Pen, text: str, row: Row, settings: Settings) -> None:
    polygon = settings.columns.polygon
    assert polygon is not None  # noqa: S101 - there is a text of it
    frame = _frame(polygon.frame, pen.image, row, settings.columns)
    rings = [
        frame.to_pixels(ring, width=pen.image.width, height=pen.image.height) for ring in read_polygons(text)
    ]
    pen.draft.draw_polygons(
        pen.label,
        pen.key,
        rings,
        annotator=pen.annotator,
        certainty=pen.certainty,
        is_comparison=pen.is_comparison,
    )


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
        pen.label,
        pen.key,
        lambda: region,
        annotator=pen.annotator,
        certainty=pen.certainty,
        is_comparison=pen.is_comparison,
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
