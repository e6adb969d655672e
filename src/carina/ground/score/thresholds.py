"""From a map to predicted pixels, by every threshold rule; and the choice of one threshold on a set of images."""

from collections.abc import Callable, Sequence
from typing import Final, assert_never

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from scipy.special import expit

from carina.ground.score.areas import best_cells
from carina.ground.score.onepass import LEVELS, Pair, Values
from carina.ground.score.overlap import Counts, overlap
from carina.ground.score.relevance import kth_highest
from carina.ground.score.rules import (
    GRIDS,
    Fixed,
    GridName,
    Objective,
    Oracle,
    Otsu,
    Scale,
    grid_thresholds,
)
from carina.ground.score.variants import Empty
from carina.studies.region import Mask

BINS: Final = 256
"""Of Otsu's histogram."""


def counts_of(pair: Pair, rule: Fixed | Otsu | Oracle) -> Counts:
    """What a rule that needs nothing but the pair predicts; at several thresholds where the rule has several."""
    match rule:
        case Fixed(scale, at):
            return _above(pair, scale, np.asarray(at, np.float32))
        case Otsu(filled):
            return _otsu_filled(pair) if filled else _otsu(pair)
        case Oracle("area"):
            return _area_matched(pair)
        case Oracle("image"):
            return _best_for_image(pair)
        case Oracle():
            return _best_cells(pair)


def curve(pair: Pair, grid: GridName) -> Counts:
    """What each threshold of a grid predicts."""
    if grid == "minmax256":
        return _of_levels(pair)
    return _above(pair, GRIDS[grid].scale, grid_thresholds(grid))


def best_threshold(
    curves: Sequence[Counts], grid: GridName, objective: Objective, empty: Empty | None
) -> tuple[int, float]:
    """Index and value of the threshold with the highest mean over images where it is defined; the first of equals.

    The first of all where it is defined nowhere.
    """
    thresholds = GRIDS[grid].make()
    total, n = np.zeros(len(thresholds)), np.zeros(len(thresholds))
    for counts in curves:
        values = overlap(objective, counts, empty or "positives")
        defined = ~np.isnan(values)
        total[defined] += values[defined]
        n += defined
    means = np.divide(total, n, out=np.full(len(total), -np.inf), where=n > 0)
    best = int(np.argmax(means))
    return best, float(thresholds[best])


def _counts(pair: Pair, hit: NDArray[np.int64], false: NDArray[np.int64]) -> Counts:
    return Counts(hit, false, pair.true, pair.other)


def _one(pair: Pair, hit: int, false: int) -> Counts:
    return _counts(pair, np.array([hit]), np.array([false]))


def _on(scale: Scale, pair: Pair) -> Callable[[Values], Values]:
    match scale:
        case "raw":
            return lambda values: values
        case "minmax":
            return pair.scaled
        case "symmetric":
            return lambda values: 2 * pair.scaled(values) - 1
        case "sigmoid":
            return lambda values: np.asarray(expit(values), np.float32)
        case _:
            assert_never(scale)


def _above(pair: Pair, scale: Scale, thresholds: Values) -> Counts:
    """Pixels above each threshold. A constant map has no lowest and highest: nothing is above."""
    if scale in ("minmax", "symmetric") and pair.constant:
        none = np.zeros(len(thresholds), np.int64)
        return _counts(pair, none, none)
    rescale = _on(scale, pair)
    if len(thresholds) == 1:
        hit, false = (
            np.array([np.count_nonzero(rescale(part) > thresholds[0])])
            for part in (pair.inside, pair.outside)
        )
        return _counts(pair, hit, false)
    # All scales rise with the values, so sorted values stay sorted.
    hit, false = (
        len(part) - np.searchsorted(rescale(part), thresholds, side="right") for part in pair.ranked
    )
    return _counts(pair, hit, false)


