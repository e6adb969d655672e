"""Several readers of one finding: their regions kept apart, fused by a rule that is named, and scored by each other.

A study keeps what every reader drew (`Annotation.annotator`). Whoever builds something from it decides how the regions
of several readers become one, and says so: nothing here is applied when a data set is read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from carina.store.errors import CarinaError
from carina.studies.model import Annotation, Finding, Study
from carina.studies.region import Region
from carina.studies.terms import is_kind_of

Fusion = Literal["union", "consensus", "intersection", "weighted-boxes", "first"]
"""How regions of several readers become one: what any reader marked; what more than half of them marked, or as many as
are asked for; what all who drew it marked; boxes that overlap, averaged; or the region of the first reader by name."""
FUSIONS: Final[tuple[Fusion, ...]] = get_args(Fusion)
BOX_OVERLAP: Final = 0.5
"""Least IoU of boxes of several readers that are taken for the same thing; BenchX uses 0.5, RadVLM 0.1 on VinDr-CXR."""

Corners = tuple[float, float, float, float]
"""A box in pixels: left, top, right, bottom."""


@dataclass(frozen=True, kw_only=True)
class FusionRule:
    """A way to make one region of those of several readers.

    Example:
        >>> FusionRule(fusion="consensus", at_least=2).describe(3)
        'consensus of at least 2 of 3 readers'
    """

    fusion: Fusion = "union"
    at_least: int | None = None
    """Readers who must agree, for "consensus" and "weighted-boxes"; None for more than half of them."""
    box_overlap: float = BOX_OVERLAP
    """Least IoU of boxes that are taken for the same thing, for "weighted-boxes"."""

    def __post_init__(self) -> None:
        if self.fusion not in FUSIONS:
            raise CarinaError(f"readers {self.fusion!r}: expected one of {', '.join(FUSIONS)}")
        if self.at_least is not None and self.at_least < 1:
            raise CarinaError(f"at_least {self.at_least}: expected at least 1 reader")
        if self.at_least is not None and self.fusion not in ("consensus", "weighted-boxes"):
            raise CarinaError(
                f"at_least {self.at_least}: is for consensus and weighted-boxes; with {self.fusion!r}, leave it out"
            )
        if not 0 < self.box_overlap <= 1:
            raise CarinaError(f"box_overlap {self.box_overlap}: expected an IoU above 0 and up to 1")

    def needed(self, readers: int) -> int:
        """How many of the readers must agree; never more than there are."""
        return min(self.at_least or readers // 2 + 1, readers)

    def describe(self, readers: int) -> str:
        """The rule in words, for the facts of a case."""
        match self.fusion:
            case "consensus":
                return f"consensus of at least {self.needed(readers)} of {readers} readers"
            case "weighted-boxes":
                agreeing = f"at least {self.needed(readers)} of {readers} readers"
                return f"weighted boxes of {agreeing}, IoU {self.box_overlap:g}"
            case "first":
                return f"first of {readers} readers by name"
            case _:
                return f"{self.fusion} of {readers} readers"


@dataclass(frozen=True)
class FusedRegion:
    """One region of those of several readers."""

    region: Region
    """Empty where nothing is left."""
    boxes: tuple[Region, ...] = ()
    """The boxes that make it up, where boxes were fused as boxes."""


def by_reader(annotations: Iterable[Annotation]) -> dict[str, list[Annotation]]:
    """Annotations of each reader, readers sorted by name."""
    drawn: dict[str, list[Annotation]] = {}
    for annotation in annotations:
        drawn.setdefault(annotation.annotator, []).append(annotation)
    return dict(sorted(drawn.items()))


def join_regions(drawn: Sequence[Annotation]) -> Region:
    """Everything that one reader drew, as one region."""
    first, *others = (annotation.region for annotation in drawn)
    return first.union(*others)


def fuse_readers(
    drawn: Mapping[str, Sequence[Annotation]], rule: FusionRule, *, readers: int | None = None
) -> FusedRegion:
    """Fuse what several readers drew of one finding on one image.

    The order of the readers does not matter, except for "first". A single reader's region stays as it is.

    Args:
        drawn: Annotations by reader, as `by_reader` gives them; at least one of each reader.
        rule: The rule.
        readers: How many readers looked at the image, where some drew nothing; by default those who drew.

    Returns:
        The region, and its boxes where boxes were fused.

    Raises:
        CarinaError: Boxes are to be fused, and a reader drew something else.

    Example:
        >>> def box(x, reader):
        ...     region = Region.from_box(x, 0, 10, 10, height=20, width=40)
        ...     return Annotation(image="a.png", region=region, drawn="box", annotator=reader)
        >>> drawn = by_reader([box(0, "A"), box(2, "B")])
        >>> [fuse_readers(drawn, FusionRule(fusion=name)).region.bbox for name in ("union", "consensus")]
        [(0, 0, 12, 10), (2, 0, 8, 10)]
        >>> fuse_readers(drawn, FusionRule(fusion="weighted-boxes")).region.bbox
        (1, 0, 10, 10)
    """
    number = max(readers or 0, len(drawn))
    if rule.fusion == "weighted-boxes" and number > 1:
        return _fuse_boxes(drawn, rule, number)
    regions = [join_regions(drawn[name]) for name in sorted(drawn)]
    first, *others = regions
    match rule.fusion:
        case "union":
            return FusedRegion(first.union(*others))
        case "consensus":
            return FusedRegion(_take_marked(regions, rule.needed(number)))
        case "intersection":
            return FusedRegion(first.intersection(*others))
        case _:
            return FusedRegion(first)


def _take_marked(regions: Sequence[Region], needed: int) -> Region:
    """Pixels that at least so many regions hold."""
    first, *others = regions
    if needed > len(regions):
        return Region.empty(first.height, first.width)
    if needed == 1:
        return first.union(*others)
    if needed == len(regions):
        return first.intersection(*others)
    marked = np.sum([region.to_mask() for region in regions], axis=0, dtype=np.int32)
    return Region.from_mask(np.asarray(marked >= needed))


# ---- boxes ----------------------------------------------------------------------------------------------------------


def _fuse_boxes(drawn: Mapping[str, Sequence[Annotation]], rule: FusionRule, readers: int) -> FusedRegion:
    boxes: list[tuple[str, Corners]] = []
    image = next(annotation.region for own in drawn.values() for annotation in own)
    for reader, own in drawn.items():
        for annotation in own:
            if annotation.drawn != "box":
                raise CarinaError(f"weighted-boxes: {reader} drew a {annotation.drawn}; expected boxes")
            if annotation.region.bbox is not None:
                x, y, w, h = annotation.region.bbox
                boxes.append((reader, (x, y, x + w, y + h)))
    fused = fuse_boxes(boxes, overlap=rule.box_overlap, needed=rule.needed(readers))
    regions = tuple(
        Region.from_box(x1, y1, x2 - x1, y2 - y1, height=image.height, width=image.width)
        for x1, y1, x2, y2 in fused
    )
    empty = Region.empty(image.height, image.width)
    return FusedRegion(empty.union(*regions) if regions else empty, regions)


def fuse_boxes(
    boxes: Iterable[tuple[str, Corners]], *, overlap: float = BOX_OVERLAP, needed: int = 1
) -> list[Corners]:
    """Fuse boxes of several readers by weighted box fusion with equal weights.

    Boxes are taken from left to right. Each joins the group whose mean box it overlaps most, by at least `overlap`, and
    in which its reader has no box yet: two boxes of one reader are two things. The corners of a group are the means of
    its boxes. Nothing depends on the order or the names of the readers.

    Args:
        boxes: Reader and corners (left, top, right, bottom) of each box.
        overlap: Least IoU.
        needed: Readers whose boxes a group must hold; other groups are left out.

    Returns:
        Corners of the fused boxes, sorted.

    Example:
        >>> fuse_boxes([("A", (0, 0, 10, 10)), ("B", (2, 0, 12, 10)), ("B", (30, 0, 40, 10))], needed=2)
        [(1.0, 0.0, 11.0, 10.0)]
    """
    groups: list[list[tuple[str, Corners]]] = []
    for reader, corners in _in_fair_order(boxes):
        best, most = None, 0.0
        for group in groups:
            shared = box_iou(_mean_corners(group), corners)
            if shared >= overlap and shared > most and all(reader != other for other, _ in group):
                best, most = group, shared
        if best is None:
            groups.append([(reader, corners)])
        else:
            best.append((reader, corners))
    return sorted(_mean_corners(group) for group in groups if len(group) >= needed)


def _in_fair_order(boxes: Iterable[tuple[str, Corners]]) -> list[tuple[str, Corners]]:
    """Boxes by their corners; equal boxes of several readers in an order that makes no difference."""
    given = list(boxes)
    own: dict[str, list[Corners]] = {}
    for reader, corners in given:
        own.setdefault(reader, []).append(corners)
    # Readers who drew the same boxes are exchangeable, so that their names may decide between them.
    return sorted(given, key=lambda box: (box[1], sorted(own[box[0]]), box[0]))


def _mean_corners(group: Sequence[tuple[str, Corners]]) -> Corners:
    x1, y1, x2, y2 = np.mean([corners for _, corners in group], axis=0).tolist()
    return x1, y1, x2, y2


def box_iou(one: Corners, other: Corners) -> float:
    """IoU of two boxes by their corners."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    areas = sum((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return shared / (areas - shared)


