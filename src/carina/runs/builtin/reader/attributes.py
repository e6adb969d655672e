"""What a mask says of a lesion: zones, regions, shares of a lung, sides; defined as the questions define them."""

from typing import Final

import numpy as np

from carina.runs.builtin.reader.thorax import Thorax
from carina.studies.lungs import ZONE_COVERED
from carina.studies.region import Mask
from carina.studies.vocabulary import SIDES, ZONES

_HOLDS: Final = 0.01
"""Share of a lung from which on it holds a lesion."""
_LARGER: Final = 1.5


def covered(mask: Mask, part: Mask) -> float:
    """How much of a part a mask covers."""
    area = np.count_nonzero(part)
    return np.count_nonzero(mask & part) / area if area else 0.0


def zones(mask: Mask, thorax: Thorax) -> tuple[str, ...]:
    """Zones that a mask lies in; the one that it covers most where it is too small for any."""
    shares = {name: covered(mask, thorax.parts[name]) for name in ZONES}
    found = tuple(name for name in ZONES if shares[name] >= ZONE_COVERED)
    most = max(ZONES, key=lambda name: shares[name])
    return found or ((most,) if shares[most] > 0 else ())


def share_of_lung(mask: Mask, thorax: Thorax, side: str) -> float:
    """How much of a lung a mask covers."""
    return covered(mask, thorax.right if side == "right" else thorax.left)


def sides(mask: Mask, thorax: Thorax) -> tuple[str, ...]:
    """Sides that hold a lesion."""
    return tuple(side for side in SIDES if share_of_lung(mask, thorax, side) >= _HOLDS)


def comparison(mask: Mask, thorax: Thorax) -> str:
    """Which side is larger: "similar", "left", "right", or "one" if the other holds nothing."""
    if len(sides(mask, thorax)) < 2:
        return "one"
    right, left = (np.count_nonzero(mask & lung) for lung in (thorax.right, thorax.left))
    if max(right, left) < _LARGER * min(right, left):
        return "similar"
    return "right" if right > left else "left"


def region(words: str, thorax: Thorax) -> Mask | None:
    """A part of the lungs as questions name it: "lateral half of the right mid zone"; None for no such part."""
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
