"""How readers do themselves: what each drew, scored as the map or the boxes of a model are scored.

A reader who is part of the truth is scored against the other readers, whose regions are fused by the rule of the
benchmark (leave one out). A reader whom the source compares with its truth is scored against that truth. The human
ceiling of a report is the mean of these scores (`carina.runs.analysis.readers`).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

import numpy as np
from scipy.optimize import linear_sum_assignment

from carina.cases.boxes import is_localised
from carina.cases.facts import FactGroup, Stored
from carina.studies.model import Annotation, Finding, SalientPoint
from carina.studies.readers import (
    FusedRegion,
    FusionRule,
    agree_with_others,
    box_iou,
    by_reader,
    fuse_readers,
    join_regions,
)
from carina.studies.region import Region

_LEAST_PIECE: Final = 0.02
"""Parts of a mask that are smaller than this share of the largest part are ignored."""


@dataclass(frozen=True, kw_only=True)
class ReaderFacts(FactGroup):
    """How one reader does against the other readers, or against the truth."""

    iou: Annotated[float | None, Stored("reader IoU")] = None
    dice: Annotated[float | None, Stored("reader Dice")] = None
    pointing: Annotated[float | None, Stored("reader pointing")] = None
    """Share of what the reader drew that lies in the truth: the pointing game of a map that is 1 there, 0 elsewhere."""
    auroc: Annotated[float | None, Stored("reader pixel AUROC")] = None
    boxes: Annotated[float | None, Stored("reader boxes IoU")] = None
    """Mean IoU of the best pairs of boxes; boxes without a partner count as 0."""
    localised: Annotated[float | None, Stored("reader localisation")] = None
    """1 where the mean IoU of the boxes is 0.5 or more, as an answer of a model counts as right, else 0."""
    points: Annotated[float | None, Stored("reader points")] = None
    """Share of the points that the reader marked as most salient which lie in the truth."""
    presence: Annotated[float | None, Stored("reader on presence")] = None
    """1 where the reader says what most of the others say about presence, 0.5 where the others are divided, else 0."""


@dataclass(frozen=True)
class ScoredTruth:
    """The region that readers are scored against, and the separate areas to find."""

    region: Region
    pieces: tuple[Region, ...]


def list_pieces(
    drawn: Sequence[Annotation], fused: FusedRegion, *, is_one_annotator: bool
) -> tuple[Region, ...]:
    """Boxes that were fused, the boxes of a single annotator as drawn, or the connected parts of the region."""
    boxes: Sequence[Region] = fused.boxes
    if is_one_annotator and all(one.drawn == "box" for one in drawn):
        boxes = [one.region for one in drawn]
    if boxes:
        return tuple({box.counts: box for box in boxes if not box.is_empty}.values())
    parts = fused.region.components()
    largest = max((part.area for part in parts), default=0)
    return tuple(part for part in parts if part.area >= _LEAST_PIECE * largest)


def score_each_reader(
    drawn: Mapping[str, Sequence[Annotation]],
    rule: FusionRule,
    *,
    looked: int = 0,
    silent: Collection[str] = (),
) -> dict[str, ReaderFacts]:
    """Score each reader against the others.

    Args:
        drawn: What people drew, by reader.
        rule: How regions of several readers become one.
        looked: How many readers looked, where the source says so; those who drew are always counted.
        silent: Readers who looked and drew nothing: they have missed what the others drew.

    Returns:
        Scores by reader. A reader of whose others nothing is left by the rule has none.

    Example:
        >>> def box(x, reader):
        ...     region = Region.from_box(x, 0, 10, 10, height=20, width=40)
        ...     return Annotation(image="a.png", region=region, drawn="box", annotator=reader)
        >>> scores = score_each_reader({"A": [box(0, "A")], "B": [box(0, "B")]}, FusionRule(), silent=["C"])
        >>> {reader: one.iou for reader, one in scores.items()}
        {'A': 1.0, 'B': 1.0, 'C': 0.0}
    """
    scores: dict[str, ReaderFacts] = {}
    for name in sorted({*drawn, *silent}):
        others = {other: one for other, one in drawn.items() if other != name}
        if others:
            truth = _fuse_others(others, rule, readers=max(looked - 1, len(others)))
            if not truth.region.is_empty:
                scores[name] = score_against(truth, drawn.get(name, ()))
    return scores


def _fuse_others(
    others: Mapping[str, Sequence[Annotation]], rule: FusionRule, *, readers: int
) -> ScoredTruth:
    """The truth of the other readers; where they are too divided for the rule, half of them is enough.

    Else a reader who is part of the majority would go without a score wherever one who is not has a bad one: of three
    readers, two who drew the same have one other who drew it and one who did not.
    """
    fused = fuse_readers(others, rule, readers=readers)
    half = (readers + 1) // 2
    if (
        fused.region.is_empty
        and rule.fusion in ("consensus", "weighted-boxes")
        and half < rule.needed(readers)
    ):
        fused = fuse_readers(others, replace(rule, at_least=half), readers=readers)
    every = [one for several in others.values() for one in several]
    return ScoredTruth(fused.region, list_pieces(every, fused, is_one_annotator=len(others) == 1))


def score_comparisons(truth: ScoredTruth, findings: Iterable[Finding], image: str) -> dict[str, ReaderFacts]:
    """Score the readers whom the source compares with its truth, by what they drew and marked on an image.

    Args:
        truth: The truth on the image.
        findings: The findings of one name that it is the truth of.
        image: Key of the image.

    Returns:
        Scores by reader.
    """
    things = list(findings)
    drawn = by_reader(one for thing in things for one in thing.comparisons if one.image == image)
    points: dict[str, list[SalientPoint]] = {}
    for thing in things:
        for point in thing.points:
            if point.image == image:
                points.setdefault(point.annotator, []).append(point)
    scores = {name: score_against(truth, own) for name, own in drawn.items()}
    for name, own in points.items():
        scores[name] = replace(scores.get(name, ReaderFacts()), points=_score_points(truth.region, own))
    return scores


def score_against(truth: ScoredTruth, drawn: Sequence[Annotation]) -> ReaderFacts:
    """Score what one reader drew against a truth; nothing, or an empty region, is a truth that the reader missed."""
    region = join_regions(drawn) if drawn else Region.empty(truth.region.height, truth.region.width)
    pieces = list_pieces(drawn, FusedRegion(region), is_one_annotator=True) if drawn else ()
    return score_reader(region, truth.region, pieces, truth.pieces)


def add_presence(scores: Mapping[str, ReaderFacts], votes: Mapping[str, bool]) -> dict[str, ReaderFacts]:
    """The scores of readers, with whether each says what most of the others say about presence."""
    agrees = agree_with_others(votes)
    return {
        reader: replace(scores.get(reader, ReaderFacts()), presence=agrees.get(reader))
        for reader in sorted({*scores, *agrees})
    }


def score_reader(
    drawn: Region, truth: Region, pieces: Sequence[Region], true_pieces: Sequence[Region]
) -> ReaderFacts:
    """Score the region of a reader as a map that is 1 there and 0 elsewhere, and its pieces as boxes.

    The scores are those that `carina explain` and `carina run` compute for models: the pointing game is the share of
    the highest pixels that lies in the truth, the AUROC of pixels counts ties as one half, every threshold gives the
    region itself, and boxes are paired one to one. An empty region is scored as no answer: AUROC one half, all else 0.
    """
    shared = drawn.intersection(truth).area
    area, true_area = drawn.area, truth.area
    outside = truth.height * truth.width - true_area
    boxes = _match_boxes(pieces, true_pieces)
    auroc = None if not outside else (shared / true_area + 1 - (area - shared) / outside) / 2
    return ReaderFacts(
        iou=shared / (area + true_area - shared),
        dice=2 * shared / (area + true_area),
        pointing=shared / area if area else 0.0,
        auroc=auroc,
        boxes=boxes,
        localised=float(is_localised(boxes)),
    )


def _score_points(truth: Region, points: Sequence[SalientPoint]) -> float:
    mask = truth.to_mask()
    rows = [min(int(point.y), truth.height - 1) for point in points]
    columns = [min(int(point.x), truth.width - 1) for point in points]
    return float(mask[rows, columns].mean())


def _match_boxes(pieces: Sequence[Region], true_pieces: Sequence[Region]) -> float:
    """Sum of the IoU of the best pairs of bounding boxes, divided by the larger number of boxes."""
    if not pieces:
        return 0.0
    overlaps = np.array(
        [[box_iou(_corners(one), _corners(other)) for other in true_pieces] for one in pieces]
    )
    rows, columns = linear_sum_assignment(overlaps, maximize=True)
    matched = float(overlaps[rows, columns].sum())
    return matched / max(len(pieces), len(true_pieces))


def _corners(piece: Region) -> tuple[int, int, int, int]:
    x, y, w, h = piece.bbox or (0, 0, 0, 0)
    return x, y, x + w, y + h
