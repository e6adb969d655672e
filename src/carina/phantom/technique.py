"""Technique of each image: view, posture, and in some images technical defects.

Technique is independent of the findings: neither the view nor a defect may reveal them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np

from carina.phantom.options import Mix
from carina.phantom.plan import Technique
from carina.phantom.sampling import sample_key, sample_persistent, sample_uniform
from carina.studies.vocabulary import View

SAME_SETTING = 0.6
"""Probability that the next study is taken in the same setting; otherwise the setting is sampled again."""
SUPINE = 0.6
"""Share of supine AP studies; the others are taken sitting."""
ECG_LEADS = 0.35
"""Share of AP studies with monitoring leads on the chest."""
SECOND_DEFECT = 0.15
"""Share of defective images with a second defect."""

# At a distance from the limits in plan.py, so that no image is a borderline case.
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
    """Views, posture and monitoring of one study."""

    views: tuple[View, ...]
    supine: bool
    ecg_leads: bool

    @property
    def is_portable(self) -> bool:
        return "AP" in self.views


def plan_settings(r: np.random.Generator, n: int, mix: Mix) -> list[Setting]:
    """Sample the settings of a patient's `n` studies; they tend to persist, as for an inpatient."""
    upright = mix.pa_with_lateral + mix.pa_alone
    return [
        _sample_setting(r, upright=u < upright, mix=mix) for u in sample_persistent(r, n, keep=SAME_SETTING)
    ]


def _sample_setting(r: np.random.Generator, *, upright: bool, mix: Mix) -> Setting:
    if not upright:
        return Setting(views=("AP",), supine=r.random() < SUPINE, ecg_leads=r.random() < ECG_LEADS)
    lateral = r.random() * (mix.pa_with_lateral + mix.pa_alone) < mix.pa_with_lateral
    return Setting(views=("PA", "lateral") if lateral else ("PA",), supine=False, ecg_leads=False)


def plan_techniques(r: np.random.Generator, views: Sequence[View], mix: Mix) -> tuple[Technique, ...]:
    """Sample the technique of each image of one study."""
    return tuple(_sample_technique(r, view, mix) for view in views)


def _sample_technique(r: np.random.Generator, view: View, mix: Mix) -> Technique:
    technique = Technique(
        view=view,
        rotation_degrees=round(sample_uniform(r, -ADEQUATE_ROTATION, ADEQUATE_ROTATION), 2),
        inspiration=round(sample_uniform(r, *ADEQUATE_INSPIRATION[view]), 3),
        exposure=round(sample_uniform(r, -ADEQUATE_EXPOSURE, ADEQUATE_EXPOSURE), 3),
    )
    if r.random() >= mix.quality_defect:
        return technique
    kinds = LATERAL_DEFECTS if view == "lateral" else FRONTAL_DEFECTS
    first = sample_key(r, kinds)
    technique = _apply_defect(r, technique, first)
    if r.random() < SECOND_DEFECT:
        others = {kind: weight for kind, weight in kinds.items() if kind != first}
        technique = _apply_defect(r, technique, sample_key(r, others))
    return technique


def _apply_defect(r: np.random.Generator, technique: Technique, defect: Defect) -> Technique:
    sign = 1.0 if r.random() < 0.5 else -1.0
    if defect == "rotation":
        return replace(technique, rotation_degrees=round(sign * sample_uniform(r, *POOR_ROTATION), 2))
    if defect == "inspiration":
        return replace(technique, inspiration=round(sample_uniform(r, *POOR_INSPIRATION), 3))
    if defect == "exposure":
        return replace(technique, exposure=round(sign * sample_uniform(r, *POOR_EXPOSURE), 3))
    return replace(technique, cut_off="right" if sign > 0 else "left")
