"""Which findings come together, and how one explains another.

The chances are clinical judgement, not measurements: they make a set in which edema mostly shows with a
large heart and effusions, and a collapsed base mostly under fluid.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from carina.phantom.placement import draw_lesion, sides_meet
from carina.phantom.plan import LesionPlan, RelationPlan
from carina.studies.vocabulary import RelationKind

MOST_FINDINGS = 3
"""Findings in one study."""


@dataclass(frozen=True, kw_only=True)
class Companion:
    """A finding that may come with another."""

    name: str
    chance: float
    same_side: bool = True
    form: str | None = None
    """The only form that makes sense beside the other; None for any."""


COMPANIONS: Final[dict[str, tuple[Companion, ...]]] = {
    "atelectasis": (Companion(name="pleural effusion", chance=0.22),),
    "cardiomegaly": (
        Companion(name="edema", chance=0.35),
        Companion(name="pleural effusion", chance=0.12),
        Companion(name="atelectasis", chance=0.12),
    ),
    "consolidation": (
        Companion(name="pleural effusion", chance=0.26),
        Companion(name="pneumonia", chance=0.12, same_side=False),
    ),
    "edema": (
        Companion(name="cardiomegaly", chance=0.60),
        Companion(name="pleural effusion", chance=0.45),
        Companion(name="atelectasis", chance=0.12),
    ),
    "fracture": (
        Companion(name="pneumothorax", chance=0.30),
        Companion(name="pleural effusion", chance=0.15),
    ),
    "lung opacity": (
        Companion(name="pneumonia", chance=0.10, same_side=False),
        Companion(name="nodule", chance=0.04, same_side=False),
    ),
    "mass": (
        Companion(name="atelectasis", chance=0.15, form="wedge"),
        Companion(name="pleural effusion", chance=0.15),
        Companion(name="nodule", chance=0.15, same_side=False),
    ),
    "nodule": (Companion(name="nodule", chance=0.10, same_side=False),),
    "pleural effusion": (
        Companion(name="atelectasis", chance=0.42),
        Companion(name="cardiomegaly", chance=0.10),
    ),
    "pneumonia": (
        Companion(name="pleural effusion", chance=0.30),
        Companion(name="consolidation", chance=0.12, same_side=False),
        Companion(name="lung opacity", chance=0.10, same_side=False),
    ),
    "pneumothorax": (
        Companion(name="fracture", chance=0.12, form="acute"),
        Companion(name="pleural effusion", chance=0.03),
        Companion(name="atelectasis", chance=0.08, form="plate"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Link:
    """What a report may say about two findings of one study."""

    kind: RelationKind
    same_side: bool = True


LINKS: Final[dict[tuple[str, str], Link]] = {
    ("cardiomegaly", "edema"): Link(kind="accompanies"),
    ("consolidation", "pneumonia"): Link(kind="suggests", same_side=False),
    ("fracture", "pleural effusion"): Link(kind="causes"),
    ("fracture", "pneumothorax"): Link(kind="causes"),
    ("lung opacity", "pneumonia"): Link(kind="suggests", same_side=False),
    ("mass", "atelectasis"): Link(kind="causes"),
    ("nodule", "mass"): Link(kind="accompanies", same_side=False),
    ("pleural effusion", "atelectasis"): Link(kind="causes"),
    ("pleural effusion", "consolidation"): Link(kind="accompanies"),
    ("pleural effusion", "edema"): Link(kind="accompanies"),
    ("pleural effusion", "mass"): Link(kind="accompanies"),
    ("pleural effusion", "pneumothorax"): Link(kind="accompanies"),
    ("pneumonia", "pleural effusion"): Link(kind="causes"),
}


def add_companions(
    r: np.random.Generator,
    lesions: Sequence[LesionPlan],
    start: int,
    allowed: Iterable[str],
    prior: Sequence[LesionPlan] = (),
) -> list[LesionPlan]:
    """The lesions with what comes with those from `start` on, companions of companions included.

    None comes that the study before, with the lesions `prior`, had on the same side.
    """
    grown = list(lesions)
    names = frozenset(allowed)
    at = start
    while at < len(grown):
        for companion in COMPANIONS[grown[at].name]:
            if len(grown) < MOST_FINDINGS and companion.name in names:
                grown.extend(_companion(r, companion, grown[at], grown, prior))
        at += 1
    return grown


def _companion(
    r: np.random.Generator,
    companion: Companion,
    lesion: LesionPlan,
    among: Sequence[LesionPlan],
    prior: Sequence[LesionPlan],
) -> list[LesionPlan]:
    # An old fracture no longer brings anything.
    if r.random() >= companion.chance or lesion.form == "healing":
        return []
    beside = lesion if companion.same_side else None
    drawn = draw_lesion(r, companion.name, among=among, prior=prior, beside=beside, form=companion.form)
    return [] if drawn is None else [drawn]


def relate(lesions: Sequence[LesionPlan], since: dict[str, int]) -> tuple[RelationPlan, ...]:
    """The relations between the lesions of one study; `since` has the order of each key's first study."""
    relations: list[RelationPlan] = []
    explained: set[str] = set()
    for subject in lesions:
        for target in lesions:
            link = LINKS.get((subject.name, target.name))
            if link is None or not _holds(link, subject, target, since):
                continue
            if link.kind == "causes":
                # One cause is enough: a report that gives two for one finding gives none.
                if target.key in explained:
                    continue
                explained.add(target.key)
            relations.append(RelationPlan(subject=subject.key, kind=link.kind, object=target.key))
    return tuple(relations)


def _holds(link: Link, subject: LesionPlan, target: LesionPlan, since: dict[str, int]) -> bool:
    if link.same_side and not sides_meet(subject.side, target.side):
        return False
    if link.kind != "causes":
        return True
    return subject.form != "healing" and since[subject.key] <= since[target.key]
