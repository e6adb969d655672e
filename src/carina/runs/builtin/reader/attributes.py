"""Attributes of a lesion from its mask: zones, lung parts, shares of a lung, sides, as percept defines them."""

from typing import Final

import numpy as np

from carina.runs.builtin.reader.thorax import Thorax
from carina.studies.lungs import ZONE_COVERED
from carina.studies.region import Mask
from carina.studies.vocabulary import SIDES, ZONES

_LEAST_SHARE: Final = 0.01
"""Share of a lung that a mask must cover for the lesion to be on that side."""
_LARGER_RATIO: Final = 1.5


def measure_coverage(mask: Mask, part: Mask) -> float:
    """Share of a part that a mask covers."""
    area = np.count_nonzero(part)
    return np.count_nonzero(mask & part) / area if area else 0.0


def list_zones(mask: Mask, thorax: Thorax) -> tuple[str, ...]:
    """Zones that a mask covers; for a mask that is too small, the zone that it covers most."""
    shares = {name: measure_coverage(mask, thorax.parts[name]) for name in ZONES}
    found = tuple(name for name in ZONES if shares[name] >= ZONE_COVERED)
    most = max(ZONES, key=lambda name: shares[name])
    return found or ((most,) if shares[most] > 0 else ())


def measure_lung_share(mask: Mask, thorax: Thorax, side: str) -> float:
    """Share of a lung that a mask covers."""
    return measure_coverage(mask, thorax.right if side == "right" else thorax.left)


def list_sides(mask: Mask, thorax: Thorax) -> tuple[str, ...]:
    """Sides on which a mask shows a lesion."""
    return tuple(side for side in SIDES if measure_lung_share(mask, thorax, side) >= _LEAST_SHARE)


def compare_sides(mask: Mask, thorax: Thorax) -> str:
    """The side with the larger area: "left", "right", "similar", or "one" if only one side is affected."""
    if len(list_sides(mask, thorax)) < 2:
        return "one"
    right, left = (np.count_nonzero(mask & lung) for lung in (thorax.right, thorax.left))
    if max(right, left) < _LARGER_RATIO * min(right, left):
        return "similar"
    return "right" if right > left else "left"


def find_lung_part(words: str, thorax: Thorax) -> Mask | None:
    """Mask of the lung part that a text names, such as "lateral half of the right mid zone"; None if it names none."""
    said = words.lower()
    side = next((side for side in SIDES if side in said), None)
    if side is None:
        return None
    parts = thorax.parts
    if "costophrenic" in said:
        return parts[f"{side} costophrenic angle"]
    chosen = thorax.right if side == "right" else thorax.left
    named = False
    for level in ("upper", "mid", "lower"):
        if f"{level} zone" in said:
            chosen, named = chosen & parts[f"{side} {level} zone"], True
    for part, sign in (("medial", "medial"), ("lateral", "lateral"), ("peripheral", "peripher")):
        if sign in said:
            chosen, named = chosen & parts[f"{side} {part} lung"], True
    return chosen if named or "lung" in said else None
