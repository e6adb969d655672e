"""Regions over an image: tinted, outlined, or both; pixels outside the regions keep their exact values.

Outlines are drawn after scaling and lie inside the region: its pixels within `outline` steps (up, down, left,
right) of a pixel that does not belong to it. The edge of the image counts as outside, unless the image was cut there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.cases.draw.image import Gray, Rgb, Size, scale, scale_mask, size_of, to_rgb
from carina.cases.draw.palette import INK, Colour
from carina.store.errors import RegionError
from carina.studies.region import Mask, Region

_CROSS = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One region, its colour, and the style of its tint and outline."""

    region: Region
    colour: Colour
    fill: float = 0.0
    """Opacity of the tint, 0 (none) to 1 (opaque)."""
    outline: int = 1
    """Width of the outline in pixels of the drawn image; 0 for none."""
    dash: int = 0
    """Length of a dash and of a gap along the outline, in pixels; 0 for a solid line."""
    casing: int = 0
    """Width of a dark line within the outline, which keeps a light colour visible on a bright image."""


class Cut(NamedTuple):
    """Sides at which the shown part was cut from a larger image: a region that reaches such a side continues there."""

    left: bool = False
    top: bool = False
    right: bool = False
    bottom: bool = False


_UNCUT = Cut()


class _Patch(NamedTuple):
    """The smallest rectangle of an image that holds a mask, and the mask within it: most masks are small."""

    window: tuple[slice, slice]
    mask: Mask


def overlay(
    image: Gray | Rgb, layers: Sequence[Layer], *, size: Size | None = None, cut: Cut = _UNCUT
) -> Rgb:
    """The image in colour, at `size`, with every layer drawn on it; tints are below all outlines.

    Args:
        image: Grey (height, width) or RGB (height, width, 3), uint8; it is not changed.
        layers: Regions of the size of the image, the first below the others.
        size: Size of the result; that of the image unless given.
        cut: Sides at which the image was cut from a larger one; outlines have no edge there.

    Returns:
        RGB (height, width, 3), uint8.

    Raises:
        RegionError: A region has another size than the image.
    """
    patches = [_patch_for(layer.region, image, size or size_of(image)) for layer in layers]
    canvas = to_rgb(image if size is None else scale(image, size))
    drawn = [
        (layer, canvas[patch.window], patch.mask, _continued_sides(patch.window, size_of(canvas), cut))
        for layer, patch in zip(layers, patches, strict=True)
        if patch is not None
    ]
    for layer, part, mask, _ in drawn:
        if layer.fill:
            _tint(part, mask, layer.colour, opacity=layer.fill)
    for layer, part, mask, cuts in drawn:
        if layer.casing:
            part[_outline(mask, width=layer.outline + layer.casing, cut=cuts)] = INK
        if layer.outline:
            part[_outline(mask, width=layer.outline, dash=layer.dash, cut=cuts)] = layer.colour
    return canvas


def _patch_for(region: Region, image: Gray | Rgb, size: Size) -> _Patch | None:
    if (region.height, region.width) != image.shape[:2]:
        raise RegionError(
            f"a region of {region.width} x {region.height} pixels does not lie on an image of "
            f"{image.shape[1]} x {image.shape[0]}"
        )
    if size != size_of(image):
        return _patch(scale_mask(region.to_mask(), size))
    box = region.bbox
    if box is None:
        return None
    x, y, width, height = box
    return _Patch((slice(y, y + height), slice(x, x + width)), region.crop(*box).to_mask())


def tint(image: Rgb, mask: Mask, colour: Colour, *, opacity: float) -> None:
    """Mix a colour into the masked pixels, in place: `round(old * (1 - opacity) + colour * opacity)`."""
    patch = _patch(mask)
    if patch is not None:
        _tint(image[patch.window], patch.mask, colour, opacity=opacity)


def _tint(part: Rgb, mask: Mask, colour: Colour, *, opacity: float) -> None:
    old = np.arange(256, dtype=np.float64)[:, None]
    table = np.rint(old * (1 - opacity) + np.array(colour) * opacity).astype(np.uint8)
    # One table look-up for the whole window is quicker than picking out the masked pixels.
    cv2.copyTo(cv2.LUT(part, table[:, None, :].reshape(1, 256, 3)), mask.view(np.uint8), part)


def paint(image: Rgb, mask: Mask, colour: Colour) -> None:
    """Set the masked pixels to a colour, in place."""
    patch = _patch(mask)
    if patch is not None:
        image[patch.window][patch.mask] = colour


def outline(mask: Mask, *, width: int = 1, dash: int = 0) -> Mask:
    """The pixels of a mask within `width` steps of its border, all around or in dashes."""
    edge = np.zeros_like(mask)
    patch = _patch(mask)
    if patch is not None:
        edge[patch.window] = _outline(patch.mask, width=width, dash=dash)
    return edge


def _outline(mask: Mask, *, width: int, dash: int = 0, cut: Cut = _UNCUT) -> Mask:
    inside = mask.view(np.uint8)
    left, top, right, bottom = (width * side for side in cut)
    wider = cv2.copyMakeBorder(inside, top, bottom, left, right, cv2.BORDER_REPLICATE)
    core = cv2.erode(
        wider, _CROSS, iterations=width, borderType=cv2.BORDER_CONSTANT, borderValue=(0, 0, 0, 0)
    )
    height, length = mask.shape
    core = core[top : top + height, left : left + length]
    ring = cast(Mask, inside != core)
    return ring if dash == 0 else ring & _dashes(inside, width=width, dash=dash)


def _continued_sides(window: tuple[slice, slice], size: Size, cut: Cut) -> Cut:
    """Sides of its window at which a mask continues: those that lie on a side that was cut."""
    rows, columns = window
    return Cut(
        left=cut.left and columns.start == 0,
        top=cut.top and rows.start == 0,
        right=cut.right and columns.stop == size.width,
        bottom=cut.bottom and rows.stop == size.height,
    )


def _dashes(inside: NDArray[np.uint8], *, width: int, dash: int) -> Mask:
    """Pixels of a dashed line along the borders of a mask, widened to the line's width."""
    borders, _ = cv2.findContours(inside, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    ink = np.zeros_like(inside)
    for border in borders:
        points = border[:, 0]
        points = points[(np.arange(len(points)) // dash) % 2 == 0]
        ink[points[:, 1], points[:, 0]] = 1
    return cast(
        Mask, cv2.dilate(ink, _CROSS, iterations=width - 1).astype(bool) if width > 1 else ink.astype(bool)
    )


def _patch(mask: Mask) -> _Patch | None:
    """None where the mask is empty."""
    # Run-length decoding gives masks column by column; the transposed view saves a copy.
    if mask.flags.f_contiguous:
        y, x, height, width = cv2.boundingRect(mask.T.view(np.uint8))
    else:
        x, y, width, height = cv2.boundingRect(mask.view(np.uint8))
    window = (slice(y, y + height), slice(x, x + width))
    return _Patch(window, np.ascontiguousarray(mask[window])) if width else None
