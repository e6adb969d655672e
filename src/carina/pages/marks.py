"""What is drawn on a study's images: findings, devices and anatomy, each with a key, a colour and a number.

A key ties together everything on a page that concerns the same finding: outline, table row, sentence. Outlines are
SVG paths on HTML pages (`outlines_on`) and pixels on PNG images (`draw_outlines`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import cv2
import numpy as np

from carina.cases.draw import (
    Colour,
    Gray,
    Layer,
    Point,
    Rgb,
    Size,
    colour_of,
    fit_size,
    ink_on,
    overlay,
    put_points,
    size_of,
)
from carina.pages import words
from carina.studies.model import Annotation, Device, Finding, Image, SalientPoint, Study, Tip
from carina.studies.region import Region, Ring

Kind = Literal["finding", "device", "anatomy"]

_CASING_FROM: Final = 400
"""Longest side in pixels from which an outline has a dark casing; on a smaller image it would hide the colour."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One region, one device's tip or one salient point on one image."""

    key: str
    kind: Kind
    name: str
    title: str
    colour: Colour
    image: str
    uncertain: bool = False
    boxed: bool = False
    """Annotated as a box, which is looser than a mask, or for comparison: its inside is hardly tinted."""
    number: int | None = None
    region: Region | None = None
    tip: Tip | None = None

    @property
    def ink(self) -> Colour:
        """Colour of its number."""
        return ink_on(self.colour)


@dataclass(frozen=True, kw_only=True)
class Marks:
    """All marks of a study, and the keys and numbers of its findings and devices."""

    every: tuple[Mark, ...]
    keys: dict[str, str]
    """Id of a finding or device to its key."""
    numbers: dict[str, int]
    """Id of a finding or device to its number; only those that are drawn on an image have one."""

    def on(self, image: str) -> tuple[Mark, ...]:
        """The marks of one image: anatomy below, then findings and devices, the larger below the smaller."""
        rank = {"anatomy": 0, "finding": 1, "device": 2}
        return tuple(
            sorted(
                (mark for mark in self.every if mark.image == image),
                key=lambda mark: (
                    rank[mark.kind],
                    mark.tip is not None,
                    -mark.region.area if mark.region else 0,
                ),
            )
        )


@dataclass(frozen=True, kw_only=True)
class Outline:
    """A mark placed on its image, in the coordinates of the image."""

    mark: Mark
    path: str | None = None
    """Value of an SVG path's `d`, to be filled by the even-odd rule; None for a device's tip."""
    pin: tuple[float, float] | None = None
    """Centre of the disc with its number; None where it has no number, or a tip already carries it."""


def study_marks(study: Study, *, prefix: str = "m") -> Marks:
    """The marks of a study, numbered in the order of its findings and devices; keys start with `prefix`."""
    things: list[Finding | Device] = [*study.findings, *study.devices]
    keys = {thing.id: f"{prefix}{place}" for place, thing in enumerate(things)}
    drawn = [
        thing
        for thing in things
        if thing.annotations
        or _find_comparisons(thing)
        or thing.points
        or (isinstance(thing, Device) and thing.tips)
    ]
    numbers = {thing.id: place + 1 for place, thing in enumerate(drawn)}
    every: list[Mark] = []
    for thing in drawn:
        key, number = keys[thing.id], numbers[thing.id]
        every.extend(_region_mark(thing, item, key=key, number=number) for item in thing.annotations)
        every.extend(
            _region_mark(thing, item, key=key, number=number, is_truth=False)
            for item in _find_comparisons(thing)
        )
        every.extend(_point_mark(thing, point, key=key, number=number) for point in thing.points)
        if isinstance(thing, Device):
            every.extend(_tip_mark(thing, tip, key=key, number=number) for tip in thing.tips)
    every.extend(_anatomy_marks(study, prefix=prefix))
    return Marks(every=tuple(every), keys=keys, numbers=numbers)


