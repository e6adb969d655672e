"""Findings and devices that accompany one another: the plausible negatives of a conversation."""

from functools import lru_cache
from typing import Final

COMPANIONS: Final[dict[str, frozenset[str]]] = {
    "atelectasis": frozenset({"pleural effusion", "mass", "pneumothorax"}),
    "cardiomegaly": frozenset({"edema", "pleural effusion"}),
    "consolidation": frozenset({"pleural effusion"}),
    "edema": frozenset({"cardiomegaly", "pleural effusion"}),
    "fracture": frozenset({"pneumothorax", "pleural effusion"}),
    "lung opacity": frozenset({"pleural effusion"}),
    "mass": frozenset({"pleural effusion", "atelectasis"}),
    "nodule": frozenset({"fracture", "pleural effusion"}),
    "pleural effusion": frozenset({"atelectasis", "cardiomegaly", "edema", "pneumothorax"}),
    "pneumonia": frozenset({"pleural effusion", "cardiomegaly"}),
    "pneumothorax": frozenset({"fracture", "pleural effusion", "atelectasis"}),
    "endotracheal tube": frozenset({"nasogastric tube", "central venous line", "chest tube"}),
    "nasogastric tube": frozenset({"endotracheal tube", "central venous line"}),
    "central venous line": frozenset({"endotracheal tube", "pacemaker", "nasogastric tube"}),
    "pacemaker": frozenset({"central venous line"}),
    "chest tube": frozenset({"endotracheal tube", "central venous line"}),
}
"""By finding or device, others that often accompany it: the plausible negatives of a study."""

COMPANION_WEIGHT: Final = 2.0
"""Weight, as a negative, of a companion of a present finding; everything else has weight 1."""
_NOTHING: Final[frozenset[str]] = frozenset()


@lru_cache(maxsize=4096)
def find_companions(noticed: frozenset[str]) -> frozenset[str]:
    """Names that often accompany the present ones."""
    return _NOTHING.union(*(COMPANIONS.get(name, _NOTHING) for name in noticed))


def negative_weight(name: str, noticed: frozenset[str]) -> float:
    """Weight of a name as a negative."""
    return COMPANION_WEIGHT if name in find_companions(noticed) else 1.0
