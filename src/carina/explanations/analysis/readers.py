"""Readers against readers on the probes whose maps are scored, in the measures of the maps."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from carina.explanations.analysis.estimates import USABLE, MapEstimate, to_estimate
from carina.explanations.analysis.maps_groups import MapsGroup
from carina.runs.analysis.case_facts import is_keyed_by_program
from carina.runs.analysis.estimates import REPLICATES, SEED
from carina.runs.analysis.readers import READERS, HumanCeiling, find_human_ceiling
from carina.stats import Interval, ratio_replicates
from carina.stats.interval import interval_of

METHOD: Final = "each against the others, or against the truth"
AS_MAP: Final = {
    "hit": "pointing",
    "iou": "iou",
    "dice": "dice",
    "precision": "pointing",
    "auroc": "auroc",
    "mass": "pointing",
}
"""By metric of a map, the score of a reader whose region is taken as a map of 1 inside and 0 outside: every threshold
gives the region itself, and the share of the map in the truth is that of the region."""
LEVEL: Final = 0.95


def estimate_readers(group: MapsGroup, scored: Collection[str]) -> Iterator[MapEstimate]:
    """Means over probes and over findings, and by finding; none where no scored probe has several readers."""
    ceiling = None if group.bench is None else find_human_ceiling(group.bench, scored)
    if ceiling is None:
        return
    by_finding = {finding: ceiling.intervals(finding) for finding in ceiling.findings}
    whole = ceiling.intervals()
    for measure in group.measures:
        metric = AS_MAP.get(measure.metric)
        if metric is None or metric not in whole:
            continue
        yield _make(measure.variant, whole[metric], average="micro")
        yield _make(measure.variant, _mean_over_findings(ceiling, metric), average="macro")
        for finding, intervals in by_finding.items():
            if metric in intervals:
                yield _make(
                    measure.variant, intervals[metric], level="finding", name=finding, average="micro"
                )


def count_automatic_regions(group: MapsGroup, scored: Collection[str]) -> int:
    """Scored probes whose region a program drew, and no person."""
    if group.bench is None or group.bench.manifest.options.get("protocol") != "ground":
        return 0
    cases = group.bench.without("regions", "views").pick(sorted(scored))
    return sum(map(is_keyed_by_program, cases))


def _make(
    metric: str, interval: Interval, *, average: str, level: str = "all", name: str = ""
) -> MapEstimate:
    return to_estimate(
        interval,
        run=READERS,
        model=READERS,
        method=METHOD,
        source=READERS,
        level=level,
        name=name,
        metric=metric,
        average=average,
    )


def _mean_over_findings(ceiling: HumanCeiling, metric: str) -> Interval:
    """The mean of the findings' means; replicates that miss a finding are left out of the interval."""
    rows = ceiling.scores.filter(ceiling.scores[metric].is_not_null())
    findings = sorted(rows["finding"].unique())
    held = rows["finding"].to_numpy()
    values = rows[metric].to_numpy().astype(np.float64)
    table = np.column_stack([np.where(held == finding, values, np.nan) for finding in findings])
    patients = rows["patient"].to_list()
    replicates = ratio_replicates(table, patients, replicates=REPLICATES, seed=SEED).mean(axis=1)
    interval = interval_of(
        float(np.nanmean(table, axis=0).mean()),
        replicates,
        level=LEVEL,
        n=rows.height,
        clusters=len(set(patients)),
    )
    if np.count_nonzero(~np.isnan(replicates)) < USABLE:
        return replace(interval, low=None, high=None)
    return interval
