"""The seven lesions of the protocol: what they are called in studies and in questions."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class Lesion:
    """One target of the examination."""

    name: str
    """As the protocol calls it."""
    finding: str
    """As studies call it: a name of `vocabulary.FINDINGS`."""
    phrase: str
    """As the first question calls it."""
    noun: str
    """As later questions call it."""
    seen_through: frozenset[str] = frozenset()
    """Fainter findings that do not hide the contour of the lesion where they overlap it."""
    in_lungs: bool = True
    """Whether the lesion lies within the lung fields and has attributes by zones."""


_HAZE: Final = frozenset({"edema"})
"""Findings that are fainter than a dense lesion."""

LESIONS: Final = {
    lesion.name: lesion
    for lesion in (
        Lesion(
            name="cardiomegaly",
            finding="cardiomegaly",
            phrase="cardiomegaly (an enlarged heart)",
            noun="enlarged heart",
            in_lungs=False,
        ),
        Lesion(
            name="consolidation",
            finding="consolidation",
            phrase="a consolidation",
            noun="consolidation",
            seen_through=_HAZE,
        ),
        Lesion(
            name="edema",
            finding="edema",
            phrase="pulmonary edema",
            noun="edema",
        ),
        Lesion(
            name="atelectasis",
            finding="atelectasis",
            phrase="atelectasis",
            noun="atelectasis",
            seen_through=_HAZE,
        ),
        Lesion(
            name="pneumonia",
            finding="pneumonia",
            phrase="an opacity suggestive of pneumonia",
            noun="pneumonia",
            seen_through=_HAZE,
        ),
        Lesion(
            name="opacity",
            finding="lung opacity",
            phrase="a lung opacity",
            noun="opacity",
        ),
        Lesion(
            name="effusion",
            finding="pleural effusion",
            phrase="a pleural effusion",
            noun="effusion",
            seen_through=_HAZE,
        ),
    )
}