# ---- presence -------------------------------------------------------------------------------------------------------


def presence_votes(study: Study, name: str) -> dict[str, bool]:
    """What each reader who looked for a finding says: whether it is present.

    Args:
        study: The study; without `assessed.readers`, nobody's opinion is known.
        name: Name of the finding.

    Returns:
        By reader, sorted by name. A finding that nobody looked for has no votes; who states a kind of it states it.

    Example:
        >>> from carina.studies import Assessed
        >>> mass = Finding(id="f1", name="mass", certainty="uncertain", stated_by=("R1",))
        >>> looked = Assessed(findings="listed", listed=("mass",), readers=("R1", "R2"))
        >>> study = Study(id="s1", patient="p1", source="mine", images=(), findings=(mass,), assessed=looked)
        >>> presence_votes(study, "mass")
        {'R1': True, 'R2': False}
    """
    own = _find_kinds(study, name)
    assessed = study.assessed
    is_looked_for = assessed.findings == "every" or (
        assessed.findings == "listed" and name in assessed.listed
    )
    if not assessed.readers or not (own or is_looked_for):
        return {}
    return {reader: _states(own, reader) for reader in sorted(assessed.readers)}


def _states(findings: Sequence[Finding], reader: str) -> bool:
    return any(
        reader in finding.stated_by or any(drawn.annotator == reader for drawn in finding.annotations)
        for finding in findings
    )


