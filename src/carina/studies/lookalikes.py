"""Findings that are taken for one another: where one is there, another is hardly told apart or clearly absent."""

from typing import Final

_AIRSPACE: Final = frozenset({"consolidation", "pneumonia", "lung opacity"})

LOOKS_LIKE: Final = {name: _AIRSPACE - {name} for name in sorted(_AIRSPACE)}
"""By finding, those that look the same: where one is there, nobody can say which is meant."""

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
"""By finding, further ones that a careful reader might call by its name: where one is there, the finding is not clearly
absent."""


def looks_like(finding: str) -> frozenset[str]:
    return LOOKS_LIKE.get(finding, frozenset())


def may_be_called(finding: str) -> frozenset[str]:
    return MAY_BE_CALLED.get(finding, frozenset())
