"""Analyse one lesion of a study: contours, edits, points, mask options and attributes, or why it cannot be used.

A pure function of study, lesion, seed and rules.
"""

from itertools import combinations
from typing import Final

import numpy as np

from carina.cases import case_image
from carina.percept.anatomy import (
    Anatomy,
    LesionGeometry,
    decode_mask,
    make_geometry,
    measure_overlap,
    read_anatomy,
)
from carina.percept.attributes import (
    ATTRIBUTES,
    LOCATION_OPTIONS,
    Attributes,
    choose_regions,
    measure_stable_attributes,
)
from carina.percept.contour_features import measure_features
from carina.percept.deformers import Deformer, DeformerSource, warp_deformer
from carina.percept.edit_sites import Place
from carina.percept.layout import Layout, find_layouts
from carina.percept.lesions import LESIONS, Lesion
from carina.percept.mask_options import MaskPool, make_mask_pool
from carina.percept.outline import Outline, draw_outline, iou
from carina.percept.records import (
    AttributeTruth,
    ContourEdit,
    DistractorPoint,
    LesionAnalysis,
    LocationChoice,
    MaskChoice,
    Outcome,
    Skipped,
    Subject,
)
from carina.percept.rules import Ineligible, Rules
from carina.percept.truth import TruthSource, masks_as_drawn
from carina.store.seeding import rng
from carina.studies.faults import is_sound_image
from carina.studies.model import Image, Study
from carina.studies.region import Mask, Region

FRONTAL: Final = ("PA", "AP")


def frontal_image(study: Study) -> Image:
    """The image that is asked about: the first frontal one."""
    for image in study.images:
        if image.view in FRONTAL:
            if not is_sound_image(image):
                raise Ineligible("unsound image", f"{image.key}: carina check says what is wrong")
            return image
    raise Ineligible(
        "no frontal image", f"views: {', '.join(image.view for image in study.images) or 'none'}"
    )


def subject_of(study: Study) -> Subject:
    """The study and its frontal image, as cases record them."""
    image = frontal_image(study)
    return Subject(
        study=study.id,
        patient=study.patient,
        source=study.source,
        split=study.split,
        image=case_image(image),
    )


def analyse_lesion(
    study: Study,
    target: str,
    *,
    seed: int,
    rules: Rules,
    truth_of: TruthSource = masks_as_drawn,
    deformer_of: DeformerSource = warp_deformer,
) -> Outcome:
    """Analyse one lesion of a study for all paths.

    Args:
        study: The study.
        target: Name of the lesion, one of `LESIONS`.
        seed: Seed for sampling.
        rules: Limits that keys must keep clear of.
        truth_of: Where the mask comes from; the study's own masks by default.
        deformer_of: How contours are deformed; a signed-distance warp by default.

    Returns:
        The analysis, or the reason why the lesion cannot be asked about.

    Example:
        >>> from carina import open_studies
        >>> study = open_studies("studies")["p000001-s2"]
        >>> analyse_lesion(study, "consolidation", seed=0, rules=Rules()).area
        1099
        >>> analyse_lesion(study, "edema", seed=0, rules=Rules()).reason
        'not drawn'
    """
    try:
        return _analyse(study, LESIONS[target], seed, rules, truth_of=truth_of, deformer_of=deformer_of)
    except Ineligible as reason:
        return Skipped(study=study.id, target=target, reason=reason.reason, detail=reason.detail)


def _analyse(
    study: Study,
    lesion: Lesion,
    seed: int,
    rules: Rules,
    *,
    truth_of: TruthSource,
    deformer_of: DeformerSource,
) -> LesionAnalysis:
    subject, image = subject_of(study), frontal_image(study)
    found = truth_of(study, image, lesion)
    truth = found.mask
    _check_overlap(study, image, lesion, truth, rules)
    anatomy = read_anatomy(study, image, rules)
    geometry = make_geometry(lesion, truth, anatomy, rules)
    outline = draw_outline(geometry, rules, rng(seed, study.id, lesion.name, "outline"))
    redrawn = outline.on_image(outline.revised)
    attributes = _record_attributes(geometry, redrawn, rules, seed, study.id) if lesion.in_lungs else None
    chance = rng(seed, study.id, lesion.name, "edits")
    deformer = deformer_of(study, image)
    layout, pool = _find_layout(outline, truth, anatomy, rules, chance=chance, deformer=deformer)
    shown = outline.on_image(layout.shown)
    return LesionAnalysis(
        subject=subject,
        target=lesion.name,
        area=geometry.area,
        share=geometry.area / truth.size,
        scale=geometry.scale,
        truth=Region.from_mask(truth),
        provenance=found.provenance,
        reviewed=found.reviewed,
        conspicuity=found.conspicuity,
        deformer=deformer.name,
        revised=Region.from_mask(redrawn),
        agreement=iou(redrawn, truth),
        shown=Region.from_mask(shown),
        overlap=iou(shown, truth),
        edits=_record_edits(outline, layout),
        points=_record_distractors(outline, layout),
        shown_area=int(np.count_nonzero(layout.shown)),
        shown_change=int(np.count_nonzero(layout.shown ^ outline.revised)),
        shown_features=tuple(measure_features(layout.shown, outline.scale).tolist()),
        masks=_record_masks(outline, pool),
        squares=pool.squares,
        attributes=attributes,
    )


