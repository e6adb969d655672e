"""Find what a question names: findings, devices, structures, and the frame (unit) of boxes."""

import re
from collections.abc import Iterable
from typing import Final

from carina.cases import Step
from carina.cases.model import Frame

_FINDINGS: Final = {
    "cardiomegaly": ("cardiomegaly", "enlarged heart", "cardiac enlargement"),
    "pleural effusion": ("effusion",),
    "pneumothorax": ("pneumothorax",),
    "edema": ("edema", "oedema"),
    "atelectasis": ("atelectasis", "atelectatic"),
    "consolidation": ("consolidation",),
    "pneumonia": ("pneumonia",),
    "nodule": ("nodule",),
    "mass": ("mass", "masses"),
    "fracture": ("fracture",),
    "lung opacity": ("opacity", "opacification"),
}
"""Words for each finding. Opacity comes last, because an opacity suggestive of pneumonia counts as pneumonia."""
_DEVICES: Final = {
    "endotracheal tube": ("endotracheal tube",),
    "nasogastric tube": ("nasogastric tube", "feeding tube"),
    "central venous line": ("central venous line", "central line", "venous catheter"),
    "pacemaker": ("pacemaker",),
    "chest tube": ("chest tube", "pleural drain"),
}
_STRUCTURES: Final = (
    *(f"{side} {level} zone" for side in ("right", "left") for level in ("upper", "mid", "lower")),
    *(f"{side} {part} lung" for side in ("right", "left") for part in ("medial", "lateral", "peripheral")),
    *(
        f"{side} {part}"
        for side in ("right", "left")
        for part in ("costophrenic angle", "lung", "hilum", "hemidiaphragm", "ribs", "clavicle")
    ),
    "posterior costophrenic angle",
    "anterior lung",
    "posterior lung",
    "upper zone",
    "mid zone",
    "lower zone",
    "mediastinum",
    "trachea",
    "spine",
    "heart",
)
"""Longer names come before the names that they contain."""


def _find_names(text: str, words: dict[str, tuple[str, ...]]) -> list[str]:
    said = text.lower()
    places = {
        name: min((m.start() for word in known if (m := re.search(rf"\b{word}s?\b", said))), default=-1)
        for name, known in words.items()
    }
    return sorted((name for name, at in places.items() if at >= 0), key=lambda name: places[name])


def find_findings(text: str) -> list[str]:
    """Findings that a text names, in order."""
    return _find_names(text, _FINDINGS)


def find_devices(text: str) -> list[str]:
    """Devices that a text names, in order."""
    return _find_names(text, _DEVICES)


def find_lesion(texts: Iterable[str]) -> str | None:
    """The lesion of a percept case: from the first of the texts that names a finding."""
    for text in texts:
        named = find_findings(text)
        if named:
            return "pneumonia" if "pneumonia" in named else named[0]
    return None


def find_structure(text: str) -> str | None:
    """The anatomical structure that a text names, or None."""
    said = text.lower()
    return next((name for name in _STRUCTURES if re.search(rf"\b{name}\b", said)), None)


def find_box_frame(text: str) -> Frame:
    """The frame (unit) in which a question asks for boxes."""
    said = text.lower()
    if "percent" in said or "%" in said:
        return "percent"
    if "thousand" in said or re.search(r"0\s*(?:to|-|and|\u2013)\s*(?:1000|999)\b", said):
        return "thousand"
    if "pixel" in said:
        return "pixel"
    if re.search(r"0\s*(?:to|-|and|\u2013)\s*1\b(?!0)", said) or "fraction" in said:
        return "unit"
    return "percent"


def remove_options(step: Step) -> str:
    """The question without its options, which also name absent findings."""
    text = step.question
    for option in step.options:
        if option.text and not re.fullmatch(r"(?i)yes|no", option.text):
            text = text.replace(option.text, " ")
    return text
