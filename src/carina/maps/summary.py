"""Means of scores over images with bootstrap intervals, by finding and by lesion size."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec
import numpy as np

from carina.maps.areas import SIZE_EDGES, size_bin, size_bins
from carina.maps.variants import Variant
from carina.stats import Interval, clopper_pearson, ratio_intervals, ratio_replicates
from carina.stats.interval import interval_of, or_none
from carina.stats.resampling import REPLICATES, FloatArray

Level = Literal["all", "finding", "size", "finding and size"]
Available = Literal["both", "truth", "map"]
"""Whether an image and finding have a map, a truth, or both."""


class Row(msgspec.Struct, frozen=True):
    """Scores of the map of one finding on one image."""

    id: str
    """Id of the image."""
    finding: str
    patient: str
    """Patient whose image it is; the id of the image where the patient is unknown."""
    share: float
    """The truth's share of the image."""
    values: dict[str, float]
    """Score by variant name; NaN where the variant is undefined."""
    available: Available = "both"
    """Only "truth" where the model made no map; only "map" where the image was not annotated for the finding."""


class Cell(msgspec.Struct, frozen=True):
    """One value of a summary with its interval; None where it is undefined, never NaN."""

    variant: str
    """Name of the metric variant."""
    level: Level
    """What the images are grouped by."""
    group: str
    """Name of the group: a finding, a size bin, or both; empty for all images."""
    average: Literal["micro", "macro"]
    """Every image has the same weight in "micro", every finding in "macro"."""
    value: float | None
    low: float | None
    high: float | None
    n: int
    """Number of images with a score."""
    patients: int
    """Number of their patients."""
    undefined: int
    """Number of images without a score."""
    replicates: int
    """Bootstrap replicates in which the value is defined; 0 where there is no interval."""


PooledFigure = Callable[[Sequence[int]], tuple[Interval, int]]
"""Computes the value of a pooled variant over the rows with the given indices, and the number of usable replicates."""

SEPARATOR: Final = ", "


def counts_image(variant: Variant, available: Available) -> bool:
    """Whether a variant counts an image that has a map, a truth, or both."""
    match available:
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
    pooled: Mapping[Variant, PooledFigure] | None = None,
    edges: tuple[float, ...] = SIZE_EDGES,
    level: float = 0.95,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> list[Cell]:
    """Average scores over all images, by finding, by size bin, and by both.

    Intervals are percentiles of a bootstrap over patients. For the macro mean over findings, patients are resampled
    once for all findings, and replicates that miss a finding are left out. Pooled variants are not computed by finding
    and size together: such groups are small, and each takes as long as the whole set.

    Args:
        rows: Scores of each map.
        variants: Variants to average.
        pooled: Computes the values of pooled variants.
        edges: Shares of the image that divide the size bins.
        level: Coverage of the intervals.
        replicates: Number of bootstrap replicates.
        seed: Seed of the bootstrap.

    Returns:
        A cell for each variant, group and average.

    Example:
        >>> from carina.maps import parse_variant
        >>> variant = parse_variant("iou.minmax_0.5")
        >>> rows = [Row(f"image-{n}", "edema", f"p{n}", 0.1, {variant.name: n / 4}) for n in range(3)]
        >>> cell = summarise(rows, [variant])[0]
        >>> cell.value, cell.n
        (0.25, 3)
    """
    cells: list[Cell] = []
    if not rows:
        return cells
    per_image = [variant for variant in variants if variant.aggregation == "per_image"]
    options = {"level": level, "replicates": replicates, "seed": seed}
    for grouping, group, indices in _group_rows(rows, edges):
        group_rows = [rows[index] for index in indices]
        cells += _micro_cells(group_rows, per_image, grouping, group, **options)  # type: ignore[arg-type]
        if grouping in ("all", "size"):
            cells += [
                _macro_cell(group_rows, variant, grouping, group, **options)  # type: ignore[arg-type]
                for variant in per_image
            ]
        for variant, compute in (pooled or {}).items() if grouping != "finding and size" else ():
            interval, usable = compute(indices)
            cells.append(_cell(variant, grouping, group, "micro", interval, 0, usable))
    return cells


