"""The contour that a careful reader might have drawn: the truth, smoothed and slightly redrawn.

Every mask that a case shows is made from it, so that the texture of a contour does not reveal the path of a case.
"""

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.percept.anatomy import LesionGeometry
from carina.percept.rules import Ineligible, Rules
from carina.studies.region import Mask

Field = NDArray[np.float32]
Window = tuple[slice, slice]

MARGIN: Final = 200.0
"""Margin of the window around the lesion, in pixels of the frame: edits and points lie within it."""
SMOOTHING: Final = 2.0
"""Width of the blur of the distance to the contour, in pixels of the frame."""
WOBBLE: Final = 2.0
"""Largest standard deviation of the redrawn contour, in pixels of the frame."""
WOBBLE_OF_RADIUS: Final = 0.012
"""The same for small lesions, as a share of the radius of a disc of the same area; the smaller value is used."""
OCTAVES: Final = ((96.0, 1.0), (48.0, 0.7), (24.0, 0.6))
"""Wavelengths (pixels of the frame) and amplitudes of the noise: nothing finer than a hand would draw."""
ATTEMPTS: Final = 3
"""Attempts, each with half the smoothing and half the noise of the one before."""
LEAST_BLUR: Final = 0.6
"""Least width of the blur, in pixels of the image: a mask that does not survive it has no contour."""


@dataclass(frozen=True)
class Outline:
    """A contour in a window around the lesion."""

    shape: tuple[int, int]
    """Shape of the image."""
    window: Window
    mask: Mask
    field: Mask
    """Where the contour may run."""
    depth: Field
    """Smoothed signed distance to the contour, positive inside."""
    scale: float
    """Pixels of the outline for each pixel of the frame."""

    @property
    def area(self) -> int:
        return int(np.count_nonzero(self.mask))

    def on_image(self, mask: Mask) -> Mask:
        """A mask of the window as a mask of the whole image."""
        whole = np.zeros(self.shape, bool)
        whole[self.window] = mask
        return whole


def draw_outline(geometry: LesionGeometry, rules: Rules, chance: np.random.Generator) -> Outline:
    """The truth as a careful reader might have drawn it; it agrees with the truth as well as the rules demand."""
    window = _window_around(geometry)
    truth, field = np.ascontiguousarray(geometry.truth[window]), np.ascontiguousarray(geometry.field[window])
    depth = signed_distance(truth)
    radius = float(np.sqrt(geometry.area / np.pi))
    wobble = min(WOBBLE * geometry.scale, WOBBLE_OF_RADIUS * radius) * _make_noise(
        truth.shape, geometry.scale, chance
    )
    blur = SMOOTHING * geometry.scale
    for attempt in range(ATTEMPTS):
        softer = 0.5**attempt
        drawn = (_blur(depth, blur * softer) + wobble * np.float32(softer) > 0) & field
        agreement = iou(drawn, truth)
        if agreement >= rules.good_iou:
            return Outline(
                shape=(geometry.truth.shape[0], geometry.truth.shape[1]),
                window=window,
                mask=drawn,
                field=field,
                depth=_blur(signed_distance(drawn), blur),
                scale=geometry.scale,
            )
    raise Ineligible("too thin to redraw", f"a redrawn contour agrees to {agreement:.3f} at best")


def coarsen(outline: Outline, times: int) -> Outline:
    """The same outline on pixels that are `times` as wide and high; the window is cut to whole pixels."""
    rows, columns = (length // times for length in outline.mask.shape)

    def average(values: Mask | Field) -> Field:
        whole = values[: rows * times, : columns * times].astype(np.float32)
        return np.asarray(cv2.resize(whole, (columns, rows), interpolation=cv2.INTER_AREA), np.float32)

    top, left = (part.start // times for part in outline.window)
    return Outline(
        shape=(outline.shape[0] // times, outline.shape[1] // times),
        window=(slice(top, top + rows), slice(left, left + columns)),
        mask=average(outline.mask) >= 0.5,
        field=average(outline.field) >= 0.5,
        depth=average(outline.depth) / np.float32(times),
        scale=outline.scale / times,
    )


def signed_distance(mask: Mask) -> Field:
    """Distance of each pixel to the contour, positive inside; pixels next to the contour have half a pixel."""
    inside = cv2.distanceTransform(mask.view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    outside = cv2.distanceTransform((~mask).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    return np.asarray(np.where(mask, inside - 0.5, 0.5 - outside), np.float32)


def smooth_mask(mask: Mask, field: Mask, sigma: float) -> Mask:
    """The mask with a smoothed contour, within the field."""
    return np.asarray((_blur(signed_distance(mask), sigma) > 0) & field)


def iou(one: Mask, other: Mask) -> float:
    """Intersection over union."""
    both = int(np.count_nonzero(one & other))
    either = int(np.count_nonzero(one)) + int(np.count_nonzero(other)) - both
    return both / either if either else float("nan")


def band_limited_noise(shape: tuple[int, ...], wavelength: float, chance: np.random.Generator) -> Field:
    """Smooth noise of unit variance (nearly) with no detail finer than half the wavelength."""
    step = max(wavelength / 2, 2.0)
    coarse = tuple(int(np.ceil(length / step)) + 3 for length in shape)
    grid = chance.standard_normal(coarse, dtype=np.float32)
    size = round(coarse[1] * step), round(coarse[0] * step)
    return np.asarray(
        cv2.resize(grid, size, interpolation=cv2.INTER_CUBIC)[: shape[0], : shape[1]], np.float32
    )


def _make_noise(shape: tuple[int, ...], scale: float, chance: np.random.Generator) -> Field:
    total = np.zeros(shape, np.float32)
    for wavelength, amplitude in OCTAVES:
        total += np.float32(amplitude) * band_limited_noise(shape, wavelength * scale, chance)
    return total / np.float32(np.sqrt(sum(amplitude**2 for _, amplitude in OCTAVES)))


def _blur(values: Field, sigma: float) -> Field:
    return np.asarray(cv2.GaussianBlur(values, (0, 0), max(sigma, LEAST_BLUR)), np.float32)


def _window_around(geometry: LesionGeometry) -> Window:
    x, y, w, h = cv2.boundingRect(geometry.truth.view(np.uint8))
    margin = round(MARGIN * geometry.scale)
    rows, columns = geometry.truth.shape
    return (
        slice(max(0, y - margin), min(rows, y + h + margin)),
        slice(max(0, x - margin), min(columns, x + w + margin)),
    )
