"""A localisation map over a radiograph, small enough for a page."""

from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.cases.draw import (
    WHITE,
    Colour,
    Gray,
    Layer,
    Point,
    Rgb,
    Size,
    fit_size,
    overlay,
    put_points,
    scale,
    scale_mask,
    size_of,
    to_rgb,
)
from carina.models.frame import Frame, Map
from carina.studies import Region

LARGEST: Final = Size(width=288, height=288)
QUALITY: Final = 82
"""JPEG quality of radiographs with maps."""
_PEAK: Final = Colour(213, 94, 0)
_CLEAR: Final = 0.12
_DENSE: Final = 0.62
"""Opacity where the map is lowest and highest: the radiograph shines through everywhere."""
_UNSEEN: Final = 0.45
"""Brightness that remains outside the region that the model sees."""


def render_map(image: Gray, values: Map, frame: Frame, truth: Region | None) -> Rgb:
    """The map from its lowest (dark blue) to its highest value (yellow) over the image, with peak and truth outline.

    The colours are viridis, which people without red-green vision can read. Regions outside the model's view are dark.
    """
    size = fit_size(size_of(image), LARGEST)
    picture = to_rgb(scale(image, size)).astype(np.float32)
    laid = frame.to_image(values)
    seen = frame.seen() & np.isfinite(laid)
    level = cv2.resize(_levels(laid, seen), size, interpolation=cv2.INTER_AREA)
    colours = cv2.applyColorMap(np.rint(255 * level).astype(np.uint8), cv2.COLORMAP_VIRIDIS)[..., ::-1]
    opacity = (_CLEAR + (_DENSE - _CLEAR) * level)[..., None]
    mixed = picture * (1 - opacity) + colours * opacity
    there = cv2.resize(seen.astype(np.float32), size, interpolation=cv2.INTER_AREA)[..., None] > 0.5
    drawn = np.rint(np.where(there, mixed, picture * _UNSEEN)).astype(np.uint8)
    outlined = _draw_outline(np.ascontiguousarray(drawn), truth)
    if level.max() > level.min():
        x, y = find_peak(laid, seen)
        across, down = size.width / frame.width, size.height / frame.height
        put_points(outlined, [Point(x=x * across, y=y * down, colour=_PEAK)], radius=3, ring=1)
    return outlined


def render_image(image: Gray, truth: Region | None) -> Rgb:
    """The radiograph with the outline of the truth."""
    return _draw_outline(to_rgb(scale(image, fit_size(size_of(image), LARGEST))), truth)


def find_peak(laid: Map, seen: NDArray[np.bool_]) -> tuple[float, float]:
    """The middle of the first of the highest pixels that the model sees, as x and y."""
    row, column = np.unravel_index(np.where(seen, laid, -np.inf).argmax(), laid.shape)
    return float(column) + 0.5, float(row) + 0.5


def _levels(laid: Map, seen: NDArray[np.bool_]) -> Map:
    """From 0 at the lowest seen pixel to 1 at the highest; 0 where all are equal."""
    low, high = (float(bound(laid[seen])) if seen.any() else 0.0 for bound in (np.min, np.max))
    if not high > low:
        return np.zeros(laid.shape, np.float32)
    return np.asarray(np.where(seen, np.clip((laid - low) / (high - low), 0, 1), 0.0), np.float32)


def _draw_outline(picture: Rgb, truth: Region | None) -> Rgb:
    if truth is None:
        return picture
    region = Region.from_mask(scale_mask(truth.to_mask(), size_of(picture)))
    return overlay(picture, [Layer(region=region, colour=WHITE, outline=2, casing=1)])
