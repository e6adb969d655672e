"""Analyse one lesion of a study: contours, edits, points, mask options and attributes, or why it cannot be used.

A pure function of study, lesion, seed and rules.
"""

from itertools import combinations
from typing import Final

import numpy as np

from carina.cases import case_image
from carina.percept.anatomy import Anatomy, Scene, make_scene, mask_on, read_anatomy, shared
from carina.percept.attributes import LOCATION_OPTIONS, Attributes, choose_regions, stable_attributes
from carina.percept.deformers import Deformer, DeformerSource, warp_deformer
from carina.percept.edit_sites import Place
from carina.percept.layout import Layout, Wanted, lay_out
from carina.percept.lesions import LESIONS, Lesion
from carina.percept.mask_options import OptionSet, option_sets
from carina.percept.outline import Outline, draw_outline, iou
from carina.percept.records import (
    AttributeTruth,
    ContourEdit,
    DistractorPoint,
    LesionAnalysis,
    LocationChoice,
    MaskChoice,
    MaskSet,
    Outcome,
    Skipped,
    Subject,
)
from carina.percept.rules import Ineligible, Rules
from carina.percept.truth import TruthSource, masks_as_drawn
from carina.store.seeding import rng
from carina.studies.model import Image, Study
from carina.studies.region import Mask, Region

FRONTAL: Final = ("PA", "AP")
WANTED: Final[tuple[Wanted, ...]] = ("expansion", "contraction", "both")


def frontal_image(study: Study) -> Image:
    """The image that is asked about: the first frontal one."""
    for image in study.images:
        if image.view in FRONTAL:
            return image
    raise Ineligible(
        "no frontal image", f"views: {', '.join(image.view for image in study.images) or 'none'}"
    )


def subject_of(study: Study) -> Subject:
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
    _check_apart(study, image, lesion, truth, rules)
    anatomy = read_anatomy(study, image)
    scene = make_scene(lesion, truth, anatomy, rules)
    outline = draw_outline(scene, rules, rng(seed, study.id, lesion.name, "outline"))
    redrawn = outline.on_image(outline.mask)
    attributes = _attribute_truth(scene, redrawn, rules, seed, study.id) if lesion.in_lungs else None
    chance = rng(seed, study.id, lesion.name, "edits")
    deformer = deformer_of(study, image)
    layout = _any_layout(outline, anatomy, rules, chance, deformer)
    shown = outline.on_image(layout.shown)
    overlap = iou(shown, truth)
    if not rules.revise_low <= overlap <= rules.revise_high:
        raise Ineligible("no room for edits", f"the edited contour overlaps the truth by {overlap:.3f}")
    sets = option_sets(outline, layout, rules, rng(seed, study.id, lesion.name, "options"))
    return LesionAnalysis(
        subject=subject,
        target=lesion.name,
        area=scene.area,
        share=scene.area / truth.size,
        scale=scene.scale,
        truth=Region.from_mask(truth),
        provenance=found.provenance,
        reviewed=found.reviewed,
        conspicuity=found.conspicuity,
        deformer=deformer.name,
        revised=Region.from_mask(redrawn),
        agreement=iou(redrawn, truth),
        shown=Region.from_mask(shown),
        overlap=overlap,
        edits=_edits(outline, layout),
        points=_points(outline, layout),
        mask_sets=tuple(_mask_set(outline, one) for one in sets),
        attributes=attributes,
    )


def _check_apart(study: Study, image: Image, lesion: Lesion, truth: Mask, rules: Rules) -> None:
    """Refuse a lesion under another finding as dense: its contour cannot be seen."""
    area = max(int(np.count_nonzero(truth)), 1)
    for finding in study.findings:
        if finding.name in {lesion.finding, *lesion.seen_through} or finding.certainty == "absent":
            continue
        for drawn in finding.annotations:
            if drawn.image == image.key:
                other = mask_on(image, drawn.region, f"finding {finding.id!r}")
                share = int(np.count_nonzero(other & truth)) / area
                if share > rules.overlap:
                    raise Ineligible("overlaps another finding", f"{finding.name} covers {share:.0%} of it")


def _mask_set(outline: Outline, made: OptionSet) -> MaskSet:
    return MaskSet(
        options=tuple(
            MaskChoice(region=Region.from_mask(outline.on_image(option.mask)), kind=option.kind)
            for option in made.options
        ),
        stands_out=tuple(sorted(made.stands_out)),
    )


def _any_layout(
    outline: Outline, anatomy: Anatomy, rules: Rules, chance: np.random.Generator, deformer: Deformer
) -> Layout:
    """A layout with the sampled kind of edits, or with another kind where the lesion has no room for it."""
    failure = Ineligible("no room for edits")
    for kind in chance.permutation(len(WANTED)):
        try:
            return lay_out(
                outline, anatomy, rules, wanted=WANTED[int(kind)], chance=chance, deformer=deformer.reluctance
            )
        except Ineligible as reason:
            failure = reason
    raise failure


def _on_image(outline: Outline, place: Place) -> tuple[float, float]:
    """Centre of a pixel of the window, as (x, y) on the image."""
    return place[1] + outline.window[1].start + 0.5, place[0] + outline.window[0].start + 0.5


def _edits(outline: Outline, layout: Layout) -> tuple[ContourEdit, ...]:
    return tuple(
        ContourEdit(
            operation=site.change.operation,
            place=site.place,
            point=_on_image(outline, site.point),
            area=site.change.area,
            share=site.change.area / outline.area,
            thickness=site.thickness,
            displacement=site.displacement,
            contour_distance=abs(float(layout.distance[site.point])),
        )
        for site in layout.edits
    )


def _points(outline: Outline, layout: Layout) -> tuple[DistractorPoint, ...]:
    return tuple(
        DistractorPoint(
            point=_on_image(outline, placed.point),
            inside=placed.inside,
            nearest_change=placed.nearest_change,
            contour_distance=abs(float(layout.distance[placed.point])),
        )
        for placed in layout.distractors
    )


def _attribute_truth(scene: Scene, redrawn: Mask, rules: Rules, seed: int, study: str) -> AttributeTruth:
    attributes = stable_attributes(scene.truth, (redrawn,), scene.anatomy, rules, scale=scene.scale)
    chance = rng(seed, study, scene.lesion.name, "locations")
    locations = {}
    for right in range(LOCATION_OPTIONS + 1):
        chosen = choose_regions(attributes, scene.anatomy, rules, right=right, chance=chance)
        if chosen is not None:
            locations[right] = _location(*chosen, scene.anatomy)
    if not locations:
        raise Ineligible("no regions to choose from", _clear_ones(attributes))
    return AttributeTruth(
        zones=attributes.zones,
        regions=attributes.regions,
        lungs=attributes.lungs,
        sizes=attributes.sizes,
        affected=attributes.affected,
        severity=dict(attributes.severity),
        comparison=attributes.comparison,
        outside_share=attributes.outside_share,
        locations=locations,
    )


def _location(right: tuple[str, ...], wrong: tuple[str, ...], anatomy: Anatomy) -> LocationChoice:
    overlaps = tuple(
        (one, other, shared(one, other, anatomy.totals)) for one, other in combinations((*right, *wrong), 2)
    )
    return LocationChoice(right=right, wrong=wrong, overlaps=overlaps)


def _clear_ones(attributes: Attributes) -> str:
    return (
        f"{len(attributes.inside)} regions clearly hold the lesion, {len(attributes.outside)} clearly do not"
    )


__all__ = ["analyse_lesion", "frontal_image", "subject_of"]
