"""Findings that are confused with one another, so that asking for one where another is present is not fair.

Names are compared by the hierarchy of the vocabulary, too: where an infiltration is present, a lung opacity is not
absent, since an infiltration is one.
"""

from functools import lru_cache
from typing import Final

from carina.studies.terms import ancestors, is_kind_of, list_nearest_terms

_AIRSPACE: Final = frozenset({"consolidation", "pneumonia", "lung opacity"})

LOOKS_LIKE: Final = {name: _AIRSPACE - {name} for name in sorted(_AIRSPACE)}
"""By finding, the findings that look the same: where one is present, the image does not show which it is."""

MAY_BE_CALLED: Final = {
    "atelectasis": _AIRSPACE,
    "consolidation": frozenset({"atelectasis", "edema", "mass"}),
    "edema": _AIRSPACE,
    # Every one of these is an opacity in the plain sense of the word.
    "lung opacity": frozenset({"atelectasis", "edema", "mass", "nodule", "pleural effusion"}),
    "mass": frozenset({"nodule", "consolidation", "lung opacity"}),
    "nodule": frozenset({"mass", "lung opacity"}),
    "pneumonia": frozenset({"atelectasis", "edema", "mass"}),
}
"""Further findings that a careful reader might call by the name of the finding: where one is present, the finding is
not clearly absent."""

_NONE: Final[frozenset[str]] = frozenset()


def look_alike(one: str, other: str) -> bool:
    """Whether two findings of different names look the same, so that the image does not show which it is.

    Example:
        >>> look_alike("consolidation", "lobar pneumonia"), look_alike("consolidation", "pneumothorax")
        (True, False)
    """
    return one != other and _generalise(one) in _AIRSPACE and _generalise(other) in _AIRSPACE


@lru_cache(maxsize=65536)
def is_clearly_absent(name: str, noticed: frozenset[str]) -> bool:
    """Whether nothing that is present or uncertain could be called by a name.

    Args:
        name: Name of a finding or device.
        noticed: Names of what is present or uncertain.

    Example:
        >>> noticed = frozenset({"infiltration"})
        >>> [is_clearly_absent(name, noticed) for name in ("lung opacity", "consolidation", "pneumothorax")]
        [False, False, True]
    """
    return not any(_may_be_called(other, name) for other in noticed)


@lru_cache(maxsize=65536)
def _may_be_called(other: str, name: str) -> bool:
    """Whether a careful reader might call something by this name: it is the same, a kind of it, or looks like it.

    Also where the name is a kind of it: of a lung lesion, nobody knows whether it is a nodule. A name that is not known
    may mean the known name that it is close to.
    """
    if other == name or is_kind_of(other, name) or is_kind_of(name, other):
        return True
    if any(_may_be_called(near, name) for near in list_nearest_terms(other)):
        return True  # "pneumona" may be a misspelt pneumonia
    if any(_may_be_called(other, near) for near in list_nearest_terms(name)):
        return True
    general = _generalise(name)
    return _generalise(other) in LOOKS_LIKE.get(general, _NONE) | MAY_BE_CALLED.get(general, _NONE)


@lru_cache(maxsize=4096)
def _generalise(name: str) -> str:
    """The finding of the tables above that something is a kind of; itself, where it is none."""
    return next((wider for wider in (name, *ancestors(name)) if wider in MAY_BE_CALLED), name)
