"""How much the choice of a threshold decides: mean overlap over thresholds, and what tuning made of it."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from carina.ground.explain.scoring import MODEL, Curve
from carina.report.ground.figures import Figure, of_run
from carina.report.ground.measures import OURS
from carina.report.ground.read import MapsRun
from carina.stats import Interval

TUNED: Final = OURS[1].variant
NEAR: Final = 0.9
"""Share of the best overlap from which a threshold is as good as the best."""


@dataclass(frozen=True)
class Sensitivity:
    """The curve of all findings together, and what stands out on it."""

    run: MapsRun
    source: str
    curve: Curve
    tuned: tuple[float, float] | None
    """Threshold that was tuned on another split for all findings, and the curve's overlap there."""
    best: tuple[float, float]
    """The same for the best on the scored maps: an oracle."""
    near: float
    """Share of all thresholds that reach 90% of the best."""


def sensitivities(run: MapsRun) -> list[Sensitivity]:
    """Of the model, then of the controls; none where the profile has no such curve."""
    return [made for curve in run.scoring.sensitivity if not curve.finding if (made := _of(run, curve))]


def _of(run: MapsRun, curve: Curve) -> Sensitivity | None:
    known = points(curve)
    if not known:
        return None
    at, values = (np.array(column) for column in zip(*known, strict=True))
    best = int(values.argmax())
    chosen = run.scoring.thresholds.get(curve.source)
    tuned = None
    if chosen is not None and TUNED in chosen.chosen:
        threshold = chosen.chosen[TUNED][""]
        tuned = (threshold, float(np.interp(threshold, at, values)))
    return Sensitivity(
        run,
        curve.source,
        curve,
        tuned,
        (float(at[best]), float(values[best])),
        float((values >= NEAR * values[best]).mean()),
    )


def points(curve: Curve) -> list[tuple[float, float]]:
    """Threshold and mean overlap, where it is defined."""
    return [(at, v) for at, v in zip(curve.thresholds, curve.values, strict=True) if v is not None]


def sensitivity_figures(found: Sensitivity) -> list[Figure]:
    """As rows of the tables, of the model alone."""
    if found.source != MODEL:
        return []
    told = {
        "best threshold on the scored maps (oracle)": found.best[0],
        "IoU at that threshold": found.best[1],
        "share of thresholds within 90% of the best": found.near,
    }
    if found.tuned is not None:
        told |= {"tuned threshold": found.tuned[0], "IoU at the tuned threshold": found.tuned[1]}
    n = found.run.scoring.scored
    return [
        of_run(found.run, level="threshold", name="", metric=metric, found=Interval(value, None, None, n, 0))
        for metric, value in told.items()
    ]
