"""Figures of a case: its views as a model gets them, and answer keys that are locations on an image."""

from collections.abc import Sequence

from carina.cases.boxes import pixel_box
from carina.cases.draw import (
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
from carina.cases.model import Box, Case, CaseView, Step
from carina.pages.figures import Figure, PixelStore, make_figure
from carina.pages.sets import CaseSet, RenderedViews
from carina.store.counts import format_count
from carina.studies.region import Region


def view_figure(
    views: RenderedViews,
    case: Case,
    view: CaseView,
    store: PixelStore,
    *,
    id: str,  # noqa: A002 - the id of an HTML element
) -> Figure:
    """A view exactly as a model gets it."""
    return make_figure(views.array(case, view.id), store, id=id, alt=describe_view(case, view))


def describe_view(case: Case, view: CaseView) -> str:
    """What a view shows, for readers who do not see it; reveals no answer key."""
    panels = []
    for panel in view.panels:
        image = case.image(panel.image)
        kind = "Finished image" if image.finished else f"Chest radiograph, {image.view}"
        parts = [kind if image.view != "unknown" or image.finished else "Chest radiograph"]
        if panel.overlays:
            parts.append("with a mask" if len(panel.overlays) == 1 else f"with {len(panel.overlays)} masks")
        if panel.marks:
            parts.append(format_count(len(panel.marks), "numbered point"))
        panels.append(", ".join(parts) + (f": {panel.caption}" if panel.caption else ""))
    return "; ".join(panels) + "."


def key_figures(
    cases: CaseSet, case: Case, step: Step, store: PixelStore, *, prefix: str
) -> tuple[Figure, ...]:
    """One figure per image on which the answer key of a step has locations, with these outlined."""
    figures: list[Figure] = []
    for image in case.images:
        size = Size(width=image.width, height=image.height)
        regions = [item.region for item in map(case.region, step.key.regions) if item.image == image.key]
        regions += [_box_region(box, size) for box in step.key.boxes if box.image == image.key]
        if regions:
            figures.append(
                make_figure(
                    _outlined(cases.pixels(image), regions),
                    store,
                    id=f"{prefix}-{len(figures) + 1}",
                    alt=f"{format_count(len(regions), 'location')} of the answer key on {image.key}.",
                )
            )
    return tuple(figures)


def _box_region(box: Box, size: Size) -> Region:
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
    drawn = overlay(image, layers)
    radius = max(7, round(max(size_of(image)) / 55))
    pins = []
    for place, region in enumerate(regions):
        box = region.bbox
        if box is not None:
            x, y = max(box[0], radius + 3), max(box[1], radius + 3)
            pins.append(Point(x=x, y=y, colour=hues[place % len(hues)], text=str(place + 1)))
    put_points(drawn, pins, radius=radius)
    return drawn
