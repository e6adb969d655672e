"""Anatomy around a lesion: the lungs and their parts, and where a contour may plausibly run.

Functions raise `Ineligible` with a reason where the regions of a study are not sufficient for a case.
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
"""Least and largest share of the image that one lung may cover: less is a fragment, more is not a lung."""
_LUNGS: Final = tuple(f"{side} lung" for side in SIDES)
LUNG_RATIO: Final = 4.0
"""Largest ratio of the areas of the two lungs; above it, one of them is cut off or is another structure."""
_LATERAL, _PERIPHERAL, _ANGLE, _ZONE = 1, 2, 4, 8
"""Bits of the part code; the zone number is stored from the fourth bit on."""


@dataclass(frozen=True)
class Anatomy:
    """The lungs of a frontal image, with a part code for each pixel: a count by code gives the share of any region."""

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
        return np.asarray(_REGION_CODES[name][self.code])


REGIONS: Final = (
    *(f"{side} costophrenic angle" for side in SIDES),
    *(f"{side} {level} {part}" for side in SIDES for level in LEVELS for part in PARTS),
)
"""The twenty regions that the location question chooses from: "right mid lateral", "left costophrenic angle"."""
_CODE_COUNT: Final = _ZONE * (len(ZONES) + 1)


def _region_codes(name: str) -> NDArray[np.bool_]:
    """Which part codes belong to a region, a zone ("right mid zone") or a lung ("right lung")."""
    codes = np.arange(_CODE_COUNT)
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
        }.get(part, np.ones(_CODE_COUNT, bool))
    )


_REGION_CODES: Final = {
    name: _region_codes(name) for name in (*REGIONS, *ZONES, *(f"{side} lung" for side in SIDES))
}


def measure_share(name: str, counts: NDArray[np.int64], totals: NDArray[np.int64]) -> float:
    """Share of a region, zone or lung that the counted mask covers; NaN for a region without pixels."""
    codes = _REGION_CODES[name]
    total = int(totals[codes].sum())
    return int(counts[codes].sum()) / total if total else float("nan")


def measure_overlap(one: str, other: str, totals: NDArray[np.int64]) -> float:
    """Share of the smaller of two regions that lies in the other."""
    both = int(totals[_REGION_CODES[one] & _REGION_CODES[other]].sum())
    smaller = min(int(totals[_REGION_CODES[name]].sum()) for name in (one, other))
    return both / smaller if smaller else float("nan")


def name_region(anatomy: Anatomy, row: int, column: int) -> str | None:
    """The region of the lungs that a pixel lies in, as a reader would name it; None outside the lungs."""
    code = int(anatomy.code[row, column])
    if not code // _ZONE:
        return None
    side, level, _ = ZONES[code // _ZONE - 1].split()
    if code & _ANGLE:
        return f"{side} costophrenic angle"
    return f"{side} {level} {'lateral' if code & _LATERAL else 'medial'}"


def read_anatomy(study: Study, image: Image, rules: Rules) -> Anatomy:
    """The lungs of a frontal image; `Ineligible` where they are not plausible, or their source doubts them."""
    regions = study.anatomy_on(image.key)
    for structure in study.anatomy:
        is_lung = structure.image == image.key and structure.name in _LUNGS
        if is_lung and structure.quality is not None and structure.quality < rules.lung_quality:
            quality = f"{structure.quality:.2f}, at least {rules.lung_quality} needed"
            raise Ineligible("lungs of low quality", f"{structure.annotator} estimates {quality}")
    masks = {}
    for side in SIDES:
        name = f"{side} lung"
        if name not in regions:
            raise Ineligible("no lungs", f"the image has no region {name!r}")
        masks[side] = decode_mask(image, regions[name], name)
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
    totals = np.bincount(code.ravel(), minlength=_CODE_COUNT).astype(np.int64)
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


def decode_mask(image: Image, region: Region, what: str) -> Mask:
    """The region as a mask; `Ineligible` where it is damaged or does not have the size of the image."""
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
class LesionGeometry:
    """A lesion on an image: its mask, the area in which contours may run, and the anatomy around it."""

    lesion: Lesion
    truth: Mask
    field: Mask
    """Where a contour of this lesion may plausibly run; includes the truth."""
    anatomy: Anatomy
    scale: float
    """Pixels of this image for each pixel of the frame."""

    @property
    def area(self) -> int:
        return int(np.count_nonzero(self.truth))


def make_geometry(lesion: Lesion, truth: Mask, anatomy: Anatomy, rules: Rules) -> LesionGeometry:
    """The geometry of a lesion; `Ineligible` where it is too small or lies where such a lesion cannot."""
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
        field = _convex_hull(anatomy.lungs | truth)
    return LesionGeometry(lesion=lesion, truth=truth, field=field, anatomy=anatomy, scale=scale)


def _convex_hull(mask: Mask) -> Mask:
    """The convex hull of a mask. For both lungs it is the part of the thorax that a heart can occupy."""
    rings, _ = cv2.findContours(mask.view(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    filled = np.zeros(mask.shape, np.uint8)
    cv2.fillConvexPoly(filled, cv2.convexHull(np.concatenate(rings)), (1,))
    return filled.astype(bool)
