"""Is a finding as often there as the model's certainty says? By bands of its score.

A score is a probability only where the model sets presence against absence: with negative prompts, or with a decoder
that tells both. Elsewhere the bands show whether a higher score means a finding more often, and nothing else.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from carina.report.ground.figures import Figure, bounded, of_run
from carina.report.ground.read import MapsRun
from carina.stats import Interval, mean_interval

MOST_BANDS: Final = 10
LEAST: Final = 10
"""Images of a band, so that a frequency can be told."""
DECODERS: Final = ("medklip", "kad", "mavl", "carzero")
"""Models whose score is the logit of a two-way decision."""


@dataclass(frozen=True)
class Band:
    low: float
    high: float
    """Scores, or probabilities, that it holds."""
    mean: float
    frequency: Interval
    """How often the finding is there."""


@dataclass(frozen=True)
class Calibration:
    run: MapsRun
    probability: bool
    bands: tuple[Band, ...]
    error: float | None
    """Expected calibration error: the mean distance of probability and frequency; None for mere scores."""
    n: int


def calibration(run: MapsRun) -> Calibration | None:
    """Bands of equal numbers of images, over all findings; None where there are too few, or no scores."""
    rows = run.recognised
    if rows.height < 2 * LEAST:
        return None
    probability = gives_probabilities(run)
    scores = rows["score"].to_numpy().astype(np.float64)
    if probability:
        scores = 1 / (1 + np.exp(-scores))
    order = np.argsort(scores, kind="stable")
    bands = []
    for own in np.array_split(order, min(MOST_BANDS, rows.height // LEAST)):
        there = rows["present"].to_numpy()[own].astype(float)
        patients = rows["patient"].gather(own.tolist()).to_list()
        bands.append(
            Band(
                float(scores[own].min()),
                float(scores[own].max()),
                float(scores[own].mean()),
                bounded(mean_interval(there, patients, replicates=1000), counted=True),
            )
        )
    gaps = [abs(band.mean - (band.frequency.value or 0.0)) * band.frequency.n for band in bands]
    error = sum(gaps) / rows.height if probability else None
    return Calibration(run, probability, tuple(bands), error, rows.height)


def gives_probabilities(run: MapsRun) -> bool:
    """Whether the logistic function of its scores is the model's own probability of presence."""
    if run.model.partition(":")[0] in DECODERS:
        return True
    return bool(run.recognised.select(pl.col("against").all()).item()) if run.recognised.height else False


def calibration_figures(found: Calibration) -> list[Figure]:
    """As rows of the tables: frequency by band, and the error where scores are probabilities."""
    kind = "probability" if found.probability else "score"
    made = [
        of_run(
            found.run,
            level="calibration",
            name=f"{kind} {band.low:.4g} to {band.high:.4g}",
            metric="frequency of presence",
            found=band.frequency,
        )
        for band in found.bands
    ]
    if found.error is not None:
        whole = Interval(found.error, None, None, found.n, 0)
        made.append(
            of_run(found.run, level="calibration", name="", metric="expected calibration error", found=whole)
        )
    return made
