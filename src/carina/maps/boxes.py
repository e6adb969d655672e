"""Scores of boxes and points that a model names against the boxes of the truth.

Boxes are (x, y, width, height) in continuous coordinates, so a box of width 10 is 10 pixels wide.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.maps.pointing import Box
from carina.store.errors import CarinaError

MIN_IOU: Final = 0.5
"""Lowest IoU at which a predicted box finds a box of the truth."""
FALSE_PER_IMAGE: Final = (0.05, 0.1, 0.2)
"""Rates of false boxes per image at which the evaluation of ChestX-Det10 reports recall."""

DEFINITIONS: Final[dict[str, str]] = {
    "box_iou": "mean over the boxes of the truth of the highest IoU with any predicted box; 0 where none is predicted",
    "box_recall": "share of the boxes of the truth that are found: each predicted box, the most confident first, finds "
    "the box that it overlaps most, if their IoU is at least 0.5 and the box was not found before",
    "box_precision": "share of the predicted boxes that find a box in this way; undefined where no box is predicted",
    "point_hit": "whether any predicted point, or the centre of any predicted box, lies in a box of the truth, edges "
    "included",
}
"""Definitions of the scores of one image; all are undefined where the truth has no box."""


@dataclass(frozen=True)
class Detection:
    """A box that a model predicts, and its confidence."""

    box: Box
    """x, y, width and height."""
    confidence: float = 1.0


def box_iou(first: Sequence[Box], second: Sequence[Box]) -> NDArray[np.float64]:
    """Compute the IoU of each box of one list with each box of another.

    Args:
        first: n boxes.
        second: m boxes.

    Returns:
        IoUs, (n, m).

    Raises:
        CarinaError: A box has no area or holds a number that is not finite.

    Example:
        >>> box_iou([(0, 0, 2, 2)], [(0, 0, 2, 2), (1, 0, 2, 2)]).round(3).tolist()
        [[1.0, 0.333]]
    """
    a, b = (np.asarray(boxes, np.float64).reshape(-1, 4) for boxes in (first, second))
    for name, boxes in (("first", a), ("second", b)):
        if not np.isfinite(boxes).all() or (boxes[:, 2:] <= 0).any():
            raise CarinaError(f"boxes: expected widths and heights above 0, found others in the {name} list")
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum((a[:, :2] + a[:, 2:])[:, None], (b[:, :2] + b[:, 2:])[None])
    shared = np.clip(high - low, 0, None).prod(axis=2)
    union = a[:, 2:].prod(axis=1)[:, None] + b[:, 2:].prod(axis=1)[None] - shared
    return np.asarray(shared / union, np.float64)


def score_boxes(
    predicted: Sequence[Detection],
    truth: Sequence[Box],
    *,
    points: Sequence[tuple[float, float]] = (),
    min_iou: float = MIN_IOU,
) -> dict[str, float]:
    """Score the boxes and points that a model predicts on one image.

    Args:
        predicted: Predicted boxes.
        truth: Boxes of the truth.
        points: Predicted points (x, y).
        min_iou: Lowest IoU at which a predicted box finds a box of the truth.

    Returns:
        Score by name, as `DEFINITIONS` defines them; all NaN where the truth has no box.

    Example:
        >>> score_boxes([Detection((0, 0, 4, 4))], [(0, 0, 4, 4), (9, 9, 4, 4)])["box_recall"]
        0.5
    """
    if not truth:
        return dict.fromkeys(DEFINITIONS, math.nan)
    matches = _match_boxes(predicted, truth, min_iou)
    best = box_iou(truth, [detection.box for detection in predicted]).max(axis=1).mean() if predicted else 0.0
    return {
        "box_iou": float(best),
        "box_recall": sum(matches) / len(truth),
        "box_precision": sum(matches) / len(predicted) if predicted else math.nan,
        "point_hit": float(any_point_in_boxes([*points, *map(_centre, predicted)], truth)),
    }


def any_point_in_boxes(points: Sequence[tuple[float, float]], boxes: Sequence[Box]) -> bool:
    """Test whether any point lies in any box.

    Args:
        points: Points as x and y.
        boxes: Boxes as x, y, width and height. Their edges belong to them.

    Returns:
        True if at least one point lies in at least one box.

    Example:
        >>> any_point_in_boxes([(9, 9), (4, 2)], [(0, 0, 4, 4)])
        True
    """
    return any(
        left <= x <= left + width and top <= y <= top + height
        for x, y in points
        for left, top, width, height in boxes
    )


def recall_at_rates(
    predicted: Sequence[Sequence[Detection]],
    truth: Sequence[Sequence[Box]],
    *,
    rates: Sequence[float] = FALSE_PER_IMAGE,
    min_iou: float = MIN_IOU,
) -> dict[float, float]:
    """Compute the share of the truth's boxes that are found at given rates of false boxes per image.

    Boxes of all images are taken in order of confidence, boxes of equal confidence together. The recall at a rate is
    the highest that is reached without more false boxes than the rate allows. Unlike the script of ChestX-Det10, this
    neither adds a pixel to each side nor interpolates between confidences.

    Args:
        predicted: Predicted boxes of each image.
        truth: Boxes of the truth of each image; an empty list for an image without a box.
        rates: False boxes per image.
        min_iou: Lowest IoU at which a predicted box finds a box of the truth.

    Returns:
        Recall by rate; NaN where no image has a box of the truth.

    Raises:
        CarinaError: The two lists do not have one entry per image.

    Example:
        >>> predicted = [[Detection((0, 0, 4, 4), 0.9), Detection((8, 8, 2, 2), 0.4)], [Detection((1, 1, 4, 4), 0.3)]]
        >>> recall_at_rates(predicted, [[(0, 0, 4, 4)], [(1, 1, 4, 4)]], rates=[0, 0.5])
        {0: 0.5, 0.5: 1.0}
    """
    if len(predicted) != len(truth):
        raise CarinaError(
            f"boxes: expected a list of predicted boxes for each of {len(truth)} images, found {len(predicted)}"
        )
    n_truth = sum(map(len, truth))
    if not n_truth:
        return dict.fromkeys(rates, math.nan)
    outcomes = [
        (detection.confidence, is_match)
        for detections, boxes in zip(predicted, truth, strict=True)
        for detection, is_match in zip(
            _most_confident_first(detections), _match_boxes(detections, boxes, min_iou), strict=True
        )
    ]
    if not outcomes:
        return dict.fromkeys(rates, 0.0)
    outcomes.sort(key=lambda outcome: -outcome[0])
    confidence = np.array([outcome[0] for outcome in outcomes])
    hits = np.cumsum([outcome[1] for outcome in outcomes])
    false = np.arange(1, len(outcomes) + 1) - hits
    is_last_of_equals = np.append(np.diff(confidence) != 0, True)
    recalls = {}
    for rate in rates:
        allowed = hits[is_last_of_equals & (false <= rate * len(truth) + 1e-9)]
        recalls[rate] = float(allowed.max(initial=0) / n_truth)
    return recalls


def _most_confident_first(detections: Sequence[Detection]) -> list[Detection]:
    return sorted(detections, key=lambda detection: -detection.confidence)


def _match_boxes(detections: Sequence[Detection], truth: Sequence[Box], min_iou: float) -> list[bool]:
    """Whether each box, the most confident first, is the first to find the box of the truth that it overlaps most."""
    if not detections or not truth:
        return [False] * len(detections)
    ious = box_iou([detection.box for detection in _most_confident_first(detections)], truth)
    found: set[int] = set()
    matches = []
    for row in ious:
        best = int(row.argmax())
        matches.append(bool(row[best] >= min_iou) and best not in found)
        if matches[-1]:
            found.add(best)
    return matches


def _centre(detection: Detection) -> tuple[float, float]:
    x, y, width, height = detection.box
    return x + width / 2, y + height / 2
