"""How well findings are told from their absence: finding by finding, and as a mean over findings."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from carina.report.ground.figures import USABLE, Figure, of_run
from carina.report.ground.read import MapsRun
from carina.stats import Interval
from carina.stats.interval import interval_of
from carina.stats.resampling import cluster_codes, weights

REPLICATES: Final = 1000
LEVEL: Final = 0.95
AUROC: Final = "recognition AUROC"
LEAST: Final = 5
"""Images with a finding, and as many without, from which it counts in a mean or a correlation over findings."""
Floats = NDArray[np.float64]


def recognition(run: MapsRun) -> list[Figure]:
    """AUROC, accuracy, F1, sensitivity and specificity by finding, and the mean AUROC over findings."""
    made = [of_run(run, level="recognition", name="", metric=AUROC, found=macro_auroc(run), average="macro")]
    for one in run.scoring.recognition:
        n, patients = one.auroc.n, one.auroc.clusters
        made.append(of_run(run, level="recognition", name=one.finding, metric=AUROC, found=one.auroc))
        if one.accuracy is not None:
            made.append(
                of_run(run, level="recognition", name=one.finding, metric="accuracy", found=one.accuracy)
            )
        for metric, value in (
            ("F1", one.f1),
            ("sensitivity", one.sensitivity),
            ("specificity", one.specificity),
        ):
            if value is not None:
                found = Interval(value, None, None, n, patients)
                made.append(of_run(run, level="recognition", name=one.finding, metric=metric, found=found))
    return made


def told_apart(run: MapsRun) -> list[str]:
    """Findings with enough images on either side to say whether they are told from their absence; by name."""
    sides = run.recognised.group_by("finding").agg(
        there=pl.col("present").sum(), absent=(~pl.col("present")).sum()
    )
    return sorted(sides.filter(pl.min_horizontal("there", "absent") >= LEAST)["finding"])


def macro_auroc(run: MapsRun) -> Interval:
    """The mean of the AUROC of the findings that have enough images. Patients are drawn once for all findings.

    Draws in which a finding has no AUROC are left out, and with fewer than 100 others there is no interval.
    """
    rows = run.recognised
    codes = cluster_codes(rows["patient"].to_list(), rows.height)
    scores, present = rows["score"].to_numpy(), rows["present"].to_numpy()
    findings = rows["finding"].to_numpy()
    told = told_apart(run)
    counted = np.isin(findings, told)
    if not told:
        return Interval(None, None, None, 0, 0)
    codes = np.unique(codes[counted], return_inverse=True)[1]
    scores, present, findings = scores[counted], present[counted], findings[counted]
    patients = int(codes.max()) + 1
    ones = np.ones((1, patients))
    value = float(_areas(ones, scores, present, findings, codes, told).mean())
    drawn = np.concatenate(
        [
            _areas(block, scores, present, findings, codes, told).mean(axis=1)
            for block in weights(np.ones(patients, np.int64), replicates=REPLICATES, seed=0)
        ]
    )
    found = interval_of(value, drawn, level=LEVEL, n=len(scores), clusters=patients)
    if np.count_nonzero(~np.isnan(drawn)) < USABLE:
        return Interval(found.value, None, None, found.n, found.clusters)
    return found


def _areas(  # noqa: PLR0917 - columns of one table
    times: Floats,
    scores: Floats,
    present: NDArray[np.bool_],
    findings: NDArray[np.str_],
    codes: NDArray[np.int64],
    told: Sequence[str],
) -> Floats:
    """AUROC of each finding (columns) where patients count so many times (rows); NaN without either class."""
    made = np.full((len(times), len(told)), np.nan)
    for column, name in enumerate(told):
        own = findings == name
        counts = times[:, codes[own]]
        made[:, column] = _area(counts, scores[own], present[own])
    return made


def _area(counts: Floats, scores: Floats, present: NDArray[np.bool_]) -> Floats:
    """Probability that a positive is above a negative, ties as one half, where rows count so many times."""
    order = np.argsort(scores, kind="stable")
    starts = np.flatnonzero(np.diff(scores[order], prepend=-np.inf))
    there, counts = present[order], counts[:, order]
    negative = np.add.reduceat(np.where(there, 0.0, counts), starts, axis=1)
    positive = np.add.reduceat(np.where(there, counts, 0.0), starts, axis=1)
    below = np.cumsum(negative, axis=1) - negative / 2
    pairs = negative.sum(axis=1) * positive.sum(axis=1)
    area = np.full(len(counts), np.nan)
    np.divide((positive * below).sum(axis=1), pairs, out=area, where=pairs > 0)
    return area
