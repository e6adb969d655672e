"""Brightness of the lungs, compared with clear lungs.

Brightness is scaled from aerated lung (0) to the mediastinum (1) of the same image, so that exposure does not matter.
A table gives the mean brightness of clear lungs from chest wall to mediastinum and from apex to base (phantoms of seed
11 without a lung lesion); `excess` is the brightness above it.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import cv2
import numpy as np

from carina.runs.builtin.reader.thorax import Grey, LungFrame, Thorax
from carina.studies.region import Mask

_CLEAR_LUNG: Final = np.array(
    [
        (0.14, 0.07, 0.07, 0.10, 0.19, 0.34),
        (0.13, 0.03, 0.02, 0.06, 0.13, 0.30),
        (0.21, 0.05, 0.02, 0.05, 0.10, 0.20),
        (0.21, 0.05, 0.04, 0.07, 0.12, 0.19),
        (0.24, 0.09, 0.06, 0.08, 0.13, 0.24),
        (0.27, 0.13, 0.10, 0.10, 0.14, 0.25),
        (0.32, 0.18, 0.15, 0.15, 0.17, 0.20),
        (0.33, 0.19, 0.16, 0.16, 0.16, 0.19),
        (0.33, 0.17, 0.13, 0.14, 0.21, 0.31),
        (0.42, 0.36, 0.30, 0.32, 0.32, 0.41),
    ],
    np.float32,
)
"""Rows from apex to base, columns from the chest wall to the mediastinum."""
_AERATED_PERCENTILE: Final = 15
"""Percentile of the lungs' brightness that is taken as aerated lung, also in abnormal lungs."""
_MEDIASTINUM: Final = (0.44, 0.30, 0.56, 0.75)
"""Box of the mediastinum, in the frame of the lungs."""
_CONTRAST_OFFSET: Final = 8.0
"""Grey values added to the contrast, so that noise is not amplified in an image without contrast."""
_BLUR: Final = 4.0
"""Width in pixels of the smoothing, which removes ribs and vessels but not lesions."""
_FINE: Final = 3.0
"""Width in pixels below which structures count as texture."""


@dataclass(frozen=True)
class Appearance:
    """The lungs of one frontal image."""

    thorax: Thorax
    image: Grey
    """Brightness, 0 aerated lung, 1 mediastinum."""
    contrast: float
    """Contrast of lung and mediastinum, as a share of the mediastinum's brightness."""

    @cached_property
    def lungs(self) -> Mask:
        return self.thorax.right | self.thorax.left

    @cached_property
    def excess(self) -> Grey:
        """Smoothed brightness above clear lung, from pixels of the lungs alone; 0 far from them."""
        return self.excess_within(self.lungs)

    def excess_within(self, field: Mask) -> Grey:
        """Smoothed excess brightness from the pixels of a field; outside the lungs, relative to aerated lung."""
        return _smooth_within(self.image - self._clear_lungs, field)

    @cached_property
    def _clear_lungs(self) -> Grey:
        return _clear_lung(self.thorax.right, mirrored=False) + _clear_lung(self.thorax.left, mirrored=True)

    @cached_property
    def texture(self) -> Grey:
        """Local standard deviation of fine structures around each pixel."""
        fine = self.image - cv2.GaussianBlur(self.image, (0, 0), _FINE)
        return np.sqrt(cv2.GaussianBlur(fine * fine, (0, 0), _BLUR))

    def mean(self, values: Grey, part: Mask) -> float:
        """Mean over a part of the lungs; 0 for an empty part."""
        return float(values[part].mean()) if part.any() else 0.0


def measure_appearance(image: Grey, thorax: Thorax) -> Appearance:
    """Measure the brightness of the lungs of a frontal image."""
    lungs = (thorax.right | thorax.left).view(np.uint8)
    inner = cv2.erode(lungs, np.ones((7, 7), np.uint8)) > 0
    dark = float(np.percentile(image[inner], _AERATED_PERCENTILE)) if inner.any() else float(image.min())
    white = _mediastinum_brightness(image, thorax.frame)
    contrast = max(white - dark, 0.0)
    return Appearance(
        thorax=thorax,
        image=np.asarray((image - dark) / (contrast + _CONTRAST_OFFSET), np.float32),
        contrast=contrast / (white + 1.0),
    )


def _mediastinum_brightness(image: Grey, frame: LungFrame) -> float:
    height, width = image.shape
    x1, y1, x2, y2 = (round(value) for value in frame.box(_MEDIASTINUM))
    middle = image[max(y1, 0) : min(y2, height), max(x1, 0) : min(x2, width)]
    return float(np.median(middle)) if middle.size else float(image.max())


def _smooth_within(values: Grey, within: Mask) -> Grey:
    weight = cv2.GaussianBlur(within.astype(np.float32), (0, 0), _BLUR)
    total = cv2.GaussianBlur(np.where(within, values, np.float32(0.0)), (0, 0), _BLUR)
    return np.asarray(total / np.maximum(weight, np.float32(0.02)), np.float32)


def _clear_lung(lung: Mask, *, mirrored: bool) -> Grey:
    """The table of clear lungs, resampled to a lung; 0 outside it."""
    if not lung.any():
        return np.zeros(lung.shape, np.float32)
    own = lung[:, ::-1] if mirrored else lung
    rows = np.flatnonzero(own.any(axis=1))
    first, last = own.argmax(axis=1), own.shape[1] - own[:, ::-1].argmax(axis=1)
    across = (np.arange(own.shape[1]) + 0.5 - first[:, None]) / np.maximum(last - first, 1)[:, None]
    down = (np.arange(own.shape[0]) + 0.5 - rows[0]) / (rows[-1] + 1 - rows[0])
    high, wide = _CLEAR_LUNG.shape
    laid = cv2.remap(
        _CLEAR_LUNG,
        np.clip(across * wide - 0.5, 0, wide - 1).astype(np.float32),
        np.repeat(np.clip(down * high - 0.5, 0, high - 1).astype(np.float32)[:, None], own.shape[1], axis=1),
        cv2.INTER_LINEAR,
    )
    laid = np.where(own, laid, np.float32(0.0))
    return np.asarray(laid[:, ::-1] if mirrored else laid, np.float32)
