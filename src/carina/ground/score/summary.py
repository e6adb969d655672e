"""Scores of images as figures with intervals: by finding and by lesion size, with n in every cell."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec
import numpy as np

from carina.ground.score.areas import SIZE_EDGES, size_bin, size_bins
from carina.ground.score.variants import Variant
from carina.stats import Interval, clopper_pearson, ratio_intervals, ratio_replicates
from carina.stats.interval import interval_of, or_none
from carina.stats.resampling import REPLICATES, FloatArray

Level = Literal["all", "finding", "size", "finding and size"]
Given = Literal["both", "truth", "map"]
"""What there is of an image and finding."""


class Row(msgspec.Struct, frozen=True):
    """One image and finding."""

    id: str
    finding: str
    patient: str
    """Whose image it is; the id where that is not known."""
    share: float
    """The truth's share of the image."""
    values: dict[str, float]
    """Score by variant; NaN where it has no meaning."""
    given: Given = "both"
    """Truth alone: the model made no map. A map alone: the image is none of those with regions."""


class Cell(msgspec.Struct, frozen=True):
    """One figure of a summary; None where undefined, never NaN."""

    variant: str
    level: Level
    group: str
    average: Literal["micro", "macro"]
    """Micro: every image counts alike. Macro: every finding does."""
    value: float | None
    low: float | None
    high: float | None
    n: int
    """Images with a score."""
    patients: int
    undefined: int
    """Images without."""
    replicates: int
    """Draws of patients that gave a figure; 0 where there is no interval."""


Pooled = Callable[[Sequence[int]], tuple[Interval, int]]
"""The figure of some rows of a set, by their places, and its usable replicates."""

SEPARATOR: Final = ", "


def counted(variant: Variant, given: Given) -> bool:
    """Whether a variant counts an image of which this is given."""
    match given:
        case "both":
            return True
        case "truth":
            return variant.counts_without_map
        case "map":
            return variant.counts_without_truth


