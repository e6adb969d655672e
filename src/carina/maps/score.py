"""Score one map, or a set of maps with what only a set has: pooled curves, selected thresholds and intervals."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import msgspec
import numpy as np
from numpy.typing import NDArray

from carina.maps.areas import SIZE_EDGES
from carina.maps.counts import OVERLAPS, MaskCounts, overlap
from carina.maps.evaluation import Evaluation
from carina.maps.metrics import Empty, Margin, Resampling
from carina.maps.pointing import Box
from carina.maps.pooling import CodedPixels, pooled_curve, pooled_overlap
from carina.maps.profiles import Profile, find_profile, find_variants
from carina.maps.rules import GridName, Objective, SelectedThreshold, grid_thresholds
from carina.maps.summary import (
    Available,
    Cell,
    PooledFigure,
    Row,
    chexlocalize_summary,
    counts_image,
    summarise,
)
from carina.maps.thresholds import select_threshold
from carina.maps.tuning import (
    Thresholds,
    UngatedScore,
    digest_id,
    tune_cutoffs,
    tune_thresholds,
    tuned_variant,
)
from carina.maps.variants import Variant
from carina.models.frame import Frame, Map
from carina.stats import Interval
from carina.stats.resampling import REPLICATES, FloatArray
from carina.store.errors import CarinaError
from carina.studies import Region
from carina.studies.region import Mask

Variants = str | Profile | Sequence[str | Variant]
"""A profile, the name of a profile, or a list of variants or their names."""
_CurveKey = tuple[Resampling, Margin | None, GridName]


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
    """Score one map against one region.

    Args:
        values: The map: floats, (rows, columns), over the square that the model saw; NaN for cells without a value.
        truth: The region, or a mask of booleans of the size of the image.
        frame: How the image lies in the square that the model saw.
        variants: A profile, its name, or a list of metric variants or their names.
        boxes: Boxes that are the truth of `hit_box`; None for the boxes of the connected pieces of the region.
        finding: Finding whose tuned threshold is applied.
        tuned: Thresholds that were tuned on another split.

    Returns:
        Score by variant name; NaN where a variant is undefined.

    Raises:
        CarinaError: A variant is defined on a set of images only (pooled, oracle_set, gated), or needs tuned
            thresholds.

    Example:
        >>> import numpy as np
        >>> values = np.array([[0.1, 0.9], [0.2, 0.3]], np.float32)
        >>> score_pair(values, values > 0.5, Frame.stretched(2, 2, side=2), ["hit.expected"])
        {'hit.bilinear_full.full_image.expected.positives.per_image': 1.0}
    """
    gated = next((variant for variant in find_variants(variants) if variant.empty == "gated"), None)
    if gated is not None:
        raise CarinaError(
            f"{gated}: needs a probability and a cut-off that was tuned on another split; use Scorer"
        )
    evaluation = Evaluation(values, truth, frame, boxes)
    return {
        variant.name: evaluation.score(variant, _tuned_threshold(variant, finding, tuned))
        for variant in find_variants(variants)
    }


def _tuned_threshold(variant: Variant, finding: str, tuned: Thresholds | None) -> float | None:
    if tuned is None or not _is_selected_on(variant, "tuned"):
        return None
    return tuned.find(variant, finding)


@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Mean score at each threshold of a grid."""

    group: str
    """The finding; empty for all findings together."""
    thresholds: NDArray[np.float32]
    values: FloatArray
    """Mean score at each threshold; NaN where it is undefined."""
    n: NDArray[np.int64]
    """Number of images on which the score is defined, at each threshold."""


@dataclass(frozen=True, eq=False)
class _ImageResult:
    """What a scorer keeps of an image until the set is complete."""

    row: Row
    curves: dict[_CurveKey, MaskCounts]
    counts: dict[Variant, MaskCounts]
    pixels: dict[tuple[Resampling, Margin | None], CodedPixels]
    ungated_scores: dict[Variant, float]
    """Scores of gated variants without a cut-off, where their cut-offs are to be tuned."""
    probability: float | None
    sees_all: bool
    """Whether the model saw the whole image, so that both margins give the same."""


