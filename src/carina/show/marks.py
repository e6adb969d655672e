"""What is drawn on a study's images: findings, devices and anatomy, each with a key, a colour and a number.

The keys tie together everything on a page that speaks of the same thing: region, table row, sentence.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from carina.draw import Colour, colour_of, ink_on
from carina.show import words
from carina.studies.model import Annotation, Device, Finding, Study, Tip
from carina.studies.region import Region

Kind = Literal["finding", "device", "anatomy"]


@dataclass(frozen=True, kw_only=True)
class Mark:
    """One region, or one device's tip, on one image."""

    key: str
    kind: Kind
    name: str
    title: str
    colour: Colour
    image: str
    uncertain: bool = False
    boxed: bool = False
    """Drawn as a box: looser than a mask, so its inside is hardly tinted."""
    number: int | None = None
    region: Region | None = None
    tip: Tip | None = None

    @property
    def ink(self) -> Colour:
        """The colour of its number."""
        return ink_on(self.colour)


@dataclass(frozen=True, kw_only=True)
class Marks:
    """All marks of a study, and how its findings and devices are keyed and numbered."""

    every: tuple[Mark, ...]
    keys: dict[str, str]
    """Id of a finding or device to its key."""
    numbers: dict[str, int]
    """Id of a finding or device to its number; only what is drawn somewhere has one."""

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


def marks_of(study: Study, *, prefix: str = "m") -> Marks:
    """The marks of a study, numbered in the order of its findings and devices; keys start with `prefix`."""
    things: list[Finding | Device] = [*study.findings, *study.devices]
    keys = {thing.id: f"{prefix}{place}" for place, thing in enumerate(things)}
    drawn = [thing for thing in things if thing.annotations or (isinstance(thing, Device) and thing.tips)]
    numbers = {thing.id: place + 1 for place, thing in enumerate(drawn)}
    every: list[Mark] = []
    for thing in drawn:
        key, number = keys[thing.id], numbers[thing.id]
        every.extend(_region_mark(thing, item, key=key, number=number) for item in thing.annotations)
        if isinstance(thing, Device):
            every.extend(_tip_mark(thing, tip, key=key, number=number) for tip in thing.tips)
    every.extend(_anatomy_marks(study, prefix=prefix))
    return Marks(every=tuple(every), keys=keys, numbers=numbers)


def layers(marks: Iterable[Mark], kind: Kind) -> dict[str, int]:
    """Names of one kind, in the order they appear, with the number of different things of that name."""
    keys: dict[str, set[str]] = {}
    for mark in marks:
        if mark.kind == kind:
            keys.setdefault(mark.name, set()).add(mark.key)
    return {name: len(members) for name, members in keys.items()}


def _region_mark(thing: Finding | Device, item: Annotation, *, key: str, number: int) -> Mark:
    seen = "" if item.conspicuity is None else f"conspicuity {words.number(item.conspicuity)}"
    return Mark(
        key=key,
        kind="finding" if isinstance(thing, Finding) else "device",
        name=thing.name,
        title=words.joined([*_description(thing), seen, f"{item.drawn} by {item.annotator}"]),
        colour=colour_of(thing.name),
        image=item.image,
        uncertain=thing.certainty == "uncertain",
        boxed=item.drawn == "box",
        number=number,
        region=item.region,
    )


def _tip_mark(device: Device, tip: Tip, *, key: str, number: int) -> Mark:
    return Mark(
        key=key,
        kind="device",
        name=device.name,
        title=words.joined([*_description(device), "tip", device.site or ""]),
        colour=colour_of(device.name),
        image=tip.image,
        number=number,
        tip=tip,
    )


def _anatomy_marks(study: Study, *, prefix: str) -> Iterable[Mark]:
    # The same structure on two views is one layer, so the key follows from the name.
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
