"""How each image of a patient was taken: view, position, and now and then a technical defect.

Chosen without knowing the findings: neither the projection nor a defect may tell diseased from normal.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from carina.phantom.chance import between, pick, sticky
from carina.phantom.options import Mix
from carina.phantom.plan import Technique
from carina.studies.vocabulary import View

SAME_SETTING = 0.6
"""Chance that the next study is taken in the same setting as this one; else it is drawn anew."""
SUPINE = 0.6
"""Share of AP studies taken lying; the others are taken sitting."""
ECG_LEADS = 0.35
"""Share of AP studies with monitoring leads on the chest."""
SECOND_DEFECT = 0.15
"""Share of defective images with a second defect."""

# Drawn clear of what plan.py calls inadequate, so that no image is on the edge.
ADEQUATE_ROTATION = 1.95
POOR_ROTATION = (4.05, 12.0)
ADEQUATE_EXPOSURE = 0.39
POOR_EXPOSURE = (0.82, 1.6)
POOR_INSPIRATION = (0.10, 0.34)
ADEQUATE_INSPIRATION: Final[dict[View, tuple[float, float]]] = {
    "PA": (0.55, 1.0),
    "AP": (0.45, 0.8),
    "lateral": (0.55, 1.0),
}

Defect = Literal["rotation", "inspiration", "exposure", "cut-off"]
FRONTAL_DEFECTS: Final[dict[Defect, float]] = {
    "rotation": 0.32,
    "inspiration": 0.32,
    "exposure": 0.22,
    "cut-off": 0.14,
}
LATERAL_DEFECTS: Final[dict[Defect, float]] = {"rotation": 0.5, "exposure": 0.5}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Where a study was taken."""

    views: tuple[View, ...]
    supine: bool
    ecg_leads: bool

    @property
    def portable(self) -> bool:
        return "AP" in self.views


def plan_settings(r: np.random.Generator, n: int, mix: Mix) -> list[Setting]:
    """The settings of a patient's `n` studies; an inpatient tends to stay one."""
    upright = mix.pa_with_lateral + mix.pa_alone
    return [_setting(r, upright=u < upright, mix=mix) for u in sticky(r, n, keep=SAME_SETTING)]


def _setting(r: np.random.Generator, *, upright: bool, mix: Mix) -> Setting:
    if not upright:
        return Setting(views=("AP",), supine=r.random() < SUPINE, ecg_leads=r.random() < ECG_LEADS)
    lateral = r.random() * (mix.pa_with_lateral + mix.pa_alone) < mix.pa_with_lateral
    return Setting(views=("PA", "lateral") if lateral else ("PA",), supine=False, ecg_leads=False)


def plan_techniques(r: np.random.Generator, views: Sequence[View], mix: Mix) -> tuple[Technique, ...]:
    """How the images of one study were taken."""
    return tuple(_technique(r, view, mix) for view in views)


def _technique(r: np.random.Generator, view: View, mix: Mix) -> Technique:
    technique = Technique(
        view=view,
        rotation_degrees=round(between(r, -ADEQUATE_ROTATION, ADEQUATE_ROTATION), 2),
        inspiration=round(between(r, *ADEQUATE_INSPIRATION[view]), 3),
        exposure=round(between(r, -ADEQUATE_EXPOSURE, ADEQUATE_EXPOSURE), 3),
    )
    if r.random() >= mix.quality_defect:
        return technique
    kinds = LATERAL_DEFECTS if view == "lateral" else FRONTAL_DEFECTS
    first = pick(r, kinds)
    technique = _spoil(r, technique, first)
    if r.random() < SECOND_DEFECT:
        others = {kind: weight for kind, weight in kinds.items() if kind != first}
        technique = _spoil(r, technique, pick(r, others))
    return technique


def _spoil(r: np.random.Generator, technique: Technique, defect: Defect) -> Technique:
    sign = 1.0 if r.random() < 0.5 else -1.0
    if defect == "rotation":
        return replace(technique, rotation_degrees=round(sign * between(r, *POOR_ROTATION), 2))
    if defect == "inspiration":
        return replace(technique, inspiration=round(between(r, *POOR_INSPIRATION), 3))
    if defect == "exposure":
        return replace(technique, exposure=round(sign * between(r, *POOR_EXPOSURE), 3))
    return replace(technique, cut_off="right" if sign > 0 else "left")
