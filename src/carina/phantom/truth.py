"""The truth of a study from its plan and radiographs: findings, devices, relations, anatomy, quality.

Side, zones and severity are computed from the stored masks and measures.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from carina.phantom.anatomy import Mask
from carina.phantom.lesions import compute_cardiothoracic_ratio
from carina.phantom.plan import DevicePlan, LesionPlan, StudyPlan
from carina.phantom.radiograph import Radiograph, VisibleLesion
from carina.studies.lungs import locate
from carina.studies.model import (
    Anatomy,
    Annotation,
    Device,
    Finding,
    Location,
    Measure,
    Quality,
    Relation,
    Tip,
)
from carina.studies.region import Region
from carina.studies.terms import is_kind_of
from carina.studies.vocabulary import FINDINGS, SIDES, ZONES, Distribution, Severity, Side, Trend

ANNOTATOR: Final = "phantom"

# The measure that decides severity, and the lower limits of moderate and severe. Where measures of the image depend on
# view, posture and inspiration, the extent decides, so that an unchanged lesion has the same severity in every study.
SEVERITY: Final[dict[str, tuple[str, float, float]]] = {
    "cardiomegaly": ("cardiothoracic ratio", 0.55, 0.60),
    "pleural effusion": ("extent", 0.20, 0.60),
    "atelectasis": ("volume lost", 0.10, 0.22),
    "consolidation": ("extent", 0.30, 0.65),
    "pneumonia": ("extent", 0.30, 0.65),
    "lung opacity": ("extent", 0.20, 0.50),
    "edema": ("edema grade", 2.0, 3.0),
    "pneumothorax": ("extent", 0.12, 0.40),
}


def make_quality(radiograph: Radiograph) -> Quality:
    """Technical adequacy as a reader would judge it."""
    technique = radiograph.technique
    turn = technique.rotation_degrees
    return Quality(
        rotation=("left" if turn > 0 else "right") if technique.is_rotated else "none",
        rotation_degrees=round(abs(turn), 1),
        inspiration="poor" if technique.is_poorly_inspired else "adequate",
        posterior_ribs=radiograph.posterior_ribs,
        exposure=("over" if technique.exposure > 0 else "under") if technique.is_misexposed else "adequate",
        cut_off=radiograph.cut_off,
    )


def make_anatomy(key: str, radiograph: Radiograph) -> list[Anatomy]:
    return [
        Anatomy(name=name, image=key, region=Region.from_mask(mask), annotator=ANNOTATOR)
        for name, mask in radiograph.anatomy.items()
    ]


def make_findings(study: StudyPlan, images: Mapping[str, Radiograph]) -> tuple[list[Finding], dict[str, str]]:
    """Every finding of the vocabulary, present and uncertain ones first, then absent ones; and ids by lesion key.

    A finding of which a kind is present or uncertain is not absent, and has no record of its own.
    """
    found: list[Finding] = []
    ids: dict[str, str] = {}
    for lesion in study.lesions:
        ids[lesion.key] = f"f{len(found) + 1}"
        found.append(_make_finding(ids[lesion.key], lesion, images))
    present = {finding.name for finding in found}
    resolved = {item.name for item in study.resolved_lesions}
    for name in FINDINGS:
        if name not in present and not any(is_kind_of(other, name) for other in present):
            trend: Trend | None = "resolved" if name in resolved else None
            found.append(Finding(id=f"f{len(found) + 1}", name=name, certainty="absent", trend=trend))
    return found, ids


def _make_finding(identity: str, lesion: LesionPlan, images: Mapping[str, Radiograph]) -> Finding:
    annotations = tuple(
        Annotation(
            image=key,
            region=Region.from_mask(visible.mask),
            drawn="mask",
            annotator=ANNOTATOR,
            conspicuity=visible.conspicuity,
            threshold=visible.shadow.threshold if visible.shadow else None,
        )
        for key, radiograph in images.items()
        if (visible := radiograph.lesions[lesion.key]).mask.any()
    )
    frontal = next(iter(images.values()))
    visible = frontal.lesions[lesion.key]
    location = _make_location(lesion, visible, frontal.anatomy)
    measures = _make_measures(lesion, visible, frontal)
    return Finding(
        id=identity,
        name=lesion.name,
        certainty=lesion.certainty,
        location=location,
        severity=_grade_severity(lesion.name, measures),
        distribution=_classify_distribution(lesion.name, location, visible.mask),
        trend=lesion.trend,
        appearance=visible.shadow.appearance if visible.shadow else (lesion.form,),
        measures=measures,
        annotations=annotations,
    )


def _make_location(lesion: LesionPlan, visible: VisibleLesion, regions: Mapping[str, Mask]) -> Location:
    if lesion.name == "cardiomegaly":
        return Location(side="midline")
    empty = np.zeros(visible.mask.shape, bool)
    lungs = {side: regions.get(f"{side} lung", empty) for side in SIDES}
    parts = {name: regions.get(name, empty) for name in _PARTS}
    # Each lung separately, so that zones of the smaller part of a bilateral finding are included.
    sides = SIDES if lesion.side == "bilateral" else (lesion.side,)
    found = {
        side: locate(visible.mask & lungs[side], parts, lungs["right"], lungs["left"])
        for side in sides
        if (visible.mask & lungs[side]).any()
    }
    side: Side = lesion.side
    if lesion.side == "bilateral" and len(found) == 1:
        side = "right" if "right" in found else "left"
    return Location(
        side=side,
        zones=tuple(zone for location in found.values() for zone in location.zones),
        parts=tuple(part for location in found.values() for part in location.parts),
        site=visible.shadow.site if visible.shadow else None,
    )


_PARTS: Final = (
    *ZONES,
    *(f"{side} {part} lung" for side in ("right", "left") for part in ("medial", "lateral", "peripheral")),
    "right costophrenic angle",
    "left costophrenic angle",
)


def _make_measures(lesion: LesionPlan, visible: VisibleLesion, frontal: Radiograph) -> tuple[Measure, ...]:
    if lesion.name == "cardiomegaly":
        # The first is the ratio on an unrotated PA view; the second can be measured in this image, where an AP view
        # magnifies the heart.
        return (
            Measure(name="cardiothoracic ratio", value=compute_cardiothoracic_ratio(lesion), unit="1"),
            Measure(
                name="apparent cardiothoracic ratio", value=_measure_apparent_ratio(frontal.anatomy), unit="1"
            ),
        )
    measures = list(visible.shadow.measures) if visible.shadow else []
    if SEVERITY.get(lesion.name, ("",))[0] == "extent":
        measures.append(Measure(name="extent", value=round(lesion.extent, 3), unit="1"))
    share = _measure_share_of_lung(lesion, visible.mask, frontal.anatomy)
    if lesion.name in ("consolidation", "pneumonia", "lung opacity", "edema"):
        measures.append(Measure(name="share of lung", value=share, unit="1"))
    elif lesion.name == "pneumothorax" or "meniscus" in (visible.shadow.appearance if visible.shadow else ()):
        # A layering effusion covers the whole lung even if it is small, so its area is not informative.
        measures.append(Measure(name="share of hemithorax", value=share, unit="1"))
    return tuple(measures)


def _measure_apparent_ratio(regions: Mapping[str, Mask]) -> float:
    """Width of the heart over width of both lungs in this image."""
    lungs = [regions[name] for name in ("right lung", "left lung") if name in regions]
    if not lungs or "heart" not in regions:
        return 0.0
    thorax = np.flatnonzero(np.logical_or.reduce(lungs).any(axis=0))
    heart = np.flatnonzero(regions["heart"].any(axis=0))
    return round(float((heart[-1] - heart[0] + 1) / (thorax[-1] - thorax[0] + 1)), 3)


def _measure_share_of_lung(lesion: LesionPlan, mask: Mask, regions: Mapping[str, Mask]) -> float:
    """Area of the mask inside the lung fields of its sides, as a share of their area."""
    sides = ("right", "left") if lesion.side == "bilateral" else (lesion.side,)
    lungs = [regions[f"{side} lung"] for side in sides if f"{side} lung" in regions]
    area = sum(int(lung.sum()) for lung in lungs)
    return round(sum(int((mask & lung).sum()) for lung in lungs) / area, 3) if area else 0.0


def _grade_severity(name: str, measures: Sequence[Measure]) -> Severity | None:
    if name not in SEVERITY:
        return None
    decisive, moderate, severe = SEVERITY[name]
    value = next(measure.value for measure in measures if measure.name == decisive)
    return "severe" if value >= severe else "moderate" if value >= moderate else "mild"


def _classify_distribution(name: str, location: Location, mask: Mask) -> Distribution | None:
    if name in ("cardiomegaly", "fracture", "pneumothorax", "pleural effusion"):
        return None
    if name == "edema" or len(location.zones) >= 4:
        return "diffuse"
    pieces = len(Region.from_mask(mask).components()) if mask.any() else 0
    return "multifocal" if pieces > 1 else "focal"


def make_devices(study: StudyPlan, images: Mapping[str, Radiograph]) -> tuple[list[Device], dict[str, str]]:
    """Devices that are present, then those removed since the prior study; and ids by device key."""
    found: list[Device] = []
    ids: dict[str, str] = {}
    for device in study.devices:
        ids[device.key] = f"d{len(found) + 1}"
        found.append(_make_device(ids[device.key], device, images))
    for item in study.removed_devices:
        found.append(Device(id=f"d{len(found) + 1}", name=item.name, certainty="absent", trend="resolved"))
    return found, ids


def _make_device(identity: str, device: DevicePlan, images: Mapping[str, Radiograph]) -> Device:
    visible = {key: radiograph.devices[device.key] for key, radiograph in images.items()}
    geometry = next(iter(visible.values())).geometry
    return Device(
        id=identity,
        name=device.name,
        certainty="present",
        side=device.side,
        position="adequate" if device.adequate else "malpositioned",
        site=geometry.site,
        trend=device.trend,
        measures=geometry.measures,
        tips=tuple(Tip(image=key, x=s.tip[0], y=s.tip[1]) for key, s in visible.items() if s.tip),
        annotations=tuple(
            Annotation(image=key, region=Region.from_mask(s.mask), drawn="mask", annotator=ANNOTATOR)
            for key, s in visible.items()
            if s.mask.any()
        ),
    )


def make_relations(study: StudyPlan, ids: Mapping[str, str]) -> list[Relation]:
    return [
        Relation(
            id=f"x{k + 1}", subject=ids[relation.subject], kind=relation.kind, object=ids[relation.object]
        )
        for k, relation in enumerate(study.relations)
    ]
