"""Side, level, form, extent and density of a lesion in the first study that has it.

Which findings occur together is in `cooccurrence`, how they change from study to study in `evolution`.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from carina.phantom.plan import LesionPlan, Level
from carina.phantom.sampling import Kumaraswamy, sample_key
from carina.studies.vocabulary import Side

FORM_WEIGHTS: Final[dict[str, dict[str, float]]] = {
    "atelectasis": {"plate": 0.1, "wedge": 0.9},
    "cardiomegaly": {"global": 0.6, "left ventricular": 0.4},
    "consolidation": {"lobar": 0.5, "patchy": 0.5},
    "edema": {"interstitial": 1.0, "alveolar": 1.0},
    "fracture": {"acute": 0.65, "healing": 0.35},
    "lung opacity": {"ground-glass": 1.0},
    "mass": {"solid": 0.55, "lobulated": 0.45},
    "nodule": {"solid": 0.75, "calcified": 0.25},
    "pleural effusion": {"free": 1.0},
    "pneumonia": {"lobar": 0.45, "patchy": 0.55},
    "pneumothorax": {"simple": 0.6, "tension": 0.4},
}
"""Weights of the forms. Those of edema and pneumothorax also depend on extent, see `_sample_form`."""

LARGE = 0.5
"""Extent from which edema fills the alveoli, and a pneumothorax may be under tension."""

EXTENT: Final = Kumaraswamy(low=0.05, high=1.0, a=1.2, b=2.2)
"""Mean about 0.37: many mild lesions, few severe ones."""
DENSITY: Final = Kumaraswamy(low=0.3, high=1.0, a=1.4, b=1.3)
"""Mean about 0.68: from subtle to obvious."""
DECIMALS = 3

ONE_SIDED: Final[dict[Side, float]] = {"right": 0.53, "left": 0.47}
SIDE_WEIGHTS: Final[dict[str, dict[Side, float]]] = {
    "cardiomegaly": {"midline": 1.0},
    "atelectasis": {"right": 0.40, "left": 0.44, "bilateral": 0.16},
    "consolidation": {"right": 0.35, "left": 0.32, "bilateral": 0.33},
    "edema": {"bilateral": 1.0},
    "lung opacity": {"right": 0.27, "left": 0.25, "bilateral": 0.48},
    "pleural effusion": {"right": 0.30, "left": 0.25, "bilateral": 0.45},
    "pneumonia": {"right": 0.31, "left": 0.28, "bilateral": 0.41},
}

LEVEL_WEIGHTS: Final[dict[str, dict[Level, float]]] = {
    "atelectasis": {"lower": 0.75, "mid": 0.25},
    "consolidation": {"lower": 0.5, "mid": 0.28, "upper": 0.22},
    "fracture": {"lower": 0.42, "mid": 0.40, "upper": 0.18},
    "lung opacity": {"lower": 0.42, "mid": 0.33, "upper": 0.25},
    "mass": {"upper": 0.45, "mid": 0.30, "lower": 0.25},
    "nodule": {"upper": 0.42, "mid": 0.30, "lower": 0.28},
    "pleural effusion": {"lower": 1.0},
    "pneumonia": {"lower": 0.5, "mid": 0.30, "upper": 0.20},
}
"""Findings without an entry have no level."""

IN_LUNG: Final = frozenset(("atelectasis", "consolidation", "lung opacity", "mass", "nodule", "pneumonia"))
"""Findings that fill a part of the lung: no two of them share a side and level, so that masks do not coincide, and
none shares a side with `AIRSPACE` disease."""

AIRSPACE: Final = frozenset(("consolidation", "lung opacity", "pneumonia"))
"""Findings that look alike and may spread over a lung so that nothing else in it could be recognised."""

ATTEMPTS = 6
"""Samples of a location after which a lesion that conflicts with others is given up."""


def sample_lesion(
    r: np.random.Generator,
    name: str,
    *,
    others: Sequence[LesionPlan],
    prior: Sequence[LesionPlan] = (),
    companion_of: LesionPlan | None = None,
    form: str | None = None,
) -> LesionPlan | None:
    """Sample a new lesion, without key or trend; None if every sampled location conflicts with the `others`.

    `prior` are the lesions of the prior study; `companion_of` is the lesion whose side it takes, if any.
    """
    sides = _list_sides(name, prior, companion_of)
    if not sides:
        return None
    extent = round(EXTENT.quantile(r.random()), DECIMALS)
    density = round(DENSITY.quantile(r.random()), DECIMALS)
    for _ in range(ATTEMPTS):
        side = sample_key(r, sides)
        shape = form or _sample_form(r, name, extent)
        lesion = LesionPlan(
            key="",
            name=name,
            side=side,
            level=_sample_level(r, name, shape),
            form=shape,
            extent=extent,
            density=density,
        )
        if not any(is_conflicting(lesion, other) for other in others):
            return lesion
    return None


def list_new_sides(name: str, prior: Sequence[LesionPlan]) -> dict[Side, float]:
    """The sides, with their shares, on which a lesion would be new: the prior study has no such finding there.

    The level does not count: a report compares by name and side.
    """
    prior_sides = [lesion.side for lesion in prior if lesion.name == name]
    return {
        side: share
        for side, share in SIDE_WEIGHTS.get(name, ONE_SIDED).items()
        if not any(is_side_shared(side, other) for other in prior_sides)
    }


def is_side_shared(one: Side, other: Side) -> bool:
    """Whether two lesions affect the same half of the chest."""
    return one == other or not {"bilateral", "midline"}.isdisjoint((one, other))


def is_conflicting(one: LesionPlan, other: LesionPlan) -> bool:
    """Whether two lesions cannot be in one study: same finding, same place, or physically impossible."""
    if not is_side_shared(one.side, other.side):
        return False
    if one.name == other.name:
        return True
    if one.name in IN_LUNG and other.name in IN_LUNG:
        return one.level == other.level or not AIRSPACE.isdisjoint((one.name, other.name))
    # In a lung that is collapsed by a pneumothorax, no separate lobar collapse is visible.
    return {one.name, other.name} == {"pneumothorax", "atelectasis"} and "wedge" in (one.form, other.form)


def update_form(lesion: LesionPlan, extent: float) -> str:
    """The form of a lesion after its extent has changed."""
    if lesion.name == "edema":
        return "alveolar" if extent >= LARGE else "interstitial"
    if lesion.form == "tension" and extent < LARGE:
        return "simple"
    return lesion.form


def _list_sides(name: str, prior: Sequence[LesionPlan], companion_of: LesionPlan | None) -> dict[Side, float]:
    left = list_new_sides(name, prior)
    if companion_of is None or companion_of.side not in SIDE_WEIGHTS.get(name, ONE_SIDED):
        return left
    return {companion_of.side: 1.0} if companion_of.side in left else {}


def _sample_form(r: np.random.Generator, name: str, extent: float) -> str:
    if name == "edema":
        return "alveolar" if extent >= LARGE else "interstitial"
    if name == "pneumothorax" and extent < LARGE:
        return "simple"
    return sample_key(r, FORM_WEIGHTS[name])


def _sample_level(r: np.random.Generator, name: str, form: str) -> Level | None:
    if form == "wedge":
        return "lower"
    if name not in LEVEL_WEIGHTS:
        return None
    level: Level = sample_key(r, LEVEL_WEIGHTS[name])
    return level
