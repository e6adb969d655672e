"""Where a lesion may sit, what forms it takes, and how large and dense it is when first seen.

One lesion at a time; which findings come together is in `cooccurrence`, what becomes of them in `evolution`.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from carina.phantom.chance import Spread, pick
from carina.phantom.plan import LesionPlan, Level
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
"""Weights of the forms. Those of edema and pneumothorax also depend on extent, see `_form`."""

FORMS: Final[dict[str, tuple[str, ...]]] = {name: tuple(forms) for name, forms in FORM_WEIGHTS.items()}

LARGE = 0.5
"""Extent from which edema fills the alveoli, and a pneumothorax may be under tension."""

EXTENT: Final = Spread(low=0.05, high=1.0, a=1.2, b=2.2)
"""Mean near 0.37: many mild lesions, few severe ones."""
DENSITY: Final = Spread(low=0.3, high=1.0, a=1.4, b=1.3)
"""Mean near 0.68: from subtle to obvious."""
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
"""Findings that are not here have no level."""

IN_LUNG: Final = frozenset(("atelectasis", "consolidation", "lung opacity", "mass", "nodule", "pneumonia"))
"""Findings that fill a place in the lung: no two of them share a side and level, so masks do not coincide, and
none shares a side with `AIRSPACE` disease."""

AIRSPACE: Final = frozenset(("consolidation", "lung opacity", "pneumonia"))
"""Findings that look alike, and that may spread over a lung until nothing else in it could be told."""

ATTEMPTS = 6
"""Draws of a place before a lesion that finds none free is given up."""


def draw_lesion(
    r: np.random.Generator,
    name: str,
    *,
    among: Sequence[LesionPlan],
    prior: Sequence[LesionPlan] = (),
    beside: LesionPlan | None = None,
    form: str | None = None,
) -> LesionPlan | None:
    """A lesion seen for the first time, without key or trend; None where no place is free among the others.

    `prior` has the lesions of the study before, `beside` is the lesion that it comes with, whose side it takes.
    """
    sides = _sides(name, prior, beside)
    if not sides:
        return None
    extent = round(EXTENT.quantile(r.random()), DECIMALS)
    density = round(DENSITY.quantile(r.random()), DECIMALS)
    for _ in range(ATTEMPTS):
        side = pick(r, sides)
        shape = form or _form(r, name, extent)
        lesion = LesionPlan(
            key="",
            name=name,
            side=side,
            level=_level(r, name, shape),
            form=shape,
            extent=extent,
            density=density,
        )
        if not any(clash(lesion, other) for other in among):
            return lesion
    return None


def sides_left(name: str, prior: Sequence[LesionPlan]) -> dict[Side, float]:
    """The sides, and their shares, on which a lesion would be new: the study before has no such finding there.

    The level does not count: a report compares by name and side.
    """
    taken = [lesion.side for lesion in prior if lesion.name == name]
    return {
        side: share
        for side, share in SIDE_WEIGHTS.get(name, ONE_SIDED).items()
        if not any(sides_meet(side, other) for other in taken)
    }


def sides_meet(one: Side, other: Side) -> bool:
    """Whether two lesions touch the same half of the chest."""
    return one == other or not {"bilateral", "midline"}.isdisjoint((one, other))


def clash(one: LesionPlan, other: LesionPlan) -> bool:
    """Whether two lesions cannot be in one study: twice the same, in the same place, or against mechanics."""
    if not sides_meet(one.side, other.side):
        return False
    if one.name == other.name:
        return True
    if one.name in IN_LUNG and other.name in IN_LUNG:
        return one.level == other.level or not AIRSPACE.isdisjoint((one.name, other.name))
    # A lung that has fallen away from the chest wall shows no separate lobar collapse.
    return {one.name, other.name} == {"pneumothorax", "atelectasis"} and "wedge" in (one.form, other.form)


def form_after(lesion: LesionPlan, extent: float) -> str:
    """The form of a lesion once its extent has changed."""
    if lesion.name == "edema":
        return "alveolar" if extent >= LARGE else "interstitial"
    if lesion.form == "tension" and extent < LARGE:
        return "simple"
    return lesion.form


def _sides(name: str, prior: Sequence[LesionPlan], beside: LesionPlan | None) -> dict[Side, float]:
    left = sides_left(name, prior)
    if beside is None or beside.side not in SIDE_WEIGHTS.get(name, ONE_SIDED):
        return left
    return {beside.side: 1.0} if beside.side in left else {}


def _form(r: np.random.Generator, name: str, extent: float) -> str:
    if name == "edema":
        return "alveolar" if extent >= LARGE else "interstitial"
    if name == "pneumothorax" and extent < LARGE:
        return "simple"
    return pick(r, FORM_WEIGHTS[name])


def _level(r: np.random.Generator, name: str, form: str) -> Level | None:
    if form == "wedge":
        return "lower"
    if name not in LEVEL_WEIGHTS:
        return None
    level: Level = pick(r, LEVEL_WEIGHTS[name])
    return level
