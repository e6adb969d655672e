"""One map against one truth under many variants: placed and counted once for all that share a place and a margin."""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from carina.errors import CarinaError
from carina.ground.score.contrast import cnr
from carina.ground.score.curves import auprc_of_levels, auroc_of_levels, binned_levels, exact_levels
from carina.ground.score.onepass import Numbers, Pair
from carina.ground.score.overlap import OVERLAPS, Counts, overlap
from carina.ground.score.placed import Placed, checked_map, place, truth_counts, truth_mask
from carina.ground.score.pointing import Box, box_hit, hit, piece_boxes, weighted_hit
from carina.ground.score.pooling import PixelCounts, pixel_counts
from carina.ground.score.relevance import mass, top_share
from carina.ground.score.rules import (
    GRIDS,
    Chosen,
    Fixed,
    GridName,
    Oracle,
    Otsu,
    Rule,
    Ties,
    TopK,
    Within,
    grid_thresholds,
    token,
)
from carina.ground.score.thresholds import counts_of, curve
from carina.ground.score.variants import Empty, Margin, Metric, Place, Variant
from carina.models.frame import Frame, Map
from carina.studies import Region
from carina.studies.region import Mask

_HITS: Final = frozenset({"hit", "hit_weighted", "hit_box"})


class Evaluation:
    """A map, the frame it lies in and the truth; what variants ask of them is kept for the next that asks.

    Without a map nothing is predicted, and only overlap variants have a score.
    """

    def __init__(
        self, values: Map | None, truth: Region | Mask, frame: Frame, boxes: Sequence[Box] | None = None
    ) -> None:
        self._values = None if values is None else checked_map(values)
        self._truth = truth_mask(truth, frame)
        self._frame = frame
        self._boxes = boxes
        self._placed: dict[Place, Placed] = {}
        self._pairs: dict[tuple[Place, Margin | None], Pair] = {}
        # By pair, which is one for both margins where all is seen.
        self._counts: dict[tuple[Pair, Rule], Counts] = {}
        self._curves: dict[tuple[Pair, GridName], Counts] = {}
        self._levels: dict[tuple[Pair, bool], tuple[Numbers, Numbers]] = {}
        self._pixels: dict[tuple[Pair, bool], PixelCounts] = {}
        self._scores: dict[tuple[Pair, Metric, Rule | None, Empty | None], float] = {}

    @property
    def share(self) -> float:
        """The truth's share of the image."""
        return float(np.count_nonzero(self._truth) / self._truth.size)

    def pair(self, where: Place, margin: Margin | None) -> Pair:
        """The map and truth in pixels."""
        found = self._pairs.get((where, margin))
        if found is None:
            assert self._values is not None  # noqa: S101 - without a map nobody asks
            if where not in self._placed:
                self._placed[where] = place(self._values, self._truth, self._frame, where)
            found = self._pairs[where, margin] = Pair(self._placed[where], margin)
            if found.seen is None and margin is not None:  # all is seen: both margins are one
                self._pairs[where, "visible_only"] = self._pairs[where, "full_image"] = found
        return found

    def counts(self, variant: Variant, threshold: float | None = None) -> Counts:
        """Predicted pixels of an overlap variant, at a threshold that was chosen elsewhere if its rule is `Chosen`."""
        if self._values is None:
            return self.nothing(variant.place, variant.margin)
        rule = variant.rule
        if isinstance(rule, Chosen):
            if threshold is None:
                raise CarinaError(f"{variant}: {_needs(rule)}")
            rule = Fixed(GRIDS[rule.grid].scale, (threshold,))
        assert isinstance(rule, Fixed | Otsu | Oracle)  # noqa: S101 - `Variant` holds it
        pair = self.pair(variant.place, variant.margin)
        if (pair, rule) not in self._counts:
            self._counts[pair, rule] = counts_of(pair, rule)
        return self._counts[pair, rule]

    def nothing(self, where: Place, margin: Margin | None, thresholds: int = 1) -> Counts:
        """What a model that shows no map of this image predicts, at so many thresholds."""
        none = np.zeros(thresholds, np.int64)
        return Counts(none, none, *truth_counts(self._truth, self._frame, where, margin))

    def curve(self, where: Place, margin: Margin | None, grid: GridName) -> Counts:
        """Predicted pixels at each threshold of a grid."""
        if self._values is None:
            return self.nothing(where, margin, len(grid_thresholds(grid)))
        pair = self.pair(where, margin)
        if (pair, grid) not in self._curves:
            self._curves[pair, grid] = curve(pair, grid)
        return self._curves[pair, grid]

    def pixels(self, where: Place, margin: Margin | None, *, exact: bool) -> PixelCounts:
        """What curves over the pixels of a set need of this image."""
        pair = self.pair(where, margin)
        if (pair, exact) not in self._pixels:
            self._pixels[pair, exact] = pixel_counts(pair, exact=exact)
        return self._pixels[pair, exact]

    def value(self, variant: Variant, threshold: float | None = None) -> float:
        """The variant's score of this image; NaN where it has no meaning."""
        if variant.aggregation == "pooled":
            raise CarinaError(f"{variant}: is of a set of images, not of one; use Scorer")
        if variant.metric in OVERLAPS:
            values = overlap(variant.metric, self.counts(variant, threshold), variant.empty)
            defined = values[~np.isnan(values)]
            return float(defined.mean()) if len(defined) else math.nan
        pair = self.pair(variant.place, variant.margin)
        key = (pair, variant.metric, variant.rule, variant.empty)
        if key not in self._scores:
            self._scores[key] = (
                self._hit(variant, pair) if variant.metric in _HITS else self._of_values(variant, pair)
            )
        return self._scores[key]

    def _hit(self, variant: Variant, pair: Pair) -> float:
        rule = variant.rule
        assert isinstance(rule, Ties | Within)  # noqa: S101 - `Variant` holds it
        if variant.metric == "hit_box":
            boxes = piece_boxes(self._truth) if self._boxes is None else self._boxes
            assert isinstance(rule, Ties)  # noqa: S101 - `Variant` holds it
            return box_hit(pair, rule, variant.empty, boxes)
        scored = weighted_hit if variant.metric == "hit_weighted" else hit
        return scored(pair, rule, variant.empty)

    def _of_values(self, variant: Variant, pair: Pair) -> float:  # noqa: PLR0911 - one a metric
        match variant.metric:
            case "auroc" | "auroc_binned":
                return auroc_of_levels(*self._level_counts(pair, exact=variant.metric == "auroc"))
            case "auprc" | "auprc_binned":
                return auprc_of_levels(*self._level_counts(pair, exact=variant.metric == "auprc"))
            case "cnr":
                return cnr(pair)
            case "cnr_abs":
                return abs(cnr(pair))
            case "mass" | "mass_signed":
                return mass(pair, signed=variant.metric == "mass_signed")
            case "rank":
                return top_share(pair, pair.true)
            case _:
                assert isinstance(variant.rule, TopK)  # noqa: S101 - `Variant` holds it
                share = top_share(pair, variant.rule.k)
                gain = variant.metric == "topk_gain" and pair.true
                return share * pair.pixels / pair.true if gain else share

    def _level_counts(self, pair: Pair, *, exact: bool) -> tuple[Numbers, Numbers]:
        if (pair, exact) not in self._levels:
            self._levels[pair, exact] = exact_levels(pair) if exact else binned_levels(pair)
        return self._levels[pair, exact]


def _needs(rule: Chosen) -> str:
    if rule.where == "tuned":
        return "needs thresholds that were tuned on another split"
    return f"{token(rule)} is chosen on a set of images, not on one; use Scorer"
