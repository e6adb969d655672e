"""A study as a single PNG image: views with and without outlines, the prior study, the report and the findings."""

from carina.cases.draw import (
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
from carina.pages import words
from carina.pages.figures import shrink
from carina.pages.marks import Marks, count_names, draw_outlines
from carina.pages.study import StudyContent, StudyImage
from carina.studies.assessment import is_complete
from carina.studies.model import Device, Finding, Study

_CELL = Size(width=480, height=480)
_COLUMNS = 3
_WIDTH = _COLUMNS * (_CELL.width + GAP) + GAP
_TEXT = 16

Line = tuple[str, Colour]


def draw_study_summary(content: StudyContent) -> Rgb:
    """The summary image; all studies have the same width."""
    study, marks = content.study, content.marks
    panels = _panels(content)
    names = [*count_names(marks.every, "finding"), *count_names(marks.every, "device")]
    half = (_WIDTH - 3 * GAP) // 2
    return stack(
        [
            _draw_heading(study),
            montage(panels, columns=_COLUMNS, cell=_CELL, text_size=_TEXT - 1),
            legend([LegendEntry(text=name, colour=colour_of(name)) for name in names], width=_WIDTH),
            _draw_columns(_report_lines(study, half), _truth_lines(study, marks, half)),
        ]
    )


def _panels(content: StudyContent) -> list[Panel]:
    """For each view three panels: without outlines, with outlines, and the prior study where it has such a view."""
    priors = {prior.is_lateral: prior for prior in content.prior_images}
    panels: list[Panel] = []
    for view in content.images:
        title = view.figure.title
        panels.append(Panel(image=shrink(content.pixels[view.figure.id]), caption=f"{title}, raw"))
        panels.append(Panel(image=_draw_outlined(content, view), caption=f"{title}, marked"))
        prior = priors.pop(view.is_lateral, None)
        if prior:
            caption = f"{prior.figure.title} ({content.study.prior}), marked"
            panels.append(Panel(image=_draw_outlined(content, prior), caption=caption))
        else:
            panels.append(Panel(image=blank(Size(width=1, height=1), PANEL)))
    return panels


def _draw_outlined(content: StudyContent, view: StudyImage) -> Rgb:
    return draw_outlines(content.pixels[view.figure.id], view.figure.outlines, _CELL)


def _draw_heading(study: Study) -> Rgb:
    band = blank(Size(width=_WIDTH, height=64), PANEL)
    put_text(band, study.id, x=GAP, y=8, size=24, colour=WHITE)
    date = study.date.isoformat() if study.date else ""
    number = "" if study.order is None else f"study {study.order + 1}"
    line = words.join_parts([words.describe_patient(study), number, date, study.source])
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
        lines.extend((line, WHITE) for line in wrap(number + _describe_thing(thing), width=width, size=_TEXT))
    absent = [_describe_absent(thing) for thing in things if thing.certainty == "absent"]
    if absent:
        lines.extend((line, MUTED) for line in wrap(f"Absent: {', '.join(absent)}", width=width, size=_TEXT))
    if len(lines) == 1:
        known = is_complete(study, "finding") and is_complete(study, "device")
        lines.append(("none" if known else "nothing is recorded", MUTED))
    said = words.describe_assessed(study.assessed)
    return [*lines, *((line, MUTED) for line in wrap(said, width=width, size=_TEXT))]


def _describe_absent(thing: Finding | Device) -> str:
    """The name, and the place where it is denied, where that is not everywhere."""
    place = words.describe_location(thing.location) if isinstance(thing, Finding) else thing.side
    return f"{thing.name} ({place})" if place else thing.name


def _describe_thing(thing: Finding | Device) -> str:
    sure = "" if thing.certainty == "present" else thing.certainty
    if isinstance(thing, Finding):
        details = [
            sure,
            words.describe_location(thing.location),
            thing.severity or "",
            thing.distribution or "",
        ]
    else:
        details = [sure, thing.side or "", thing.position or "", thing.site or ""]
    return words.join_parts([thing.name, *details, thing.trend or "", words.format_measures(thing.measures)])


def _draw_columns(left: list[Line], right: list[Line]) -> Rgb:
    pitch = line_height(_TEXT) + 2
    band = blank(Size(width=_WIDTH, height=max(len(left), len(right)) * pitch + 2 * GAP), PANEL)
    for column, lines in enumerate((left, right)):
        for place, (text, colour) in enumerate(lines):
            x = GAP + column * (_WIDTH // 2)
            put_text(band, text, x=x, y=GAP + place * pitch, size=_TEXT, colour=colour)
    return band
