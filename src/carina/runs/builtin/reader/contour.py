"""Estimate a lesion from the image, and compare a proposed contour with it.

The brightness deep inside the contour is taken as that of the lesion, and the brightness around it as normal; a pixel
that is nearer to the first belongs to the lesion. For an enlarged heart the fitted outline of the heart is used.
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
"""Distances from the contour in pixels: depth of its inside, beginning and end of its surroundings, and how far the
lesion may extend beyond it."""
_NOISE_WIDTH: Final = 2
"""Pixels: differences thinner than twice this are due to drawing."""
_STRIP_WIDTH: Final = 4
"""Pixels: areas thinner than twice this are strips of chest wall or heart within the fitted lungs."""
_FEWEST_PIXELS: Final = 10
_LEAST_EXCESS: Final = {
    "atelectasis": 0.30,
    "edema": 0.04,
    "lung opacity": 0.04,
    "pleural effusion": 0.30,
}
"""Least excess brightness of a lesion where no contour is proposed; others have `_LEAST_EXCESS_OTHERS`."""
_LEAST_EXCESS_OTHERS: Final = 0.16
_MAJOR_REVISION: Final = {
    HEART: 0.18,
    "atelectasis": 0.64,
    "consolidation": 0.29,
    "edema": 0.30,
    "lung opacity": 0.36,
    "pleural effusion": 0.15,
    "pneumonia": 0.23,
}
"""By finding, the share of the contour that may differ from the image before a revision is major. It is larger for
findings that are small or have no sharp border. The values were the best on phantoms of seed 11."""
_MAJOR_REVISION_OTHERS: Final = 0.25


@dataclass(frozen=True)
class LesionEstimate:
    """A lesion as estimated from the image."""

    score: Grey
    """Positive in pixels that look like the lesion."""
    mask: Mask
    field: Mask
    """Pixels in which the lesion can be seen."""

    def at(self, point: tuple[float, float]) -> float:
        """Mean score around a point."""
        height, width = self.score.shape
        x, y = min(max(int(point[0]), 0), width - 1), min(max(int(point[1]), 0), height - 1)
        return float(self.score[max(y - 1, 0) : y + 2, max(x - 1, 0) : x + 2].mean())

    def overlap(self, mask: Mask) -> float:
        """Intersection over union with a mask."""
        either = np.count_nonzero(mask | self.mask)
        return np.count_nonzero(mask & self.mask) / either if either else 0.0

    def difference(self, proposal: Mask) -> float:
        """Area by which a contour differs from the estimate, as a share of the contour."""
        other = (self.mask ^ proposal) & self.field
        return float(np.count_nonzero(_open_mask(other, _NOISE_WIDTH))) / max(
            int(np.count_nonzero(proposal)), 1
        )


def estimate_lesion(appearance: Appearance, finding: str, proposal: Mask | None) -> LesionEstimate:
    """Estimate a lesion near the proposed contour or, without one, anywhere in the lungs."""
    if finding == HEART:
        heart = appearance.thorax.heart_mask
        return LesionEstimate(score=_signed_distance(heart), mask=heart, field=np.ones_like(heart))
    if proposal is None or not proposal.any():
        field = appearance.lungs
        score = appearance.excess - np.float32(_LEAST_EXCESS.get(finding, _LEAST_EXCESS_OTHERS))
        return LesionEstimate(score=score, mask=_open_mask((score > 0) & field, _STRIP_WIDTH), field=field)
    field = appearance.lungs | proposal
    values = appearance.excess_within(field)
    inside = _first_large((_erode(proposal, _INSIDE), proposal))
    around = _dilate(proposal, _AROUND) & ~_dilate(proposal, _BESIDE) & field
    beside = _first_large((around, field & ~proposal, ~proposal))
    middle = 0.5 * (_median(values, inside) + _median(values, beside))
    score = np.asarray(values - np.float32(middle), np.float32)
    return LesionEstimate(score=score, mask=(score > 0) & field & _dilate(proposal, _REACH), field=field)


def needs_revision(estimate: LesionEstimate, finding: str, proposal: Mask) -> bool:
    """Whether a contour differs so much from the estimate that it needs a major revision."""
    return estimate.difference(proposal) > _MAJOR_REVISION.get(finding, _MAJOR_REVISION_OTHERS)


def find_best_mask(estimate: LesionEstimate, masks: Sequence[Mask]) -> int:
    """Index of the mask that agrees best with the estimate."""
    return int(np.argmax([estimate.overlap(mask) for mask in masks]))


def _first_large(masks: Sequence[Mask]) -> Mask:
    return next((mask for mask in masks if np.count_nonzero(mask) >= _FEWEST_PIXELS), masks[-1])


def _median(values: Grey, mask: Mask) -> float:
    return float(np.median(values[mask])) if mask.any() else 0.0


def _disc(radius: int) -> cv2.typing.MatLike:
    return cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * radius + 1, 2 * radius + 1))


def _dilate(mask: Mask, radius: int) -> Mask:
    return cv2.dilate(mask.astype(np.uint8), _disc(radius)).astype(bool)


def _erode(mask: Mask, radius: int) -> Mask:
    return cv2.erode(mask.astype(np.uint8), _disc(radius)).astype(bool)


def _open_mask(mask: Mask, radius: int) -> Mask:
    return cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_OPEN, _disc(radius)).astype(bool)


def _signed_distance(mask: Mask) -> Grey:
    """Signed distance to the border of a mask, positive inside."""
    inside, outside = (cv2.distanceTransform(part.astype(np.uint8), cv2.DIST_L2, 5) for part in (mask, ~mask))
    return np.asarray(inside - outside, np.float32)
