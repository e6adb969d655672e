"""How a patient's lesions change from study to study: they appear, worsen, improve, stay unchanged or resolve.

Extents either change clearly or not at all, so every trend has one correct answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from carina.phantom.cooccurrence import MOST_FINDINGS, add_companions
from carina.phantom.placement import (
    AIRSPACE,
    DECIMALS,
    DENSITY,
    EXTENT,
    list_new_sides,
    sample_lesion,
    update_form,
)
from carina.phantom.plan import LesionPlan
from carina.phantom.sampling import sample_key, sample_uniform
from carina.studies.vocabulary import Certainty

CHANGE = 0.20
"""Least change of extent that counts as worse or improved; smaller changes do not occur."""
MARGIN = 0.005
"""Distance kept from `CHANGE`, so that rounding cannot put a change on the wrong side of it."""
LONG_GAP_DAYS = 14
"""Days from which the second outcome weights of `COURSES` apply."""
HEALING_DAYS = 21
"""After this time a fracture shows callus."""
SAME_HEALTH = 0.4
"""Probability that the next study is normal or abnormal like this one; otherwise that is sampled again."""
INCIDENTAL = 0.33
"""Probability of an unrelated further finding, and of a complication of an existing one."""

CHRONIC: Final = frozenset(("cardiomegaly", "fracture", "mass", "nodule"))
"""Findings that do not resolve."""
MOST_CHRONIC = 0.95
"""Largest share of chronic first findings where no normal study follows, so that acute ones stay possible."""

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

Outcome = Literal["worse", "improved", "unchanged", "resolved"]
OutcomeWeights = dict[Outcome, float]

_FLUID: Final[tuple[OutcomeWeights, OutcomeWeights]] = (
    {"worse": 0.22, "improved": 0.28, "unchanged": 0.30, "resolved": 0.20},
    {"worse": 0.12, "improved": 0.18, "unchanged": 0.15, "resolved": 0.55},
)
_AIRSPACE: Final[tuple[OutcomeWeights, OutcomeWeights]] = (
    {"worse": 0.30, "improved": 0.30, "unchanged": 0.40},
    {"worse": 0.10, "improved": 0.18, "unchanged": 0.12, "resolved": 0.60},
)
_GROWTH: Final[tuple[OutcomeWeights, OutcomeWeights]] = (
    {"unchanged": 1.0},
    {"worse": 0.36, "improved": 0.08, "unchanged": 0.56},
)
_HEART: Final[tuple[OutcomeWeights, OutcomeWeights]] = (
    {"worse": 0.04, "improved": 0.04, "unchanged": 0.92},
    {"worse": 0.18, "improved": 0.12, "unchanged": 0.70},
)
_STATIC: Final[tuple[OutcomeWeights, OutcomeWeights]] = ({"unchanged": 1.0}, {"unchanged": 1.0})

COURSES: Final[dict[str, tuple[OutcomeWeights, OutcomeWeights]]] = {
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
"""Weights of the outcomes of each finding after a gap of days, and after a gap of weeks or more."""

CERTAIN_EXTENT = 0.5
"""Extent above which a lesion is never uncertain; nodules and fractures may be at any extent."""
OBVIOUS_EXTENT, OBVIOUS_DENSITY = 0.35, 0.8
"""A lesion above both of these is never uncertain."""
CERTAIN_HEART = 0.35
"""Extent above which cardiomegaly is never uncertain."""
CERTAIN_FRACTURE = 0.6
"""Density above which an acute fracture is never uncertain."""


@dataclass(frozen=True, kw_only=True)
class TrackedLesion:
    """A lesion in one study, with values that stay with it in later studies."""

    lesion: LesionPlan
    first_order: int
    """Order of the study in which it was first seen."""
    doubt: float
    """Uniform over [0, 1) and constant: decides whether a lesion of some visibility is uncertain."""


def sample_outcome(
    r: np.random.Generator, lesion: LesionPlan, gap_days: int, *, allow_resolved: bool = True
) -> Outcome:
    """Sample the outcome of a lesion after a gap; a change that its extent does not permit becomes "unchanged".

    Without `allow_resolved` the lesion does not resolve.
    """
    if lesion.form == "calcified":
        return "unchanged"
    outcomes = COURSES[lesion.name][gap_days >= LONG_GAP_DAYS]
    outcome = sample_key(r, outcomes if allow_resolved else {**outcomes, "resolved": 0.0})
    if outcome == "worse" and lesion.extent + CHANGE + MARGIN > EXTENT.high:
        return "unchanged"
    if outcome == "improved" and lesion.extent - CHANGE - MARGIN < EXTENT.low:
        return "unchanged"
    return outcome


def apply_outcome(r: np.random.Generator, lesion: LesionPlan, outcome: Outcome, gap_days: int) -> LesionPlan:
    """The lesion at the next study, given an outcome other than "resolved"."""
    if outcome == "resolved":
        raise ValueError(f"{lesion.key}: a resolved lesion is not part of the next study")
    if outcome == "unchanged":
        healing = lesion.form == "acute" and gap_days >= HEALING_DAYS
        return replace(lesion, form="healing" if healing else lesion.form, trend="unchanged")
    if outcome == "worse":
        extent = sample_uniform(r, lesion.extent + CHANGE + MARGIN, EXTENT.high)
        density = sample_uniform(r, lesion.density, DENSITY.high)
    else:
        extent = sample_uniform(r, EXTENT.low, lesion.extent - CHANGE - MARGIN)
        density = sample_uniform(r, DENSITY.low, lesion.density)
    # Density changes less than extent.
    density = (lesion.density + density) / 2.0
    extent = round(extent, DECIMALS)
    return replace(
        lesion,
        extent=extent,
        density=round(density, DECIMALS),
        form=update_form(lesion, extent),
        trend=outcome,
    )


def sample_new_lesions(
    r: np.random.Generator,
    carried: Sequence[LesionPlan],
    weights: dict[str, float],
    *,
    prior: Sequence[LesionPlan] = (),
    allow_old_fracture: bool,
) -> list[LesionPlan]:
    """Sample the new lesions of an abnormal study, the first finding first.

    None has the name and side of a lesion of the `prior` study, resolved or not, because it would not be new.
    `allow_old_fracture` says whether a fracture may have healed since the prior study.
    """
    old = len(carried)
    lesions = list(carried)
    if not carried:
        lesions = _add_finding(r, lesions, weights, prior, allow_old_fracture=allow_old_fracture)
        lesions = add_companions(r, lesions, old, weights, prior)
    elif r.random() < INCIDENTAL:
        # A complication of an existing lesion, as an effusion with a pneumonia.
        lesions = add_companions(r, lesions, 0, weights, prior)
    if r.random() < INCIDENTAL:
        lesions = _add_finding(r, lesions, weights, prior, allow_old_fracture=allow_old_fracture)
    return lesions[old:]


def _add_finding(
    r: np.random.Generator,
    lesions: list[LesionPlan],
    weights: dict[str, float],
    prior: Sequence[LesionPlan],
    *,
    allow_old_fracture: bool,
) -> list[LesionPlan]:
    remaining = weigh_new_findings(weights, prior)
    if any(lesion.name in AIRSPACE for lesion in lesions):
        # A second airspace lesion would be read as part of the first.
        remaining = {name: weight for name, weight in remaining.items() if name not in AIRSPACE}
    if len(lesions) >= MOST_FINDINGS or not remaining:
        return lesions
    name = sample_key(r, remaining)
    form = "acute" if name == "fracture" and not allow_old_fracture else None
    lesion = sample_lesion(r, name, others=lesions, prior=prior, form=form)
    return lesions if lesion is None else [*lesions, lesion]


def weigh_new_findings(weights: dict[str, float], prior: Sequence[LesionPlan]) -> dict[str, float]:
    """Weights of findings times the share of sides on which they would be new; without those of weight 0."""
    remaining = {name: weight * sum(list_new_sides(name, prior).values()) for name, weight in weights.items()}
    return {name: weight for name, weight in remaining.items() if weight > 0.0}


def weigh_first_findings(
    weights: dict[str, float], *, has_normal_follow_up: bool, all_abnormal_probability: float
) -> dict[str, float]:
    """Weights of a first finding, given whether this or a later study of the patient is normal.

    No chronic finding appears before a normal study. To keep the weights over all patients, chronic findings weigh
    more where no normal study follows, which has the probability `all_abnormal_probability`.
    """
    positive = {name: weight for name, weight in weights.items() if weight > 0.0}
    acute = {name: weight for name, weight in positive.items() if name not in CHRONIC}
    # If all findings are chronic they have to resolve (a nodule is resected), or no study could be normal.
    if not acute or len(acute) == len(positive):
        return positive
    if has_normal_follow_up:
        return acute
    share = 1.0 - sum(acute.values()) / sum(positive.values())
    boosted = max(share, min(share / all_abnormal_probability, MOST_CHRONIC))
    chronic_scale, acute_scale = boosted / share, (1.0 - boosted) / (1.0 - share)
    return {
        name: weight * (chronic_scale if name in CHRONIC else acute_scale)
        for name, weight in positive.items()
    }


def compute_all_abnormal_probability(normal: float, remaining: int) -> float:
    """Probability that none of the `remaining` studies after an abnormal one is normal."""
    stay = SAME_HEALTH + (1.0 - SAME_HEALTH) * (1.0 - normal)
    return float(stay**remaining)


def decide_certainty(lesion: LesionPlan, doubt: float, uncertain_share: float) -> Certainty:
    """Decide whether a lesion is uncertain: about `uncertain_share` of new lesions are, mainly the less visible ones.

    Obvious lesions are never uncertain, so small and faint ones are more often. If `uncertain_share` exceeds the share
    of lesions that may be uncertain, all of those are.
    """
    if lesion.density > OBVIOUS_DENSITY and lesion.extent > OBVIOUS_EXTENT:
        return "present"
    extent, density = _find_doubt_limits(lesion)
    if lesion.extent > extent or lesion.density > density:
        return "present"
    size, contrast = EXTENT.rank(extent), DENSITY.rank(density)
    share = uncertain_share / (size * contrast)
    if share >= 1.0:
        return "uncertain"
    # 1 - v^k falls from 1 to 0 with visibility v; this k makes its mean over uniform v equal `share`.
    k = share / (1.0 - share)
    rank = rank_visibility(lesion, EXTENT.rank(lesion.extent) / size, DENSITY.rank(lesion.density) / contrast)
    return "uncertain" if doubt < 1.0 - rank**k else "present"


def _find_doubt_limits(lesion: LesionPlan) -> tuple[float, float]:
    """Largest extent and density at which a lesion of this kind may be uncertain."""
    if lesion.name == "cardiomegaly":
        return CERTAIN_HEART, DENSITY.high
    if lesion.name == "fracture":
        return EXTENT.high, CERTAIN_FRACTURE if lesion.form == "acute" else DENSITY.high
    return EXTENT.high if lesion.name == "nodule" else CERTAIN_EXTENT, DENSITY.high


def rank_visibility(lesion: LesionPlan, size: float, contrast: float) -> float:
    """Rank a lesion among those that may be uncertain, given its ranks in extent and density among them."""
    if lesion.name == "cardiomegaly":
        return size
    # The distribution function of the sum of two uniform numbers.
    both = size + contrast
    return both**2 / 2.0 if both < 1.0 else 1.0 - (2.0 - both) ** 2 / 2.0
