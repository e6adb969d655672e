"""Anatomy around a lesion: the lungs and their parts, and where a contour may plausibly run.

Raises `Ineligible` with a reason where a study's regions cannot carry the examination.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.percept.lesions import Lesion
from carina.percept.rules import Ineligible, Rules
from carina.store.errors import RegionError
from carina.studies.lungs import lung_parts
from carina.studies.model import Image, Study
from carina.studies.region import Mask, Region
from carina.studies.vocabulary import SIDES, ZONES

LEVELS: Final = ("upper", "mid", "lower")
PARTS: Final = ("medial", "lateral", "peripheral")
LUNG_SHARE: Final = (0.02, 0.45)
"""Of the image, for one lung field: less is a fragment, more is not a lung."""
LUNG_RATIO: Final = 4.0
"""Between the two lungs; beyond it one of them is cut off or taken for another structure."""
_LATERAL, _PERIPHERAL, _ANGLE, _ZONE = 1, 2, 4, 8
"""Bits of the part code; zones count up from the fourth."""


@dataclass(frozen=True)
class Anatomy:
    """One frontal image's lungs, coded so that every share of every region comes from one count."""

    right: Mask
    left: Mask
    code: NDArray[np.uint8]
    totals: NDArray[np.int64]
    """Pixels of the lungs by code."""

    @cached_property
    def lungs(self) -> Mask:
        return self.right | self.left

    def counts(self, mask: Mask) -> NDArray[np.int64]:
        """Pixels of a mask by part code."""
        x, y, w, h = cv2.boundingRect(mask.view(np.uint8))
        window = slice(y, y + h), slice(x, x + w)
        return np.bincount(self.code[window][mask[window]], minlength=self.totals.size).astype(np.int64)

    def region(self, name: str) -> Mask:
        """The pixels of one of `REGIONS`."""
        return np.asarray(_MEMBERS[name][self.code])


REGIONS: Final = (
    *(f"{side} costophrenic angle" for side in SIDES),
    *(f"{side} {level} {part}" for side in SIDES for level in LEVELS for part in PARTS),
)
"""The twenty regions that the location question chooses from: "right mid lateral", "left costophrenic angle"."""
_CODES: Final = _ZONE * (len(ZONES) + 1)


def _members(name: str) -> NDArray[np.bool_]:
    """Which part codes belong to a region, a zone ("right mid zone") or a lung ("right lung")."""
    codes = np.arange(_CODES)
    side, _, rest = name.partition(" ")
    zone = codes // _ZONE
    here = np.isin(zone, [n for n, named in enumerate(ZONES, start=1) if named.startswith(side)])
    if rest == "costophrenic angle":
        return np.asarray(here & (codes & _ANGLE > 0))
    level, _, part = rest.partition(" ")
    if level in LEVELS:
        here &= zone == ZONES.index(f"{side} {level} zone") + 1
    return np.asarray(
        here
        & {
            "medial": codes & _LATERAL == 0,
            "lateral": codes & _LATERAL > 0,
            "peripheral": codes & _PERIPHERAL > 0,
        }.get(part, np.ones(_CODES, bool))
    )


_MEMBERS: Final = {name: _members(name) for name in (*REGIONS, *ZONES, *(f"{side} lung" for side in SIDES))}


def share_of(name: str, counts: NDArray[np.int64], totals: NDArray[np.int64]) -> float:
    """How much of a region, zone or lung the counted mask covers; NaN for a region that the lung does not have."""
    members = _MEMBERS[name]
    total = int(totals[members].sum())
    return int(counts[members].sum()) / total if total else float("nan")


def shared(one: str, other: str, totals: NDArray[np.int64]) -> float:
    """How much of the smaller of two regions lies in the other."""
    both = int(totals[_MEMBERS[one] & _MEMBERS[other]].sum())
    smaller = min(int(totals[_MEMBERS[name]].sum()) for name in (one, other))
    return both / smaller if smaller else float("nan")


