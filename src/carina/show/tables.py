"""The truth of a study as tables: headed columns of short cells, ready for a page."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from carina.show import words
from carina.show.marks import Marks
from carina.studies.model import Device, Finding, Study
from carina.studies.vocabulary import Certainty


@dataclass(frozen=True, kw_only=True)
class Row:
    """Cells below a table's headings; the first names the row."""

    cells: tuple[str, ...]
    keys: tuple[str, ...] = ()
    number: int | None = None
    certainty: Certainty | None = None
    colour: str | None = None
    ink: str | None = None
    """Colours of the number and of its digits, as CSS writes them."""
    sentences: tuple[int, ...] = ()
    """Numbers of the sentences that state it, from 1."""


@dataclass(frozen=True, kw_only=True)
class Table:
    title: str
    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    has_numbers: bool = False
    has_certainty: bool = False
    has_sentences: bool = True


def tables(study: Study, marks: Marks) -> tuple[Table, ...]:
    """Every table that has a row, most wanted first."""
    things: list[Finding | Device] = [*study.findings, *study.devices]
    names = {thing.id: thing.name for thing in things}
    made = (
        _findings(study, marks),
        _devices(study, marks),
        _relations(study, marks, names),
        _recommendations(study, marks, names),
        _quality(study),
    )
    return tuple(table for table in made if table.rows)


def _findings(study: Study, marks: Marks) -> Table:
    columns: Sequence[tuple[str, Callable[[Finding], str]]] = (
        ("Finding", lambda finding: finding.name),
        ("Location", lambda finding: words.location(finding.location)),
        ("Severity", lambda finding: finding.severity or ""),
        ("Distribution", lambda finding: finding.distribution or ""),
        ("Trend", lambda finding: finding.trend or ""),
        ("Appearance", lambda finding: ", ".join(finding.appearance)),
        ("Measures", lambda finding: words.measures(finding.measures)),
        ("Conspicuity", words.conspicuity),
    )
    order = {"present": 0, "uncertain": 1, "absent": 2}
    return Table(
        title="Findings",
        headings=tuple(heading for heading, _ in columns),
        rows=tuple(
            _thing_row(finding, marks, tuple(cell(finding) for _, cell in columns))
            for finding in sorted(study.findings, key=lambda finding: order[finding.certainty])
        ),
        has_numbers=True,
        has_certainty=True,
    )


def _devices(study: Study, marks: Marks) -> Table:
    columns: Sequence[tuple[str, Callable[[Device], str]]] = (
        ("Device", lambda device: device.name),
        ("Side", lambda device: device.side or ""),
        ("Position", lambda device: device.position or ""),
        ("Tip", lambda device: device.site or ""),
        ("Trend", lambda device: device.trend or ""),
        ("Measures", lambda device: words.measures(device.measures)),
    )
    return Table(
        title="Devices",
        headings=tuple(heading for heading, _ in columns),
        rows=tuple(
            _thing_row(device, marks, tuple(cell(device) for _, cell in columns)) for device in study.devices
        ),
        has_numbers=True,
        has_certainty=True,
    )


def _thing_row(thing: Finding | Device, marks: Marks, cells: tuple[str, ...]) -> Row:
    drawn = [mark for mark in marks.every if mark.key == marks.keys[thing.id]]
    return Row(
        cells=cells,
        keys=(marks.keys[thing.id],),
        number=marks.numbers.get(thing.id),
        certainty=thing.certainty,
        colour=drawn[0].colour.hex if drawn else None,
        ink=drawn[0].ink.hex if drawn else None,
        sentences=words.sentence_numbers(thing.evidence),
    )


def _relations(study: Study, marks: Marks, names: dict[str, str]) -> Table:
    return Table(
        title="Relations",
        headings=("Subject", "Relation", "Object"),
        rows=tuple(
            Row(
                cells=(_named(item.subject, names), item.kind, _named(item.object, names)),
                keys=_keys((item.subject, item.object), marks),
                sentences=words.sentence_numbers(item.evidence),
            )
            for item in study.relations
        ),
    )


def _recommendations(study: Study, marks: Marks, names: dict[str, str]) -> Table:
    return Table(
        title="Recommendations",
        headings=("Action", "Because of"),
        rows=tuple(
            Row(
                cells=(item.action, ", ".join(_named(about, names) for about in item.about)),
                keys=_keys(item.about, marks),
                sentences=words.sentence_numbers(item.evidence),
            )
            for item in study.recommendations
        ),
    )


def _quality(study: Study) -> Table:
    return Table(
        title="Images",
        headings=("View", "Size", "Pixel", "Rotation", "Inspiration", "Exposure", "Cut off"),
        rows=tuple(
            Row(
                cells=(
                    words.view(image),
                    f"{image.width} × {image.height}, {image.bits} bit",
                    "" if image.spacing_mm is None else f"{words.number(image.spacing_mm[0])} mm",
                    words.rotation(image.quality) if image.quality else "",
                    words.inspiration(image.quality) if image.quality else "",
                    (image.quality.exposure or "") if image.quality else "",
                    words.cut_off(image.quality) if image.quality else "",
                )
            )
            for image in study.images
        ),
        has_sentences=False,
    )


def _named(thing: str, names: dict[str, str]) -> str:
    # A relation may point at something the source never described; its id is then all there is to show.
    return names.get(thing, thing)


def _keys(things: Iterable[str], marks: Marks) -> tuple[str, ...]:
    return tuple(marks.keys[thing] for thing in things if thing in marks.keys)