def _check_overlap(study: Study, image: Image, lesion: Lesion, truth: Mask, rules: Rules) -> None:
    """Raise `Ineligible` where another dense finding covers too much of the lesion to see its contour."""
    area = max(int(np.count_nonzero(truth)), 1)
    for finding in study.findings:
        if finding.name in {lesion.finding, *lesion.seen_through} or finding.certainty == "absent":
            continue
        for drawn in finding.annotations:
            if drawn.image == image.key:
                other = decode_mask(image, drawn.region, f"finding {finding.id!r}")
                share = int(np.count_nonzero(other & truth)) / area
                if share > rules.overlap:
                    raise Ineligible("overlaps another finding", f"{finding.name} covers {share:.0%} of it")


def _record_masks(outline: Outline, pool: MaskPool) -> tuple[MaskChoice, ...]:
    return tuple(
        MaskChoice(
            region=Region.from_mask(outline.on_image(option.mask)),
            kind=option.kind,
            features=option.features,
            area=option.area,
            change=option.change,
            as_shown=option.as_shown,
        )
        for option in pool.masks
    )


def _find_layout(
    outline: Outline,
    truth: Mask,
    anatomy: Anatomy,
    rules: Rules,
    *,
    chance: np.random.Generator,
    deformer: Deformer,
) -> tuple[Layout, MaskPool]:
    """The first layout that has masks to choose from, and these masks; `Ineligible` where there is none."""
    failure = Ineligible("no room for edits")
    for found in find_layouts(outline, anatomy, rules, chance=chance, deformer=deformer.effort):
        if isinstance(found, Ineligible):
            failure = found
            continue
        overlap = iou(outline.on_image(found.shown), truth)
        if not rules.revise_low <= overlap <= rules.revise_high:
            detail = f"the edited contour overlaps the truth by {overlap:.3f}"
            failure = Ineligible("no room for edits", detail)
            continue
        try:
            return found, make_mask_pool(outline, found, rules)
        except Ineligible as reason:
            failure = reason
    raise failure


def _point_on_image(outline: Outline, place: Place) -> tuple[float, float]:
    """Centre of a pixel of the window, as (x, y) on the image."""
    return place[1] + outline.window[1].start + 0.5, place[0] + outline.window[0].start + 0.5


def _record_edits(outline: Outline, layout: Layout) -> tuple[ContourEdit, ...]:
    return tuple(
        ContourEdit(
            operation=site.change.operation,
            place=site.place,
            point=_point_on_image(outline, site.point),
            area=site.drawn_area,
            share=site.drawn_area / outline.area,
            thickness=site.thickness,
            displacement=site.displacement,
            contour_distance=abs(float(layout.distance[site.point])),
        )
        for site in layout.edits
    )


def _record_distractors(outline: Outline, layout: Layout) -> tuple[DistractorPoint, ...]:
    return tuple(
        DistractorPoint(
            point=_point_on_image(outline, placed.point),
            inside=placed.inside,
            nearest_change=placed.nearest_change,
            contour_distance=abs(float(layout.distance[placed.point])),
        )
        for placed in layout.distractors
    )


def _record_attributes(
    geometry: LesionGeometry, redrawn: Mask, rules: Rules, seed: int, study: str
) -> AttributeTruth:
    attributes = measure_stable_attributes(
        geometry.truth, (redrawn,), geometry.anatomy, rules, scale=geometry.scale
    )
    chance = rng(seed, study, geometry.lesion.name, "locations")
    locations = {}
    for right in range(LOCATION_OPTIONS + 1):
        chosen = choose_regions(attributes, geometry.anatomy, rules, right=right, chance=chance)
        if chosen is not None:
            locations[right] = _record_location(*chosen, geometry.anatomy)
    not_asked = dict(attributes.not_asked)
    if not locations:
        not_asked["location"] = f"no regions to choose from: {_describe_clear_regions(attributes)}"
    return AttributeTruth(
        zones=attributes.zones,
        regions=attributes.regions,
        lungs=attributes.lungs,
        sizes=attributes.sizes,
        affected=attributes.affected,
        distribution=attributes.distribution,
        severity=dict(attributes.severity),
        comparison=attributes.comparison,
        outside_share=attributes.outside_share,
        locations=locations,
        not_asked={task: not_asked[task] for task in ATTRIBUTES if task in not_asked},
    )


def _record_location(right: tuple[str, ...], wrong: tuple[str, ...], anatomy: Anatomy) -> LocationChoice:
    overlaps = tuple(
        (one, other, measure_overlap(one, other, anatomy.totals))
        for one, other in combinations((*right, *wrong), 2)
    )
    return LocationChoice(right=right, wrong=wrong, overlaps=overlaps)


def _describe_clear_regions(attributes: Attributes) -> str:
    return (
        f"{len(attributes.inside)} regions clearly hold the lesion, {len(attributes.outside)} clearly do not"
    )


__all__ = ["analyse_lesion", "frontal_image", "subject_of"]