def summarise(
    rows: Sequence[Row],
    variants: Sequence[Variant],
    *,
    pooled: Mapping[Variant, Pooled] | None = None,
    edges: tuple[float, ...] = SIZE_EDGES,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> list[Cell]:
    """Means over images for all, each finding, each size, and each of both; figures of pooled pixels but for the last.

    Those of both would mostly be of a few images, and each takes as long as that of all. Intervals are percentiles of
    patients drawn with replacement. The macro mean over findings draws them once for all findings; draws that miss a
    finding are left out.
    """
    cells: list[Cell] = []
    if not rows:
        return cells
    kept = [variant for variant in variants if variant.aggregation == "per_image"]
    options = {"level": level, "replicates": replicates, "seed": seed}
    for where, group, chosen in _groups(rows, edges):
        own = [rows[at] for at in chosen]
        cells += _micro(own, kept, where, group, **options)  # type: ignore[arg-type]
        if where in ("all", "size"):
            cells += [_macro(own, variant, where, group, **options) for variant in kept]  # type: ignore[arg-type]
        for variant, figure in (pooled or {}).items() if where != "finding and size" else ():
            interval, usable = figure(chosen)
            cells.append(_cell(variant, where, group, "micro", interval, 0, usable))
    return cells


def _groups(rows: Sequence[Row], edges: tuple[float, ...]) -> Iterator[tuple[Level, str, list[int]]]:
    sizes = [size_bin(row.share, edges) for row in rows]
    findings = sorted({row.finding for row in rows})
    bins = [name for name in (*size_bins(edges), "none") if name in sizes]
    yield "all", "", list(range(len(rows)))
    for finding in findings:
        yield "finding", finding, [at for at, row in enumerate(rows) if row.finding == finding]
    for size in bins:
        yield "size", size, [at for at, of in enumerate(sizes) if of == size]
    for finding in findings:
        for size in bins:
            chosen = [at for at, row in enumerate(rows) if row.finding == finding and sizes[at] == size]
            if chosen:
                yield "finding and size", f"{finding}{SEPARATOR}{size}", chosen


def _micro(
    rows: Sequence[Row],
    variants: Sequence[Variant],
    where: Level,
    group: str,
    *,
    level: float,
    replicates: int,
    seed: int,
) -> list[Cell]:
    if not variants:
        return []
    table = np.array([[row.values[variant.name] for variant in variants] for row in rows])
    patients = [row.patient for row in rows]
    found = ratio_intervals(table, patients, level=level, replicates=replicates, seed=seed)
    usable = np.where(found.clusters > 1, replicates, 0)
    if (found.clusters < found.clusters.max(initial=0)).any():  # a draw may miss all patients of a column
        drawn = ratio_replicates(table, patients, replicates=replicates, seed=seed)
        usable = np.where(found.clusters > 1, np.count_nonzero(~np.isnan(drawn), axis=0), 0)
    return [
        _cell(variant, where, group, "micro", _exact(variant, interval), len(rows) - interval.n, int(used))
        for variant, interval, used in zip(variants, found, usable, strict=True)
    ]


def _exact(variant: Variant, found: Interval) -> Interval:
    """Draws from peaks that all hit, or all miss, tell nothing of how few they are; the number of patients does."""
    alike = found.low is not None and found.low == found.high and found.value in (0.0, 1.0)
    if not variant.metric.startswith("hit") or not alike:
        return found
    bounds = clopper_pearson(found.clusters if found.value else 0, found.clusters)
    return msgspec.structs.replace(found, low=bounds.low, high=bounds.high)


def _macro(
    rows: Sequence[Row],
    variant: Variant,
    where: Level,
    group: str,
    *,
    level: float,
    replicates: int,
    seed: int,
) -> Cell:
    """The mean of the findings' means; findings without a score do not count."""
    values = np.array([row.values[variant.name] for row in rows])
    spread = by_finding(rows, values)
    spread = spread[:, ~np.isnan(spread).all(axis=0)]
    defined = ~np.isnan(values)
    patients = [row.patient for row in rows]
    owners = len({patient for patient, there in zip(patients, defined, strict=True) if there})
    if spread.shape[1] == 0:
        return _cell(variant, where, group, "macro", Interval(None, None, None, 0, 0), len(rows), 0)
    drawn = ratio_replicates(spread, patients, replicates=replicates, seed=seed).mean(axis=1)
    value = float(np.mean([column[~np.isnan(column)].mean() for column in spread.T]))
    n = int(np.count_nonzero(defined))
    interval = interval_of(value, drawn, level=level, n=n, clusters=owners)
    usable = int(np.count_nonzero(~np.isnan(drawn))) if owners > 1 else 0
    return _cell(variant, where, group, "macro", interval, len(rows) - n, usable)


def by_finding(rows: Sequence[Row], values: FloatArray) -> FloatArray:
    """The values with a column for each finding in order of names, NaN in the others'."""
    findings = sorted({row.finding for row in rows})
    own = np.array([[row.finding == finding for finding in findings] for row in rows])
    return np.where(own, values[:, None], np.nan)


def _cell(  # noqa: PLR0917 - in the order of the record
    variant: Variant,
    where: Level,
    group: str,
    average: Literal["micro", "macro"],
    interval: Interval,
    undefined: int,
    usable: int,
) -> Cell:
    return Cell(
        variant.name,
        where,
        group,
        average,
        interval.value,
        interval.low,
        interval.high,
        interval.n,
        interval.clusters,
        undefined,
        usable,
    )


# ---- cheXlocalize's intervals ----


def chexlocalize_replicates(table: FloatArray, *, replicates: int = 1000, seed: int = 0) -> FloatArray:
    """Means of columns over images (rows) drawn with replacement, NaN left out: (replicates, columns).

    The draws are numpy's legacy stream's, so that the same seed gives the project's own.
    """
    draw = np.random.RandomState(seed)
    there = ~np.isnan(table)
    filled = np.where(there, table, 0.0)
    made = np.full((replicates, table.shape[1]), np.nan)
    for row in made if len(table) else ():
        chosen = draw.choice(len(table), size=len(table), replace=True)
        n = there[chosen].sum(axis=0)
        np.divide(filled[chosen].sum(axis=0), n, out=row, where=n > 0)
    return made


def chexlocalize_interval(replicated: FloatArray) -> tuple[float, float, float]:
    """Mean of a column's replicates and its 95% bounds as cheXlocalize reports them, rounded to 3 digits.

    Bounds are the sorted replicates at index int(0.025 n) - 1 and int(0.975 n) - 1. Undefined ones sort last, so with
    few positives the upper bound is NaN.
    """
    ordered = np.sort(replicated)
    low, high = (int(share * len(ordered)) - 1 for share in (0.025, 0.975))
    defined = replicated[~np.isnan(replicated)]
    mean = float(defined.mean()) if len(defined) else float("nan")
    return round(mean, 3), round(float(ordered[low]), 3), round(float(ordered[high]), 3)


def human_gap(human: FloatArray, model: FloatArray) -> FloatArray:
    """How much lower the model is than readers, as a share of theirs, replicate by replicate: (human - model) / human.

    Two bootstraps that were drawn independently are paired by row, as cheXlocalize does.
    """
    gap: FloatArray = np.full(human.shape, np.nan)
    return np.divide(human - model, human, out=gap, where=human != 0)


def chexlocalize_summary(
    rows: Sequence[Row], variants: Sequence[Variant], *, replicates: int = 1000, seed: int = 0
) -> list[Cell]:
    """Each finding's mean of replicates with bounds, as cheXlocalize reports them.

    Images are drawn, not patients, in order of their ids and once for all findings; the value is the mean of the
    replicates. All images with regions are drawn, those without a map too; others only where they count.
    """
    findings = sorted({row.finding for row in rows})
    every = rows
    cells = []
    for variant in variants:
        if variant.aggregation != "per_image":
            continue
        rows = [row for row in every if row.given != "map" or variant.counts_without_truth]
        ids = {name: at for at, name in enumerate(sorted({row.id for row in rows}))}
        table = np.full((len(ids), len(findings)), np.nan)
        for row in rows:
            table[ids[row.id], findings.index(row.finding)] = row.values[variant.name]
        drawn = chexlocalize_replicates(table, replicates=replicates, seed=seed)
        for finding, column, values in zip(findings, drawn.T, table.T, strict=True):
            mean, low, high = chexlocalize_interval(column)
            own = [row for row in rows if row.finding == finding]
            n = int(np.count_nonzero(~np.isnan(values)))
            interval = Interval(or_none(mean), or_none(low), or_none(high), n, len({row.id for row in own}))
            used = int(np.count_nonzero(~np.isnan(column)))
            cells.append(_cell(variant, "finding", finding, "micro", interval, len(own) - n, used))
    return cells
