"""What becomes of a patient's lesions from study to study: they appear, worsen, improve, stay or resolve.

A change is large enough to be called one, or it is none at all: so every trend has one true answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from carina.phantom.chance import between, pick
from carina.phantom.cooccurrence import MOST_FINDINGS, add_companions
from carina.phantom.placement import AIRSPACE, DECIMALS, DENSITY, EXTENT, draw_lesion, form_after, sides_left
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
SAME_HEALTH = 0.4
"""Chance that the next study is normal or abnormal as this one is; else that is drawn anew."""
INCIDENTAL = 0.33
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
    {"worse": 0.10, "improved": 0.18, "unchanged": 0.12, "resolved": 0.60},
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

CERTAIN_EXTENT = 0.5
"""Extent above which a lesion is beyond doubt; a nodule is small and a rib thin at any extent."""
OBVIOUS_EXTENT, OBVIOUS_DENSITY = 0.35, 0.8
"""Beyond both of these any lesion is beyond doubt."""
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


def fate_of(r: np.random.Generator, lesion: LesionPlan, gap_days: int, *, lasting: bool = False) -> Fate:
    """What becomes of a lesion over a gap; changes for which its extent leaves no room turn into none.

    A `lasting` one does not resolve.
    """
    if lesion.form == "calcified":
        return "unchanged"
    fates = COURSES[lesion.name][gap_days >= LONG_GAP_DAYS]
    fate = pick(r, {**fates, "resolved": 0.0} if lasting else fates)
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
    r: np.random.Generator,
    carried: Sequence[LesionPlan],
    weights: dict[str, float],
    *,
    prior: Sequence[LesionPlan] = (),
    settled: bool,
) -> list[LesionPlan]:
    """New lesions of an abnormal study, in the order of their drawing: the first finding first.

    None has the name and side of one of the `prior` lesions, those of the study before, resolved or not: it
    would not be new. `settled` says that time enough has passed unseen for a new fracture to be an old one.
    """
    old = len(carried)
    lesions = list(carried)
    if not carried:
        lesions = _with_one(r, lesions, weights, prior, settled=settled)
        lesions = add_companions(r, lesions, old, weights, prior)
    elif r.random() < INCIDENTAL:
        # A complication of what is there already: an effusion comes to a pneumonia.
        lesions = add_companions(r, lesions, 0, weights, prior)
    if r.random() < INCIDENTAL:
        lesions = _with_one(r, lesions, weights, prior, settled=settled)
    return lesions[old:]


def _with_one(
    r: np.random.Generator,
    lesions: list[LesionPlan],
    weights: dict[str, float],
    prior: Sequence[LesionPlan],
    *,
    settled: bool,
) -> list[LesionPlan]:
    left = weights_left(weights, prior)
    if any(lesion.name in AIRSPACE for lesion in lesions):
        # One more shadow of the kind is read as part of the one that is there.
        left = {name: weight for name, weight in left.items() if name not in AIRSPACE}
    if len(lesions) >= MOST_FINDINGS or not left:
        return lesions
    name = pick(r, left)
    form = "acute" if name == "fracture" and not settled else None
    drawn = draw_lesion(r, name, among=lesions, prior=prior, form=form)
    return lesions if drawn is None else [*lesions, drawn]


def weights_left(weights: dict[str, float], prior: Sequence[LesionPlan]) -> dict[str, float]:
    """Weights of findings by how much of their places is new after the `prior` lesions; none is 0."""
    left = {name: weight * sum(sides_left(name, prior).values()) for name, weight in weights.items()}
    return {name: weight for name, weight in left.items() if weight > 0.0}


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
    """Whether the report hedges: for near `hedged` of all new lesions, the more the less visible they are.

    What anyone would see is never hedged, so the small and faint are hedged the more often, but not more than
    always: with `hedged` above the share of lesions that can be in doubt, all of these are hedged.
    """
    if lesion.density > OBVIOUS_DENSITY and lesion.extent > OBVIOUS_EXTENT:
        return "present"
    extent, density = _most_in_doubt(lesion)
    if lesion.extent > extent or lesion.density > density:
        return "present"
    size, contrast = EXTENT.rank(extent), DENSITY.rank(density)
    share = hedged / (size * contrast)
    if share >= 1.0:
        return "uncertain"
    # 1 - v^k falls from 1 to 0 with visibility v; this k makes its mean over uniform v equal `share`.
    k = share / (1.0 - share)
    seen = visibility(lesion, EXTENT.rank(lesion.extent) / size, DENSITY.rank(lesion.density) / contrast)
    return "uncertain" if doubt < 1.0 - seen**k else "present"


def _most_in_doubt(lesion: LesionPlan) -> tuple[float, float]:
    """Largest extent and density of lesions of this kind that may be in doubt."""
    if lesion.name == "cardiomegaly":
        return CERTAIN_HEART, DENSITY.high
    if lesion.name == "fracture":
        return EXTENT.high, CERTAIN_FRACTURE if lesion.form == "acute" else DENSITY.high
    return EXTENT.high if lesion.name == "nodule" else CERTAIN_EXTENT, DENSITY.high


def visibility(lesion: LesionPlan, size: float, contrast: float) -> float:
    """Rank of a lesion among the new ones that may be in doubt, from its ranks there in extent and density."""
    if lesion.name == "cardiomegaly":
        return size
    # The distribution function of a sum of two uniform numbers.
    both = size + contrast
    return both**2 / 2.0 if both < 1.0 else 1.0 - (2.0 - both) ** 2 / 2.0
