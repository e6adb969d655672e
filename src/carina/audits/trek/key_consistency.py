"""Gate: does every answer key follow from the stored facts? Labels, options, boxes and projections.

A key that contradicts its facts reads well and scores wrongly. Imported turns have few facts or none; rules about facts
that they do not state are not applied.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from carina.audits.gate import gate
from carina.audits.trek.base import RuleGate, Violation
from carina.audits.trek.conversation import NAMED, PRESENCE, Conversation, Turn, flatten_name
from carina.audits.trek.facts import (
    attribute_values,
    listed_names,
    projections,
    target_kinds,
    truths,
    truths_by_id,
)
from carina.audits.trek.turn_structure import frame_size
from carina.cases.model import Box, Case, Step

_SLOTS: Final = {
    "severity": "grade",
    "location": "at",
    "side": "on_side",
    "appearance": "look",
    "distribution": "spread",
}
"""The slot in which a closed question about an attribute states a value."""
_ANY_TASKS: Final = {"any abnormality": "finding", "any device": "device"}
_LIST_TASKS: Final = {"abnormalities": "finding", "devices": "device"}
"""Tasks whose answers list everything of one kind."""
_BOTH: Final = "abnormalities and devices"
_FULL_TASKS: Final = frozenset({_BOTH, "full report", "findings section", "impression"})
"""Tasks whose answers list everything of both kinds."""
_LABELS: Final = {"present": "yes", "absent": "no", "uncertain": "uncertain"}
_NONE_WORDS: Final = frozenset({"none", "neither", "nothing", "no", "not"})
"""First words of an option that says that no other one is right."""
_NUMBER: Final = r"(-?\d+(?:\.\d+)?)"
_PAIR: Final = rf"\(?\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)?"
_OPENING: Final = "<|box|>"
_BOX: Final = re.compile(rf"<\|box\|>\s*{_PAIR}\s*,\s*{_PAIR}\s*<\|/box\|>")
_ROUNDING: Final = 1e-6
_PROJECTIONS: Final = {
    "PA": re.compile(r"\b(?:PA|posteroanterior|postero-anterior)\b", re.IGNORECASE),
    "AP": re.compile(r"\b(?:AP|anteroposterior|antero-posterior)\b", re.IGNORECASE),
    "lateral": re.compile(r"\b(?:lateral|side)\b", re.IGNORECASE),
}
_CLEAR_PROJECTIONS: Final = {
    **_PROJECTIONS,
    "lateral": re.compile(r"\b(?:lateral|side views?)\b", re.IGNORECASE),
}
"""Words that certainly state a projection: a side may be one of the patient."""


@gate(
    "key-consistency",
    title="Consistency of answer keys",
    meaning="Every answer key follows from the stored facts.",
    protocols=("trek",),
    order=310,
)
class KeyConsistency(RuleGate):
    """Keys that contradict the facts of their turn or conversation; the first of each conversation is reported."""

    cost = 4.0
    rules = ("attributes", "choices", "lists", "anything", "presence", "regions", "boxes", "views")
    threshold = (
        "an attribute is affirmed, or chosen, exactly if it is the stored value; of several lists, the right one and "
        "no other names all that is stored; labels follow from the stored truth; boxes in the answer text are the "
        "boxes of the key, on an image that the question is about; the stored projections are named, and no other"
    )
    good = "Every answer key follows from the stored facts."
    bad = (
        "Some keys contradict their facts, so right answers are scored as wrong; rebuild these conversations."
    )

    def find_violations(self, conversation: Conversation) -> Iterator[Violation]:
        # One per conversation: a single wrong key is reason enough to remove it.
        yield from islice(_find_contradictions(conversation), 1)


def _find_contradictions(conversation: Conversation) -> Iterator[Violation]:
    case = conversation.case
    for turn in conversation.turns:
        step, task = turn.step, turn.step.task
        rule, found = "", None
        if task in _SLOTS:
            rule, found = (
                ("attributes", _check_attribute(turn))
                if turn.label is not None
                else ("choices", _check_choice(turn))
            )
        elif task in _ANY_TASKS:
            rule, found = "anything", _check_anything(case, turn)
        elif task in PRESENCE:
            rule, found = "presence", _check_presence(turn)
        elif step.format == "choice" and (task in _LIST_TASKS or task == _BOTH):
            rule, found = "lists", _check_list(step)
        elif task == "region content":
            rule, found = "regions", _check_region(turn)
        elif task == "view":
            rule, found = "views", _check_views(step)
        if found is None and step.key.boxes:
            rule, found = "boxes", _check_boxes(case, step)
        if found is not None:
            yield Violation(rule, step.id, f"{rule}: {found}")


def _is_imported(step: Step) -> bool:
    return step.origin.method == "import"


# ---- attributes -----------------------------------------------------------------------------------------------------


def _check_attribute(turn: Turn) -> str | None:
    step = turn.step
    values = [slot.value for slot in step.slots if slot.name == _SLOTS[step.task]]
    stored = attribute_values(step)
    if not (values and stored) or turn.label == ("yes" if values[0] in stored else "no"):
        return None
    return f"key.label: {turn.label!r} to {values[0]!r} where the {step.task} is {' and '.join(stored)!r}"


def _check_choice(turn: Turn) -> str | None:
    step = turn.step
    stored = attribute_values(step)
    if step.format != "choice" or step.multiple or len(step.key.options) != 1 or not stored:
        return None
    right = next((option for option in step.options if option.id == step.key.options[0]), None)
    if right is None or right.text in stored:
        return None
    is_offered = any(option.text in stored for option in step.options)
    words = right.text.lower().split()
    if right is step.options[-1] and not is_offered and words and words[0] in _NONE_WORDS:
        return None
    return f"key.options: {right.text!r} where the {step.task} is {' and '.join(stored)!r}"


# ---- presence -------------------------------------------------------------------------------------------------------


def _check_presence(turn: Turn) -> str | None:
    if turn.label is None:
        return None
    for truth in truths(turn.step):
        if _LABELS.get(truth) != turn.label:
            return f"key.label: {turn.label!r} where the truth is {truth!r}"
    return None


def _check_list(step: Step) -> str | None:
    """A choice between whole lists: the right one names all that is stored, or says that there is nothing."""
    if _is_imported(step) or step.multiple:
        return None
    names = [f" {flatten_name(name)} " for name in listed_names(step)]
    for option in step.options:
        text = f" {flatten_name(option.text)} "
        is_full = all(name in text for name in names) if names else text.split(maxsplit=1)[0] in _NONE_WORDS
        if is_full != (option.id in step.key.options):
            stored = " and ".join(listed_names(step)) or "nothing"
            return f"key.options: {option.text!r} is {'wrong' if is_full else 'right'} where the list is {stored!r}"
    return None


def _check_region(turn: Turn) -> str | None:
    step = turn.step
    if turn.label is None or (_is_imported(step) and not truths(step)):
        return None
    is_occupied = any(truth in ("present", "uncertain") for truth in truths(step))
    if turn.label == ("yes" if is_occupied else "no"):
        return None
    stated = "a finding" if is_occupied else "no finding"
    return f"key.label: {turn.label!r} where the facts state {stated} in the region"


def _check_anything(case: Case, turn: Turn) -> str | None:
    """Against all that the conversation states: what is present anywhere, and lists that would name everything."""
    label, kind = turn.label, _ANY_TASKS[turn.step.task]
    if label is None:
        return None
    stated = _collect_truths(case, kind)
    if "present" in stated and label != "yes":
        return f"key.label: {label!r} where turn {stated['present']} records a {kind} as present"
    if "uncertain" in stated and label == "no":
        return f"key.label: {label!r} where turn {stated['uncertain']} records a {kind} as uncertain"
    for step in case.steps:
        if _is_imported(step) or not (step.task in _FULL_TASKS or _LIST_TASKS.get(step.task) == kind):
            continue
        listed = truths(step)
        if not listed and label != "no":
            return f"key.label: {label!r} where turn {step.id} lists no {kind}"
        if "present" not in listed and label == "yes":
            return f"key.label: {label!r} where turn {step.id} lists no {kind} that is present"
    return None


def _collect_truths(case: Case, kind: str) -> dict[str, str]:
    """Truth of any finding or device -> the first turn that states it.

    The targets of a turn state the kind of its truths; lists of both kinds repeat what other turns state.
    """
    ids: set[str] = set()
    for step in case.steps:
        if target_kinds(step) == {kind} or _LIST_TASKS.get(step.task) == kind:
            ids.update(about for about, _ in truths_by_id(step))
    found: dict[str, str] = {}
    for step in case.steps:
        is_of_kind = target_kinds(step) & NAMED == {kind}
        for about, truth in truths_by_id(step):
            if truth and (is_of_kind or (about and about in ids)):
                found.setdefault(truth, step.id)
    return found


# ---- boxes and projections ------------------------------------------------------------------------------------------


def _check_boxes(case: Case, step: Step) -> str | None:
    shown = {panel.image for view in case.views if view.id in step.uses for panel in view.panels}
    for box in step.key.boxes:
        if box.image not in shown:
            return f"key.boxes: {box.name!r} lies on {box.image!r}, which the question is not about"
    text = step.key.text or ""
    in_text = _BOX.findall(text)
    if _is_imported(step) and _OPENING not in text:
        return None
    if len(in_text) != len(step.key.boxes) or len(in_text) != text.count(_OPENING):
        return f"key.text: {len(in_text)} boxes in the answer text where the key has {len(step.key.boxes)}"
    for box, corners in zip(step.key.boxes, in_text, strict=True):
        if not (_is_same(corners, box.xyxy) or (_is_imported(step) and _is_repaired(case, box, corners))):
            return f"key.text: the box ({', '.join(corners)}) in the answer text where the key has {box.xyxy}"
    return None


def _is_same(printed: tuple[str, ...], stored: tuple[float, ...]) -> bool:
    """Whether coordinates agree to the digits that are printed."""
    return all(
        abs(float(word) - number) <= 0.5 * 10.0 ** -len(word.partition(".")[2]) + _ROUNDING
        for word, number in zip(printed, stored, strict=True)
    )


def _is_repaired(case: Case, box: Box, printed: tuple[str, ...]) -> bool:
    """Whether a box is the printed one with its corners sorted and cut off at its frame, as an import does it."""
    image = next(image for image in case.images if image.key == box.image)
    x1, y1, x2, y2 = map(float, printed)
    width, height = (side or float("inf") for side in frame_size(box, image))
    inside = (
        max(0.0, min(x1, x2)),
        max(0.0, min(y1, y2)),
        min(width, max(x1, x2)),
        min(height, max(y1, y2)),
    )
    return all(abs(one - other) <= _ROUNDING for one, other in zip(inside, box.xyxy, strict=True))


def _check_views(step: Step) -> str | None:
    stored = projections(step) & _PROJECTIONS.keys()
    right = " and ".join(option.text for option in step.options if option.id in step.key.options)
    for field, text in (("key.text", step.key.text), ("key.options", right)):
        if not (stored and text):
            continue
        for view, words in _PROJECTIONS.items():
            if view in stored and not words.search(text):
                return f"{field}: does not name the {view} projection"
            if view not in stored and _CLEAR_PROJECTIONS[view].search(text):
                return f"{field}: names the {view} projection where there is {' and '.join(sorted(stored))}"
    return None
