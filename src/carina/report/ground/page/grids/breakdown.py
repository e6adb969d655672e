"""Tables by finding and by what the truth is like."""

from collections.abc import Iterator, Sequence
from typing import Final

from carina.ground.explain.scoring import MODEL
from carina.report.ground.analysis import GroundAnalysis
from carina.report.ground.figures import share
from carina.report.ground.measures import WHOLE_CELLS, Measure, pointing
from carina.report.ground.page.grids.common import run_head
from carina.report.ground.read import MapsRun
from carina.report.page.cells import Grid, Head, Row

_SIZES: Final = "share of the image that the truth covers"


def breakdowns(told: GroundAnalysis) -> Iterator[Grid]:
    """By finding, by size of the truth and by what else is known of it: where peaks lie, and how areas overlap.

    Overlap stands beside what whole cells of the grid reach.
    """
    chosen = [one for one in (pointing(told.probing.measures), told.probing.area) if one]
    for level, corner, note in (
        ("finding", "Finding", ""),
        ("size", "Truth", f"{_SIZES[:1].upper()}{_SIZES[1:]}. "),
        ("finding and size", "Finding and size", f"Sizes: {_SIZES}. "),
    ):
        names = labels(told, level)
        for measure in chosen:
            yield _by(told, measure, level, names, corner=corner, note=note)
    for division in told.divisions:
        said = f"{division.note[:1].upper()}{division.note[1:]}. " if division.note else ""
        for measure in chosen:
            yield _by(
                told, measure, division.title.lower(), division.labels, corner=division.title, note=said
            )


def labels(told: GroundAnalysis, level: str) -> list[str]:
    """Groups of a level, in the order of the summaries: findings by name, sizes from small to large.

    What is not there has no size.
    """
    order: dict[str, None] = {}
    for one in told.figures:
        if one.level == level and one.source == MODEL and not one.name.endswith("none"):
            order.setdefault(one.name)
    if level == "finding":
        return sorted(order)
    if level == "size":
        return sorted(order, key=_size)
    return list(order)


def _size(label: str) -> float:
    """Where a bin of sizes begins."""
    if label.startswith("<"):
        return 0.0
    digits = label.lstrip("> ").rstrip("%").partition("-")[0]
    # The last bin begins where the one before it ends.
    return (
        float(digits) + (1e-6 if label.startswith(">") else 0.0)
        if digits.replace(".", "").isdigit()
        else -1.0
    )


def _by(
    told: GroundAnalysis, measure: Measure, level: str, names: Sequence[str], *, corner: str, note: str
) -> Grid:
    areas = measure.metric == "iou"
    whole = _whole_cells(told, level, names) if areas else {}
    rows = []
    for name in names:
        cells = [
            share(
                told.figure(run, measure.variant, level=level, name=name),
                line=None if run.control else told.rival(run, measure.variant, level=level, name=name),
                cells=told.whole_cells(run, level=level, name=name) if areas else None,
            )
            for run in told.probing.runs
        ]
        cells += [share(told.figure(run, WHOLE_CELLS.variant, level=level, name=name)) for run in whole]
        rows.append(Row(head=Head(text=name), cells=tuple(cells)))
    beside = (
        "; the triangle, and the columns on the right, are what the best set of whole cells of the grid reaches: a "
        "smooth map can lie a little above it"
        if whole
        else ""
    )
    return Grid(
        title=f"{measure.title} by {level}",
        corner=corner,
        columns=(
            *(run_head(run) for run in told.probing.runs),
            *(Head(text=WHOLE_CELLS.title, note=words) for words in whole.values()),
        ),
        rows=tuple(rows),
        note=f"{note}Percent, with 95% interval over patients; the line on a bar is the best of the controls mean "
        f"region, lungs and centre{beside}. Of fewer than five patients there is no interval.",
    )


def _whole_cells(told: GroundAnalysis, level: str, names: Sequence[str]) -> dict[MapsRun, str]:
    """One run of each grid, and which runs share it: the same figures for the same groups."""
    seen: dict[tuple[float | None, ...], list[MapsRun]] = {}
    for run in told.probing.runs:
        values = tuple(told.whole_cells(run, level=level, name=name) for name in names)
        if any(value is not None for value in values):
            seen.setdefault(values, []).append(run)
    if len(seen) == 1:
        return {runs[0]: "of every run" for runs in seen.values()}
    return {runs[0]: ", ".join(run.title for run in runs) for runs in seen.values()}