class Scorer:
    """Scores a set of maps: takes them one by one, then gives their scores, a summary and tuned thresholds.

    Variants with tuned thresholds are left out where no thresholds are given, and gated variants where no cut-offs are;
    `tune` and `tune_cutoffs` then select them on this set, for another split.

    Args:
        variants: A profile, its name, or a list of metric variants or their names.
        split: Name of the split that is scored; needed with `tuned` and `cutoffs`, and to tune.
        tuned: Thresholds that were tuned on another split.
        cutoffs: Probability cut-offs that were tuned on another split.

    Raises:
        CarinaError: Thresholds or cut-offs were tuned on the split that is scored, or a variant is unknown.

    Example:
        >>> import numpy as np
        >>> values = np.array([[0.1, 0.9], [0.2, 0.3]], np.float32)
        >>> scorer = Scorer(["hit.expected"])
        >>> scorer.add("image-1", "mass", values, values > 0.5, Frame.stretched(2, 2, side=2), patient="p1")
        >>> scorer.rows()[0].values
        {'hit.bilinear_full.full_image.expected.positives.per_image': 1.0}
    """

    def __init__(
        self,
        variants: Variants = "carina",
        *,
        split: str = "",
        tuned: Thresholds | None = None,
        cutoffs: Thresholds | None = None,
    ) -> None:
        self._tuning_images = frozenset[str]()
        """Digests of the images on which something was tuned; they must not be scored."""
        for kind, thresholds in (("thresholds", tuned), ("cut-offs", cutoffs)):
            if thresholds is not None:
                _check_split(kind, thresholds.split, split)
                self._tuning_images |= frozenset(thresholds.images)
        self.split = split
        self._tuned = tuned
        self._cutoffs = cutoffs
        self._profile = find_profile(variants) if isinstance(variants, str) else variants
        every = find_variants(self._profile)
        self._without_threshold = (
            [variant for variant in every if _is_selected_on(variant, "tuned")] if tuned is None else []
        )
        """Variants whose thresholds can be tuned on this set."""
        self._without_cutoff = (
            [variant for variant in every if variant.empty == "gated"] if cutoffs is None else []
        )
        """Variants whose cut-offs can be tuned on this set."""
        left_out = (*self._without_threshold, *self._without_cutoff)
        self.variants = tuple(variant for variant in every if variant not in left_out)
        """Variants that are scored."""
        self._selected_here = [variant for variant in self.variants if _is_selected_on(variant, "oracle_set")]
        """Variants whose threshold is selected on the scored set itself."""
        self._pooled = [variant for variant in self.variants if variant.aggregation == "pooled"]
        self._images: list[_ImageResult] = []

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
        """Add the map of one finding on one image.

        Args:
            name: Id of the image.
            finding: Name of the finding.
            values: The map; None where the model made none. A missing map predicts nothing: it counts in variants with
                `any_mask` and `gated` and in pooled counts, and is left out of the others.
            truth: The region, empty where the finding is absent; None where the image was not annotated for the
                finding. A map without a region counts in `any_mask` and `gated` only, as if the finding were absent.
            frame: How the image lies in the square that the model saw.
            patient: The patient whose image it is; None counts the image as a patient of its own.
            boxes: Boxes that are the truth of `hit_box`; None for the boxes of the connected pieces of the region.
            probability: Probability of the finding, which gated variants need.

        Raises:
            CarinaError: Both the map and the region are missing, the map or region does not fit the frame, a
                probability is missing, or thresholds were tuned on this image.
        """
        if values is None and truth is None:
            raise CarinaError(f"image {name!r}, {finding}: expected a map, a truth or both")
        available: Available = "truth" if values is None else "map" if truth is None else "both"
        if self._tuning_images and digest_id(name) in self._tuning_images:
            raise CarinaError(
                f"image {name!r}: thresholds or cut-offs were tuned on this image; score other images"
            )
        region = np.zeros((frame.height, frame.width), bool) if truth is None else truth
        evaluation = Evaluation(values, region, frame, boxes)
        scores = {
            variant.name: self._score(evaluation, variant, name, finding, available, probability)
            for variant in self.variants
            if variant.aggregation == "per_image" and not _is_selected_on(variant, "oracle_set")
        }
        curves = {key: _halve_memory(evaluation.curve(*key)) for key in self._curve_keys()}
        counts = {
            variant: evaluation.counts(variant, _tuned_threshold(variant, finding, self._tuned))
            for variant in self._pooled
            if variant.metric in OVERLAPS
            and not _is_selected_on(variant, "oracle_set")
            and counts_image(variant, available)
        }
        exact = any(variant.metric in ("auroc", "auprc") for variant in self._pooled)
        pixels = {
            (resampling, margin): evaluation.pixels(resampling, margin, exact=exact)
            for resampling, margin in {
                (variant.resampling, variant.margin)
                for variant in self._pooled
                if variant.metric not in OVERLAPS and available == "both"
            }
        }
        ungated_scores = {
            variant: evaluation.score(variant)
            for variant in dict.fromkeys(map(tuned_variant, self._without_cutoff))
            if values is not None
        }
        row = Row(name, finding, patient or name, evaluation.truth_share, scores, available)
        self._images.append(
            _ImageResult(row, curves, counts, pixels, ungated_scores, probability, frame.sees_all)
        )

    def _score(  # noqa: PLR0917 - the arguments of `add`
        self,
        evaluation: Evaluation,
        variant: Variant,
        name: str,
        finding: str,
        available: Available,
        probability: float | None,
    ) -> float:
        if not counts_image(variant, available):
            return float("nan")
        if variant.empty == "gated" and self._cutoffs is not None and available != "truth":
            if probability is None:
                raise CarinaError(
                    f"image {name!r}, {finding}: its map has no probability, which {variant} needs"
                )
            if probability < self._cutoffs.find(variant, finding):
                counts = evaluation.count_empty_prediction(variant.resampling, variant.margin)
                return float(overlap(variant.metric, counts, variant.empty)[0])
        return evaluation.score(variant, _tuned_threshold(variant, finding, self._tuned))

    def _curve_keys(self) -> set[_CurveKey]:
        return {_curve_key(variant) for variant in (*self._selected_here, *self._without_threshold)}

    def rows(self) -> list[Row]:
        """Scores of each map, in the order in which the maps were added."""
        best = self.best_thresholds()
        rows = []
        for image in self._images:
            scores = dict(image.row.values)
            for variant in self._selected_here:
                if variant.aggregation == "per_image" and not counts_image(variant, image.row.available):
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
        """Index in its grid and value of the best threshold on this set, for each oracle_set variant."""
        best: dict[Variant, tuple[int, float]] = {}
        for variant in self._selected_here:
            objective = tuned_variant(variant)
            if objective not in best:
                rule = _selected_rule(objective)
                curves = [counts for _, counts in self._curves(objective)]
                best[objective] = select_threshold(curves, rule.grid, rule.objective, objective.empty)
        return {variant: best[tuned_variant(variant)] for variant in self._selected_here}

    def tune(self) -> Thresholds:
        """Select the best thresholds of the tuned variants on this set, for the scorer of another split.

        Raises:
            CarinaError: The split has no name or no maps, or no variant has a tuned threshold.
        """
        images = self._images_to_tune_on("thresholds", self._without_threshold)
        return tune_thresholds(self._without_threshold, self._curves, split=self.split, images=images)

    def tune_cutoffs(self) -> Thresholds:
        """Select the best probability cut-offs of the gated variants on this set, for the scorer of another split.

        Raises:
            CarinaError: The split has no name or no maps, a map has no probability, or no variant is gated.
        """
        images = self._images_to_tune_on("cut-offs", self._without_cutoff)
        return tune_cutoffs(self._without_cutoff, self._ungated_scores, split=self.split, images=images)

    def _images_to_tune_on(self, kind: str, variants: Sequence[Variant]) -> list[str]:
        """Ids of the images with a map. An image without a map has the same score at every threshold."""
        if not self.split:
            raise CarinaError(f"split: the images on which {kind} are tuned need a name (--split)")
        if not variants:
            raise CarinaError(f"variants: none has {kind} to tune; the profile chexlocalize has one")
        with_map = [image.row.id for image in self._images if image.row.available != "truth"]
        if not with_map:
            raise CarinaError(f"split {self.split!r}: has no maps to tune {kind} on")
        return with_map

    def _curves(self, variant: Variant) -> list[tuple[str, MaskCounts]]:
        """The finding and the curve of each image that counts."""
        key = _curve_key(variant)
        images = [image for image in self._images if counts_image(variant, image.row.available)]
        return [(image.row.finding, image.curves[key]) for image in images]

    def _ungated_scores(self, variant: Variant) -> list[tuple[str, UngatedScore]]:
        scores = []
        for image in self._images:
            row = image.row
            if row.available == "truth":
                continue
            if image.probability is None:
                raise CarinaError(
                    f"image {row.id!r}, {row.finding}: its map has no probability, which tuning cut-offs needs"
                )
            score = UngatedScore(image.probability, image.ungated_scores[variant], row.share == 0)
            scores.append((row.finding, score))
        return scores

    def sensitivity(
        self,
        metric: Objective = "iou",
        *,
        resampling: Resampling = "bilinear_full",
        margin: Margin | None = "full_image",
        grid: GridName = "minmax256",
        empty: Empty = "positives",
    ) -> list[Sensitivity]:
        """Mean score at each threshold of a grid, for all findings together and then for each finding.

        Args:
            metric: "iou" or "dice".
            resampling: Way to bring the map and the truth to the same pixels.
            margin: Treatment of the pixels that the model did not see.
            grid: Grid of thresholds; a variant of this scorer must select its threshold from it.
            empty: Treatment of empty masks.

        Raises:
            CarinaError: No variant of this scorer selects a threshold from this grid.
        """
        key = (resampling, margin, grid)
        if key not in self._curve_keys():
            raise CarinaError(
                f"grid {grid!r}: no variant of this scorer selects its threshold from it with {resampling}"
            )
        groups: dict[str, list[FloatArray]] = {"": []}
        images = [image for image in self._images if image.row.available == "both" or empty == "any_mask"]
        for image in sorted(images, key=lambda image: image.row.finding):
            values = overlap(metric, image.curves[key], empty)
            groups[""].append(values)
            groups.setdefault(image.row.finding, []).append(values)
        return [_average_curves(group, grid, values) for group, values in groups.items() if values]

    def summary(
        self,
        *,
        edges: tuple[float, ...] = SIZE_EDGES,
        level: float = 0.95,
        replicates: int = REPLICATES,
        seed: int = 0,
    ) -> list[Cell]:
        """Means over the set with bootstrap intervals, by finding and by lesion size.

        The profile "chexlocalize" has intervals by its own rule; see `carina.maps.summary.chexlocalize_summary`.

        Args:
            edges: Shares of the image that divide the size bins.
            level: Coverage of the intervals.
            replicates: Number of bootstrap replicates of patients.
            seed: Seed of the bootstrap.

        Raises:
            CarinaError: An image has two maps of one finding.
        """
        rows = self.rows()
        repeated = [key for key, n in Counter((row.id, row.finding) for row in rows).items() if n > 1]
        if repeated:
            raise CarinaError(f"image {repeated[0][0]!r}: has two maps of {repeated[0][1]!r}, expected one")
        compute = partial(self._pooled_figure, level=level, replicates=replicates, seed=seed)
        margins_agree = all(image.sees_all for image in self._images)
        cache: dict[tuple[Variant, tuple[int, ...]], tuple[Interval, int]] = {}

        def compute_once(variant: Variant, indices: Sequence[int]) -> tuple[Interval, int]:
            # Where the model saw all images whole, variants that differ in the margin share one slow computation.
            shared = replace(variant, margin="full_image") if margins_agree and variant.margin else variant
            key = shared, tuple(indices)
            if key not in cache:
                cache[key] = compute(variant, indices)
            return cache[key]

        pooled: dict[Variant, PooledFigure] = {
            variant: partial(compute_once, variant) for variant in self._pooled
        }
        if isinstance(self._profile, Profile) and self._profile.interval == "chexlocalize":
            per_image = chexlocalize_summary(rows, self.variants)
            over_pixels = summarise(rows, [], pooled=pooled, edges=edges)
            return per_image + [cell for cell in over_pixels if cell.level == "finding"]
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
        self, variant: Variant, indices: Sequence[int], *, level: float, replicates: int, seed: int
    ) -> tuple[Interval, int]:
        images = [
            self._images[index]
            for index in indices
            if counts_image(variant, self._images[index].row.available)
        ]
        if not images:
            return Interval(None, None, None, 0, 0), 0
        patients = [image.row.patient for image in images]
        if variant.metric in OVERLAPS:
            counts = self._pooled_counts(variant, images)
            return pooled_overlap(
                counts, patients, metric=variant.metric, level=level, replicates=replicates, seed=seed
            )
        return pooled_curve(
            [image.pixels[variant.resampling, variant.margin] for image in images],
            patients,
            metric=variant.metric,
            exact=not variant.metric.endswith("_binned"),
            level=level,
            replicates=replicates,
            seed=seed,
        )

    def _pooled_counts(self, variant: Variant, images: Sequence[_ImageResult]) -> list[MaskCounts]:
        if not _is_selected_on(variant, "oracle_set"):
            return [image.counts[variant] for image in images]
        index = self.best_thresholds()[variant][0]
        return [image.curves[_curve_key(variant)].at(index) for image in images]


