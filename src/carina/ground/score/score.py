"""Scoring: one map at once, or a set of maps with what only a set has (pooled curves, thresholds, intervals)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec
import numpy as np
from numpy.typing import NDArray

from carina.errors import CarinaError
from carina.ground.score.areas import SIZE_EDGES
from carina.ground.score.evaluate import Evaluation
from carina.ground.score.overlap import OVERLAPS, Counts, overlap
from carina.ground.score.pointing import Box
from carina.ground.score.pooling import PixelCounts, pooled_curve, pooled_overlap
from carina.ground.score.profiles import Profile, profile, variants_of
from carina.ground.score.rules import Chosen, GridName, Objective, grid_thresholds
from carina.ground.score.summary import Cell, Given, Pooled, Row, chexlocalize_summary, counted, summarise
from carina.ground.score.thresholds import best_threshold
from carina.ground.score.tuning import Shown, Thresholds, digest, tune, tune_cutoffs, tuned_variant
from carina.ground.score.variants import Empty, Margin, Place, Variant
from carina.models.frame import Frame, Map
from carina.stats import Interval
from carina.stats.resampling import REPLICATES, FloatArray
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
    (pooled, oracle_set, gated) are refused, as are tuned ones without thresholds.
    """
    gated = next((variant for variant in variants_of(variants) if variant.empty == "gated"), None)
    if gated is not None:
        raise CarinaError(
            f"{gated}: needs a probability and a cut-off that was tuned on another split; use Scorer"
        )
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
    shown: dict[Variant, float]
    """What gated variants score if the map is shown, where their cut-offs are to be chosen."""
    probability: float | None
    sees_all: bool
    """Whether the model saw the whole image, so that both rules for margins give the same."""


