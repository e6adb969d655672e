"""Score one map against one truth by many variants; what several variants need is computed once."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from carina.maps.alignment import AlignedMap, align_map, check_map, count_truth, truth_mask
from carina.maps.counts import (
    OVERLAPS,
    MaskCounts,
    auprc_of_levels,
    auroc_of_levels,
    binned_levels,
    exact_levels,
    overlap,
)
from carina.maps.metrics import METRICS, Empty, Margin, Resampling
from carina.maps.pair import IntArray, Pair
from carina.maps.pixel_values import top_share
from carina.maps.pointing import Box, component_boxes, score_box_hit, score_hit, score_weighted_hit
from carina.maps.pooling import CodedPixels, encode_pixels
from carina.maps.rules import (
    GRIDS,
    FixedThreshold,
    GridName,
    OracleThreshold,
    OtsuThreshold,
    PeakNeighbourhood,
    PeakPixel,
    Rule,
    SelectedThreshold,
    TopPixels,
    grid_thresholds,
    rule_name,
)
from carina.maps.thresholds import apply_grid, apply_threshold
from carina.maps.variants import Variant
from carina.models.frame import Frame, Map
from carina.store.errors import CarinaError
from carina.studies import Region
from carina.studies.region import Mask

_HITS: Final = frozenset({"hit", "hit_weighted", "hit_box"})


class Evaluation:
    """A map, its frame and the truth. Intermediate results are cached.

    Without a map (None) nothing is predicted, and only overlap variants have a score.
    """

    def __init__(
        self, values: Map | None, truth: Region | Mask, frame: Frame, boxes: Sequence[Box] | None = None
    ) -> None:
        self._values = None if values is None else check_map(values)
        self._truth = truth_mask(truth, frame)
        self._frame = frame
        self._boxes = boxes
        self._aligned: dict[Resampling, AlignedMap] = {}
        self._pairs: dict[tuple[Resampling, Margin | None], Pair] = {}
        # By pair, because both margins share one pair where the model saw the whole image.
        self._counts: dict[tuple[Pair, Rule], MaskCounts] = {}
        self._curves: dict[tuple[Pair, GridName], MaskCounts] = {}
        self._levels: dict[tuple[Pair, bool], tuple[IntArray, IntArray]] = {}
        self._pixels: dict[tuple[Pair, bool], CodedPixels] = {}
        self._scores: dict[tuple[Pair, str, Rule | None, Empty | None], float] = {}

    @property
    def truth_share(self) -> float:
        """The truth's share of the image."""
        return float(np.count_nonzero(self._truth) / self._truth.size)

    def pair(self, resampling: Resampling, margin: Margin | None) -> Pair:
        """The map and the truth in the same pixels."""
        pair = self._pairs.get((resampling, margin))
        if pair is None:
            assert self._values is not None  # noqa: S101 - callers check
            if resampling not in self._aligned:
                self._aligned[resampling] = align_map(self._values, self._truth, self._frame, resampling)
            pair = self._pairs[resampling, margin] = Pair(self._aligned[resampling], margin)
            if pair.seen is None and margin is not None:  # every pixel is seen: both margins give the same
                self._pairs[resampling, "visible_only"] = self._pairs[resampling, "full_image"] = pair
        return pair

    def counts(self, variant: Variant, threshold: float | None = None) -> MaskCounts:
        """Counts of the predicted pixels of an overlap variant.

        Args:
            variant: An overlap variant.
            threshold: Threshold to apply, where the variant's threshold is selected on a set of images.

        Raises:
            CarinaError: The variant needs a threshold and none is given.
        """
        if self._values is None:
            return self.count_empty_prediction(variant.resampling, variant.margin)
        rule = variant.rule
        if isinstance(rule, SelectedThreshold):
            if threshold is None:
                raise CarinaError(f"{variant}: {_missing_threshold(rule)}")
            rule = FixedThreshold(GRIDS[rule.grid].scale, (threshold,))
        assert isinstance(rule, FixedThreshold | OtsuThreshold | OracleThreshold)  # noqa: S101 - `Variant` checks
        pair = self.pair(variant.resampling, variant.margin)
        if (pair, rule) not in self._counts:
            self._counts[pair, rule] = apply_threshold(pair, rule)
        return self._counts[pair, rule]

    def count_empty_prediction(
        self, resampling: Resampling, margin: Margin | None, thresholds: int = 1
    ) -> MaskCounts:
        """Counts of a prediction without a pixel, repeated for a number of thresholds."""
        none = np.zeros(thresholds, np.int64)
        return MaskCounts(none, none, *count_truth(self._truth, self._frame, resampling, margin))

    def curve(self, resampling: Resampling, margin: Margin | None, grid: GridName) -> MaskCounts:
        """Counts of the predicted pixels at each threshold of a grid."""
        if self._values is None:
            return self.count_empty_prediction(resampling, margin, len(grid_thresholds(grid)))
        pair = self.pair(resampling, margin)
        if (pair, grid) not in self._curves:
            self._curves[pair, grid] = apply_grid(pair, grid)
        return self._curves[pair, grid]

    def pixels(self, resampling: Resampling, margin: Margin | None, *, exact: bool) -> CodedPixels:
        """Counts of this image's pixels for pooled curves."""
        pair = self.pair(resampling, margin)
        if (pair, exact) not in self._pixels:
            self._pixels[pair, exact] = encode_pixels(pair, exact=exact)
        return self._pixels[pair, exact]

    def score(self, variant: Variant, threshold: float | None = None) -> float:
        """Score this image by a variant; NaN where the variant is undefined.

        Raises:
            CarinaError: The variant is defined on a set of images only, or needs a threshold that is not given.
        """
        if variant.aggregation == "pooled":
            raise CarinaError(f"{variant}: is defined on a set of images, not on one image; use Scorer")
        if variant.metric in OVERLAPS:
            values = overlap(variant.metric, self.counts(variant, threshold), variant.empty)
            defined = values[~np.isnan(values)]
            return float(defined.mean()) if len(defined) else math.nan
        pair = self.pair(variant.resampling, variant.margin)
        key = (pair, variant.metric, variant.rule, variant.empty)
        if key not in self._scores:
            self._scores[key] = (
                self._score_hit(variant, pair)
                if variant.metric in _HITS
                else self._score_values(variant, pair)
            )
        return self._scores[key]

    def _score_hit(self, variant: Variant, pair: Pair) -> float:
        rule = variant.rule
        assert isinstance(rule, PeakPixel | PeakNeighbourhood)  # noqa: S101 - `Variant` checks
        if variant.metric == "hit_box":
            boxes = component_boxes(self._truth) if self._boxes is None else self._boxes
            assert isinstance(rule, PeakPixel)  # noqa: S101 - `Variant` checks
            return score_box_hit(pair, rule, variant.empty, boxes)
        score = score_weighted_hit if variant.metric == "hit_weighted" else score_hit
        return score(pair, rule, variant.empty)

    def _score_values(self, variant: Variant, pair: Pair) -> float:
        function = METRICS[variant.metric].function
        if function is not None:
            return function(pair)
        match variant.metric:
            case "auroc" | "auroc_binned":
                return auroc_of_levels(*self._level_counts(pair, exact=variant.metric == "auroc"))
            case "auprc" | "auprc_binned":
                return auprc_of_levels(*self._level_counts(pair, exact=variant.metric == "auprc"))
            case _:
                assert isinstance(variant.rule, TopPixels)  # noqa: S101 - `Variant` checks
                share = top_share(pair, variant.rule.k)
                is_gain = variant.metric == "topk_gain" and pair.n_true
                return share * pair.n_pixels / pair.n_true if is_gain else share

    def _level_counts(self, pair: Pair, *, exact: bool) -> tuple[IntArray, IntArray]:
        if (pair, exact) not in self._levels:
            self._levels[pair, exact] = exact_levels(pair) if exact else binned_levels(pair)
        return self._levels[pair, exact]


def _missing_threshold(rule: SelectedThreshold) -> str:
    if rule.selected_on == "tuned":
        return "needs thresholds that were tuned on another split"
    return f"{rule_name(rule)} is selected on a set of images, not on one image; use Scorer"
