"""The region that a finding covers on an image, from everything that readers drew, and how well the readers agree."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Final

import numpy as np
from scipy.optimize import linear_sum_assignment

from carina.ground.facts import ReaderFacts
from carina.store.errors import CarinaError
from carina.studies import Finding, Image, Region
from carina.studies.model import Annotation
from carina.studies.readers import FusedRegion, FusionRule, box_iou, by_reader, fuse_readers, join_regions


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
    """By reader, the scores of what the reader drew against what the others drew; empty where one person drew."""


ONE_ANNOTATOR: Final = "one annotator"
_COARSEST_FIRST: Final = ("box", "polygon", "mask")
_LEAST_PIECE: Final = 0.02
"""Parts of a mask that are smaller than this share of the largest part are ignored."""


def truth_of(
    findings: Sequence[Finding],
    image: Image,
    rule: FusionRule,
    *,
    looked: int = 0,
    reader: str | None = None,
) -> Truth | None:
    """The findings of one name on an image, as one region; None where nothing of them is drawn or left there.

    What a program drew is used only where no person drew.

    Args:
        findings: Findings of one name.
        image: The image.
        rule: How regions of several readers become one.
        looked: How many readers looked at the image, where the source says so; those who drew are always counted.
        reader: Take the region of this reader alone; the others are compared with it.

    Raises:
        CarinaError: A region does not fit the image, or the rule needs boxes and somebody drew something else.
    """
    drawn = drawn_on(findings, image)
    if not drawn:
        return None
    for one in drawn:
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
    return Truth(
        region=fused.region,
        pieces=_list_pieces(own, fused, is_one_annotator=len(used) == 1),
        annotators=len(used),
        agreement=fmean(overlaps) if overlaps else None,
        fusion=rule.describe(max(looked, len(used))) if len(used) > 1 else ONE_ANNOTATOR,
        drawn=next(kind for kind in _COARSEST_FIRST if kind in kinds),
        is_automatic=all(one.automatic for one in own),
        conspicuity=max(seen, default=None),
        side=_find_side([finding for finding in findings if finding.annotations]),
        readers=_score_readers(readers, rule, looked=looked, reader=reader),
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


def _list_pieces(
    drawn: Sequence[Annotation], fused: FusedRegion, *, is_one_annotator: bool
) -> tuple[Region, ...]:
    """Boxes that were fused, the boxes of a single annotator as drawn, or the connected parts of the region."""
    boxes: Sequence[Region] = fused.boxes
    if is_one_annotator and all(one.drawn == "box" for one in drawn):
        boxes = [one.region for one in drawn]
    if boxes:
        return tuple({box.counts: box for box in boxes if not box.is_empty}.values())
    parts = fused.region.components()
    largest = max(part.area for part in parts)
    return tuple(part for part in parts if part.area >= _LEAST_PIECE * largest)


# ---- reader against reader ------------------------------------------------------------------------------------------


def _score_readers(
    readers: Mapping[str, Sequence[Annotation]], rule: FusionRule, *, looked: int, reader: str | None
) -> dict[str, ReaderFacts]:
    """Scores of each reader against the fused regions of the others, or against the one reader who is the truth."""
    people = {
        name: drawn
        for name, drawn in readers.items()
        if not any(annotation.automatic for annotation in drawn)
    }
    scores: dict[str, ReaderFacts] = {}
    for name, drawn in people.items():
        others = {other: one for other, one in people.items() if other != name}
        if reader is not None:
            others = {reader: people[reader]} if reader in others else {}
        if not others:
            continue
        left = 1 if reader is not None else max(looked - 1, len(others))
        rest = fuse_readers(others, rule, readers=left)
        own = FusedRegion(join_regions(drawn))
        if not rest.region.is_empty and not own.region.is_empty:
            pieces = [
                _list_pieces(one, fused, is_one_annotator=number == 1)
                for one, fused, number in (
                    (drawn, own, 1),
                    ([one for several in others.values() for one in several], rest, len(others)),
                )
            ]
            scores[name] = score_reader(own.region, rest.region, *pieces)
    return scores


def score_reader(
    drawn: Region, truth: Region, pieces: Sequence[Region], true_pieces: Sequence[Region]
) -> ReaderFacts:
    """Score the region of a reader as a map that is 1 there and 0 elsewhere, and its pieces as boxes.

    The scores are those that `carina explain` and `carina run` compute for models: the pointing game is the share of
    the highest pixels that lies in the truth, the AUROC of pixels counts ties as one half, every threshold gives the
    region itself, and boxes are paired one to one.
    """
    shared = drawn.intersection(truth).area
    area, true_area = drawn.area, truth.area
    outside = truth.height * truth.width - true_area
    auroc = None if not outside else (shared / true_area + 1 - (area - shared) / outside) / 2
    return ReaderFacts(
        iou=shared / (area + true_area - shared),
        dice=2 * shared / (area + true_area),
        pointing=shared / area,
        auroc=auroc,
        boxes=_match_boxes(pieces, true_pieces),
    )


def _match_boxes(pieces: Sequence[Region], true_pieces: Sequence[Region]) -> float:
    """Sum of the IoU of the best pairs of bounding boxes, divided by the larger number of boxes."""
    overlaps = np.array(
        [[box_iou(_corners(one), _corners(other)) for other in true_pieces] for one in pieces]
    )
    rows, columns = linear_sum_assignment(overlaps, maximize=True)
    matched = float(overlaps[rows, columns].sum())
    return matched / max(len(pieces), len(true_pieces))


def _corners(piece: Region) -> tuple[int, int, int, int]:
    x, y, w, h = piece.bbox or (0, 0, 0, 0)
    return x, y, x + w, y + h
