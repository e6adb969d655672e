"""Facts of percept: what the keys of its cases and steps rest on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from carina.cases.facts import FactGroup, FactRecord, LesionFacts, Margin, Stored
from carina.cases.reader_scores import ReaderFacts


@dataclass(frozen=True, kw_only=True)
class RegionSource(FactGroup):
    """Where a region of the case comes from."""

    provenance: Annotated[str | None, Stored("provenance")] = None
    """Who or what drew it."""
    reviewed: Annotated[str | None, Stored("reviewed")] = None
    """Whether a person has looked at a mask that a model drew: "yes" or "no"."""


@dataclass(frozen=True, kw_only=True)
class EditFacts(FactGroup):
    """One edit by which the shown contour was deformed."""

    operation: Annotated[str | None, Stored("operation")] = None
    """What was done to the mask: "expansion" or "contraction"."""
    place: Annotated[str | None, Stored("place")] = None
    """Region of the lung in which it was done."""
    mark: Annotated[str | None, Stored("mark")] = None
    """Number of the point that marks it."""
    changed_share: Annotated[Margin | None, Stored("changed share")] = None
    """Changed pixels as a share of the lesion."""
    changed_area: Annotated[Margin | None, Stored("changed area")] = None
    """Changed pixels."""
    thickness: Annotated[Margin | None, Stored("thickness")] = None
    """Greatest thickness of what was changed, in pixels."""
    displacement: Annotated[float | None, Stored("displacement")] = None
    """How far the contour was moved, in pixels."""


@dataclass(frozen=True, kw_only=True)
class PerceptCaseFacts(LesionFacts):
    """What is known of a percept case as a whole."""

    sources: Mapping[str, RegionSource] = field(default_factory=dict)
    """By name of a region, where it comes from."""
    iou_with_truth: Annotated[Mapping[str, Margin], Stored("iou with truth")] = field(default_factory=dict)
    """By name of a region, its overlap with the region that experts drew."""
    edits: Mapping[str, EditFacts] = field(default_factory=dict)
    """By "edit 1", "edit 2": what was done to the contour that is shown."""
    stated_by: Annotated[str | None, Stored("stated by")] = None
    """`BY_PROGRAM` where only a program says whether the lesion is present; nothing where a person says so."""
    share_outside_lungs: Annotated[float | None, Stored("share outside the lungs")] = None
    """Share of the lesion that lies outside both lungs."""
    not_asked: Annotated[Mapping[str, str], Stored("not asked")] = field(default_factory=dict)
    """By task ("distribution"), why the case has no step for it: its key is not clear."""
    readers: Mapping[str, ReaderFacts] = field(default_factory=dict)
    """By reader, how the reader does against the others or the truth; empty where the source has one reader."""

    stored_order: ClassVar = (
        "roles",
        "sources",
        "iou_with_truth",
        "edits",
        "area",
        "share_of_image",
        "conspicuity",
        "stated_by",
        "share_outside_lungs",
        "not_asked",
        "readers",
    )


@dataclass(frozen=True, kw_only=True)
class PointFacts(FactGroup):
    """One of the points of the revision steps; distances in pixels."""

    nearest_point: Annotated[Margin | None, Stored("nearest point")] = None
    """Distance to the nearest other point."""
    distance_to_contour: Annotated[float | None, Stored("distance to contour")] = None
    """Distance to the contour that is shown."""
    nearest_change: Annotated[Margin | None, Stored("nearest change")] = None
    """Distance to the nearest changed part of the contour, for a point where no revision is needed."""


@dataclass(frozen=True, kw_only=True)
class MaskOptionFacts(FactGroup):
    """One of the masks to choose from; overlaps as intersection over union."""

    iou_with_shown: Annotated[Margin | None, Stored("iou with shown")] = None
    """Overlap with the contour that is to be revised."""
    iou_with_key: Annotated[Margin | None, Stored("iou with key")] = None
    """Overlap with the right option."""
    iou_between: Annotated[Mapping[str, Margin], Stored("iou between")] = field(default_factory=dict)
    """By id of a later option, the overlap with it."""


@dataclass(frozen=True, kw_only=True)
class PerceptStepFacts(FactRecord):
    """What the key of a percept step rests on; each step has those that concern its question."""

    points: Mapping[str, PointFacts] = field(default_factory=dict)
    """Revision: by id of an option ("p1"), where its point lies."""
    masks: Mapping[str, MaskOptionFacts] = field(default_factory=dict)
    """Revision: by id of an option ("o1"), how its mask differs from the others."""
    zone_ratios: Annotated[Mapping[str, Margin], Stored("zone ratio")] = field(default_factory=dict)
    """Distribution: by lung zone, the share of the zone that the lesion covers."""
    region_ratios: Annotated[Mapping[str, Margin], Stored("region ratio")] = field(default_factory=dict)
    """Location: by id of an option, the share of the region that the lesion covers."""
    region_overlaps: Annotated[Mapping[tuple[str, str], Margin], Stored("overlap")] = field(
        default_factory=dict
    )
    """Location: by ids of two options, how much of the smaller region lies in the other."""
    side: Annotated[str | None, Stored("side")] = None
    """Severity: the lung that is asked about, "right" or "left"."""
    share: Annotated[Margin | None, Stored("share")] = None
    """Severity: share of that lung that the lesion covers."""
    right_share: Annotated[Margin | None, Stored("right share")] = None
    """Comparison: share of the right lung that the lesion covers."""
    left_share: Annotated[Margin | None, Stored("left share")] = None
    """Comparison: share of the left lung that the lesion covers."""
    right_size: Annotated[float | None, Stored("right size")] = None
    """Comparison: pixels of the lesion in the right lung."""
    left_size: Annotated[float | None, Stored("left size")] = None
    """Comparison: pixels of the lesion in the left lung."""
    larger_side: Annotated[str | None, Stored("larger side")] = None
    """Comparison: the lung with more pixels of the lesion, "right" or "left"."""
    size_ratio: Annotated[Margin | None, Stored("size ratio")] = None
    """Comparison: larger size over smaller size."""
