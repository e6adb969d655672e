"""What becomes of a patient's lesions from study to study: they appear, worsen, improve, stay or resolve.

A change is large enough to be called one, or it is none at all: so every trend has one true answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from carina.phantom.chance import between, pick
from carina.phantom.cooccurrence import MOST_FINDINGS, add_companions
from carina.phantom.placement import DECIMALS, DENSITY, EXTENT, draw_lesion, form_after
from carina.phantom.plan import LesionPlan
from carina.studies.vocabulary import Certainty

CHANGE = 0.20
"""Least change of extent that is called worse or improved; smaller ones are never made."""
MARGIN = 0.005
"""Kept from `CHANGE`, so that floating point cannot put a change on the wrong side of it."""
LONG_GAP_DAYS = 14
"""From here on a course is told in weeks, not days."""
HEALING_DAYS = 21
"""After this time a fracture shows callus."""
SAME_HEALTH = 0.5
"""Chance that the next study is normal or abnormal as this one is; else that is drawn anew."""
INCIDENTAL = 0.12
"""Chance of an unrelated finding beside the others, and of a complication in the course of an illness."""

CHRONIC: Final = frozenset(("cardiomegaly", "fracture", "mass", "nodule"))
"""Findings that do not go away."""
MOST_CHRONIC = 0.95
"""Bound on the share of chronic first findings where no normal study follows: acute ones stay possible."""

RECOVERY_DAYS: Final[dict[str, int]] = {
    "atelectasis": 2,
    "cardiomegaly": 120,
    "consolidation": 18,
    "edema": 2,
    "fracture": 400,
    "lung opacity": 14,
    "mass": 120,
    "nodule": 120,
    "pleural effusion": 4,
    "pneumonia": 18,
    "pneumothorax": 3,
}
"""Least time between a study with the finding and one without it."""

Fate = Literal["worse", "improved", "unchanged", "resolved"]
Fates = dict[Fate, float]

_FLUID: Final[tuple[Fates, Fates]] = (
    {"worse": 0.22, "improved": 0.28, "unchanged": 0.30, "resolved": 0.20},
    {"worse": 0.12, "improved": 0.18, "unchanged": 0.15, "resolved": 0.55},
)
_AIRSPACE: Final[tuple[Fates, Fates]] = (
    {"worse": 0.30, "improved": 0.30, "unchanged": 0.40},
    {"worse": 0.12, "improved": 0.22, "unchanged": 0.16, "resolved": 0.50},
)
_GROWTH: Final[tuple[Fates, Fates]] = (
    {"unchanged": 1.0},
    {"worse": 0.36, "improved": 0.08, "unchanged": 0.56},
)
_HEART: Final[tuple[Fates, Fates]] = (
    {"worse": 0.04, "improved": 0.04, "unchanged": 0.92},
    {"worse": 0.18, "improved": 0.12, "unchanged": 0.70},
)
_STATIC: Final[tuple[Fates, Fates]] = ({"unchanged": 1.0}, {"unchanged": 1.0})

COURSES: Final[dict[str, tuple[Fates, Fates]]] = {
    "atelectasis": _FLUID,
    "cardiomegaly": _HEART,
    "consolidation": _AIRSPACE,
    "edema": _FLUID,
    "fracture": _STATIC,
    "lung opacity": _AIRSPACE,
    "mass": _GROWTH,
    "nodule": _GROWTH,
    "pleural effusion": _FLUID,
    "pneumonia": _AIRSPACE,
    "pneumothorax": _FLUID,
}
"""Weights of what becomes of each finding over a gap of days, and over one of weeks and more."""

CERTAIN_HEART = 0.35
"""Extent above which a large heart is beyond doubt."""
CERTAIN_FRACTURE = 0.6
"""Density above which a fresh fracture is beyond doubt."""


@dataclass(frozen=True, kw_only=True)
class Tracked:
    """A lesion as it is in one study, with what must be remembered about it."""

    lesion: LesionPlan
    since: int
    """Order of the study in which it was first seen."""
    doubt: float
    """Uniform over [0, 1), for life: the lesion is hedged while it is less visible than this asks for."""


def fate_of(r: np.random.Generator, lesion: LesionPlan, gap_days: int) -> Fate:
    """What becomes of a lesion over a gap; changes for which its extent leaves no room turn into none."""
    if lesion.form == "calcified":
        return "unchanged"
    fate = pick(r, COURSES[lesion.name][gap_days >= LONG_GAP_DAYS])
    if fate == "worse" and lesion.extent + CHANGE + MARGIN > EXTENT.high:
        return "unchanged"
    if fate == "improved" and lesion.extent - CHANGE - MARGIN < EXTENT.low:
        return "unchanged"
    return fate


def evolve(r: np.random.Generator, lesion: LesionPlan, fate: Fate, gap_days: int) -> LesionPlan:
    """The lesion after a gap that it outlasted."""
    if fate == "resolved":
        raise ValueError(f"{lesion.key} has resolved and is not in the study")
    if fate == "unchanged":
        healing = lesion.form == "acute" and gap_days >= HEALING_DAYS
        return replace(lesion, form="healing" if healing else lesion.form, trend="unchanged")
    if fate == "worse":
        extent = between(r, lesion.extent + CHANGE + MARGIN, EXTENT.high)
        density = between(r, lesion.density, DENSITY.high)
    else:
        extent = between(r, EXTENT.low, lesion.extent - CHANGE - MARGIN)
        density = between(r, DENSITY.low, lesion.density)
    # Density follows the change part of the way only.
    density = (lesion.density + density) / 2.0
    extent = round(extent, DECIMALS)
    return replace(
        lesion,
        extent=extent,
        density=round(density, DECIMALS),
        form=form_after(lesion, extent),
        trend=fate,
    )


def appear(
    r: np.random.Generator, carried: Sequence[LesionPlan], weights: dict[str, float], *, settled: bool
) -> list[LesionPlan]:
    """New lesions of an abnormal study, in the order of their drawing: the first finding first.

    `settled` says that time enough has passed unseen for a new fracture to be an old one.
    """
    old = len(carried)
    lesions = list(carried)
    if not carried:
        lesions = add_companions(r, _with_one(r, lesions, weights, settled=settled), old, weights)
    elif r.random() < INCIDENTAL:
        # A complication of what is there already: an effusion comes to a pneumonia.
        lesions = add_companions(r, lesions, 0, weights)
    if r.random() < INCIDENTAL:
        lesions = _with_one(r, lesions, weights, settled=settled)
    return lesions[old:]


def _with_one(
    r: np.random.Generator, lesions: list[LesionPlan], weights: dict[str, float], *, settled: bool
) -> list[LesionPlan]:
    if len(lesions) >= MOST_FINDINGS:
        return lesions
    name = pick(r, weights)
    drawn = draw_lesion(r, name, among=lesions, form="acute" if name == "fracture" and not settled else None)
    return lesions if drawn is None else [*lesions, drawn]


def first_weights(weights: dict[str, float], *, closing: bool, open_chance: float) -> dict[str, float]:
    """Weights of a first finding, given whether a later study of the patient is normal.

    Before a normal study nothing chronic may appear. So that the weights hold over all patients all the same,
    chronic findings weigh more by `open_chance`, the chance of no normal study to come, where none comes.
    """
    positive = {name: weight for name, weight in weights.items() if weight > 0.0}
    acute = {name: weight for name, weight in positive.items() if name not in CHRONIC}
    # With chronic findings alone they have to resolve (a nodule is resected), or no study could be normal.
    if not acute or len(acute) == len(positive):
        return positive
    if closing:
        return acute
    share = 1.0 - sum(acute.values()) / sum(positive.values())
    boosted = max(share, min(share / open_chance, MOST_CHRONIC))
    chronic_scale, acute_scale = boosted / share, (1.0 - boosted) / (1.0 - share)
    return {
        name: weight * (chronic_scale if name in CHRONIC else acute_scale)
        for name, weight in positive.items()
    }


def open_chance(normal: float, remaining: int) -> float:
    """Chance that none of the `remaining` studies after an abnormal one is normal."""
    stay = SAME_HEALTH + (1.0 - SAME_HEALTH) * (1.0 - normal)
    return float(stay**remaining)


def certainty_of(lesion: LesionPlan, doubt: float, hedged: float) -> Certainty:
    """Whether the report hedges: for `hedged` of all new lesions, the more the less visible they are."""
    if lesion.name == "cardiomegaly" and lesion.extent > CERTAIN_HEART:
        return "present"
    if lesion.form == "acute" and lesion.density > CERTAIN_FRACTURE:
        return "present"
    if hedged >= 1.0:
        return "uncertain"
    # 1 - v^k falls from 1 to 0 with visibility v; this k makes its mean over uniform v equal `hedged`.
    k = hedged / (1.0 - hedged)
    return "uncertain" if doubt < 1.0 - visibility(lesion) ** k else "present"


def visibility(lesion: LesionPlan) -> float:
    """Rank of a lesion among all new ones by extent and density, uniform over [0, 1]."""
    size = EXTENT.rank(lesion.extent)
    if lesion.name == "cardiomegaly":
        return size
    # The distribution function of a sum of two uniform numbers.
    both = size + DENSITY.rank(lesion.density)
    return both**2 / 2.0 if both < 1.0 else 1.0 - (2.0 - both) ** 2 / 2.0
