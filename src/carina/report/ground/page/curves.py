"""Charts of how figures hang together: recognition and grounding, thresholds and overlap, scores and presence."""

from collections.abc import Mapping
from typing import Final

from carina.ground.explain.scoring import MODEL
from carina.report.draw import Drawing, Series
from carina.report.ground.analyse.calibration import Calibration
from carina.report.ground.analyse.compare import RIVALS
from carina.report.ground.analyse.correlation import Relation
from carina.report.ground.analyse.sensitivity import Sensitivity, points
from carina.report.ground.analysis import GroundAnalysis
from carina.report.ground.draw.curves import CurvePanel, Trace, curve_chart
from carina.report.ground.draw.scatter import Dot, Scatter, scatter_chart
from carina.report.ground.figures import Figure
from carina.report.ground.measures import pointing
from carina.report.ground.page.grids import each_model, left_out
from carina.report.ground.page.styles import control_styles

_MOST: Final = 6
"""Panels of a chart."""


def relation_chart(told: GroundAnalysis, series: Mapping[str, Series], name: str) -> Drawing | None:
    """Models first, then findings of each run, by where peaks lie."""
    measure = pointing(told.probing.measures)
    shown = [one for one in told.relations if one.measure == measure and len(one.places) > 1]
    panels = [_scatter(one, series) for one in sorted(shown, key=lambda one: one.run is not None)][:_MOST]
    if not panels or measure is None:
        return None
    left = left_out(told) if any(one.run is None for one in shown) else ""
    return scatter_chart(
        name,
        panels,
        across="recognition AUROC",
        up=measure.title.lower(),
        title="Recognition against grounding, over models and over findings",
        note="A mark is a model (means over findings) or a finding; thin lines are 95% intervals over patients, of "
        "five or more. The correlation is Spearman's, its interval of draws of models or findings; with fewer than "
        f"five there is none.{left} Marks too close to others have no name; all figures are in the tables.",
    )


def _scatter(one: Relation, series: Mapping[str, Series]) -> Scatter:
    dots = [
        Dot(
            place.name,
            place.recognition.value or 0.0,
            place.grounding.value or 0.0,
            series[(place.grounding if one.run is None else one.places[0].grounding).run],
            _bounds(place.recognition),
            _bounds(place.grounding),
        )
        for place in one.places
    ]
    title = "Models" if one.run is None else one.run.title
    return Scatter(title, correlation_words(one), dots, keyed=one.run is None)


def _bounds(figure: Figure) -> tuple[float, float] | None:
    return None if figure.low is None or figure.high is None else (figure.low, figure.high)


def correlation_words(relation: Relation) -> str:
    """A correlation with interval and n, or that there is none."""
    found = relation.correlation
    of = f"{found.n} findings" if relation.run is not None else f"{found.n} runs of {found.clusters} models"
    if found.value is None:
        return f"no correlation, n = {of}"
    bounds = "" if found.low is None or found.high is None else f" ({found.low:.2f} to {found.high:.2f})"
    return f"Spearman {found.value:.2f}{bounds}, n = {of}"


def threshold_chart(told: GroundAnalysis, series: Mapping[str, Series], name: str) -> Drawing | None:
    """All runs in one panel where there are several, then each run beside its controls."""
    own = [one for one in told.sensitivities if one.source == MODEL]
    if not own:
        return None
    panels = []
    if len(own) > 1:
        panels.append(_thresholds("All runs", "", [(one, series[one.run.id]) for one in own]))
    for one in own:
        beside = [other for other in told.sensitivities if other.run is one.run and other.source in RIVALS]
        styles = control_styles([other.source for other in beside])
        if beside:
            lines = [(one, series[one.run.id]), *((other, styles[other.source]) for other in beside)]
            panels.append(_thresholds(one.run.title, _found(one), lines))
    return curve_chart(
        name,
        panels[:_MOST],
        title="Mean overlap by threshold",
        note="Mean IoU of all maps at every threshold, on maps scaled from 0 at the lowest to 1 at the highest pixel. "
        + (
            "The triangle is the threshold that was tuned on another split, all findings together. "
            if any(one.tuned is not None for one in own)
            else ""
        )
        + "A flat curve: the choice matters little.",
    )


def _found(one: Sensitivity) -> str:
    best = f"best {100 * one.best[1]:.1f}% at {one.best[0]:.2f}"
    return best if one.tuned is None else f"tuned {one.tuned[0]:.2f}: {100 * one.tuned[1]:.1f}%; {best}"


def _thresholds(title: str, sub: str, lines: list[tuple[Sensitivity, Series]]) -> CurvePanel:
    highest = max(one.best[1] for one, _ in lines)
    traces = [
        Trace(style, points(one.curve), () if one.tuned is None else (one.tuned,)) for one, style in lines
    ]
    # Up to the next tenth, with room for the triangle.
    top = min(1.0, (int(10 * highest) + 1) / 10)
    return CurvePanel(title, sub, traces, highest=top, x_name="threshold", percent=False)


def calibration_chart(told: GroundAnalysis, series: Mapping[str, Series], name: str) -> Drawing | None:
    kept = each_model(told)[:_MOST]
    if not kept:
        return None
    return curve_chart(
        name,
        [_calibration(one, series[one.run.id]) for one in kept],
        title="How often findings are there, by the model's score",
        note="Bands of equal numbers of images, all findings together; upright lines are 95% intervals over patients. "
        "Dashes: a probability that is as it says. Where a model gives no probability its scores are shown as they "
        "are, and can only tell whether a higher score means a finding more often.",
    )


def _calibration(one: Calibration, style: Series) -> CurvePanel:
    dots = [(band.mean, band.frequency.value or 0.0) for band in one.bands]
    bounds = [
        (band.mean, band.frequency.low, band.frequency.high)
        for band in one.bands
        if band.frequency.low is not None and band.frequency.high is not None
    ]
    trace = Trace(Series(one.run.model, style.colour, style.shape), dots, bounds=bounds, dots=True)
    if one.probability:
        sub = f"expected calibration error {100 * (one.error or 0.0):.1f} points, n = {one.n}"
        return CurvePanel(one.run.model, sub, [trace], x_name="probability of presence", diagonal=True)
    across = (one.bands[0].mean, one.bands[-1].mean)
    return CurvePanel(
        one.run.model,
        f"scores, not probabilities; n = {one.n}",
        [trace],
        across=across,
        x_name="score",
        percent=False,
    )
