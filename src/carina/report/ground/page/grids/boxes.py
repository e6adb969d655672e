"""Maps beside boxes that were named in words."""

from carina.report.ground.analyse.boxes import METRICS
from carina.report.ground.analysis import GroundAnalysis
from carina.report.ground.figures import share
from carina.report.ground.measures import Measure, pointing
from carina.report.ground.page.grids.common import OVER_FINDINGS, run_head
from carina.report.page.cells import Cell, Grid, Head, Row, gap


def with_boxes(told: GroundAnalysis) -> Grid:
    """Maps and named boxes in one table: nothing where nobody named boxes."""
    area = told.probing.area
    dice = [one for one in told.probing.measures if one.metric == "dice"]
    chosen = [pointing(told.probing.measures), area if area and area.metric == "iou" else None]
    chosen.append(
        next((one for one in dice if area and _rule(one) == _rule(area)), dice[0] if dice else None)
    )
    rows = []
    for run in told.probing.runs if told.boxes else ():
        cells = [
            Cell() if one is None else share(told.figure(run, one.variant, average=told.average))
            for one in chosen
        ]
        rows.append(Row(head=run_head(run), cells=(*cells, Cell()), group="Maps"))
    known = {(one.run, one.metric): one for one in told.box_figures}
    for found in told.boxes:
        cells = [share(known.get((found.run.id, metric))) for metric in METRICS]
        note = f"history {found.run.history}"
        rows.append(
            Row(head=Head(text=found.title, note=note), cells=tuple(cells), group="Boxes named in words")
        )
    notes = ["" if one is None else f"{one.title.lower()}; or " for one in chosen]
    return Grid(
        title="Maps and boxes on the same probes",
        corner="Model",
        columns=(
            Head(text="Points right", note=f"{notes[0]}centre of a box in the truth"),
            Head(text="IoU", note=f"{notes[1]}all named boxes together"),
            Head(text="Dice", note=f"{notes[2]}all named boxes together"),
            Head(text="Box IoU", note="best named box for each of the truth's"),
        ),
        rows=tuple(rows),
        note="Percent, over the probes that each has of those whose maps are scored, with 95% interval over patients"
        + (f"; of maps the {OVER_FINDINGS}, without an interval" if told.average == "macro" else "")
        + ". "
        "Where several boxes are named, the share of their centres that lie in the truth. An answer without boxes "
        "finds nothing; one that failed on the way is left out. Boxes cannot follow an outline, and maps are cut at a "
        "threshold: read them beside what whole cells reach.",
    )


def _rule(measure: Measure) -> str:
    """All of a variant but its metric."""
    return measure.variant.partition(".")[2]


def maps_less_boxes(told: GroundAnalysis) -> Grid:
    titles = {run.id: run.title for run in told.probing.runs} | {one.run.id: one.title for one in told.boxes}
    metrics = list(dict.fromkeys(item.metric for item in told.box_contrasts))
    found = {(item.one, item.other, item.metric): item for item in told.box_contrasts}
    pairs = dict.fromkeys((item.one, item.other) for item in told.box_contrasts)
    named = {one.variant: one.title for one in told.probing.measures}
    return Grid(
        title="Maps less boxes",
        corner="Pair",
        columns=tuple(Head(text=named[metric]) for metric in metrics),
        rows=tuple(
            Row(
                head=Head(text=f"{titles[one]} less {titles[other]}"),
                cells=tuple(gap(found.get((one, other, metric))) for metric in metrics),
            )
            for one, other in pairs
        ),
        note="Percentage points, paired on the probes that both have, with 95% interval over patients; p after Holm's "
        "correction over all pairs of a column.",
    )