def _group_rows(rows: Sequence[Row], edges: tuple[float, ...]) -> Iterator[tuple[Level, str, list[int]]]:
    """What rows are grouped by, the name of a group, and the indices of its rows."""
    sizes = [size_bin(row.share, edges) for row in rows]
    findings = sorted({row.finding for row in rows})
    bins = [name for name in (*size_bins(edges), "none") if name in sizes]
    yield "all", "", list(range(len(rows)))
    for finding in findings:
        yield "finding", finding, [index for index, row in enumerate(rows) if row.finding == finding]
    for size in bins:
        yield "size", size, [index for index, row_size in enumerate(sizes) if row_size == size]
    for finding in findings:
        for size in bins:
            indices = [
                index for index, row in enumerate(rows) if row.finding == finding and sizes[index] == size
            ]
            if indices:
                yield "finding and size", f"{finding}{SEPARATOR}{size}", indices


def _micro_cells(
    rows: Sequence[Row],
    variants: Sequence[Variant],
    grouping: Level,
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
    intervals = ratio_intervals(table, patients, level=level, replicates=replicates, seed=seed)
    usable = np.where(intervals.clusters > 1, replicates, 0)
    if (intervals.clusters < intervals.clusters.max(initial=0)).any():
        # A replicate may miss all patients that have a score by a variant.
        values = ratio_replicates(table, patients, replicates=replicates, seed=seed)
        usable = np.where(intervals.clusters > 1, np.count_nonzero(~np.isnan(values), axis=0), 0)
    return [
        _cell(
            variant,
            grouping,
            group,
            "micro",
            _exact_bounds(variant, interval),
            len(rows) - interval.n,
            int(n_usable),
        )
        for variant, interval, n_usable in zip(variants, intervals, usable, strict=True)
    ]


def _exact_bounds(variant: Variant, interval: Interval) -> Interval:
    """Exact binomial bounds where all maps hit, or all miss: there the bootstrap has no width, however few they are."""
    has_no_width = interval.low is not None and interval.low == interval.high and interval.value in (0.0, 1.0)
    if not variant.metric.startswith("hit") or not has_no_width:
        return interval
    bounds = clopper_pearson(interval.clusters if interval.value else 0, interval.clusters)
    return msgspec.structs.replace(interval, low=bounds.low, high=bounds.high)


def _macro_cell(
    rows: Sequence[Row],
    variant: Variant,
    grouping: Level,
    group: str,
    *,
    level: float,
    replicates: int,
    seed: int,
) -> Cell:
    """The mean of the means of the findings; findings without a score are left out."""
    values = np.array([row.values[variant.name] for row in rows])
    columns = column_by_finding(rows, values)
    columns = columns[:, ~np.isnan(columns).all(axis=0)]
    is_defined = ~np.isnan(values)
    patients = [row.patient for row in rows]
    n_patients = len({patient for patient, defined in zip(patients, is_defined, strict=True) if defined})
    if columns.shape[1] == 0:
        return _cell(variant, grouping, group, "macro", Interval(None, None, None, 0, 0), len(rows), 0)
    means = ratio_replicates(columns, patients, replicates=replicates, seed=seed).mean(axis=1)
    value = float(np.mean([column[~np.isnan(column)].mean() for column in columns.T]))
    n = int(np.count_nonzero(is_defined))
    interval = interval_of(value, means, level=level, n=n, clusters=n_patients)
    usable = int(np.count_nonzero(~np.isnan(means))) if n_patients > 1 else 0
    return _cell(variant, grouping, group, "macro", interval, len(rows) - n, usable)


def column_by_finding(rows: Sequence[Row], values: FloatArray) -> FloatArray:
    """The values in a column for each finding, in order of names; NaN in the columns of other findings."""
    findings = sorted({row.finding for row in rows})
    is_finding = np.array([[row.finding == finding for finding in findings] for row in rows])
    return np.where(is_finding, values[:, None], np.nan)


def _cell(  # noqa: PLR0917 - in the order of the record
    variant: Variant,
    grouping: Level,
    group: str,
    average: Literal["micro", "macro"],
    interval: Interval,
    undefined: int,
    usable: int,
) -> Cell:
    return Cell(
        variant.name,
        grouping,
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


# ---- intervals of cheXlocalize --------------------------------------------------------------------------------------


def chexlocalize_replicates(table: FloatArray, *, replicates: int = 1000, seed: int = 0) -> FloatArray:
    """Means of columns over images (rows) sampled with replacement, NaN left out: (replicates, columns).

    Uses numpy's legacy generator, so that the same seed gives the samples of the project.
    """
    generator = np.random.RandomState(seed)
    is_defined = ~np.isnan(table)
    filled = np.where(is_defined, table, 0.0)
    means = np.full((replicates, table.shape[1]), np.nan)
    for row in means if len(table) else ():
        sample = generator.choice(len(table), size=len(table), replace=True)
        n = is_defined[sample].sum(axis=0)
        np.divide(filled[sample].sum(axis=0), n, out=row, where=n > 0)
    return means


def chexlocalize_interval(replicated: FloatArray) -> tuple[float, float, float]:
    """Mean of a column's replicates and its 95% bounds as cheXlocalize reports them, rounded to 3 digits.

    Bounds are the sorted replicates at index int(0.025 n) - 1 and int(0.975 n) - 1. Undefined replicates sort last, so
    that with few positives the upper bound is NaN.
    """
    ordered = np.sort(replicated)
    low, high = (int(share * len(ordered)) - 1 for share in (0.025, 0.975))
    defined = replicated[~np.isnan(replicated)]
    mean = float(defined.mean()) if len(defined) else float("nan")
    return round(mean, 3), round(float(ordered[low]), 3), round(float(ordered[high]), 3)


def human_gap(human: FloatArray, model: FloatArray) -> FloatArray:
    """Relative gap between readers and a model, (human - model) / human, replicate by replicate.

    Replicates of two independent bootstraps are paired by row, as cheXlocalize does.

    Args:
        human: Replicates of the readers' score, (replicates, findings).
        model: Replicates of the model's score, of the same shape.

    Returns:
        The gap of each replicate; NaN where the readers' score is 0.

    Example:
        >>> human_gap(np.array([[0.8, 0.0]]), np.array([[0.6, 0.5]])).round(2).tolist()
        [[0.25, nan]]
    """
    gap: FloatArray = np.full(human.shape, np.nan)
    return np.divide(human - model, human, out=gap, where=human != 0)


def chexlocalize_summary(
    rows: Sequence[Row], variants: Sequence[Variant], *, replicates: int = 1000, seed: int = 0
) -> list[Cell]:
    """Summarise scores by finding as cheXlocalize reports them.

    Images are resampled instead of patients, in order of their ids and once for all findings; the value is the mean of
    the replicates. All images with regions are resampled, also those without a map; maps without a region only where
    the variant counts them.

    Args:
        rows: Scores of each map.
        variants: Variants to average; pooled ones are left out.
        replicates: Number of bootstrap replicates.
        seed: Seed of numpy's legacy generator.

    Returns:
        A cell for each variant and finding.
    """
    findings = sorted({row.finding for row in rows})
    cells = []
    for variant in variants:
        if variant.aggregation != "per_image":
            continue
        counted = [row for row in rows if row.available != "map" or variant.counts_without_truth]
        ids = {name: index for index, name in enumerate(sorted({row.id for row in counted}))}
        table = np.full((len(ids), len(findings)), np.nan)
        for row in counted:
            table[ids[row.id], findings.index(row.finding)] = row.values[variant.name]
        means = chexlocalize_replicates(table, replicates=replicates, seed=seed)
        for finding, column, values in zip(findings, means.T, table.T, strict=True):
            mean, low, high = chexlocalize_interval(column)
            of_finding = [row for row in counted if row.finding == finding]
            n = int(np.count_nonzero(~np.isnan(values)))
            n_images = len({row.id for row in of_finding})
            interval = Interval(or_none(mean), or_none(low), or_none(high), n, n_images)
            usable = int(np.count_nonzero(~np.isnan(column)))
            cells.append(_cell(variant, "finding", finding, "micro", interval, len(of_finding) - n, usable))
    return cells
