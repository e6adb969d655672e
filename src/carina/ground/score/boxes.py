"""Boxes and points that a model names, against the boxes of the truth.

Boxes are (x, y, width, height) in continuous coordinates, so a box of width 10 is 10 pixels wide.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.errors import CarinaError
from carina.ground.score.pointing import Box

OVERLAP: Final = 0.5
"""IoU from which a box has found another."""
FALSE_PER_IMAGE: Final = (0.05, 0.1, 0.2)
"""Rates at which ChestX-Det10's evaluation reports recall."""

DEFINITIONS: Final[dict[str, str]] = {
    "box_iou": "mean over the truth's boxes of the highest IoU with any named box, 0 where none is named",
    "box_recall": "share of the truth's boxes found: each named box, the most confident first, finds the one that it "
    "overlaps most, if by an IoU of 0.5 and not found before",
    "box_precision": "share of the named boxes that found one so; undefined where none is named",
    "point_hit": "whether any named point, or the centre of any named box, lies in a box of the truth, edges included",
}
"""Scores of one image by name; all undefined where the truth has no box."""


@dataclass(frozen=True)
class Detection:
    """A box that a model names, and how sure it is."""

    box: Box
    confidence: float = 1.0


def box_iou(one: Sequence[Box], other: Sequence[Box]) -> NDArray[np.float64]:
    """IoU of each box of the one list with each of the other, (one, other)."""
    a, b = (np.asarray(boxes, np.float64).reshape(-1, 4) for boxes in (one, other))
    for name, boxes in (("first", a), ("second", b)):
        if not np.isfinite(boxes).all() or (boxes[:, 2:] <= 0).any():
            raise CarinaError(f"boxes: the {name} list has one whose width or height is not above 0")
    low = np.maximum(a[:, None, :2], b[None, :, :2])
    high = np.minimum((a[:, :2] + a[:, 2:])[:, None], (b[:, :2] + b[:, 2:])[None])
    shared = np.clip(high - low, 0, None).prod(axis=2)
    union = a[:, 2:].prod(axis=1)[:, None] + b[:, 2:].prod(axis=1)[None] - shared
    return np.asarray(shared / union, np.float64)


def score_boxes(
    named: Sequence[Detection],
    truth: Sequence[Box],
    *,
    points: Sequence[tuple[float, float]] = (),
    overlap: float = OVERLAP,
) -> dict[str, float]:
    """The scores of `DEFINITIONS` for one image."""
    if not truth:
        return dict.fromkeys(DEFINITIONS, math.nan)
    found = _found(named, truth, overlap)
    best = box_iou(truth, [one.box for one in named]).max(axis=1).mean() if named else 0.0
    return {
        "box_iou": float(best),
        "box_recall": sum(found) / len(truth),
        "box_precision": sum(found) / len(named) if named else math.nan,
        "point_hit": float(point_in_boxes([*points, *map(_centre, named)], truth)),
    }


def point_in_boxes(points: Sequence[tuple[float, float]], boxes: Sequence[Box]) -> bool:
    """Whether any point lies in any box, edges included."""
    return any(
        left <= x <= left + width and top <= y <= top + height
        for x, y in points
        for left, top, width, height in boxes
    )


def recall_at(
    named: Sequence[Sequence[Detection]],
    truth: Sequence[Sequence[Box]],
    *,
    rates: Sequence[float] = FALSE_PER_IMAGE,
    overlap: float = OVERLAP,
) -> dict[float, float]:
    """Share of all truth boxes found at each rate of false boxes per image; image by image, empty ones included.

    Boxes of all images are taken in order of confidence, equal ones together; the recall at a rate is the highest that
    is reached without more false boxes than it allows. NaN where no image has a truth box. Unlike ChestX-Det10's script
    this neither adds a pixel to each side nor interpolates between confidences.
    """
    if len(named) != len(truth):
        raise CarinaError(f"boxes: expected a list for each of {len(truth)} images, not {len(named)}")
    total = sum(map(len, truth))
    if not total:
        return dict.fromkeys(rates, math.nan)
    outcomes = [
        (one.confidence, hit)
        for own, boxes in zip(named, truth, strict=True)
        for one, hit in zip(_ordered(own), _found(own, boxes, overlap), strict=True)
    ]
    if not outcomes:
        return dict.fromkeys(rates, 0.0)
    outcomes.sort(key=lambda outcome: -outcome[0])
    confidence = np.array([outcome[0] for outcome in outcomes])
    hits = np.cumsum([outcome[1] for outcome in outcomes])
    false = np.arange(1, len(outcomes) + 1) - hits
    last = np.append(np.diff(confidence) != 0, True)
    reached = {}
    for rate in rates:
        allowed = hits[last & (false <= rate * len(truth) + 1e-9)]
        reached[rate] = float(allowed.max(initial=0) / total)
    return reached


def _ordered(named: Sequence[Detection]) -> list[Detection]:
    return sorted(named, key=lambda one: -one.confidence)


def _found(named: Sequence[Detection], truth: Sequence[Box], overlap: float) -> list[bool]:
    """Whether each named box, the most confident first, is the first to find the truth box that it overlaps most."""
    if not named or not truth:
        return [False] * len(named)
    ious = box_iou([one.box for one in _ordered(named)], truth)
    taken: set[int] = set()
    found = []
    for row in ious:
        at = int(row.argmax())
        found.append(bool(row[at] >= overlap) and at not in taken)
        if found[-1]:
            taken.add(at)
    return found


def _centre(one: Detection) -> tuple[float, float]:
    x, y, width, height = one.box
    return x + width / 2, y + height / 2
