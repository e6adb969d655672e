"""The contour of a lesion, and the one operation that draws every contour of a case.

Edits are made on the truth. Whatever a case shows or offers, the truth included, is then drawn as a careful reader
might draw it: smoothed, with noise that is the same for all masks of the case. So all contours have the same texture,
whatever the truth was drawn with.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import cv2
import numpy as np
from cv2.typing import MatLike
from numpy.typing import NDArray
from scipy import special

from carina.percept.anatomy import LesionGeometry
from carina.percept.rules import Ineligible, Rules
from carina.studies.region import Mask

Field = NDArray[np.float32]
Window = tuple[slice, slice]

MARGIN: Final = 200.0
"""Margin of the window around the lesion, in pixels of the frame: edits and points lie within it."""
SMOOTHING: Final = 3.0
"""Width of the blur that smooths a mask, and the distance to its contour, in pixels of the frame."""
WOBBLE: Final = 2.0
"""Largest standard deviation of the redrawn contour, in pixels of the frame."""
WOBBLE_OF_RADIUS: Final = 0.012
"""The same for small lesions, as a share of the radius of a disc of the same area; the smaller value is used."""
OCTAVES: Final = ((96.0, 1.0), (48.0, 0.7), (24.0, 0.6))
"""Wavelengths (pixels of the frame) and amplitudes of the noise: nothing finer than a hand would draw."""
ATTEMPTS: Final = 3
"""Attempts, each with half the smoothing and half the noise of the one before."""
BLUR_REACH: Final = 4.0
"""Distance at which the blur ends, in its widths (OpenCV's kernel for floating-point values)."""
SIDE_TOLERANCE: Final = 3.0
"""Distance that a polygon may keep from a contour when the length of its sides is measured, in pixels of the frame."""
LEAST_BLUR: Final = 0.6
"""Least width of the blur, in pixels of the image: a mask that does not survive it has no contour."""


@dataclass(frozen=True)
class Outline:
    """A contour in a window around the lesion."""

    shape: tuple[int, int]
    """Shape of the image."""
    window: Window
    mask: Mask
    """The truth, on which edits are made."""
    field: Mask
    """Where the contour may run."""
    depth: Field
    """Smoothed signed distance to the contour, positive inside."""
    scale: float
    """Pixels of the outline for each pixel of the frame."""
    blur: float
    """Width of the blur with which masks are drawn, in pixels."""
    limit: Field
    """Share of a blurred mask from which a pixel belongs to the drawn mask; one half, with noise."""

    @property
    def area(self) -> int:
        return int(np.count_nonzero(self.mask))

    @cached_property
    def revised(self) -> Mask:
        """The truth as a careful reader might have drawn it."""
        return self.draw(self.mask)

    def draw(self, mask: Mask) -> Mask:
        """A mask of the window as a careful reader might have drawn it; all contours of a case come from here."""
        return _draw(mask, self.blur, self.limit, self.field)

    def draw_changed(self, mask: Mask, windows: Sequence[Window]) -> Mask:
        """The same for a mask that differs from the truth within these windows only."""
        drawn = self.revised.copy()
        reach = int(np.ceil(BLUR_REACH * self.blur)) + 1
        for window in windows:
            inner, outer = self._widen(window, reach), self._widen(window, 2 * reach)
            patch = _draw(mask[outer], self.blur, self.limit[outer], self.field[outer])
            drawn[inner] = patch[_within(inner, outer)]
        return drawn

    def _widen(self, window: Window, reach: int) -> Window:
        rows, columns = (
            slice(max(0, part.start - reach), min(length, part.stop + reach))
            for part, length in zip(window, self.mask.shape, strict=True)
        )
        return rows, columns

    @cached_property
    def side_length(self) -> float:
        """How long the straight sides of the contour are, in pixels; round contours have short ones."""
        rings, _ = cv2.findContours(self.mask.view(np.uint8), cv2.RETR_CCOMP, cv2.CHAIN_APPROX_NONE)
        return mean_side([measure_sides(ring, SIDE_TOLERANCE * self.scale, is_closed=True) for ring in rings])

    def on_image(self, mask: Mask) -> Mask:
        """A mask of the window as a mask of the whole image."""
        whole = np.zeros(self.shape, bool)
        whole[self.window] = mask
        return whole


def _within(inner: Window, outer: Window) -> Window:
    """A window in the coordinates of another one."""
    rows, columns = (
        slice(one.start - other.start, one.stop - other.start)
        for one, other in zip(inner, outer, strict=True)
    )
    return rows, columns


def draw_outline(geometry: LesionGeometry, rules: Rules, chance: np.random.Generator) -> Outline:
    """The outline of a lesion; its truth, redrawn, agrees with the truth as well as the rules demand."""
    window = _window_around(geometry)
    truth, field = np.ascontiguousarray(geometry.truth[window]), np.ascontiguousarray(geometry.field[window])
    radius = float(np.sqrt(geometry.area / np.pi))
    wobble = min(WOBBLE * geometry.scale, WOBBLE_OF_RADIUS * radius) * _make_noise(
        truth.shape, geometry.scale, chance
    )
    for attempt in range(ATTEMPTS):
        softer = 0.5**attempt
        blur = max(SMOOTHING * geometry.scale * softer, LEAST_BLUR)
        # At distance d from a straight contour, a blurred mask has the value of the normal distribution at d / blur.
        limit = special.ndtr(wobble * np.float32(-softer / blur))
        agreement = iou(_draw(truth, blur, limit, field), truth)
        if agreement >= rules.good_iou:
            return Outline(
                shape=(geometry.truth.shape[0], geometry.truth.shape[1]),
                window=window,
                mask=truth,
                field=field,
                depth=_blur(signed_distance(truth), SMOOTHING * geometry.scale),
                scale=geometry.scale,
                blur=blur,
                limit=limit,
            )
    raise Ineligible("too thin to redraw", f"a redrawn contour agrees to {agreement:.3f} at best")


def _draw(mask: Mask, blur: float, limit: Field, field: Mask) -> Mask:
    return np.asarray((_blur(mask.astype(np.float32), blur) > limit) & field)


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
        blur=max(outline.blur / times, LEAST_BLUR),
        limit=average(outline.limit),
    )


