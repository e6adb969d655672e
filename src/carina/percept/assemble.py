"""From an analysed lesion to a case on one path: questions, views and facts; no geometry is computed here."""

import hashlib

from carina.cases import Case, CaseRegion, CaseView, Fact, Step
from carina.percept.attribute_steps import attribute_steps
from carina.percept.contour_steps import detection, evaluation, points_step, revision
from carina.percept.drawing import Drawing, raw_view
from carina.percept.lesions import LESIONS
from carina.percept.records import LesionAnalysis, Subject
from carina.percept.rules import Rules
from carina.percept.steps import Assembly, Due, Path
from carina.store.seeding import rng


def case_id(seed: int, study: str, target: str) -> str:
    """An id that depends on study, lesion and seed, and does not tell the answers."""
    digest = hashlib.sha256(f"{len(study)}:{study}/{target}/{seed}".encode()).hexdigest()
    return f"c-{digest[:16]}"


def lesion_free(subject: Subject, target: str, *, seed: int, rules: Rules, due: Due) -> Case:
    """The case of an absent lesion: one question."""
    chance = rng(seed, subject.study, target, "assembly")
    assembly = Assembly(lesion=LESIONS[target], path="LF", rules=rules, due=due, chance=chance)
    return _case(
        subject,
        assembly,
        seed=seed,
        regions=(),
        views=(raw_view(subject.image),),
        steps=(detection(assembly),),
    )


def lesion_case(
    analysis: LesionAnalysis, path: Path, *, right_regions: int, seed: int, rules: Rules, due: Due
) -> Case:
    """The case of a lesion whose shown contour needs no revision (RF) or a major one (RR).

    `right_regions` of the options of the location question hold the lesion.
    """
    chance = rng(seed, analysis.subject.study, analysis.target, "assembly")
    assembly = Assembly(lesion=LESIONS[analysis.target], path=path, rules=rules, due=due, chance=chance)
    drawing = Drawing(analysis, assembly)
    steps = [detection(assembly), evaluation(assembly)]
    if path == "RR":
        steps += [
            points_step(drawing, "expansion"),
            points_step(drawing, "contraction"),
            revision(drawing),
        ]
    if analysis.attributes is not None:
        steps += attribute_steps(analysis.attributes, assembly, right_regions)
    return _case(
        analysis.subject,
        assembly,
        seed=seed,
        regions=drawing.regions,
        views=drawing.views,
        steps=tuple(steps),
        facts=drawing.facts.rows(),
    )


def _case(
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
