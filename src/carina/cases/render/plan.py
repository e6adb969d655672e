"""A view with all references resolved: everything that drawing needs, and nothing else.

Unknown regions, images and colours and impossible sizes are reported here, before a pixel is read. Two views with the
same plan give the same image, so that the plan is the key of a cache.
"""

import hashlib
import math
from collections.abc import Mapping
from typing import Final, NamedTuple

import cv2
import msgspec
import PIL

from carina.cases.draw import NAMED, Colour, Layer, Point
from carina.cases.model import Case, CaseImage, CaseView, Mark, Overlay, Panel
from carina.store.errors import BenchmarkError

RENDER_VERSION: Final = 1
"""Raised by one with every change to the drawing that changes a pixel of any rendered image."""


class PanelPlan(NamedTuple):
    """One panel; regions and points are those of the whole image."""

    image: CaseImage
    layers: tuple[Layer, ...]
    points: tuple[Point, ...]
    crop: tuple[int, int, int, int]
    """x, y, width, height: the whole image where the panel has none."""
    caption: str

    @property
    def is_whole_image(self) -> bool:
        """Whether nothing of the image is cut off."""
        return self.crop == (0, 0, self.image.width, self.image.height)


class Plan(NamedTuple):
    """All panels of a view, and the longest side to which they are scaled."""

    panels: tuple[PanelPlan, ...]
    side: int | None

    @property
    def is_unchanged_file(self) -> bool:
        """Whether the image is that of a finished file, without any change."""
        if len(self.panels) != 1 or self.side is not None:
            return False
        panel = self.panels[0]
        return (
            panel.image.finished
            and panel.is_whole_image
            and not (panel.layers or panel.points or panel.caption)
        )


def plan_view(case: Case, view: CaseView) -> Plan:
    """The plan of a view; `BenchmarkError` names the case, the view and what cannot be drawn."""
    place = f"case {case.id!r}: view {view.id!r}"
    if not view.panels:
        raise BenchmarkError(f"{place}: has no panel")
    if view.side is not None and view.side < 1:
        raise BenchmarkError(f"{place}: side is {view.side}, expected 1 or more")
    return Plan(tuple(_panel(case, panel, place) for panel in view.panels), view.side)


def fingerprint(plan: Plan, contents: Mapping[str, str]) -> str:
    """SHA-256, in hex, of everything that determines the image; `contents` maps image keys to those of their files."""
    panels = [
        {
            "image": contents[panel.image.key],
            "as": (
                panel.image.width,
                panel.image.height,
                panel.image.bits,
                panel.image.monochrome1,
                panel.image.finished,
            ),
            **_greyscale(panel.image),
            "layers": [
                (layer.region, layer.colour, layer.fill, layer.outline, layer.dash, layer.casing)
                for layer in panel.layers
            ],
            "points": [(point.x, point.y, point.colour, point.text) for point in panel.points],
            "crop": panel.crop,
            "caption": panel.caption,
        }
        for panel in plan.panels
    ]
    # Text is drawn by Pillow; circles and other sizes by OpenCV.
    drawn_by = (RENDER_VERSION, cv2.__version__, PIL.__version__)
    return hashlib.sha256(
        msgspec.json.encode([drawn_by, plan.side, panels], order="deterministic")
    ).hexdigest()


def _greyscale(image: CaseImage) -> dict[str, tuple[float, float]]:
    """Rescale and window, where an image has any; without them the fingerprint is that of earlier versions."""
    given = {"rescale": image.rescale, "window": image.window}
    return {name: pair for name, pair in given.items() if pair is not None}


def _panel(case: Case, panel: Panel, place: str) -> PanelPlan:
    image = next((image for image in case.images if image.key == panel.image), None)
    if image is None:
        raise BenchmarkError(f"{place}: shows image {panel.image!r}, which the case does not have")
    if image.width < 1 or image.height < 1:
        raise BenchmarkError(
            f"{place}: the size of image {image.key!r} is unknown: import it again with --images"
        )
    x, y, width, height = crop = panel.crop or (0, 0, image.width, image.height)
    if width < 1 or height < 1 or x < 0 or y < 0 or x + width > image.width or y + height > image.height:
        raise BenchmarkError(f"{place}: crop {crop} leaves the image of {image.width} x {image.height}")
    return PanelPlan(
        image=image,
        layers=tuple(_layer(case, image, overlay, place) for overlay in panel.overlays),
        points=tuple(_point(mark, place) for mark in panel.marks),
        crop=crop,
        caption=panel.caption,
    )


def _layer(case: Case, image: CaseImage, overlay: Overlay, place: str) -> Layer:
    region = next((region for region in case.regions if region.name == overlay.region), None)
    if region is None:
        raise BenchmarkError(f"{place}: draws region {overlay.region!r}, which the case does not have")
    what = f"{place}: region {overlay.region!r}"
    if region.image != image.key:
        raise BenchmarkError(f"{what} does not lie on image {image.key!r}")
    if (region.region.width, region.region.height) != (image.width, image.height):
        raise BenchmarkError(
            f"{what} is of an image of {region.region.width} x {region.region.height}, but {image.key!r} is "
            f"{image.width} x {image.height}"
        )
    if not 0 <= overlay.fill <= 1:
        raise BenchmarkError(f"{what} has fill {overlay.fill}, expected 0 to 1")
    if overlay.outline < 0:
        raise BenchmarkError(f"{what} has outline {overlay.outline}, expected 0 or more")
    return Layer(
        region=region.region,
        colour=_colour(overlay.colour, what),
        fill=overlay.fill,
        outline=overlay.outline,
    )


def _point(mark: Mark, place: str) -> Point:
    what = f"{place}: mark {mark.text!r}"
    if not (math.isfinite(mark.x) and math.isfinite(mark.y)):
        raise BenchmarkError(f"{what} lies at ({mark.x}, {mark.y}), expected finite numbers")
    return Point(x=mark.x, y=mark.y, colour=_colour(mark.colour, what), text=mark.text)


def _colour(name: str, what: str) -> Colour:
    colour = NAMED.get(name)
    if colour is None:
        raise BenchmarkError(f"{what} has colour {name!r}, which is not one of {', '.join(NAMED)}")
    return colour
