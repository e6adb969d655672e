"""Calibration: how often a finding is present, by bands of the model's score.

A score is a probability only where the model compares presence with absence: with negative prompts, or with a decoder
that gives both. Elsewhere the bands only show whether a higher score means that the finding is present more often.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from carina.explanations.analysis.estimates import MapEstimate, estimate_of_run, limit_bounds
from carina.explanations.analysis.read import MapsRun
from carina.stats import Interval, mean_interval

MOST_BANDS: Final = 10
LEAST: Final = 10
"""Fewest images of a band."""
DECODERS: Final = ("medklip", "kad", "mavl", "carzero")
"""Kinds of models whose score is the logit of presence against absence."""


@dataclass(frozen=True)
class Band:
    """Images with similar scores."""

    low: float
    high: float
    """Lowest and highest score, or probability."""
    mean: float
    frequency: Interval
    """Share of images in which the finding is present."""


@dataclass(frozen=True)
class Calibration:
    """The bands of one run."""

    run: MapsRun
    is_probability: bool
    """Whether scores are probabilities."""
    bands: tuple[Band, ...]
    error: float | None
    """Expected calibration error: the mean distance of probability and frequency; None for plain scores."""
    n: int


def calibrate(run: MapsRun) -> Calibration | None:
    """Bands of equal numbers of images, over all findings; None where there are too few, or no scores."""
    rows = run.recognition_scores
    if rows.height < 2 * LEAST:
        return None
    probability = gives_probabilities(run)
    scores = rows["score"].to_numpy().astype(np.float64)
    if probability:
        scores = 1 / (1 + np.exp(-scores))
    order = np.argsort(scores, kind="stable")
    bands = []
    for own in np.array_split(order, min(MOST_BANDS, rows.height // LEAST)):
        present = rows["present"].to_numpy()[own].astype(float)
        patients = rows["patient"].gather(own.tolist()).to_list()
        bands.append(
            Band(
                float(scores[own].min()),
                float(scores[own].max()),
                float(scores[own].mean()),
                limit_bounds(mean_interval(present, patients, replicates=1000), is_counted=True),
            )
        )
    gaps = [abs(band.mean - (band.frequency.value or 0.0)) * band.frequency.n for band in bands]
    error = sum(gaps) / rows.height if probability else None
    return Calibration(run, probability, tuple(bands), error, rows.height)


def gives_probabilities(run: MapsRun) -> bool:
    """Whether the logistic function of its scores is the model's own probability of presence."""
    if run.model.partition(":")[0] in DECODERS:
        return True
    return (
        bool(run.recognition_scores.select(pl.col("against").all()).item())
        if run.recognition_scores.height
        else False
    )


def calibration_estimates(calibration: Calibration) -> list[MapEstimate]:
    """Rows of the tables: frequency by band, and the error where scores are probabilities."""
    kind = "probability" if calibration.is_probability else "score"
    estimates = [
        estimate_of_run(
            calibration.run,
            level="calibration",
            name=f"{kind} {band.low:.4g} to {band.high:.4g}",
            metric="frequency of presence",
            interval=band.frequency,
        )
        for band in calibration.bands
    ]
    if calibration.error is not None:
        whole = Interval(calibration.error, None, None, calibration.n, 0)
        estimates.append(
            estimate_of_run(
                calibration.run,
                level="calibration",
                name="",
                metric="expected calibration error",
                interval=whole,
            )
        )
    return estimates
