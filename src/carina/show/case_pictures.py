"""Pictures of a case: its views as drawn for a model, and its keys where these are places on an image."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from carina.cases.model import Box, Case, CaseView, Step
from carina.draw import (
    HUES,
    Layer,
    Point,
    Rgb,
    Size,
    overlay,
    put_points,
    size_of,
    to_rgb,
)
from carina.show.case_source import CaseSet, DrawnViews
from carina.studies.region import Region

LARGEST: Final = Size(width=1024, height=1024)
"""Seven views of a whole film each would make a page that no phone opens."""
_FRAMES: Final = {"percent": 100.0, "unit": 1.0, "thousand": 1000.0}


@dataclass(frozen=True, kw_only=True)
class Picture:
    """One picture of the page, kept once however often it is shown."""

    id: str
    alt: str
    pixels: Rgb

    @property
    def size(self) -> Size:
        return size_of(self.pixels)


def view_picture(views: DrawnViews, case: Case, view: CaseView, picture_id: str) -> Picture:
    """A view exactly as a model gets it."""
    return Picture(id=picture_id, alt=view_words(case, view), pixels=views.array(case, view.id))


def view_words(case: Case, view: CaseView) -> str:
    """What a view shows, for those who do not see it; nothing that gives a key away."""
    parts = []
    for panel in view.panels:
        image = case.image(panel.image)
        kind = "Picture" if image.finished else f"Chest radiograph, {image.view}"
        drawn = [kind if image.view != "unknown" or image.finished else "Chest radiograph"]
        if panel.overlays:
            drawn.append("with a mask" if len(panel.overlays) == 1 else f"with {len(panel.overlays)} masks")
        if panel.marks:
            drawn.append(f"{len(panel.marks)} numbered point{'s' if len(panel.marks) > 1 else ''}")
        parts.append(", ".join(drawn) + (f": {panel.caption}" if panel.caption else ""))
    return "; ".join(parts) + "."


def key_pictures(cases: CaseSet, case: Case, step: Step) -> list[tuple[str, Rgb]]:
    """For every image that the key names places on: what they are in words, and the image with them outlined."""
    made = []
    for image in case.images:
        regions = [
            (item.name, item.region) for item in map(case.region, step.key.regions) if item.image == image.key
        ]
        size = Size(width=image.width, height=image.height)
        regions += [(box.name, _region(box, size)) for box in step.key.boxes if box.image == image.key]
        if regions:
            words = f"{len(regions)} keyed place{'s' if len(regions) > 1 else ''} on {image.key}"
            made.append((words, _outlined(cases.pixels(image), [region for _, region in regions])))
    return made


def pixel_box(box: Box, size: Size) -> tuple[float, float, float, float]:
    """A box's left, top, right and bottom in pixels of an image of that size."""
    x0, y0, x1, y1 = box.xyxy
    unit = _FRAMES.get(box.frame)
    if unit is None:
        return x0, y0, x1, y1
    across, down = size.width / unit, size.height / unit
    return x0 * across, y0 * down, x1 * across, y1 * down


def _region(box: Box, size: Size) -> Region:
    x0, y0, x1, y1 = pixel_box(box, size)
    return Region.from_box(x0, y0, x1 - x0, y1 - y0, height=size.height, width=size.width)


def _outlined(pixels: Rgb, regions: Sequence[Region]) -> Rgb:
    image = to_rgb(pixels)
    line = max(2, round(max(size_of(image)) / 240))
    hues = tuple(HUES.values())
    layers = [
        Layer(region=region, colour=hues[place % len(hues)], fill=0.12, outline=line, casing=1)
        for place, region in enumerate(regions)
    ]
    picture = overlay(image, layers)
    radius = max(7, round(max(size_of(image)) / 55))
    pins = []
    for place, region in enumerate(regions):
        box = region.bbox
        if box is not None:
            x, y = max(box[0], radius + 3), max(box[1], radius + 3)
            pins.append(Point(x=x, y=y, colour=hues[place % len(hues)], text=str(place + 1)))
    put_points(picture, pins, radius=radius)
    return picture
