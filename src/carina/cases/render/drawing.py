"""A view as an array: images cut and scaled, regions and marks on them, panels side by side. Reads no file.

Where nothing is drawn and nothing scaled, pixels keep their exact values. Under a tint they are
`round(old * (1 - fill) + colour * fill)`, halves to even. A mark has a disc of radius 15 in a panel whose longest side
is 1024, and grows and shrinks with the panel.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from carina.cases.draw import (
    Cut,
    Gray,
    Layer,
    Panel,
    Rgb,
    Size,
    fit_size,
    join_panels,
    overlay,
    put_points,
    scale,
    to_rgb,
)
from carina.cases.model import Case, CaseImage, CaseView
from carina.cases.render.plan import PanelPlan, Plan, plan_view
from carina.store.errors import BenchmarkError

Pixels = Callable[[CaseImage], NDArray[np.uint8]]
"""An image's pixels for display: grey (height, width) with 0 black, or RGB (height, width, 3)."""

FRAME: Final = 1024
"""Longest side of the panel for which the sizes below are stated."""
MARK_RADIUS: Final = 15
MARK_RING: Final = 2
"""Both as in CheXpercept."""
SMALLEST_RADIUS: Final = 7
"""Smallest radius at which the number in a disc can be read."""
CAPTION_SIZE: Final = 24
SMALLEST_CAPTION: Final = 13


def render(case: Case, view: CaseView, pixels: Pixels) -> Rgb:
    """The rendered image of a view: the same for the same case, view and pixels, which are not changed.

    A view that only shows an RGB image is that array itself, not a copy.
    """
    drawn = draw_plan(plan_view(case, view), pixels)
    return to_rgb(drawn) if drawn.ndim == 2 else drawn


def draw_plan(plan: Plan, pixels: Pixels) -> Gray | Rgb:
    """The rendered image of a plan; grey where it shows one grey image and nothing else."""
    images = [_draw_panel(panel, pixels, plan.side) for panel in plan.panels]
    captions = [panel.caption for panel in plan.panels]
    if len(images) == 1 and not captions[0]:
        return images[0]
    longest = max(max(image.shape[:2]) for image in images)
    return join_panels(
        [Panel(image=image, caption=caption) for image, caption in zip(images, captions, strict=True)],
        text_size=_scale_length(CAPTION_SIZE, longest, least=SMALLEST_CAPTION),
    )


def _draw_panel(panel: PanelPlan, pixels: Pixels, side: int | None) -> Gray | Rgb:
    x, y, width, height = panel.crop
    image = _check_pixels(pixels(panel.image), panel.image)
    if not panel.is_whole_image:
        image = image[y : y + height, x : x + width]
    size = Size(width, height) if side is None else fit_size(Size(width, height), Size(side, side))
    if not (panel.layers or panel.points):
        return scale(np.ascontiguousarray(image), size)
    layers = (
        panel.layers if panel.is_whole_image else tuple(_crop_layer(layer, panel) for layer in panel.layers)
    )
    drawn = overlay(
        image,
        layers,
        size=size,
        cut=Cut(
            left=x > 0,
            top=y > 0,
            right=x + width < panel.image.width,
            bottom=y + height < panel.image.height,
        ),
    )
    points = [
        replace(point, x=(point.x - x) * size.width / width, y=(point.y - y) * size.height / height)
        for point in panel.points
    ]
    put_points(
        drawn,
        points,
        radius=_scale_length(MARK_RADIUS, max(size), least=SMALLEST_RADIUS),
        ring=_scale_length(MARK_RING, max(size), least=1),
    )
    return drawn


def _crop_layer(layer: Layer, panel: PanelPlan) -> Layer:
    return replace(layer, region=layer.region.crop(*panel.crop))


def _scale_length(length: int, longest: int, *, least: int) -> int:
    return max(least, round(length * longest / FRAME))


def _check_pixels(array: NDArray[np.uint8], image: CaseImage) -> NDArray[np.uint8]:
    """The array, if it has the type and size that the case states; regions would not fit any other."""
    grey_or_rgb = array.ndim == 2 or (array.ndim == 3 and array.shape[2] == 3)
    if array.dtype != np.uint8 or not grey_or_rgb:
        raise BenchmarkError(
            f"image {image.key!r}: pixels are {array.dtype} of shape {array.shape}, expected uint8 grey or RGB"
        )
    if array.shape[:2] != (image.height, image.width):
        raise BenchmarkError(
            f"image {image.key!r}: is {array.shape[1]} x {array.shape[0]}, but the case was made for "
            f"{image.width} x {image.height}"
        )
    return array
