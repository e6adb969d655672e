"""Make the case of an analysed lesion on one path: questions, views and facts. No geometry is computed here."""

import hashlib

from carina.cases import Case, CaseRegion, CaseView, Fact, Step
from carina.cases.facts import BY_PROGRAM
from carina.percept.attribute_steps import make_attribute_steps
from carina.percept.contour_steps import (
    make_detection_step,
    make_evaluation_step,
    make_points_step,
    make_revision_step,
)
from carina.percept.drawing import Drawing, make_raw_view
from carina.percept.facts import PerceptCaseFacts
from carina.percept.lesions import LESIONS
from carina.percept.records import LesionAnalysis, Subject
from carina.percept.rules import Rules
from carina.percept.steps import Assembly, KeyPosition, Path
from carina.store.seeding import rng


def case_id(seed: int, study: str, target: str) -> str:
    """An id that depends on study, lesion and seed, and does not reveal the answers."""
    digest = hashlib.sha256(f"{len(study)}:{study}/{target}/{seed}".encode()).hexdigest()
    return f"c-{digest[:16]}"


def make_lesion_free_case(
    subject: Subject,
    target: str,
    *,
    seed: int,
    rules: Rules,
    key_position: KeyPosition,
    is_stated_by_program: bool = False,
) -> Case:
    """The case of an absent lesion, which has one question; `is_stated_by_program` tells who says that it is absent."""
    chance = rng(seed, subject.study, target, "assembly")
    assembly = Assembly(
        lesion=LESIONS[target], path="LF", rules=rules, key_position=key_position, chance=chance
    )
    return _make_case(
        subject,
        assembly,
        seed=seed,
        regions=(),
        views=(make_raw_view(subject.image),),
        steps=(make_detection_step(assembly),),
        facts=PerceptCaseFacts(stated_by=BY_PROGRAM if is_stated_by_program else None).rows(),
    )


def make_lesion_case(
    analysis: LesionAnalysis,
    path: Path,
    *,
    right_regions: int,
    seed: int,
    rules: Rules,
    key_position: KeyPosition,
) -> Case:
    """The case of a lesion whose shown contour needs no revision (RF) or a major one (RR).

    `right_regions` is the number of right options of the location question.
    """
    chance = rng(seed, analysis.subject.study, analysis.target, "assembly")
    assembly = Assembly(
        lesion=LESIONS[analysis.target], path=path, rules=rules, key_position=key_position, chance=chance
    )
    drawing = Drawing(analysis, assembly)
    steps = [make_detection_step(assembly), make_evaluation_step(assembly)]
    if path == "RR":
        steps += [
            make_points_step(drawing, "expansion"),
            make_points_step(drawing, "contraction"),
            make_revision_step(drawing),
        ]
    if analysis.attributes is not None:
        steps += make_attribute_steps(analysis.attributes, assembly, right_regions)
    return _make_case(
        analysis.subject,
        assembly,
        seed=seed,
        regions=drawing.regions,
        views=drawing.views,
        steps=tuple(steps),
        facts=drawing.facts.rows(),
    )


def _make_case(
    subject: Subject,
    assembly: Assembly,
    *,
    seed: int,
    regions: tuple[CaseRegion, ...],
    views: tuple[CaseView, ...],
    steps: tuple[Step, ...],
    facts: tuple[Fact, ...] = (),
) -> Case:
    return Case(
        id=case_id(seed, subject.study, assembly.lesion.name),
        protocol="percept",
        study=subject.study,
        patient=subject.patient,
        source=subject.source,
        split=subject.split,
        target=assembly.lesion.name,
        path=assembly.path,
        images=(subject.image,),
        regions=regions,
        views=views,
        steps=steps,
        facts=facts,
    )
