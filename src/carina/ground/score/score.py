"""Scoring: one map at once, or a set of maps with what only a set has (pooled curves, thresholds, intervals)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from carina.errors import CarinaError
from carina.ground.score.areas import SIZE_EDGES
from carina.ground.score.evaluate import Evaluation
from carina.ground.score.overlap import OVERLAPS, Counts, overlap
from carina.ground.score.pointing import Box
from carina.ground.score.pooling import PixelCounts, pooled_curve
from carina.ground.score.profiles import Profile, profile, variants_of
from carina.ground.score.rules import Chosen, GridName, Objective, grid_thresholds
from carina.ground.score.summary import Cell, Pooled, Row, chexlocalize_summary, summarise
from carina.ground.score.thresholds import best_threshold
from carina.ground.score.tuning import Thresholds, tune, tuned_variant
from carina.ground.score.variants import Empty, Margin, Place, Variant
from carina.models.frame import Frame, Map
from carina.stats import Interval
from carina.stats.interval import statistic_interval
from carina.stats.resampling import REPLICATES, FloatArray, cluster_codes, cluster_sums
from carina.studies import Region
from carina.studies.region import Mask

Variants = str | Profile | Sequence[str | Variant]
_CurveKey = tuple[Place, Margin | None, GridName]


def score_pair(
    values: Map,
    truth: Region | Mask,
    frame: Frame,
    variants: Variants,
    *,
    boxes: Sequence[Box] | None = None,
    finding: str = "",
    tuned: Thresholds | None = None,
) -> dict[str, float]:
    """Scores of one map by variant; NaN where one has no meaning.

    `boxes` are the truth of `hit_box`; without them the boxes of the truth's connected pieces are. Variants of a set
    (pooled, oracle_set) are refused, as are tuned ones without thresholds.
    """
    evaluation = Evaluation(values, truth, frame, boxes)
    return {
        variant.name: evaluation.value(variant, _tuned(variant, finding, tuned))
        for variant in variants_of(variants)
    }


def _tuned(variant: Variant, finding: str, tuned: Thresholds | None) -> float | None:
    if tuned is None or not isinstance(variant.rule, Chosen) or variant.rule.where != "tuned":
        return None
    return tuned.of(variant, finding)


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """A mean score at each threshold."""

    group: str
    """The finding; empty for all together."""
    thresholds: NDArray[np.float32]
    values: FloatArray
    n: NDArray[np.int64]
    """Images at each threshold for which it is defined."""


@dataclass(frozen=True, eq=False)
class _Image:
    """What is kept of an image until the set is complete."""

    row: Row
    curves: dict[_CurveKey, Counts]
    counts: dict[Variant, Counts]
    pixels: dict[tuple[Place, Margin | None], PixelCounts]
    sees_all: bool
    """Whether the model saw the whole image, so that both rules for margins give the same."""


class Scorer:
    """Takes maps one by one; gives scores, tuned thresholds and a summary of the set.

    `split` names the images; thresholds that were tuned on the same name are refused. Tuned variants are left out where
    no thresholds are given: `tune` then chooses them.
    """

    def __init__(
        self, variants: Variants = "carina", *, split: str = "", tuned: Thresholds | None = None
    ) -> None:
        if tuned is not None and tuned.split == split:
            raise CarinaError(
                f"thresholds were tuned on split {split!r}, the one that is scored; choose them on other images"
            )
        self.split = split
        self._tuned = tuned
        self._profile = profile(variants) if isinstance(variants, str) else variants
        every = variants_of(self._profile)
        self._open = [variant for variant in every if _is_chosen(variant, "tuned")] if tuned is None else []
        """Variants whose thresholds this set may choose for another."""
        self.variants = tuple(variant for variant in every if variant not in self._open)
        """Those that are scored."""
        self._of_set = [variant for variant in self.variants if _is_chosen(variant, "oracle_set")]
        self._pooled = [variant for variant in self.variants if variant.aggregation == "pooled"]
        self._images: list[_Image] = []

    def __len__(self) -> int:
        return len(self._images)

    def add(
        self,
        name: str,
        finding: str,
        values: Map,
        truth: Region | Mask,
        frame: Frame,
        *,
        patient: str | None = None,
        boxes: Sequence[Box] | None = None,
    ) -> None:
        """One image's map of one finding; without a patient the image stands alone."""
        evaluation = Evaluation(values, truth, frame, boxes)
        scores = {
            variant.name: evaluation.value(variant, _tuned(variant, finding, self._tuned))
            for variant in self.variants
            if variant.aggregation == "per_image" and not _is_chosen(variant, "oracle_set")
        }
        curves = {key: _small(evaluation.curve(*key)) for key in self._curve_keys()}
        counts = {
            variant: evaluation.counts(variant, _tuned(variant, finding, self._tuned))
            for variant in self._pooled
            if variant.metric in OVERLAPS and not _is_chosen(variant, "oracle_set")
        }
        exact = any(variant.metric in ("auroc", "auprc") for variant in self._pooled)
        pixels = {
            (where, margin): evaluation.pixels(where, margin, exact=exact)
            for where, margin in {
                (variant.place, variant.margin) for variant in self._pooled if variant.metric not in OVERLAPS
            }
        }
        row = Row(name, finding, patient or name, evaluation.share, scores)
        self._images.append(_Image(row, curves, counts, pixels, frame.sees_all))

    def _curve_keys(self) -> set[_CurveKey]:
        return {_curve_key(variant) for variant in (*self._of_set, *self._open)}

    def rows(self) -> list[Row]:
        """A row for each map, in the order they came, with the scores at thresholds that were chosen on this set."""
        best = self.best_thresholds()
        rows = []
        for image in self._images:
            scores = dict(image.row.values)
            for variant in self._of_set:
                if variant.aggregation == "per_image":
                    counts = image.curves[_curve_key(variant)].at(best[variant][0])
                    scores[variant.name] = float(overlap(variant.metric, counts, variant.empty)[0])
            ordered = {
                variant.name: scores[variant.name]
                for variant in self.variants
                if variant.aggregation == "per_image"
            }
            row = image.row
            rows.append(Row(row.id, row.finding, row.patient, row.share, ordered))
        return rows

    def best_thresholds(self) -> dict[Variant, tuple[int, float]]:
        """Place in its grid and value of the threshold that is best on this set, for each oracle_set variant."""
        found: dict[Variant, tuple[int, float]] = {}
        for variant in self._of_set:
            named = tuned_variant(variant)
            if named not in found:
                rule = _chosen(named)
                found[named] = best_threshold(self._curves(named), rule.grid, rule.objective, named.empty)
        return {variant: found[tuned_variant(variant)] for variant in self._of_set}

    def tune(self) -> Thresholds:
        """The thresholds of tuned variants that are best here, for the scorer of another split."""
        if not self.split:
            raise CarinaError("the split that thresholds are tuned on must have a name")
        if not self._open:
            raise CarinaError("there is no variant to tune; profiles chexlocalize and carina have some")
        if not self._images:
            raise CarinaError(f"split {self.split!r} has no maps to tune thresholds on")
        findings = [image.row.finding for image in self._images]
        return tune(self._open, findings, self._curves, split=self.split)

    def _curves(self, variant: Variant) -> list[Counts]:
        key = _curve_key(variant)
        return [image.curves[key] for image in self._images]

    def sensitivity(
        self,
        metric: Objective = "iou",
        *,
        where: Place = "bilinear_full",
        margin: Margin | None = "full_image",
        grid: GridName = "minmax256",
        empty: Empty = "positives",
    ) -> list[Sensitivity]:
        """The mean score at each threshold of a grid that a chosen variant uses: for all, then for each finding."""
        key = (where, margin, grid)
        if key not in self._curve_keys():
            raise CarinaError(f"no variant of this scorer chooses a threshold of {grid} in {where}")
        groups: dict[str, list[FloatArray]] = {"": []}
        for image in sorted(self._images, key=lambda image: image.row.finding):
            values = overlap(metric, image.curves[key], empty)
            groups[""].append(values)
            groups.setdefault(image.row.finding, []).append(values)
        return [_sensitivity(group, grid, values) for group, values in groups.items() if values]

    def summary(
        self,
        *,
        edges: tuple[float, ...] = SIZE_EDGES,
        level: float = 0.95,
        replicates: int = REPLICATES,
        seed: int = 0,
    ) -> list[Cell]:
        """Figures of the set with intervals; by the profile's own rule where it has one, see `chexlocalize_summary`."""
        rows = self.rows()
        repeated = [
            name for name, times in Counter((row.id, row.finding) for row in rows).items() if times > 1
        ]
        if repeated:
            raise CarinaError(f"image {repeated[0][0]!r} has two maps of {repeated[0][1]!r}")
        figure = partial(self._pooled_figure, level=level, replicates=replicates, seed=seed)
        same = all(image.sees_all for image in self._images)
        known: dict[tuple[Variant, tuple[int, ...]], tuple[Interval, int]] = {}

        def once(variant: Variant, chosen: Sequence[int]) -> tuple[Interval, int]:
            # Without margins a variant and its twin are one figure, which takes long.
            key = replace(variant, margin="full_image") if same and variant.margin else variant, tuple(chosen)
            if key not in known:
                known[key] = figure(variant, chosen)
            return known[key]

        pooled: dict[Variant, Pooled] = {variant: partial(once, variant) for variant in self._pooled}
        if isinstance(self._profile, Profile) and self._profile.interval == "chexlocalize":
            theirs = chexlocalize_summary(rows, self.variants)
            ours = summarise(rows, [], pooled=pooled, edges=edges)
            return theirs + [cell for cell in ours if cell.level == "finding"]
        return summarise(
            rows,
            self.variants,
            pooled=pooled,
            edges=edges,
            level=level,
            replicates=replicates,
            seed=seed,
        )

    def _pooled_figure(
        self, variant: Variant, chosen: Sequence[int], *, level: float, replicates: int, seed: int
    ) -> tuple[Interval, int]:
        images = [self._images[at] for at in chosen]
        patients = [image.row.patient for image in images]
        if variant.metric in OVERLAPS:
            counts = self._pooled_counts(variant, images)
            return _pooled_overlap(variant, counts, patients, level=level, replicates=replicates, seed=seed)
        return pooled_curve(
            [image.pixels[variant.place, variant.margin] for image in images],
            patients,
            metric=variant.metric,
            exact=not variant.metric.endswith("_binned"),
            level=level,
            replicates=replicates,
            seed=seed,
        )

    def _pooled_counts(self, variant: Variant, images: Sequence[_Image]) -> list[Counts]:
        if not _is_chosen(variant, "oracle_set"):
            return [image.counts[variant] for image in images]
        index = self.best_thresholds()[variant][0]
        return [image.curves[_curve_key(variant)].at(index) for image in images]


