"""One study as a single picture: views raw and marked, the prior, a legend, the report and the findings."""

from collections.abc import Sequence

from carina.draw import (
    GAP,
    MUTED,
    PANEL,
    WHITE,
    Colour,
    LegendEntry,
    Panel,
    Rgb,
    Size,
    blank,
    colour_of,
    legend,
    line_height,
    montage,
    put_text,
    stack,
    wrap,
)
from carina.show import words
from carina.show.marks import Marks, layers
from carina.show.panes import Pane
from carina.show.pictures import marked, shrunk
from carina.studies.model import Device, Finding, Study

_CELL = Size(width=480, height=480)
_COLUMNS = 3
_WIDTH = _COLUMNS * (_CELL.width + GAP) + GAP
_TEXT = 16

Line = tuple[str, Colour]


def study_sheet(study: Study, marks: Marks, panes: Sequence[Pane], prior: Sequence[Pane]) -> Rgb:
    """The picture, of one width for all studies so that they can be leafed through."""
    panels: list[Panel] = []
    before = {pane.image.view == "lateral": pane for pane in prior}
    for pane in panes:
        panels.append(Panel(image=shrunk(pane.pixels), caption=f"{pane.title}, raw"))
        panels.append(Panel(image=marked(pane.pixels, pane.shapes, _CELL), caption=f"{pane.title}, marked"))
        earlier = before.pop(pane.image.view == "lateral", None)
        empty = blank(Size(width=1, height=1), PANEL)
        panels.append(
            Panel(
                image=marked(earlier.pixels, earlier.shapes, _CELL) if earlier else empty,
                caption=f"{earlier.title} ({study.prior}), marked" if earlier else "",
            )
        )
    names = [*layers(marks.every, "finding"), *layers(marks.every, "device")]
    half = (_WIDTH - 3 * GAP) // 2
    return stack(
        [
            _heading(study),
            montage(panels, columns=_COLUMNS, cell=_CELL, text_size=_TEXT - 1),
            legend([LegendEntry(text=name, colour=colour_of(name)) for name in names], width=_WIDTH),
            _columns(_report_lines(study, half), _truth_lines(study, marks, half)),
        ]
    )


def _heading(study: Study) -> Rgb:
    band = blank(Size(width=_WIDTH, height=64), PANEL)
    put_text(band, study.id, x=GAP, y=8, size=24, colour=WHITE)
    date = study.date.isoformat() if study.date else ""
    line = words.joined([words.patient(study), f"study {study.order + 1}", date, study.source])
    put_text(band, line, x=GAP, y=40, size=_TEXT - 1, colour=MUTED)
    return band


def _report_lines(study: Study, width: int) -> list[Line]:
    if study.report is None:
        return [("no report", MUTED)]
    lines: list[Line] = []
    for section in study.report.sections:
        lines.append((section.name.upper(), MUTED))
        lines.extend((line, WHITE) for line in wrap(section.text, width=width, size=_TEXT))
        lines.append(("", WHITE))
    return lines


def _truth_lines(study: Study, marks: Marks, width: int) -> list[Line]:
    lines: list[Line] = [("FINDINGS AND DEVICES", MUTED)]
    things: list[Finding | Device] = [*study.findings, *study.devices]
    for thing in things:
        if thing.certainty == "absent":
            continue
        number = f"{marks.numbers[thing.id]}. " if thing.id in marks.numbers else ""
        lines.extend((line, WHITE) for line in wrap(number + _summary(thing), width=width, size=_TEXT))
    absent = [thing.name for thing in things if thing.certainty == "absent"]
    if absent:
        lines.extend((line, MUTED) for line in wrap(f"Absent: {', '.join(absent)}", width=width, size=_TEXT))
    return lines if len(lines) > 1 else [*lines, ("none", MUTED)]


def _summary(thing: Finding | Device) -> str:
    sure = "" if thing.certainty == "present" else thing.certainty
    if isinstance(thing, Finding):
        details = [sure, words.location(thing.location), thing.severity or "", thing.distribution or ""]
    else:
        details = [sure, thing.side or "", thing.position or "", thing.site or ""]
    return words.joined([thing.name, *details, thing.trend or "", words.measures(thing.measures)])


def _columns(left: list[Line], right: list[Line]) -> Rgb:
    pitch = line_height(_TEXT) + 2
    band = blank(Size(width=_WIDTH, height=max(len(left), len(right)) * pitch + 2 * GAP), PANEL)
    for column, lines in enumerate((left, right)):
        for place, (text, colour) in enumerate(lines):
            x = GAP + column * (_WIDTH // 2)
            put_text(band, text, x=x, y=GAP + place * pitch, size=_TEXT, colour=colour)
    return band
