"""From the published labels of tasks and targets to the families of trek. The only module that spells the labels."""

import re
from typing import Final, NamedTuple

from carina.cases.model import Format

FAMILIES: Final[dict[str, int]] = {
    family: stage
    for stage, families in {
        1: ("view", "quality"),
        2: (
            "any abnormality",
            "any device",
            "presence",
            "device presence",
            "abnormalities",
            "devices",
            "abnormalities and devices",
            "others",
        ),
        3: (
            "location",
            "severity",
            "appearance",
            "distribution",
            "position",
            "side",
            "measure",
            "description",
            "statement",
            "region box",
            "finding box",
            "box content",
            "region content",
            "vignette",
        ),
        4: ("relations", "relation"),
        5: ("comparison", "trend", "change"),
        6: ("outlook", "finding outlook", "prognosis"),
        7: ("advice",),
        8: ("full report", "findings section", "impression", "impression from findings"),
    }.items()
    for family in families
}
"""Families by the names that our own files give them, and their stage."""

_STAGES: Final = {
    "quality_assessment": 1,
    "view_information": 1,
    "findings_identification": 2,
    "attributes_description": 3,
    "findings_detection": 3,
    "phrase_grounding": 3,
    "relationships_analysis": 4,
    "differences_comparison": 5,
    "future_trend_analysis": 6,
    "diagnosis_advice": 7,
    "report_generation": 8,
}
"""Published labels, without what they have in brackets, and their stage."""
_ALWAYS: Final = {
    "quality_assessment": "quality",
    "view_information": "view",
    "findings_detection": "region box",
    "phrase_grounding": "finding box",
    "relationships_analysis": "relations",
    "future_trend_analysis": "outlook",
    "diagnosis_advice": "advice",
}
_REPORTS: Final = {
    "": "full report",
    "all": "full report",
    "findings": "findings section",
    "impression": "impression",
    "impression_without_findings": "impression",
    "impression_with_findings": "impression from findings",
}
_OURS: Final = re.compile(r"[a-z]+(?: [a-z]+)*")
"""Families are lower-case words; published labels are neither."""
_TARGET: Final = re.compile(r"(abnormality|foreign_body|location|severity)_\[(.*)\]", re.DOTALL)
_IDENTIFIED: Final = {
    "yes_no_abnormality": "any abnormality",
    "yes_no_foreign_body": "any device",
    "other_abnormalities": "others",
}


class Target(NamedTuple):
    """What a question probes."""

    kind: str
    """As in the facts of a step; "study" where the field says nothing."""
    name: str | None = None
    attribute: str = ""
    """What of it is probed, where the field says so."""


class Label(NamedTuple):
    """What a label comes to."""

    task: str
    known: bool
    home: int | None
    """The stage that it belongs to."""


def target_of(text: str | None, *, task: str) -> Target:
    """The field `target`: "abnormality_[x]", a word for a whole question, or the name of a region."""
    by_task = {"view": "view", "quality": "quality", "relations": "relation", "relation": "relation"}
    if text is None or text in _IDENTIFIED:
        return Target(by_task.get(task, "study"))
    found = _TARGET.fullmatch(text)
    if found is None:
        kind = "finding" if FAMILIES.get(task) != 3 or task == "finding box" else "region"
        return Target(by_task.get(task, kind), text)
    kind, name = found.groups()
    if kind in ("location", "severity"):
        return Target("finding", name, kind)
    return Target("device" if kind == "foreign_body" else "finding", name)


def label_of(label: str, *, stage: int, form: Format, target: str | None) -> Label:
    """The family of a question by its published label, or by one of our own."""
    if _OURS.fullmatch(label):
        return Label(label, known=True, home=FAMILIES.get(label))
    base, _, bracket = label.strip().lower().partition("[")
    variant = bracket.rstrip("]")
    home = _STAGES.get(base)
    if home is None:
        return Label(label.strip().lower().replace("_", " ") or "unknown", known=False, home=None)
    return Label(_family(base, variant, stage=stage, form=form, target=target or ""), known=True, home=home)


def _family(base: str, variant: str, *, stage: int, form: Format, target: str) -> str:
    if base in _ALWAYS:
        return _ALWAYS[base]
    if base == "report_generation":
        return _REPORTS.get(variant, "full report")
    if base == "differences_comparison":
        return "change" if form == "choice" else "comparison"
    if base == "findings_identification":
        return _identification(stage, target)
    for word in ("location", "severity"):
        if target.startswith(f"{word}_["):
            return word
    return "statement" if form in ("yes_no", "choice") else "description"


def _identification(stage: int, target: str) -> str:
    if stage == 3:
        return "box content"
    if target in _IDENTIFIED:
        return _IDENTIFIED[target]
    if target.startswith("abnormality_["):
        return "presence"
    if target.startswith("foreign_body_["):
        return "device presence"
    return (
        "findings identification"  # a listing of one kind, of the other or of both: the label does not tell
    )
