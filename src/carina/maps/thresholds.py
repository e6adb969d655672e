"""Apply threshold rules to a map, and select one threshold on a set of images."""

from collections.abc import Callable, Sequence
from typing import Final, assert_never

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.special import expit

from carina.maps.areas import best_cells
from carina.maps.counts import MaskCounts, overlap
from carina.maps.metrics import Empty
from carina.maps.pair import LEVELS, Pair, Values
from carina.maps.pixel_values import kth_highest
from carina.maps.rules import (
    GRIDS,
    FixedThreshold,
    GridName,
    Objective,
    OracleThreshold,
    OtsuThreshold,
    Scale,
    grid_thresholds,
)
from carina.studies.region import Mask

BINS: Final = 256
"""Bins of the histogram from which Otsu's threshold is computed."""


def apply_threshold(pair: Pair, rule: FixedThreshold | OtsuThreshold | OracleThreshold) -> MaskCounts:
    """Counts of the pixels that a rule predicts on one image; at several thresholds where the rule has several."""
    match rule:
        case FixedThreshold(scale, thresholds):
            return _above_thresholds(pair, scale, np.asarray(thresholds, np.float32))
        case OtsuThreshold(filled):
            return _above_otsu_filled(pair) if filled else _above_otsu(pair)
        case OracleThreshold("area"):
            return _area_of_truth(pair)
        case OracleThreshold("image"):
            return _best_threshold_of_image(pair)
        case OracleThreshold():
            return _best_cells_of_image(pair)


def apply_grid(pair: Pair, grid: GridName) -> MaskCounts:
    """Counts of the pixels that each threshold of a grid predicts."""
    if grid == "minmax256":
        return _above_levels(pair)
    return _above_thresholds(pair, GRIDS[grid].scale, grid_thresholds(grid))


def select_threshold(
    curves: Sequence[MaskCounts], grid: GridName, objective: Objective, empty: Empty | None
) -> tuple[int, float]:
    """Index and value of the threshold with the highest mean over the images on which the objective is defined.

    The lowest of equally good thresholds; the lowest of all where the objective is defined on no image.
    """
    thresholds = GRIDS[grid].make()
    total, n = np.zeros(len(thresholds)), np.zeros(len(thresholds))
    for counts in curves:
        values = overlap(objective, counts, empty or "positives")
        is_defined = ~np.isnan(values)
        total[is_defined] += values[is_defined]
        n += is_defined
    means = np.divide(total, n, out=np.full(len(total), -np.inf), where=n > 0)
    best = int(np.argmax(means))
    return best, float(thresholds[best])


def _counts(pair: Pair, true_positives: NDArray[np.int64], false_positives: NDArray[np.int64]) -> MaskCounts:
    return MaskCounts(true_positives, false_positives, pair.n_true, pair.n_other)


def _single_count(pair: Pair, true_positives: int, false_positives: int) -> MaskCounts:
    return _counts(pair, np.array([true_positives]), np.array([false_positives]))


def _scaling(scale: Scale, pair: Pair) -> Callable[[Values], Values]:
    match scale:
        case "raw":
            return lambda values: values
        case "minmax":
            return pair.scale
        case "symmetric":
            return lambda values: 2 * pair.scale(values) - 1
        case "sigmoid":
            return lambda values: np.asarray(expit(values), np.float32)
        case _:
            assert_never(scale)


def _above_thresholds(pair: Pair, scale: Scale, thresholds: Values) -> MaskCounts:
    """Pixels above each threshold. A constant map cannot be scaled: nothing is above any threshold."""
    if scale in ("minmax", "symmetric") and pair.is_constant:
        none = np.zeros(len(thresholds), np.int64)
        return _counts(pair, none, none)
    rescale = _scaling(scale, pair)
    if len(thresholds) == 1:
        hit, false = (
            np.array([np.count_nonzero(rescale(values) > thresholds[0])])
            for values in (pair.inside, pair.outside)
        )
        return _counts(pair, hit, false)
    # Every scale is monotonic, so sorted values stay sorted.
    hit, false = (
        len(values) - np.searchsorted(rescale(values), thresholds, side="right")
        for values in pair.sorted_values
    )
    return _counts(pair, hit, false)