def _find_comparisons(thing: Finding | Device) -> list[Annotation]:
    """Regions for comparison with the truth; an empty one says that a reader drew nothing."""
    return [item for item in thing.comparisons if not item.region.is_empty]


def count_names(marks: Iterable[Mark], kind: Kind) -> dict[str, int]:
    """Names of one kind, in the order of the marks, with the number of different findings of that name."""
    keys: dict[str, set[str]] = {}
    for mark in marks:
        if mark.kind == kind:
            keys.setdefault(mark.name, set()).add(mark.key)
    return {name: len(members) for name, members in keys.items()}


def pin_radius(size: Size) -> float:
    """Radius of the disc that holds a number, in pixels of the image."""
    return max(size) / 42


def outlines_on(image: Image, marks: Sequence[Mark]) -> tuple[Outline, ...]:
    """Every mark that has something to draw, in the order of the marks."""
    size = Size(width=image.width, height=image.height)
    # A page displays an image at about 500 pixels: finer detail of a border only makes the page larger.
    tolerance = max(0.75, max(size) / 1400)
    tipped = {mark.key for mark in marks if mark.tip}
    radius = pin_radius(size)
    taken: list[tuple[float, float]] = []
    outlines = []
    for mark in marks:
        place: tuple[float, float] | None = None
        border = region_border(mark.region, tolerance=tolerance) if mark.region else None
        if mark.tip:
            # Beside the tip, not on it: the tip must stay visible.
            place = mark.tip.x + 1.5 * radius, mark.tip.y - 1.5 * radius
        elif border and mark.number is not None and mark.key not in tipped:
            # Above the region, so that a number does not hide a nodule.
            place = border.top[0], border.top[1] - 1.2 * radius
        if place:
            place = _free_place(place, taken, radius, size)
            taken.append(place)
        if border or mark.tip:
            outlines.append(Outline(mark=mark, path=border.path if border else None, pin=place))
    return tuple(outlines)