def _check_split(kind: str, tuned_on: str, scored: str) -> None:
    if not scored:
        raise CarinaError(
            f"split: {kind} were tuned on split {tuned_on!r}; name the split that is scored too (--split)"
        )
    if tuned_on == scored:
        raise CarinaError(
            f"split {scored!r}: {kind} were tuned on the split that is scored; tune them on other images"
        )


def _average_curves(group: str, grid: GridName, values: Sequence[FloatArray]) -> Sensitivity:
    table = np.array(values)
    is_defined = ~np.isnan(table)
    n = is_defined.sum(axis=0)
    means = np.divide(np.where(is_defined, table, 0).sum(axis=0), n, out=np.full(len(n), np.nan), where=n > 0)
    return Sensitivity(group, grid_thresholds(grid), means, n)


def _is_selected_on(variant: Variant, selected_on: str) -> bool:
    return isinstance(variant.rule, SelectedThreshold) and variant.rule.selected_on == selected_on


def _selected_rule(variant: Variant) -> SelectedThreshold:
    assert isinstance(variant.rule, SelectedThreshold)  # noqa: S101 - callers check
    return variant.rule


def _curve_key(variant: Variant) -> _CurveKey:
    return variant.resampling, variant.margin, _selected_rule(variant).grid


def _halve_memory(counts: MaskCounts) -> MaskCounts:
    """The counts as 32-bit integers: a curve is kept for each image."""
    return MaskCounts(
        counts.true_positives.astype(np.int32),
        counts.false_positives.astype(np.int32),
        counts.n_true,
        counts.n_other,
    )
