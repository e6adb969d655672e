"""Score boxes: mean IoU of the best one-to-one pairs; boxes without a partner count as 0."""

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from carina.cases import Box, Case, Key, Step
from carina.cases.boxes import is_localised
from carina.cases.model import Frame
from carina.runs.records import Scores

_MOST: Final = 1000
"""Boxes of an answer that are compared; further ones count as boxes without a partner."""
_SIDES: Final[dict[Frame, float]] = {"percent": 100.0, "unit": 1.0, "thousand": 1000.0}
"""Length of an image's side in the frames that do not depend on the image."""

Corners = tuple[float, float, float, float]


class _ComparableBox(NamedTuple):
    """A box in a frame in which boxes can be compared."""

    image: str
    in_pixels: bool
    corners: Corners


def score_boxes(case: Case, step: Step, boxes: Sequence[Box] | None) -> Scores:
    """Score the boxes of an answer; None for an answer in which no box could be read."""
    overlap = 0.0 if boxes is None else mean_iou(case, key_boxes(case, step.key), boxes)
    return Scores(correct=is_localised(overlap), score=overlap, iou=overlap)


def key_boxes(case: Case, key: Key) -> tuple[Box, ...]:
    """The boxes of a key; where it has only regions, their bounding boxes."""
    if key.boxes:
        return key.boxes
    around: list[Box] = []
    for name in key.regions:
        drawn = case.region(name)
        bounds = drawn.region.bbox
        if bounds is not None:
            x, y, width, height = bounds
            around.append(Box(image=drawn.image, xyxy=(x, y, x + width, y + height)))
    return tuple(around)


def mean_iou(case: Case, right: Sequence[Box], boxes: Sequence[Box]) -> float:
    """Sum of the IoU of the best pairs, divided by the larger number of boxes; 1 where neither side has a box."""
    if not right or not boxes:
        return float(len(right) == len(boxes))
    sizes = {image.key: (image.width, image.height) for image in case.images}
    placed = [_to_comparable(box, sizes) for box in right]
    overlaps: NDArray[np.float64] = np.array(
        [[_pair_iou(one, _to_comparable(other, sizes)) for one in placed] for other in boxes[:_MOST]]
    )
    rows, columns = linear_sum_assignment(overlaps, maximize=True)
    return float(overlaps[rows, columns].sum()) / max(len(right), len(boxes))


def iou(one: Corners, other: Corners) -> float:
    """Intersection over union of two rectangles; 0 where one has no area."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    share = shared / (_area(one) + _area(other) - shared)
    return min(share, 1.0) if math.isfinite(share) else 0.0


def _area(box: Corners) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _pair_iou(one: _ComparableBox | None, other: _ComparableBox | None) -> float:
    if one is None or other is None or one[:2] != other[:2]:
        return 0.0
    return iou(one.corners, other.corners)


def _to_comparable(box: Box, sizes: dict[str, tuple[int, int]]) -> _ComparableBox | None:
    """The box in pixels of its image, upper left corner first; None where it can't be placed.

    Where the size of an image is not known, shares of its sides stay what they are, and compare among themselves.
    """
    if box.image not in sizes or not all(map(math.isfinite, box.xyxy)):
        return None
    width, height = sizes[box.image]
    across, down, in_pixels = 1.0, 1.0, True
    if box.frame != "pixel":
        in_pixels = width > 0 and height > 0
        side = _SIDES[box.frame]
        across, down = (width / side, height / side) if in_pixels else (1 / side, 1 / side)
    left, right = sorted((box.xyxy[0] * across, box.xyxy[2] * across))
    top, bottom = sorted((box.xyxy[1] * down, box.xyxy[3] * down))
    return _ComparableBox(box.image, in_pixels, (left, top, right, bottom))
