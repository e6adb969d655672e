"""A proposed contour against the image: what the image says instead, and where the two differ.

Brightness well inside the contour is taken for the lesion's, that around it for normal; what is nearer to the first
is lesion. For an enlarged heart the outline of the fitted thorax takes the part of the image.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np

from carina.runs.builtin.reader.appearance import Appearance
from carina.runs.builtin.reader.thorax import Grey
from carina.studies.region import Mask

HEART: Final = "cardiomegaly"
_INSIDE, _BESIDE, _AROUND, _REACH = 4, 5, 20, 16
"""Pixels: how deep the middle of the contour lies, where its surroundings begin and end, how far the lesion may reach
beyond it."""
_NOISE: Final = 2
"""Pixels: differences that are thinner than twice this are drawing."""
_RIM: Final = 4
"""Pixels: what is thinner than twice this is a strip of chest wall or heart, which the fitted lungs may hold."""
_LEAST: Final = 10
_FAINTEST: Final = {
    "atelectasis": 0.30,
    "edema": 0.04,
    "lung opacity": 0.04,
    "pleural effusion": 0.30,
}
"""Excess brightness from which on lung is lesion where nobody has drawn a contour; of others, `_AIRSPACE`."""
_AIRSPACE: Final = 0.16
_MAJOR: Final = {
    HEART: 0.18,
    "atelectasis": 0.64,
    "consolidation": 0.29,
    "edema": 0.30,
    "lung opacity": 0.36,
    "pleural effusion": 0.15,
    "pneumonia": 0.23,
}
"""By finding, the share of the contour by which it may differ from the image before a revision is major: more for what
is small or has no sharp border. These numbers too served best on phantoms of seed 11."""
_MAJOR_ELSE: Final = 0.25


@dataclass(frozen=True)
class Estimate:
    """What the image says of a lesion."""

    score: Grey
    """Positive where it looks like lesion."""
    mask: Mask
    field: Mask
    """Where the lesion can be seen at all."""

    def at(self, point: tuple[float, float]) -> float:
        """The score around a point."""
        height, width = self.score.shape
        x, y = min(max(int(point[0]), 0), width - 1), min(max(int(point[1]), 0), height - 1)
        return float(self.score[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2].mean())

    def overlap(self, mask: Mask) -> float:
        """Intersection over union with a mask."""
        either = np.count_nonzero(mask | self.mask)
        return np.count_nonzero(mask & self.mask) / either if either else 0.0

    def difference(self, shown: Mask) -> float:
        """How much of a contour would have to be changed, as a share of it."""
        other = (self.mask ^ shown) & self.field
        return float(np.count_nonzero(_opened(other, _NOISE))) / max(int(np.count_nonzero(shown)), 1)


def estimate(look: Appearance, finding: str, shown: Mask | None) -> Estimate:
    """Where a lesion is, near the contour that is shown or, without one, wherever it looks like one."""
    if finding == HEART:
        heart = look.thorax.heart_mask
        return Estimate(score=_distance(heart), mask=heart, field=np.ones_like(heart))
    if shown is None or not shown.any():
        field = look.lungs
        score = look.excess - np.float32(_FAINTEST.get(finding, _AIRSPACE))
        return Estimate(score=score, mask=_opened((score > 0) & field, _RIM), field=field)
    field = look.lungs | shown
    values = look.excess_within(field)
    inside = _first_of((_eroded(shown, _INSIDE), shown))
    around = _dilated(shown, _AROUND) & ~_dilated(shown, _BESIDE) & field
    beside = _first_of((around, field & ~shown, ~shown))
    middle = 0.5 * (_median(values, inside) + _median(values, beside))
    score = np.asarray(values - np.float32(middle), np.float32)
    return Estimate(score=score, mask=(score > 0) & field & _dilated(shown, _REACH), field=field)


def needs_revision(found: Estimate, finding: str, shown: Mask) -> bool:
    """Whether a contour differs so much from the image that a reader would draw it anew."""
    return found.difference(shown) > _MAJOR.get(finding, _MAJOR_ELSE)


def best_mask(found: Estimate, masks: Sequence[Mask]) -> int:
    """Which of several masks agrees best with the image."""
    return int(np.argmax([found.overlap(mask) for mask in masks]))


def _first_of(masks: Sequence[Mask]) -> Mask:
    return next((mask for mask in masks if np.count_nonzero(mask) >= _LEAST), masks[-1])


def _median(values: Grey, mask: Mask) -> float:
    return float(np.median(values[mask])) if mask.any() else 0.0


def _disc(radius: int) -> cv2.typing.MatLike:
    return cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))


def _dilated(mask: Mask, radius: int) -> Mask:
    return cv2.dilate(mask.astype(np.uint8), _disc(radius)).astype(bool)


def _eroded(mask: Mask, radius: int) -> Mask:
    return cv2.erode(mask.astype(np.uint8), _disc(radius)).astype(bool)


def _opened(mask: Mask, radius: int) -> Mask:
    return cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, _disc(radius)).astype(bool)


def _distance(mask: Mask) -> Grey:
    """Signed distance to the border of a mask, positive inside."""
    inside, outside = (cv2.distanceTransform(part.astype(np.uint8), cv2.DIST_L2, 5) for part in (mask, ~mask))
    return np.asarray(inside - outside, np.float32)
