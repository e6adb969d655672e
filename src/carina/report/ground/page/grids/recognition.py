"""Recognition: by finding, against grounding, and by bands of its score; and what thresholds decide."""

from carina.ground.explain.scoring import MODEL
from carina.report.ground.analyse.calibration import Calibration
from carina.report.ground.analyse.correlation import Relation
from carina.report.ground.analyse.recognition import LEAST
from carina.report.ground.analyse.sensitivity import Sensitivity
from carina.report.ground.analysis import GroundAnalysis
from carina.report.ground.figures import share
from carina.report.ground.page.grids.common import run_head
from carina.report.page.cells import Cell, Grid, Head, Row, percent, points, spread


def recognised(told: GroundAnalysis) -> Grid:
    """Recognition by finding; runs of one model and several methods tell the same, and are told once."""
    shown = {run.model: run for run in reversed(told.probing.runs) if run.recognised.height}
    runs = [run for run in told.probing.runs if run in shown.values()]
    metrics = ("recognition AUROC", "accuracy", "F1", "sensitivity", "specificity")
    names = sorted({one.name for one in told.recognition if one.name})
    rows = [
        Row(
            head=Head(text=metric),
            cells=tuple(
                share(told.figure(run, metric, level="recognition", name=name, average="")) for run in runs
            ),
            group=name,
        )
        for name in names
        for metric in metrics
    ]
    return Grid(
        title="Recognition by finding",
        corner="Finding and figure",
        columns=tuple(Head(text=run.model, mark=run.id) for run in runs),
        rows=tuple(row for row in rows if any(cell.text for cell in row.cells)),
        note="Percent. From the scores of the same passes as the maps. Accuracy, F1, sensitivity and specificity "
        "need a threshold: the one with the best F1 on the tuning split. Without such a split they are left out. "
        f"Findings with fewer than {LEAST} images on either side do not enter the mean over findings or the "
        "correlations.",
    )


def relations(told: GroundAnalysis) -> Grid:
    """Correlations of recognition and grounding."""
    measures = list(dict.fromkeys(one.measure for one in told.relations))
    found = {(one.run, one.measure): one for one in told.relations}
    rows = [
        Row(
            head=Head(text="Over models" if run is None else run.title, mark="" if run is None else run.id),
            cells=tuple(_correlation(found.get((run, one))) for one in measures),
            group="" if run is None else "Over findings",
        )
        for run in (None, *told.probing.runs)
    ]
    return Grid(
        title="Correlation of recognition with grounding",
        corner="Spearman's correlation",
        columns=tuple(Head(text=one.title, note="with recognition AUROC") for one in measures),
        rows=tuple(row for row in rows if any(cell.text for cell in row.cells)),
        note="Over models: means over findings; methods of one model are drawn together. The intervals are of draws of "
        "models or findings, and with fewer than five of them there is none; of fewer than three nothing is told. "
        f"Findings with fewer than {LEAST} images on either side are left out.{left_out(told)}",
    )


def left_out(told: GroundAnalysis) -> str:
    """Which runs the correlation over models does without, and why; nothing where it has them all."""
    over = next((one for one in told.relations if one.run is None and one.left), None)
    if over is None:
        return ""
    named = ", ".join(f"{run.title} ({run.own.height:,} scored)" for run in over.left)
    held = next(run for run in told.probing.runs if run.id == over.places[0].grounding.run)
    return (
        f" Over models are only the runs on the same probes, of which {held.own.height:,} are scored; left out, for "
        f"they rest on other probes: {named}."
    )


def _correlation(one: Relation | None) -> Cell:
    if one is None or one.correlation.value is None:
        return Cell()
    found = one.correlation
    bounds = "" if found.low is None or found.high is None else f"{found.low:.2f} to {found.high:.2f}"
    return Cell(text=f"{found.value:.2f}", sub=bounds, n=f"n {found.n}")


def thresholds(told: GroundAnalysis) -> Grid:
    """What was tuned stands before the best on the scored maps; without tuning there are no such columns."""
    own = [one for one in told.sensitivities if one.source == MODEL]
    tuned = any(one.tuned is not None for one in own)
    rows = []
    for one in own:
        best = (
            Cell(text=f"{one.best[0]:.2f}"),
            Cell(text=percent(one.best[1])),
            Cell(text=percent(one.near)),
        )
        cells = (*_tuned(one), *best) if tuned else best
        rows.append(Row(head=run_head(one.run), cells=cells))
    return Grid(
        title="Thresholds",
        corner="Model and method",
        columns=(
            *(
                (
                    Head(text="Tuned threshold", note="all findings together"),
                    Head(text="IoU there", note="percent"),
                    Head(text="Gap", note="points lost by tuning elsewhere"),
                )
                if tuned
                else ()
            ),
            Head(text="Best threshold", note="on the scored maps: an oracle"),
            Head(text="IoU there", note="percent"),
            Head(text="As good", note="percent of thresholds within 90% of the best"),
        ),
        rows=tuple(rows),
        note="From the curve of all findings together"
        + (
            "; tuned figures elsewhere on this page use a threshold for each finding that the tuning split has."
            if tuned
            else "."
        ),
    )


def _tuned(one: Sensitivity) -> tuple[Cell, Cell, Cell]:
    if one.tuned is None:
        return Cell(), Cell(), Cell()
    threshold, reached = one.tuned
    return (
        Cell(text=f"{threshold:.2f}"),
        Cell(text=percent(reached)),
        Cell(text=points(reached - one.best[1])),
    )


def each_model(told: GroundAnalysis) -> list[Calibration]:
    """Runs of one model by several methods have the same scores: each model once."""
    first = {one.run.model: one for one in reversed(told.calibrations)}
    return [one for one in told.calibrations if first[one.run.model] is one]


def calibrated(told: GroundAnalysis) -> Grid:
    rows = [
        Row(
            head=Head(text=f"{band.low:.4g} to {band.high:.4g}"),
            cells=(
                Cell(text=f"{band.mean:.4g}"),
                Cell(
                    text=percent(band.frequency.value or 0.0),
                    sub=spread(band.frequency.low, band.frequency.high),
                    n=f"n {band.frequency.n}",
                ),
            ),
            group=f"{one.run.model}: "
            + ("probabilities" if one.probability else "scores, not probabilities"),
        )
        for one in each_model(told)
        for band in one.bands
    ]
    return Grid(
        title="Presence by score",
        corner="Band",
        columns=(Head(text="Mean"), Head(text="Finding is there", note="percent of images")),
        rows=tuple(rows),
        note="",
    )