def _above_levels(pair: Pair) -> MaskCounts:
    tally = pair.tally
    step = LEVELS // BINS
    hit, false = (
        len(values) - np.cumsum(levels)[:LEVELS:step]
        for values, levels in ((pair.inside, tally.inside), (pair.outside, tally.outside))
    )
    return _counts(pair, hit, false)


def otsu_threshold(histogram: NDArray[np.int64]) -> float:
    """Otsu's threshold of a histogram over 0 to 1: the centre of the last bin of the lower class."""
    bins = len(histogram)
    centres = (np.arange(bins) + 0.5) / bins
    below = np.cumsum(histogram).astype(np.float64)
    above = below[-1] - below
    sum_below = np.cumsum(histogram * centres)
    sum_above = sum_below[-1] - sum_below
    both = (below > 0) & (above > 0)
    variance_between = np.full(bins, -1.0)
    distance = sum_below[both] / below[both] - sum_above[both] / above[both]
    variance_between[both] = below[both] * above[both] * distance**2
    return float(centres[int(np.argmax(variance_between))])


def _above_otsu(pair: Pair) -> MaskCounts:
    if pair.is_constant:
        return _single_count(pair, 0, 0)
    scaled = [pair.scale(values) for values in (pair.inside, pair.outside)]
    histogram = sum(
        np.bincount(np.minimum((values * BINS).astype(np.intp), BINS - 1), minlength=BINS)
        for values in scaled
    )
    threshold = np.float32(otsu_threshold(np.asarray(histogram)))
    return _single_count(pair, *(int(np.count_nonzero(values > threshold)) for values in scaled))


def _above_otsu_filled(pair: Pair) -> MaskCounts:
    """Threshold as cheXlocalize does: 8 bits, OpenCV's Otsu, all contours filled, without those of a single point."""
    if pair.is_constant:
        return _single_count(pair, 0, 0)
    values = pair.aligned.values
    low = pair.bounds[0]
    seen_values = values if pair.seen is None else np.where(pair.seen, values, low)
    grey = (255 * pair.scale(seen_values)).astype(np.uint8)
    _, bright = cv2.threshold(grey, 0, int(grey.max()), cv2.THRESH_OTSU)
    predicted = _fill_contours(np.asarray(bright, np.uint8))
    if pair.seen is not None:
        predicted &= pair.seen
    hit = int(np.count_nonzero(predicted & pair.truth))
    return _single_count(pair, hit, int(np.count_nonzero(predicted)) - hit)


def _fill_contours(bright: NDArray[np.uint8]) -> Mask:
    contours, _ = cv2.findContours(bright, cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE)
    canvas = Image.new("1", (bright.shape[1], bright.shape[0]))
    pen = ImageDraw.Draw(canvas)
    for contour in contours:
        if len(contour) > 1:
            pen.polygon([(int(x), int(y)) for x, y in contour[:, 0]], outline=1, fill=1)
    return np.array(canvas, bool)


def _area_of_truth(pair: Pair) -> MaskCounts:
    """The highest pixels, as many as the truth has, and those that tie with the last; all with a value if fewer."""
    if not pair.n_true or not pair.n_seen:
        return _single_count(pair, 0, 0)
    last = kth_highest(pair, min(pair.n_true, pair.n_seen))
    hit, false = (int(np.count_nonzero(values >= last)) for values in (pair.inside, pair.outside))
    return _single_count(pair, hit, false)


def _best_threshold_of_image(pair: Pair) -> MaskCounts:
    """Pixels at or above the best value of the truth; the highest of equally good thresholds.

    Only values that occur in the truth are candidates: between two of them a lower threshold adds false positives only.
    """
    steps = pair.steps
    if not len(steps.n_inside):
        return _single_count(pair, 0, 0)
    hit = np.cumsum(steps.n_inside[::-1])
    false = len(pair.outside) - steps.outside_below[::-1]
    best = int(np.argmax(hit / (pair.n_true + false)))
    return _single_count(pair, int(hit[best]), int(false[best]))


def _best_cells_of_image(pair: Pair) -> MaskCounts:
    cells = pair.aligned.cells
    assert cells is not None  # noqa: S101 - `Variant` allows this rule only with nearest_full
    hit, false = best_cells(pair.truth, cells, pair.seen, pair.n_true)
    return _single_count(pair, hit, false)
