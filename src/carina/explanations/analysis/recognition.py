"""Recognition: how well a model's scores separate images with a finding from images without it."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from carina.explanations.analysis.estimates import USABLE, MapEstimate, estimate_of_run
from carina.explanations.analysis.read import MapsRun
from carina.stats import Interval
from carina.stats.interval import interval_of
from carina.stats.resampling import cluster_codes, weights

REPLICATES: Final = 1000
LEVEL: Final = 0.95
AUROC: Final = "recognition AUROC"
LEAST: Final = 5
"""Images with a finding, and as many without, from which it enters means and correlations over findings."""
Floats = NDArray[np.float64]


def estimate_recognition(run: MapsRun) -> list[MapEstimate]:
    """AUROC, accuracy, F1, sensitivity and specificity by finding, and the mean AUROC over findings."""
    estimates = [
        estimate_of_run(
            run, level="recognition", name="", metric=AUROC, interval=macro_auroc(run), average="macro"
        )
    ]
    for one in run.scoring.recognition:
        n, patients = one.auroc.n, one.auroc.clusters
        estimates.append(
            estimate_of_run(run, level="recognition", name=one.finding, metric=AUROC, interval=one.auroc)
        )
        if one.accuracy is not None:
            estimates.append(
                estimate_of_run(
                    run, level="recognition", name=one.finding, metric="accuracy", interval=one.accuracy
                )
            )
        for metric, value in (
            ("F1", one.f1),
            ("sensitivity", one.sensitivity),
            ("specificity", one.specificity),
        ):
            if value is not None:
                interval = Interval(value, None, None, n, patients)
                estimates.append(
                    estimate_of_run(
                        run, level="recognition", name=one.finding, metric=metric, interval=interval
                    )
                )
    return estimates


def separable_findings(run: MapsRun) -> list[str]:
    """Findings with enough images with and without them, sorted by name."""
    sides = run.recognition_scores.group_by("finding").agg(
        present=pl.col("present").sum(), absent=(~pl.col("present")).sum()
    )
    return sorted(sides.filter(pl.min_horizontal("present", "absent") >= LEAST)["finding"])


def macro_auroc(run: MapsRun) -> Interval:
    """The mean AUROC over the findings that have enough images. A replicate draws patients once for all findings.

    Replicates in which a finding has no AUROC are left out; with fewer than 100 others there is no interval.
    """
    rows = run.recognition_scores
    codes = cluster_codes(rows["patient"].to_list(), rows.height)
    scores, present = rows["score"].to_numpy(), rows["present"].to_numpy()
    findings = rows["finding"].to_numpy()
    names = separable_findings(run)
    counted = np.isin(findings, names)
    if not names:
        return Interval(None, None, None, 0, 0)
    codes = np.unique(codes[counted], return_inverse=True)[1]
    scores, present, findings = scores[counted], present[counted], findings[counted]
    patients = int(codes.max()) + 1
    ones = np.ones((1, patients))
    value = float(_areas(ones, scores, present, findings, codes, names).mean())
    replicates = np.concatenate(
        [
            _areas(block, scores, present, findings, codes, names).mean(axis=1)
            for block in weights(np.ones(patients, np.int64), replicates=REPLICATES, seed=0)
        ]
    )
    interval = interval_of(value, replicates, level=LEVEL, n=len(scores), clusters=patients)
    if np.count_nonzero(~np.isnan(replicates)) < USABLE:
        return Interval(interval.value, None, None, interval.n, interval.clusters)
    return interval


def _areas(  # noqa: PLR0917 - columns of one table
    times: Floats,
    scores: Floats,
    present: NDArray[np.bool_],
    findings: NDArray[np.str_],
    codes: NDArray[np.int64],
    names: Sequence[str],
) -> Floats:
    """AUROC of each finding (columns) for the multiplicities of patients (rows); NaN without either class."""
    areas = np.full((len(times), len(names)), np.nan)
    for column, name in enumerate(names):
        own = findings == name
        counts = times[:, codes[own]]
        areas[:, column] = _area(counts, scores[own], present[own])
    return areas


def _area(counts: Floats, scores: Floats, present: NDArray[np.bool_]) -> Floats:
    """Probability that a positive is above a negative, ties as one half, for the multiplicities of rows."""
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))
    is_positive, counts = present[order], counts[:, order]
    negative = np.add.reduceat(np.where(is_positive, 0.0, counts), starts, axis=1)
    positive = np.add.reduceat(np.where(is_positive, counts, 0.0), starts, axis=1)
    below = np.cumsum(negative, axis=1) - negative / 2
    pairs = negative.sum(axis=1) * positive.sum(axis=1)
    area = np.full(len(counts), np.nan)
    np.divide((positive * below).sum(axis=1), pairs, out=area, where=pairs > 0)
    return area
