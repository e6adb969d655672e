"""The location of a finding, where a source states it by the names of structures."""

from collections.abc import Iterable
from typing import Final

from carina.sources._labels import name_of
from carina.studies.model import Location
from carina.studies.terms import find_term
from carina.studies.vocabulary import COSTOPHRENIC_ANGLES, LUNG_PARTS, SIDES, ZONES, Side

_BOTH: Final = ("lungs", "bilateral", "bilateral lungs")
_WHOLE: Final = ("right lung", "left lung", *_BOTH)
_SIDES: Final[dict[str, Side]] = {"right": "right", "left": "left"}


def locate(structures: Iterable[str]) -> Location | None:
    """The location that names of structures state; None where they name none.

    Example:
        >>> locate(["right lower lung zone", "right lung"])
        Location(side='right', zones=('right lower zone',), parts=(), site=None)
    """
    names = list(dict.fromkeys(map(name_of, structures)))
    sides = [side for side in SIDES if any(name.startswith(f"{side} ") for name in names)]
    if any(name in _BOTH for name in names):
        sides = list(SIDES)
    side: Side | None = None if not sides else "bilateral" if len(sides) == 2 else _SIDES[sides[0]]
    zones = tuple(name for name in ZONES if name in names)
    parts = tuple(name for name in (*LUNG_PARTS, *COSTOPHRENIC_ANGLES) if name in names)
    others = [name for name in names if name not in _WHOLE and find_term(name, "anatomy") is not None]
    site = None if zones or parts else ", ".join(others) or None
    return Location(side=side, zones=zones, parts=parts, site=site) if side or site else None