def name_at(anatomy: Anatomy, row: int, column: int) -> str | None:
    """The region around a pixel of the lungs, as a reader would name it; None outside them."""
    code = int(anatomy.code[row, column])
    if not code // _ZONE:
        return None
    side, level, _ = ZONES[code // _ZONE - 1].split()
    if code & _ANGLE:
        return f"{side} costophrenic angle"
    return f"{side} {level} {'lateral' if code & _LATERAL else 'medial'}"


def read_anatomy(study: Study, image: Image) -> Anatomy:
    """The lungs of a frontal image; `Ineligible` where they are not plausible."""
    there = study.anatomy_on(image.key)
    masks = {}
    for side in SIDES:
        name = f"{side} lung"
        if name not in there:
            raise Ineligible("no lungs", f"the image has no region {name!r}")
        masks[side] = mask_on(image, there[name], name)
    right, left = masks["right"], masks["left"]
    _check_lungs(right, left)
    code = np.zeros(right.shape, np.uint8)
    parts = lung_parts(right, left)
    for number, zone in enumerate(ZONES, start=1):
        code[parts[zone]] = number * _ZONE
    for bit, kind in (
        (_LATERAL, "lateral lung"),
        (_PERIPHERAL, "peripheral lung"),
        (_ANGLE, "costophrenic angle"),
    ):
        for side in SIDES:
            code[parts[f"{side} {kind}"]] |= bit
    totals = np.bincount(code.ravel(), minlength=_CODES).astype(np.int64)
    totals[0] = 0
    return Anatomy(right=right, left=left, code=code, totals=totals)


def _check_lungs(right: Mask, left: Mask) -> None:
    areas = {"right": int(right.sum()), "left": int(left.sum())}
    for side, area in areas.items():
        share = area / right.size
        if not LUNG_SHARE[0] <= share <= LUNG_SHARE[1]:
            raise Ineligible("implausible lungs", f"the {side} lung covers {share:.1%} of the image")
    if max(areas.values()) > LUNG_RATIO * min(areas.values()):
        raise Ineligible("implausible lungs", f"right {areas['right']} px, left {areas['left']} px")
    columns = np.arange(right.shape[1])
    centre = {
        side: float((mask.sum(axis=0) * columns).sum() / areas[side])
        for side, mask in (("right", right), ("left", left))
    }
    # A frontal image is read as if facing the patient.
    if centre["right"] >= centre["left"]:
        raise Ineligible("implausible lungs", "the right lung is not on the image's left: sides swapped")
    if (right & left).any():
        raise Ineligible("implausible lungs", "the two lungs overlap")


def mask_on(image: Image, region: Region, what: str) -> Mask:
    """A region's pixels, if it is one of this image."""
    if (region.width, region.height) != (image.width, image.height):
        raise Ineligible(
            "region outside its image",
            f"{what} is of an image of {region.width} x {region.height}, the image is {image.width} x {image.height}",
        )
    try:
        return np.ascontiguousarray(region.to_mask())
    except RegionError as error:
        raise Ineligible("damaged region", f"{what}: {error}") from error


@dataclass(frozen=True)
class Scene:
    """A lesion on an image: everything that the geometry of a case is made from."""

    lesion: Lesion
    truth: Mask
    field: Mask
    """Where a contour of this lesion may plausibly run; holds the truth."""
    anatomy: Anatomy
    scale: float
    """Pixels of this image to one of the frame."""

    @property
    def area(self) -> int:
        return int(np.count_nonzero(self.truth))


def make_scene(lesion: Lesion, truth: Mask, anatomy: Anatomy, rules: Rules) -> Scene:
    """The scene of a lesion, if it is large enough and lies where such a lesion can."""
    scale = max(truth.shape) / rules.frame
    area = int(np.count_nonzero(truth))
    if not area:
        raise Ineligible("empty mask", "the lesion has no pixel")
    if area < rules.min_area * scale**2:
        raise Ineligible("lesion too small", f"{area} px, at least {rules.min_area * scale**2:.0f} needed")
    if lesion.in_lungs:
        if not (truth & anatomy.lungs).any():
            raise Ineligible("lesion outside the lungs", "no pixel lies in a lung field")
        field = anatomy.lungs | truth
    else:
        field = _hull(anatomy.lungs | truth)
    return Scene(lesion=lesion, truth=truth, field=field, anatomy=anatomy, scale=scale)


def _hull(mask: Mask) -> Mask:
    """The convex hull: of both lungs, the thorax as far as a heart can reach in it."""
    points = cv2.findNonZero(mask.view(np.uint8))
    filled = np.zeros(mask.shape, np.uint8)
    cv2.fillConvexPoly(filled, cv2.convexHull(points), 1)
    return filled.astype(bool)
