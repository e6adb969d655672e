"""The seven lesions of the protocol: what they are called in studies and in questions, and what looks like them."""

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
    looks_like: frozenset[str] = frozenset()
    """Findings that a reader may rightly call by this name, or whose shadow merges with it: where one is present, the
    lesion can neither be called absent nor its contour be told apart."""
    in_lungs: bool = True
    """Whether it is outlined within the lung fields and described by zones."""


_AIRSPACE: Final = frozenset({"consolidation", "pneumonia", "lung opacity"})

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
            looks_like=_AIRSPACE - {"consolidation"},
        ),
        Lesion(name="edema", finding="edema", phrase="pulmonary edema", noun="edema"),
        Lesion(name="atelectasis", finding="atelectasis", phrase="atelectasis", noun="atelectasis"),
        Lesion(
            name="pneumonia",
            finding="pneumonia",
            phrase="an opacity suggestive of pneumonia",
            noun="pneumonia",
            looks_like=_AIRSPACE - {"pneumonia"},
        ),
        Lesion(
            name="opacity",
            finding="lung opacity",
            phrase="a lung opacity",
            noun="opacity",
            # Every one of these is an opacity of the lung in the plain sense of the word.
            looks_like=(_AIRSPACE - {"lung opacity"}) | {"atelectasis", "edema", "mass"},
        ),
        Lesion(name="effusion", finding="pleural effusion", phrase="a pleural effusion", noun="effusion"),
    )
}
