"""The region that a finding covers on an image, from everything that annotators drew."""

from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

import numpy as np

from carina.ground.options import Fusion
from carina.store.errors import CarinaError
from carina.studies import Finding, Image, Region
from carina.studies.model import Annotation


@dataclass(frozen=True, kw_only=True)
class Truth:
    """Where a finding is."""

    region: Region
    pieces: tuple[Region, ...]
    """The separate areas to find: connected parts of masks, or boxes as they were drawn."""
    annotators: int
    agreement: float | None
    """Mean overlap (IoU) of two annotators; None where there was one."""
    drawn: str
    """How the region was drawn: mask, polygon or box; the coarsest of several."""
    conspicuity: float | None
    """Contrast-to-noise ratio of the most visible piece, where the source states it."""
    side: str | None
    """Side of the patient: right, left or bilateral, where the source states it for every finding."""


_COARSEST_FIRST = ("box", "polygon", "mask")
_LEAST_PIECE = 0.02
"""Parts of a mask that are smaller than this share of the largest part are ignored."""


def truth_of(findings: list[Finding], image: Image, fusion: Fusion) -> Truth | None:
    """The findings of one name on an image, as one region; None where nothing of them is drawn there."""
    drawn = [one for finding in findings for one in finding.annotations if one.image == image.key]
    if not drawn:
        return None
    for one in drawn:
        if (one.region.height, one.region.width) != (image.height, image.width):
            raise CarinaError(
                f"image {image.key}: a region of {one.region.height} x {one.region.width} is drawn on an image "
                f"of {image.height} x {image.width}"
            )
    by_annotator = {name: _join_regions(drawn, name) for name in sorted({one.annotator for one in drawn})}
    region = _fuse_regions(list(by_annotator.values()), fusion)
    if region.is_empty:
        return None
    kinds = {one.drawn for one in drawn}
    seen = [one.conspicuity for one in drawn if one.conspicuity is not None]
    overlaps = [one.iou(other) for one, other in combinations(by_annotator.values(), 2)]
    return Truth(
        region=region,
        pieces=_list_pieces(drawn, region, is_one_annotator=len(by_annotator) == 1),
        annotators=len(by_annotator),
        agreement=fmean(overlaps) if overlaps else None,
        drawn=next(kind for kind in _COARSEST_FIRST if kind in kinds),
        conspicuity=max(seen, default=None),
        side=_find_side([finding for finding in findings if finding.annotations]),
    )


def _find_side(findings: list[Finding]) -> str | None:
    sides = {None if finding.location is None else finding.location.side for finding in findings}
    if sides <= {"right", "left", "bilateral"}:
        return str(sides.pop()) if len(sides) == 1 else "bilateral"
    return None


def _join_regions(drawn: list[Annotation], annotator: str) -> Region:
    first, *others = (one.region for one in drawn if one.annotator == annotator)
    return first.union(*others)


def _fuse_regions(regions: list[Region], fusion: Fusion) -> Region:
    first, *others = regions
    match fusion:
        case "first":
            return first
        case "union":
            return first.union(*others)
        case "intersection":
            return first.intersection(*others)
        case "majority":
            marked = np.sum([region.to_mask() for region in regions], axis=0)
            return Region.from_mask(2 * marked >= len(regions))


def _list_pieces(drawn: list[Annotation], region: Region, *, is_one_annotator: bool) -> tuple[Region, ...]:
    """The boxes of a single annotator as they were drawn; otherwise, the connected parts of the region."""
    if is_one_annotator and all(one.drawn == "box" for one in drawn):
        boxes = {one.region.counts: one.region for one in drawn if not one.region.is_empty}
        return tuple(boxes.values())
    parts = region.components()
    largest = max(part.area for part in parts)
    return tuple(part for part in parts if part.area >= _LEAST_PIECE * largest)
