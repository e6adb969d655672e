"""Which findings occur together, and how they are related.

The probabilities are clinical judgement, not measurements: in the resulting sets, edema mostly occurs with a
large heart and effusions, and basal atelectasis mostly with an effusion.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from carina.phantom.placement import is_side_shared, sample_lesion
from carina.phantom.plan import LesionPlan, RelationPlan
from carina.studies.vocabulary import RelationKind

MOST_FINDINGS = 3
"""Largest number of findings in one study."""


@dataclass(frozen=True, kw_only=True)
class Companion:
    """A finding that may occur together with another."""

    name: str
    probability: float
    same_side: bool = True
    form: str | None = None
    """The only plausible form together with the other finding; None for any."""


COMPANIONS: Final[dict[str, tuple[Companion, ...]]] = {
    "atelectasis": (Companion(name="pleural effusion", probability=0.22),),
    "cardiomegaly": (
        Companion(name="edema", probability=0.35),
        Companion(name="pleural effusion", probability=0.12),
        Companion(name="atelectasis", probability=0.12),
    ),
    "consolidation": (
        Companion(name="pleural effusion", probability=0.26),
        Companion(name="pneumonia", probability=0.12, same_side=False),
    ),
    "edema": (
        Companion(name="cardiomegaly", probability=0.60),
        Companion(name="pleural effusion", probability=0.45),
        Companion(name="atelectasis", probability=0.12),
    ),
    "fracture": (
        Companion(name="pneumothorax", probability=0.30),
        Companion(name="pleural effusion", probability=0.15),
    ),
    "lung opacity": (
        Companion(name="pneumonia", probability=0.10, same_side=False),
        Companion(name="nodule", probability=0.04, same_side=False),
    ),
    "mass": (
        Companion(name="atelectasis", probability=0.15, form="wedge"),
        Companion(name="pleural effusion", probability=0.15),
        Companion(name="nodule", probability=0.15, same_side=False),
    ),
    "nodule": (Companion(name="nodule", probability=0.10, same_side=False),),
    "pleural effusion": (
        Companion(name="atelectasis", probability=0.42),
        Companion(name="cardiomegaly", probability=0.10),
    ),
    "pneumonia": (
        Companion(name="pleural effusion", probability=0.30),
        Companion(name="consolidation", probability=0.12, same_side=False),
        Companion(name="lung opacity", probability=0.10, same_side=False),
    ),
    "pneumothorax": (
        Companion(name="fracture", probability=0.12, form="acute"),
        Companion(name="pleural effusion", probability=0.03),
        Companion(name="atelectasis", probability=0.08, form="plate"),
    ),
}


@dataclass(frozen=True, kw_only=True)
class Link:
    """A relation between two findings of one study."""

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
    """Add companions to the lesions from index `start` on, including companions of companions.

    No companion is added that the prior study, with the lesions `prior`, had on the same side.
    """
    extended = list(lesions)
    names = frozenset(allowed)
    at = start
    while at < len(extended):
        for companion in COMPANIONS[extended[at].name]:
            if len(extended) < MOST_FINDINGS and companion.name in names:
                extended.extend(_sample_companion(r, companion, extended[at], extended, prior))
        at += 1
    return extended


def _sample_companion(
    r: np.random.Generator,
    companion: Companion,
    lesion: LesionPlan,
    others: Sequence[LesionPlan],
    prior: Sequence[LesionPlan],
) -> list[LesionPlan]:
    # A healing fracture has no companions.
    if r.random() >= companion.probability or lesion.form == "healing":
        return []
    companion_of = lesion if companion.same_side else None
    sampled = sample_lesion(
        r, companion.name, others=others, prior=prior, companion_of=companion_of, form=companion.form
    )
    return [] if sampled is None else [sampled]


def relate_lesions(lesions: Sequence[LesionPlan], first_orders: dict[str, int]) -> tuple[RelationPlan, ...]:
    """The relations between the lesions of one study; `first_orders` has the order of each key's first study."""
    relations: list[RelationPlan] = []
    explained: set[str] = set()
    for subject in lesions:
        for target in lesions:
            link = LINKS.get((subject.name, target.name))
            if link is None or not _is_link_valid(link, subject, target, first_orders):
                continue
            if link.kind == "causes":
                # One cause per finding: a report that gives two causes explains nothing.
                if target.key in explained:
                    continue
                explained.add(target.key)
            relations.append(RelationPlan(subject=subject.key, kind=link.kind, object=target.key))
    return tuple(relations)


def _is_link_valid(link: Link, subject: LesionPlan, target: LesionPlan, first_orders: dict[str, int]) -> bool:
    if link.same_side and not is_side_shared(subject.side, target.side):
        return False
    if link.kind != "causes":
        return True
    return subject.form != "healing" and first_orders[subject.key] <= first_orders[target.key]