def signed_distance(mask: Mask) -> Field:
    """Distance of each pixel to the contour, positive inside; pixels next to the contour have half a pixel."""
    inside = cv2.distanceTransform(mask.view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    outside = cv2.distanceTransform((~mask).view(np.uint8), cv2.DIST_L2, cv2.DIST_MASK_5)
    return np.asarray(np.where(mask, inside - 0.5, 0.5 - outside), np.float32)


def iou(one: Mask, other: Mask) -> float:
    """Intersection over union."""
    both = int(np.count_nonzero(one & other))
    either = int(np.count_nonzero(one)) + int(np.count_nonzero(other)) - both
    return both / either if either else float("nan")


def measure_sides(curve: MatLike, tolerance: float, *, is_closed: bool) -> NDArray[np.float64]:
    """Lengths of the sides of a polygon that stays this close to a curve, given as OpenCV gives contours."""
    corners = cv2.approxPolyDP(curve, tolerance, closed=is_closed)[:, 0, :]
    ends = np.roll(corners, -1, axis=0)
    sides = np.hypot(*(ends - corners).T.astype(np.float64))
    return np.asarray(sides if is_closed else sides[:-1], np.float64)


def mean_side(sides: list[NDArray[np.float64]]) -> float:
    """The mean length of sides, weighted by length: of the side on which a random place of the contour lies."""
    lengths = np.concatenate(sides)
    return max(float((lengths**2).sum() / max(float(lengths.sum()), 1.0)), 1.0)


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
