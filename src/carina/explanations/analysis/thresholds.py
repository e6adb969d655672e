"""ThresholdCurve to the threshold: mean overlap at every threshold, at the tuned one and at the best."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from carina.explanations.analysis.estimates import MapEstimate, estimate_of_run
from carina.explanations.analysis.measures import OURS
from carina.explanations.analysis.read import MapsRun
from carina.explanations.scoring import MODEL, Curve
from carina.stats import Interval

TUNED: Final = OURS[1].variant
NEAR: Final = 0.9
"""Share of the best overlap from which a threshold counts as good."""


@dataclass(frozen=True)
class ThresholdCurve:
    """The curve of all findings together, with its tuned and its best threshold."""

    run: MapsRun
    source: str
    curve: Curve
    tuned: tuple[float, float] | None
    """Threshold that was tuned on another split for all findings, and the overlap there."""
    best: tuple[float, float]
    """The best threshold on the scored maps (an oracle), and the overlap there."""
    good_share: float
    """Share of all thresholds that reach 90% of the best overlap."""


def threshold_curves(run: MapsRun) -> list[ThresholdCurve]:
    """The curve of the model, then those of the controls; none where the profile has no curves."""
    curves = [_threshold_curve(run, curve) for curve in run.scoring.sensitivity if not curve.finding]
    return [curve for curve in curves if curve is not None]


def _threshold_curve(run: MapsRun, curve: Curve) -> ThresholdCurve | None:
    known = curve_points(curve)
    if not known:
        return None
    at, values = (np.array(column) for column in zip(*known, strict=True))
    best = int(values.argmax())
    thresholds = run.scoring.thresholds.get(curve.source)
    tuned = None
    if thresholds is not None and TUNED in thresholds.chosen:
        threshold = thresholds.chosen[TUNED][""]
        tuned = (threshold, float(np.interp(threshold, at, values)))
    return ThresholdCurve(
        run,
        curve.source,
        curve,
        tuned,
        (float(at[best]), float(values[best])),
        float((values >= NEAR * values[best]).mean()),
    )


def curve_points(curve: Curve) -> list[tuple[float, float]]:
    """Thresholds with the mean overlap, where it is defined."""
    return [(at, v) for at, v in zip(curve.thresholds, curve.values, strict=True) if v is not None]


def threshold_estimates(curve: ThresholdCurve) -> list[MapEstimate]:
    """Rows of the tables, for the model only."""
    if curve.source != MODEL:
        return []
    values = {
        "best threshold on the scored maps (oracle)": curve.best[0],
        "IoU at that threshold": curve.best[1],
        "share of thresholds within 90% of the best": curve.good_share,
    }
    if curve.tuned is not None:
        values |= {"tuned threshold": curve.tuned[0], "IoU at the tuned threshold": curve.tuned[1]}
    n = curve.run.scoring.scored
    return [
        estimate_of_run(
            curve.run, level="threshold", name="", metric=metric, interval=Interval(value, None, None, n, 0)
        )
        for metric, value in values.items()
    ]
