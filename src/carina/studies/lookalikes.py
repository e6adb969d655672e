"""Findings that are confused with one another, so that asking for one where another is present is not fair."""

from typing import Final

_AIRSPACE: Final = frozenset({"consolidation", "pneumonia", "lung opacity"})

LOOKS_LIKE: Final = {name: _AIRSPACE - {name} for name in sorted(_AIRSPACE)}
"""By finding, the findings that look the same: where one is present, the image does not show which it is."""

MAY_BE_CALLED: Final = {
    "atelectasis": _AIRSPACE,
    "consolidation": frozenset({"atelectasis", "edema", "mass"}),
    "edema": frozenset({"lung opacity"}),
    # Every one of these is an opacity in the plain sense of the word.
    "lung opacity": frozenset({"atelectasis", "edema", "mass", "nodule", "pleural effusion"}),
    "mass": frozenset({"nodule", "consolidation"}),
    "nodule": frozenset({"mass"}),
    "pneumonia": frozenset({"atelectasis", "edema", "mass"}),
}
"""Further findings that a careful reader might call by the name of the finding: where one is present, the finding is
not clearly absent."""


def looks_like(finding: str) -> frozenset[str]:
    """Findings that look the same as this one."""
    return LOOKS_LIKE.get(finding, frozenset())


def may_be_called(finding: str) -> frozenset[str]:
    """Further findings that may be called by the name of this one."""
    return MAY_BE_CALLED.get(finding, frozenset())
