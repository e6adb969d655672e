"""Signs on a frontal image, each one number, and what they say of a finding.

Cut-offs are those that served best on phantoms of seed 11 (100 of each lesion, 100 without); that of the heart came
out as the one that radiologists use.
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
"""Excess brightness from which on lung is not clear."""
_DENSE: Final = 0.20


@dataclass(frozen=True, kw_only=True)
class Signs:
    """What is measured on one image, in units of `Appearance` but for the heart."""

    heart: float
    """Width of the heart by that of the chest."""
    haze: float
    """How much brighter the mid zone is than the upper one, on the side where that is less: fluid about both hila."""
    angle: float
    """Brightness of the costophrenic angle that is brighter: it is blunted."""
    base: float
    """Brightness of the lower zone that is brighter."""
    dense: float
    """Share of the lungs that is dense."""
    hazy: float
    """Share of the upper and mid zones that is not clear."""
    patch: float
    """Brightness of the brightest of the upper and mid zones."""
    bare: float
    """Logarithm of the ratio of the textures of the outer upper and mid zones of the two sides: air without lung has no
    vessels."""
    spot: float
    """The brightest spot of the size of a nodule, against its surroundings."""
    lump: float
    """The brightest spot of the size of a mass."""


def measure(look: Appearance) -> Signs:
    """The signs of an image."""
    parts, excess, texture = look.thorax.parts, look.excess, look.texture
    zone = {
        (side, level): look.mean(excess, parts[f"{side} {level} zone"]) for side in SIDES for level in _LEVELS
    }
    outer = {side: parts[f"{side} peripheral lung"] & ~parts[f"{side} lower zone"] for side in SIDES}
    rough = [look.mean(texture, outer[side]) + 0.01 for side in SIDES]
    above = look.lungs & ~(parts["right lower zone"] | parts["left lower zone"])
    return Signs(
        heart=look.thorax.ratio,
        haze=min(zone[side, "mid"] - zone[side, "upper"] for side in SIDES),
        angle=max(look.mean(excess, parts[f"{side} costophrenic angle"]) for side in SIDES),
        base=max(zone[side, "lower"] for side in SIDES),
        dense=_share(excess, look.lungs, _DENSE),
        hazy=_share(excess, above, _HAZY),
        patch=max(zone[side, level] for side in SIDES for level in ("upper", "mid")),
        bare=abs(float(np.log(rough[0] / rough[1]))),
        spot=_spot(look, 3.0),
        lump=_spot(look, 6.0),
    )


def _share(values: Grey, part: Mask, above: float) -> float:
    return float(np.mean(values[part] > above)) if part.any() else 0.0


def _spot(look: Appearance, size: float) -> float:
    small, large = (cv2.GaussianBlur(look.image, (0, 0), size * times) for times in (1, 2))
    inner = cv2.erode(look.lungs.view(np.uint8), np.ones((9, 9), np.uint8)) > 0
    return float((small - large)[inner].max()) if inner.any() else 0.0


CUTS: Final[dict[str, tuple[str, float]]] = {
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
"""By finding, the sign that it shows itself by and from where on it does. A broken rib is too fine for this reader."""


def margin(signs: Signs, finding: str) -> float:
    """How far the sign of a finding lies above its cut-off, in cut-offs; -1 for one that has no sign."""
    if finding not in CUTS:
        return -1.0
    sign, cut = CUTS[finding]
    return (float(getattr(signs, sign)) - cut) / cut


def present(signs: Signs, finding: str) -> bool:
    """Whether an image shows a finding."""
    return margin(signs, finding) > 0