def _pooled_overlap(
    variant: Variant,
    counts: Sequence[Counts],
    patients: Sequence[str],
    *,
    level: float,
    replicates: int,
    seed: int,
) -> tuple[Interval, int]:
    """The metric of counts summed over images."""
    table = np.array([[c.hit[0], c.false[0], c.true, c.other] for c in counts], np.float64)
    usable = 0

    def figure(totals: FloatArray) -> FloatArray:
        nonlocal usable
        made = overlap(variant.metric, Counts(*totals.T))
        usable = int(np.count_nonzero(~np.isnan(made)))
        return made

    sums = cluster_sums(table, cluster_codes(patients, len(table)))
    found = statistic_interval(sums, figure, n=len(table), level=level, replicates=replicates, seed=seed)
    return found, usable if found.low is not None else 0


def _sensitivity(group: str, grid: GridName, values: Sequence[FloatArray]) -> Sensitivity:
    table = np.array(values)
    there = ~np.isnan(table)
    n = there.sum(axis=0)
    means = np.divide(np.where(there, table, 0).sum(axis=0), n, out=np.full(len(n), np.nan), where=n > 0)
    return Sensitivity(group, grid_thresholds(grid), means, n)


def _is_chosen(variant: Variant, where: str) -> bool:
    return isinstance(variant.rule, Chosen) and variant.rule.where == where


def _chosen(variant: Variant) -> Chosen:
    assert isinstance(variant.rule, Chosen)  # noqa: S101 - asked only of those
    return variant.rule


def _curve_key(variant: Variant) -> _CurveKey:
    return variant.place, variant.margin, _chosen(variant).grid


def _small(counts: Counts) -> Counts:
    """In half the memory: a curve is kept for each image."""
    return Counts(counts.hit.astype(np.int32), counts.false.astype(np.int32), counts.true, counts.other)
