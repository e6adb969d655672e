"""Radiographic signs on a frontal image, one number each, and the findings that they indicate.

The cut-offs were the best on phantoms of seed 11 (100 of each lesion, 100 without). That of the heart equals the
cardiothoracic ratio that radiologists use.
"""

from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np

from carina.runs.builtin.reader.appearance import Appearance
from carina.runs.builtin.reader.thorax import Grey
from carina.studies.region import Mask
from carina.studies.vocabulary import SIDES

_LEVELS: Final = ("upper", "mid", "lower")
_HAZY: Final = 0.12
"""Excess brightness from which lung is not clear."""
_DENSE: Final = 0.20


@dataclass(frozen=True, kw_only=True)
class Signs:
    """Signs of one image, in units of `Appearance` except for the heart."""

    heart: float
    """Cardiothoracic ratio: width of the heart divided by that of the chest."""
    haze: float
    """Brightness of the mid zone minus that of the upper zone, the smaller of both sides: fluid around both hila."""
    angle: float
    """Brightness of the brighter costophrenic angle, which is blunted."""
    base: float
    """Brightness of the brighter lower zone."""
    dense: float
    """Share of the lungs that is dense."""
    hazy: float
    """Share of the upper and mid zones that is not clear."""
    patch: float
    """Brightness of the brightest of the upper and mid zones."""
    bare: float
    """Logarithm of the ratio of the textures of the two sides, in the outer upper and mid zones: a pneumothorax has no
    vessels."""
    spot: float
    """The brightest spot of the size of a nodule, against its surroundings."""
    lump: float
    """The brightest spot of the size of a mass."""


def measure_signs(appearance: Appearance) -> Signs:
    """Measure the signs of an image."""
    parts, excess, texture = appearance.thorax.parts, appearance.excess, appearance.texture
    zone = {
        (side, level): appearance.mean(excess, parts[f"{side} {level} zone"])
        for side in SIDES
        for level in _LEVELS
    }
    outer = {side: parts[f"{side} peripheral lung"] & ~parts[f"{side} lower zone"] for side in SIDES}
    rough = [appearance.mean(texture, outer[side]) + 0.01 for side in SIDES]
    above = appearance.lungs & ~(parts["right lower zone"] | parts["left lower zone"])
    return Signs(
        heart=appearance.thorax.ratio,
        haze=min(zone[side, "mid"] - zone[side, "upper"] for side in SIDES),
        angle=max(appearance.mean(excess, parts[f"{side} costophrenic angle"]) for side in SIDES),
        base=max(zone[side, "lower"] for side in SIDES),
        dense=_share_above(excess, appearance.lungs, _DENSE),
        hazy=_share_above(excess, above, _HAZY),
        patch=max(zone[side, level] for side in SIDES for level in ("upper", "mid")),
        bare=abs(float(np.log(rough[0] / rough[1]))),
        spot=_brightest_spot(appearance, 3.0),
        lump=_brightest_spot(appearance, 6.0),
    )


def _share_above(values: Grey, part: Mask, above: float) -> float:
    return float(np.mean(values[part] > above)) if part.any() else 0.0


def _brightest_spot(appearance: Appearance, size: float) -> float:
    small, large = (cv2.GaussianBlur(appearance.image, (0, 0), size * times) for times in (1, 2))
    inner = cv2.erode(appearance.lungs.view(np.uint8), np.ones((9, 9), np.uint8)) > 0
    return float((small - large)[inner].max()) if inner.any() else 0.0


CUT_OFFS: Final[dict[str, tuple[str, float]]] = {
    "cardiomegaly": ("heart", 0.50),
    "edema": ("haze", 0.055),
    "pleural effusion": ("angle", 0.255),
    "atelectasis": ("base", 0.29),
    "consolidation": ("dense", 0.066),
    "pneumonia": ("hazy", 0.14),
    "lung opacity": ("patch", 0.05),
    "pneumothorax": ("bare", 0.25),
    "mass": ("lump", 0.25),
    "nodule": ("spot", 0.16),
}
"""By finding, its sign and the cut-off above which it is present. Fractures have no sign in this model."""


def measure_margin(signs: Signs, finding: str) -> float:
    """Distance of a finding's sign above its cut-off, in units of the cut-off; -1 for a finding without a sign."""
    if finding not in CUT_OFFS:
        return -1.0
    sign, cut = CUT_OFFS[finding]
    return (float(getattr(signs, sign)) - cut) / cut


def is_present(signs: Signs, finding: str) -> bool:
    """Whether the signs indicate a finding."""
    return measure_margin(signs, finding) > 0
