"""The region that a finding covers on an image, from everything that readers drew, and how well the readers agree."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Final

from carina.cases.reader_scores import (
    ReaderFacts,
    ScoredTruth,
    list_pieces,
    score_against,
    score_comparisons,
    score_each_reader,
)
from carina.store.errors import CarinaError
from carina.studies import Finding, Image, Region
from carina.studies.model import Annotation
from carina.studies.readers import FusionRule, by_reader, fuse_readers, join_regions


@dataclass(frozen=True, kw_only=True)
class Truth:
    """Where a finding is."""

    region: Region
    pieces: tuple[Region, ...]
    """The separate areas to find: connected parts of masks, or boxes as they were drawn or fused."""
    annotators: int
    agreement: float | None
    """Mean overlap (IoU) of two annotators; None where there was one."""
    fusion: str
    """How the regions of several annotators became one, in words."""
    drawn: str
    """How the region was drawn: mask, polygon or box; the coarsest of several."""
    is_automatic: bool
    """Whether programs drew it, and no person."""
    conspicuity: float | None
    """Contrast-to-noise ratio of the most visible piece, where the source states it."""
    side: str | None
    """Side of the patient: right, left or bilateral, where the source states it for every finding."""
    readers: Mapping[str, ReaderFacts] = field(default_factory=dict)
    """By reader, the scores of what the reader drew against what the others drew, or against the truth where the reader
    is compared with it; empty where one person drew."""


ONE_ANNOTATOR: Final = "one annotator"
_COARSEST_FIRST: Final = ("box", "polygon", "mask")


def truth_of(
    findings: Sequence[Finding],
    image: Image,
    rule: FusionRule,
    *,
    looked: int = 0,
    silent: Collection[str] = (),
    reader: str | None = None,
) -> Truth | None:
    """The findings of one name on an image, as one region; None where nothing of them is drawn or left there.

    What a program drew is used only where no person drew.

    Args:
        findings: Findings of one name.
        image: The image.
        rule: How regions of several readers become one.
        looked: How many readers looked at the image, where the source says so; those who drew are always counted.
        silent: Those of them who drew nothing of it there.
        reader: Take the region of this reader alone; the others are compared with it.

    Raises:
        CarinaError: A region does not fit the image, or the rule needs boxes and somebody drew something else.
    """
    drawn = drawn_on(findings, image)
    if not drawn:
        return None
    compared = [one for finding in findings for one in finding.comparisons if one.image == image.key]
    for one in (*drawn, *compared):
        if (one.region.height, one.region.width) != (image.height, image.width):
            raise CarinaError(
                f"image {image.key}: a region of {one.region.height} x {one.region.width} is drawn on an image "
                f"of {image.height} x {image.width}"
            )
    readers = by_reader(drawn)
    used = readers if reader is None else {reader: readers[reader]}
    fused = fuse_readers(used, rule, readers=looked if reader is None else 1)
    if fused.region.is_empty:
        return None
    own = [one for several in used.values() for one in several]
    kinds = {one.drawn for one in own}
    seen = [one.conspicuity for one in own if one.conspicuity is not None]
    regions = [join_regions(several) for several in readers.values()]
    overlaps = [one.iou(other) for one, other in combinations(regions, 2)]
    truth = ScoredTruth(fused.region, list_pieces(own, fused, is_one_annotator=len(used) == 1))
    if reader is None:
        scores = score_each_reader(readers, rule, looked=looked, silent=silent)
    else:
        others = {**dict.fromkeys(silent, ()), **readers}
        scores = {name: score_against(truth, others[name]) for name in sorted(others) if name != reader}
    is_automatic = all(one.automatic for one in own)
    return Truth(
        region=truth.region,
        pieces=truth.pieces,
        annotators=len(used),
        agreement=fmean(overlaps) if overlaps else None,
        fusion=rule.describe(max(looked, len(used))) if len(used) > 1 else ONE_ANNOTATOR,
        drawn=next(kind for kind in _COARSEST_FIRST if kind in kinds),
        is_automatic=is_automatic,
        conspicuity=max(seen, default=None),
        side=_find_side([finding for finding in findings if finding.annotations]),
        readers={} if is_automatic else {**scores, **score_comparisons(truth, findings, image.key)},
    )


def drawn_on(findings: Sequence[Finding], image: Image) -> list[Annotation]:
    """What was drawn of findings on an image: by people, or by programs where no person drew."""
    drawn = [one for finding in findings for one in finding.annotations if one.image == image.key]
    return [one for one in drawn if not one.automatic] or drawn


def _find_side(findings: list[Finding]) -> str | None:
    sides = {None if finding.location is None else finding.location.side for finding in findings}
    if sides <= {"right", "left", "bilateral"}:
        return str(sides.pop()) if len(sides) == 1 else "bilateral"
    return None