def draw_outlines(image: Gray, outlines: Sequence[Outline], box: Size, *, with_anatomy: bool = False) -> Rgb:
    """The image fitted into a box, with findings tinted, devices outlined and numbers pinned.

    Anatomy, where wanted, is a thin outline below all of them.
    """
    size = fit_size(size_of(image), box)
    visible = [outline for outline in outlines if with_anatomy or outline.mark.kind != "anatomy"]
    line = max(2, round(max(size) / 240))
    casing = int(max(size) >= _CASING_FROM)
    layers = [_layer(outline.mark, line, casing=casing) for outline in visible]
    drawn = overlay(image, [layer for layer in layers if layer], size=size)
    across, down = size.width / image.shape[1], size.height / image.shape[0]
    radius = max(6, round(max(size) / 50))
    tips = [
        Point(x=outline.mark.tip.x * across, y=outline.mark.tip.y * down, colour=outline.mark.colour)
        for outline in visible
        if outline.mark.tip
    ]
    put_points(drawn, tips, radius=max(2, radius // 3))
    pins = [
        Point(
            x=outline.pin[0] * across,
            y=outline.pin[1] * down,
            colour=outline.mark.colour,
            text=str(outline.mark.number),
        )
        for outline in visible
        if outline.pin
    ]
    put_points(drawn, pins, radius=radius)
    return drawn


@dataclass(frozen=True, kw_only=True)
class Border:
    """A region's border in the coordinates of its image."""

    path: str
    """Value of an SVG path's `d`, to be filled by the even-odd rule."""
    top: tuple[float, float]
    """Middle of its highest edge, where a number may be pinned."""


def region_border(region: Region, *, tolerance: float) -> Border | None:
    """The border, straightened by at most `tolerance` pixels; None for an empty region."""
    rings = region.contours()
    if not rings:
        return None
    every = np.concatenate(rings)
    highest = every[every[:, 1] == every[:, 1].min()]
    left = highest[:, 0].min()
    # The first edge from the left: the highest row may hold several, and a number must touch the region.
    right = np.partition(highest[:, 0], 1)[1]
    return Border(
        path="".join(_ring_path(ring, tolerance) for ring in rings),
        top=(float(left + right) / 2, float(highest[0, 1])),
    )


def _ring_path(ring: Ring, tolerance: float) -> str:
    """One closed ring, in relative steps: they are shorter than positions, and a page holds thousands of them."""
    points = cv2.approxPolyDP(ring.astype(np.int32), tolerance, closed=True)[:, 0]
    x, y = points[0]
    return f"M{x} {y}l" + " ".join(f"{dx} {dy}" for dx, dy in np.diff(points, axis=0)) + "z"


def _free_place(
    place: tuple[float, float], taken: list[tuple[float, float]], radius: float, size: Size
) -> tuple[float, float]:
    """The first place to the right of (then below) `place` that lies in the image and hides no other pin."""
    margin = 1.2 * radius
    x, y = (min(max(at, margin), side - margin) for at, side in zip(place, size, strict=True))
    while any(abs(x - other[0]) < 2 * radius and abs(y - other[1]) < 2 * radius for other in taken):
        x += 2.2 * radius
        if x > size.width - margin:
            x, y = margin, y + 2.2 * radius
        if y > size.height - margin:
            break  # no place is free: let them overlap
    return x, min(y, size.height - margin)


def _layer(mark: Mark, line: int, *, casing: int) -> Layer | None:
    if mark.region is None:
        return None
    return Layer(
        region=mark.region,
        colour=mark.colour,
        fill=0.22 if mark.kind == "finding" and not mark.boxed else 0.0,
        outline=1 if mark.kind == "anatomy" else line,
        dash=3 * line if mark.uncertain else 0,
        casing=casing if mark.kind == "finding" and not mark.uncertain else 0,
    )


def _region_mark(
    thing: Finding | Device, item: Annotation, *, key: str, number: int, is_truth: bool = True
) -> Mark:
    drawn = f"{item.drawn} by {item.annotator}{'' if is_truth else ', for comparison'}"
    conspicuity = "" if item.conspicuity is None else f"conspicuity {words.format_number(item.conspicuity)}"
    return Mark(
        key=key,
        kind="finding" if isinstance(thing, Finding) else "device",
        name=thing.name,
        title=words.join_parts([*_description(thing), conspicuity, drawn]),
        colour=colour_of(thing.name),
        image=item.image,
        uncertain=thing.certainty == "uncertain",
        boxed=item.drawn == "box" or not is_truth,
        number=number,
        region=item.region,
    )


def _point_mark(thing: Finding | Device, point: SalientPoint, *, key: str, number: int) -> Mark:
    return Mark(
        key=key,
        kind="finding" if isinstance(thing, Finding) else "device",
        name=thing.name,
        title=words.join_parts([*_description(thing), f"most salient point by {point.annotator}"]),
        colour=colour_of(thing.name),
        image=point.image,
        number=number,
        tip=Tip(image=point.image, x=point.x, y=point.y),
    )


def _tip_mark(device: Device, tip: Tip, *, key: str, number: int) -> Mark:
    return Mark(
        key=key,
        kind="device",
        name=device.name,
        title=words.join_parts([*_description(device), "tip", device.site or ""]),
        colour=colour_of(device.name),
        image=tip.image,
        number=number,
        tip=tip,
    )


def _anatomy_marks(study: Study, *, prefix: str) -> Iterable[Mark]:
    # The same structure on two views is one layer, so its key follows from its name.
    keys: dict[str, str] = {}
    for structure in study.anatomy:
        yield Mark(
            key=keys.setdefault(structure.name, f"{prefix}a{len(keys)}"),
            kind="anatomy",
            name=structure.name,
            title=structure.name,
            colour=colour_of(structure.name),
            image=structure.image,
            region=structure.region,
        )


def _description(thing: Finding | Device) -> list[str]:
    if isinstance(thing, Finding):
        side = thing.location.side if thing.location else None
        return [thing.name, thing.certainty, thing.severity or "", side or ""]
    return [thing.name, thing.certainty, thing.position or "", thing.side or ""]
