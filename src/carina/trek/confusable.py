"""Which findings cannot be told apart on a radiograph, and so must not be asked about as absent."""

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
"""By finding, what a careful reader might call by its name: where one is there, the finding is not clearly absent."""

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
"""By finding or device, what a reader looks for next to it: the plausible negatives of a study."""

COMPANION_WEIGHT: Final = 2.0
"""Weight, as a negative, of a companion of what is present; everything else has weight 1."""
_NOTHING: Final[frozenset[str]] = frozenset()


@lru_cache(maxsize=4096)
def not_clearly_absent(noticed: frozenset[str]) -> frozenset[str]:
    """What is not clearly absent where these are there or may be there: they, and what could be called by a name of
    theirs.
    """
    return noticed | {name for name, others in MAY_BE_CALLED.items() if others & noticed}


@lru_cache(maxsize=4096)
def companions(noticed: frozenset[str]) -> frozenset[str]:
    """What is looked for because of what is there."""
    return _NOTHING.union(*(COMPANIONS.get(name, _NOTHING) for name in noticed))


def is_clearly_absent(name: str, noticed: frozenset[str]) -> bool:
    """Whether nothing that is there, or may be there, could be called by this name."""
    return name not in not_clearly_absent(noticed)


def plausibility(name: str, noticed: frozenset[str]) -> float:
    """Weight of a name as a negative."""
    return COMPANION_WEIGHT if name in companions(noticed) else 1.0