def _of_levels(pair: Pair) -> Counts:
    tally = pair.tally
    step = LEVELS // BINS
    hit, false = (
        len(part) - np.cumsum(levels)[:LEVELS:step]
        for part, levels in ((pair.inside, tally.inside), (pair.outside, tally.outside))
    )
    return _counts(pair, hit, false)


def otsu_threshold(counts: NDArray[np.int64]) -> float:
    """Otsu's threshold of a histogram over 0 to 1: the centre of the last bin of the lower class."""
    bins = len(counts)
    centres = (np.arange(bins) + 0.5) / bins
    below = np.cumsum(counts).astype(np.float64)
    above = below[-1] - below
    first = np.cumsum(counts * centres)
    second = first[-1] - first
    both = (below > 0) & (above > 0)
    between = np.full(bins, -1.0)
    apart = first[both] / below[both] - second[both] / above[both]
    between[both] = below[both] * above[both] * apart**2
    return float(centres[int(np.argmax(between))])


def _otsu(pair: Pair) -> Counts:
    if pair.constant:
        return _one(pair, 0, 0)
    scaled = [pair.scaled(part) for part in (pair.inside, pair.outside)]
    counted = sum(
        np.bincount(np.minimum((part * BINS).astype(np.intp), BINS - 1), minlength=BINS) for part in scaled
    )
    threshold = np.float32(otsu_threshold(np.asarray(counted)))
    return _one(pair, *(int(np.count_nonzero(part > threshold)) for part in scaled))


def _otsu_filled(pair: Pair) -> Counts:
    """As cheXlocalize: cut to 8 bits, OpenCV's Otsu, contours as a tree, those of a point dropped, all filled."""
    if pair.constant:
        return _one(pair, 0, 0)
    values = pair.placed.values
    low = pair.bounds[0]
    known = values if pair.seen is None else np.where(pair.seen, values, low)
    grey = (255 * pair.scaled(known)).astype(np.uint8)
    _, lit = cv2.threshold(grey, 0, int(grey.max()), cv2.THRESH_OTSU)
    predicted = _filled(np.asarray(lit, np.uint8))
    if pair.seen is not None:
        predicted &= pair.seen
    hit = int(np.count_nonzero(predicted & pair.truth))
    return _one(pair, hit, int(np.count_nonzero(predicted)) - hit)


def _filled(lit: NDArray[np.uint8]) -> Mask:
    contours, _ = cv2.findContours(lit, cv2.RETR_TREE, cv2.CHAIN_APPROX_SIMPLE)
    canvas = Image.new("1", (lit.shape[1], lit.shape[0]))
    pen = ImageDraw.Draw(canvas)
    for contour in contours:
        if len(contour) > 1:
            pen.polygon([(int(x), int(y)) for x, y in contour[:, 0]], outline=1, fill=1)
    return np.array(canvas, bool)


def _area_matched(pair: Pair) -> Counts:
    """The highest pixels, as many as are true, and those that tie with the last; all known ones if they are fewer."""
    if not pair.true or not pair.known:
        return _one(pair, 0, 0)
    last = kth_highest(pair, min(pair.true, pair.known))
    return _one(pair, int(np.count_nonzero(pair.inside >= last)), int(np.count_nonzero(pair.outside >= last)))


def _best_for_image(pair: Pair) -> Counts:
    """At or above the value of a true pixel: between two of those a lower threshold only adds false pixels.

    The highest of thresholds that are equally good.
    """
    steps = pair.steps
    if not len(steps.true):
        return _one(pair, 0, 0)
    hit = np.cumsum(steps.true[::-1])
    false = len(pair.outside) - steps.below[::-1]
    best = int(np.argmax(hit / (pair.true + false)))
    return _one(pair, int(hit[best]), int(false[best]))


def _best_cells(pair: Pair) -> Counts:
    cells = pair.placed.cells
    assert cells is not None  # noqa: S101 - only nearest_full has this rule, see `Variant`
    hit, false = best_cells(pair.truth, cells, pair.seen, pair.true)
    return _one(pair, hit, false)
