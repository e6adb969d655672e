"""Findings that cannot be distinguished on a radiograph, and so must not be asked about as absent."""

from functools import lru_cache
from typing import Final

_AIRSPACE: Final = frozenset({"consolidation", "pneumonia", "lung opacity"})

MAY_BE_CALLED: Final[dict[str, frozenset[str]]] = {
    "consolidation": _AIRSPACE | {"atelectasis", "edema", "mass"},
    "pneumonia": _AIRSPACE | {"atelectasis", "edema", "mass"},
    "lung opacity": _AIRSPACE | {"atelectasis", "edema", "mass", "nodule", "pleural effusion"},
    "edema": frozenset({"lung opacity", "pneumonia", "consolidation"}),
    "atelectasis": _AIRSPACE,
    "mass": frozenset({"nodule", "consolidation", "lung opacity"}),
    "nodule": frozenset({"mass", "lung opacity"}),
}
"""By finding, other findings that a careful reader might call by its name: where one is present, the finding is not
clearly absent."""

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
def find_not_clearly_absent(noticed: frozenset[str]) -> frozenset[str]:
    """Names that are not clearly absent where these are present or uncertain: they, and names that may mean them."""
    return noticed | {name for name, others in MAY_BE_CALLED.items() if others & noticed}


@lru_cache(maxsize=4096)
def find_companions(noticed: frozenset[str]) -> frozenset[str]:
    """Names that often accompany the present ones."""
    return _NOTHING.union(*(COMPANIONS.get(name, _NOTHING) for name in noticed))


def is_clearly_absent(name: str, noticed: frozenset[str]) -> bool:
    """Whether nothing that is present or uncertain could be called by this name."""
    return name not in find_not_clearly_absent(noticed)


def negative_weight(name: str, noticed: frozenset[str]) -> float:
    """Weight of a name as a negative."""
    return COMPANION_WEIGHT if name in find_companions(noticed) else 1.0
