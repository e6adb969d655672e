"""Marks placed on one image: their outlines as paths, and where their numbers are pinned."""

from collections.abc import Sequence
from dataclasses import dataclass

from carina.show.marks import Mark
from carina.show.paths import outline_of
from carina.studies.model import Image


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A mark as it lies on its image, in the image's coordinates."""

    mark: Mark
    path: str | None = None
    """Outline as SVG's `d`; None for a device's tip."""
    pin: tuple[float, float] | None = None
    """Where its number stands; None where it has none, or a tip already carries it."""


def pin_radius(image: Image) -> float:
    """Of the disc that holds a number, in pixels of the image."""
    return max(image.width, image.height) / 42


def shapes_on(image: Image, marks: Sequence[Mark]) -> tuple[Shape, ...]:
    """Every mark that has something to draw, in the order of the marks."""
    # A page shows an image at about half a thousand pixels: finer detail of a border only makes it heavier.
    tolerance = max(0.75, max(image.width, image.height) / 1400)
    tipped = {mark.key for mark in marks if mark.tip}
    radius = pin_radius(image)
    taken: list[tuple[float, float]] = []
    shapes = []
    for mark in marks:
        place: tuple[float, float] | None = None
        outline = outline_of(mark.region, tolerance=tolerance) if mark.region else None
        if mark.tip:
            # Beside the tip, not on it: the tip is what has to be seen.
            place = mark.tip.x + 1.5 * radius, mark.tip.y - 1.5 * radius
        elif outline and mark.number is not None and mark.key not in tipped:
            # Above the region, so that a nodule is not hidden by its own number.
            place = outline.top[0], outline.top[1] - 1.2 * radius
        if place:
            place = _free(place, taken, radius, image)
            taken.append(place)
        if outline or mark.tip:
            shapes.append(Shape(mark=mark, path=outline.path if outline else None, pin=place))
    return tuple(shapes)


def _free(
    place: tuple[float, float], taken: list[tuple[float, float]], radius: float, image: Image
) -> tuple[float, float]:
    """The first place to the right of (then below) `place` that lies in the image and hides no other pin."""
    margin = 1.2 * radius
    x, y = (
        min(max(at, margin), side - margin)
        for at, side in zip(place, (image.width, image.height), strict=True)
    )
    while any(abs(x - other[0]) < 2 * radius and abs(y - other[1]) < 2 * radius for other in taken):
        x += 2.2 * radius
        if x > image.width - margin:
            x, y = margin, y + 2.2 * radius
        if y > image.height - margin:
            break  # full to the last corner: let them overlap
    return x, min(y, image.height - margin)