def silent_readers(study: Study, name: str, image: str) -> tuple[str, ...]:
    """Readers who looked for a finding, and drew neither it nor a kind of it on an image.

    Args:
        study: The study; without `assessed.readers`, nobody is known to have looked.
        name: Name of the finding.
        image: Key of the image.

    Returns:
        The readers, sorted by name.

    Example:
        >>> from carina.studies import Assessed
        >>> region = Region.from_box(0, 0, 4, 4, height=8, width=8)
        >>> drawn = Annotation(image="a.png", region=region, drawn="box", annotator="R1")
        >>> mass = Finding(id="f1", name="mass", certainty="present", annotations=(drawn,))
        >>> looked = Assessed(findings="listed", listed=("mass",), readers=("R1", "R2"))
        >>> study = Study(id="s1", patient="p1", source="mine", images=(), findings=(mass,), assessed=looked)
        >>> silent_readers(study, "mass", "a.png")
        ('R2',)
    """
    drew = {
        drawn.annotator
        for finding in _find_kinds(study, name)
        for drawn in finding.annotations
        if drawn.image == image
    }
    return tuple(reader for reader in presence_votes(study, name) if reader not in drew)


def _find_kinds(study: Study, name: str) -> list[Finding]:
    """Records of a finding and of its kinds."""
    return [finding for finding in study.findings if finding.name == name or is_kind_of(finding.name, name)]


def agree_with_others(votes: Mapping[str, bool]) -> dict[str, float]:
    """Whether each reader says what most of the others say.

    Args:
        votes: By reader, whether the finding is present.

    Returns:
        1 or 0 by reader, and 0.5 for a reader whose others are divided: either answer agrees with half of them. A
        reader who is alone has no entry.

    Example:
        >>> agree_with_others({"R1": True, "R2": True, "R3": False})
        {'R1': 0.5, 'R2': 0.5, 'R3': 0.0}
    """
    if len(votes) < 2:
        return {}
    agrees: dict[str, float] = {}
    for reader, vote in votes.items():
        present = sum(other for name, other in votes.items() if name != reader)
        absent = len(votes) - 1 - present
        agrees[reader] = 0.5 if present == absent else float(vote == (present > absent))
    return agrees