class Scorer:
    """Takes maps one by one; gives scores, tuned thresholds and a summary of the set.

    `split` names the images; thresholds and cut-offs that were tuned on the same name, or on any of the images that are
    added, are refused. Tuned variants are left out where no thresholds are given, and gated ones where no cut-offs are:
    `tune` and `tune_cutoffs` then choose them.
    """

    def __init__(
        self,
        variants: Variants = "carina",
        *,
        split: str = "",
        tuned: Thresholds | None = None,
        cutoffs: Thresholds | None = None,
    ) -> None:
        self._foreign = frozenset[str]()
        """Digests of images on which something was tuned, and which are therefore not scored."""
        for what, given in (("thresholds", tuned), ("cut-offs", cutoffs)):
            if given is not None:
                _check_split(what, given.split, split)
                self._foreign |= frozenset(given.images)
        self.split = split
        self._tuned = tuned
        self._cutoffs = cutoffs
        self._profile = profile(variants) if isinstance(variants, str) else variants
        every = variants_of(self._profile)
        self._open = [variant for variant in every if _is_chosen(variant, "tuned")] if tuned is None else []
        """Variants whose thresholds this set may choose for another."""
        self._ungated = [variant for variant in every if variant.empty == "gated"] if cutoffs is None else []
        """Variants whose cut-offs it may."""
        self.variants = tuple(variant for variant in every if variant not in (*self._open, *self._ungated))
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
        values: Map | None,
        truth: Region | Mask | None,
        frame: Frame,
        *,
        patient: str | None = None,
        boxes: Sequence[Box] | None = None,
        probability: float | None = None,
    ) -> None:
        """One image's map of one finding; without a patient the image stands alone.

        Where the finding is absent the truth is empty. Without a map (None) the model predicts nothing: that counts for
        variants with `any_mask` and `gated` and for pooled counts, and the others leave the image out. Without a truth
        (None) the image is none of those that were read for the finding: `any_mask` and `gated` alone count it, as one
        where it is absent. `probability` is the finding's, which gated variants need.
        """
        given: Given = "truth" if values is None else "map" if truth is None else "both"
        if values is None and truth is None:
            raise CarinaError(f"image {name!r}, {finding}: has neither a map nor a truth")
        if self._foreign and digest(name) in self._foreign:
            raise CarinaError(
                f"image {name!r}: is among those that thresholds or cut-offs were tuned on; score other images"
            )
        drawn = np.zeros((frame.height, frame.width), bool) if truth is None else truth
        evaluation = Evaluation(values, drawn, frame, boxes)
        scores = {
            variant.name: self._score(evaluation, variant, name, finding, given, probability)
            for variant in self.variants
            if variant.aggregation == "per_image" and not _is_chosen(variant, "oracle_set")
        }
        curves = {key: _small(evaluation.curve(*key)) for key in self._curve_keys()}
        counts = {
            variant: evaluation.counts(variant, _tuned(variant, finding, self._tuned))
            for variant in self._pooled
            if variant.metric in OVERLAPS
            and not _is_chosen(variant, "oracle_set")
            and counted(variant, given)
        }
        exact = any(variant.metric in ("auroc", "auprc") for variant in self._pooled)
        pixels = {
            (where, margin): evaluation.pixels(where, margin, exact=exact)
            for where, margin in {
                (variant.place, variant.margin)
                for variant in self._pooled
                if variant.metric not in OVERLAPS and given == "both"
            }
        }
        shown = {
            named: evaluation.value(named)
            for named in dict.fromkeys(map(tuned_variant, self._ungated))
            if values is not None
        }
        row = Row(name, finding, patient or name, evaluation.share, scores, given)
        self._images.append(_Image(row, curves, counts, pixels, shown, probability, frame.sees_all))

    def _score(  # noqa: PLR0917 - what `add` is given
        self,
        evaluation: Evaluation,
        variant: Variant,
        name: str,
        finding: str,
        given: Given,
        probability: float | None,
    ) -> float:
        if not counted(variant, given):
            return float("nan")
        if variant.empty == "gated" and self._cutoffs is not None and given != "truth":
            if probability is None:
                raise CarinaError(
                    f"image {name!r}, {finding}: its map has no probability, which {variant} needs"
                )
            if probability < self._cutoffs.of(variant, finding):
                nothing = evaluation.nothing(variant.place, variant.margin)
                return float(overlap(variant.metric, nothing, variant.empty)[0])
        return evaluation.value(variant, _tuned(variant, finding, self._tuned))

    def _curve_keys(self) -> set[_CurveKey]:
        return {_curve_key(variant) for variant in (*self._of_set, *self._open)}

    def rows(self) -> list[Row]:
        """A row for each map, in the order they came, with the scores at thresholds that were chosen on this set."""
        best = self.best_thresholds()
        rows = []
        for image in self._images:
            scores = dict(image.row.values)
            for variant in self._of_set:
                if variant.aggregation == "per_image" and not counted(variant, image.row.given):
                    scores[variant.name] = float("nan")
                elif variant.aggregation == "per_image":
                    counts = image.curves[_curve_key(variant)].at(best[variant][0])
                    scores[variant.name] = float(overlap(variant.metric, counts, variant.empty)[0])
            ordered = {
                variant.name: scores[variant.name]
                for variant in self.variants
                if variant.aggregation == "per_image"
            }
            rows.append(msgspec.structs.replace(image.row, values=ordered))
        return rows

    def best_thresholds(self) -> dict[Variant, tuple[int, float]]:
        """Place in its grid and value of the threshold that is best on this set, for each oracle_set variant."""
        found: dict[Variant, tuple[int, float]] = {}
        for variant in self._of_set:
            named = tuned_variant(variant)
            if named not in found:
                rule = _chosen(named)
                curves = [counts for _, counts in self._curves(named)]
                found[named] = best_threshold(curves, rule.grid, rule.objective, named.empty)
        return {variant: found[tuned_variant(variant)] for variant in self._of_set}

    def tune(self) -> Thresholds:
        """The thresholds of tuned variants that are best here, for the scorer of another split."""
        images = self._to_tune("thresholds", self._open)
        return tune(self._open, self._curves, split=self.split, images=images)

    def tune_cutoffs(self) -> Thresholds:
        """The cut-offs of gated variants that are best here, for the scorer of another split."""
        images = self._to_tune("cut-offs", self._ungated)
        return tune_cutoffs(self._ungated, self._shown, split=self.split, images=images)

    def _to_tune(self, what: str, variants: Sequence[Variant]) -> list[str]:
        """The images whose maps choose something. An image without a map is the same at every threshold."""
        if not self.split:
            raise CarinaError(f"the split that {what} are tuned on must have a name (--split)")
        if not variants:
            raise CarinaError(f"there is no variant to tune {what} of; profile chexlocalize has one")
        mapped = [image.row.id for image in self._images if image.row.given != "truth"]
        if not mapped:
            raise CarinaError(f"split {self.split!r} has no maps to tune {what} on")
        return mapped

    def _curves(self, variant: Variant) -> list[tuple[str, Counts]]:
        """The finding and the curve of each image that counts."""
        key = _curve_key(variant)
        images = [image for image in self._images if counted(variant, image.row.given)]
        return [(image.row.finding, image.curves[key]) for image in images]

    def _shown(self, variant: Variant) -> list[tuple[str, Shown]]:
        found = []
        for image in self._images:
            row = image.row
            if row.given == "truth":
                continue
            if image.probability is None:
                raise CarinaError(
                    f"image {row.id!r}, {row.finding}: its map has no probability to tune cut-offs by"
                )
            found.append((row.finding, Shown(image.probability, image.shown[variant], row.share == 0)))
        return found

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
        images = [image for image in self._images if image.row.given == "both" or empty == "any_mask"]
        for image in sorted(images, key=lambda image: image.row.finding):
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
        images = [self._images[at] for at in chosen if counted(variant, self._images[at].row.given)]
        if not images:
            return Interval(None, None, None, 0, 0), 0
        patients = [image.row.patient for image in images]
        if variant.metric in OVERLAPS:
            counts = self._pooled_counts(variant, images)
            return pooled_overlap(
                counts, patients, metric=variant.metric, level=level, replicates=replicates, seed=seed
            )
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


def _check_split(what: str, tuned_on: str, scored: str) -> None:
    if not scored:
        raise CarinaError(
            f"{what} were tuned on split {tuned_on!r}: the split that is scored must have a name too (--split)"
        )
    if tuned_on == scored:
        raise CarinaError(
            f"{what} were tuned on split {scored!r}, the one that is scored; choose them on other images"
        )


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
