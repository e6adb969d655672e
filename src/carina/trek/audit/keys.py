"""Gate: does every key follow from the facts that are stored beside it? Labels, options, boxes and projections.

A key that contradicts its own facts reads well and scores wrongly. Imported turns carry few facts or none: what they
do not state is passed over.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from carina.cases.model import Box, Case, Step
from carina.trek.audit.form import sides
from carina.trek.audit.ruled import Broken, Ruled
from carina.trek.audit.turns import NAMED, PRESENCE, Conversation, Turn, plain

_SLOTS: Final = {
    "severity": "grade",
    "location": "at",
    "side": "on_side",
    "appearance": "look",
    "distribution": "spread",
}
"""The slot in which a closed question about an attribute says a value."""
_ANY: Final = {"any abnormality": "finding", "any device": "device"}
_LISTS: Final = {"abnormalities": "finding", "devices": "device"}
"""Lists that tell everything of one kind."""
_BOTH: Final = "abnormalities and devices"
_WHOLE: Final = frozenset({_BOTH, "full report", "findings section", "impression"})
"""What tells everything of both kinds."""
_LABELS: Final = {"present": "yes", "absent": "no", "uncertain": "uncertain"}
_NONE: Final = frozenset({"none", "neither", "nothing", "no", "not"})
"""What an option begins with that says that no other one is right."""
_NUMBER: Final = r"(-?\d+(?:\.\d+)?)"
_PAIR: Final = rf"\(?\s*{_NUMBER}\s*,\s*{_NUMBER}\s*\)?"
_OPENING: Final = "<|box|>"
_BOX: Final = re.compile(rf"<\|box\|>\s*{_PAIR}\s*,\s*{_PAIR}\s*<\|/box\|>")
_ROUNDING: Final = 1e-6
_TOLD: Final = {
    "PA": re.compile(r"\b(?:PA|posteroanterior|postero-anterior)\b", re.IGNORECASE),
    "AP": re.compile(r"\b(?:AP|anteroposterior|antero-posterior)\b", re.IGNORECASE),
    "lateral": re.compile(r"\b(?:lateral|side)\b", re.IGNORECASE),
}
_CLAIMED: Final = {**_TOLD, "lateral": re.compile(r"\b(?:lateral|side views?)\b", re.IGNORECASE)}
"""What tells a projection for sure: a side may be one of the patient."""


class Keys(Ruled):
    """Keys against the facts of their turn and of their conversation; the first contradiction of each is told."""

    cost = 4.0
    name = "keys"
    rules = ("attributes", "choices", "lists", "anything", "presence", "regions", "boxes", "views")
    threshold = (
        "an attribute is affirmed, or chosen, exactly if it is the stored value; of several lists, the one that names "
        "all that is stored is right, and no other does; labels follow from the stored truth; "
        "boxes in words are the boxes of the key, on an image that the question is about; the stored projections are "
        "told, and no other"
    )
    good = "Every key follows from the facts that are stored beside it."
    bad = "Some keys contradict the facts they rest on, so right answers score as wrong; build these anew."

    def broken(self, conversation: Conversation) -> Iterator[Broken]:
        # Once a conversation: one wrong key is reason enough to leave it out.
        yield from islice(_contradictions(conversation), 1)


def _contradictions(conversation: Conversation) -> Iterator[Broken]:
    case = conversation.case
    for turn in conversation.turns:
        step, task = turn.step, turn.step.task
        rule, found = "", None
        if task in _SLOTS:
            rule, found = (
                ("attributes", _attribute(turn)) if turn.label is not None else ("choices", _choice(turn))
            )
        elif task in _ANY:
            rule, found = "anything", _anything(case, turn)
        elif task in PRESENCE:
            rule, found = "presence", _presence(turn)
        elif step.format == "choice" and (task in _LISTS or task == _BOTH):
            rule, found = "lists", _list(step)
        elif task == "region content":
            rule, found = "regions", _region(turn)
        elif task == "view":
            rule, found = "views", _views(step)
        if found is None and step.key.boxes:
            rule, found = "boxes", _boxes(case, step)
        if found is not None:
            yield Broken(rule, step.id, f"{rule}: {found}")


def _texts(step: Step, name: str) -> list[str]:
    return [fact.text for fact in step.facts if fact.name == name and fact.text]


def _is_imported(step: Step) -> bool:
    return step.origin.method == "import"


# ---- attributes -----------------------------------------------------------------------------------------------------


def _attribute(turn: Turn) -> str | None:
    step = turn.step
    said = [slot.value for slot in step.slots if slot.name == _SLOTS[step.task]]
    stored = _texts(step, step.task)
    if not (said and stored) or turn.label == ("yes" if said[0] in stored else "no"):
        return None
    return f"key.label: {turn.label!r} to {said[0]!r} where the {step.task} is {' and '.join(stored)!r}"


def _choice(turn: Turn) -> str | None:
    step = turn.step
    stored = _texts(step, step.task)
    if step.format != "choice" or step.multiple or len(step.key.options) != 1 or not stored:
        return None
    right = next((option for option in step.options if option.id == step.key.options[0]), None)
    if right is None or right.text in stored:
        return None
    offered = any(option.text in stored for option in step.options)
    words = right.text.lower().split()
    if right is step.options[-1] and not offered and words and words[0] in _NONE:
        return None
    return f"key.options: {right.text!r} where the {step.task} is {' and '.join(stored)!r}"


# ---- what is there --------------------------------------------------------------------------------------------------


def _presence(turn: Turn) -> str | None:
    if turn.label is None:
        return None
    for truth in _texts(turn.step, "truth"):
        if _LABELS.get(truth) != turn.label:
            return f"key.label: {turn.label!r} where the truth is {truth!r}"
    return None


def _list(step: Step) -> str | None:
    """Of whole lists to choose from, against the names that are stored; where none is, the right one says so."""
    if _is_imported(step) or step.multiple:
        return None
    names = [f" {plain(name)} " for name in _texts(step, "listed")]
    for option in step.options:
        said = f" {plain(option.text)} "
        full = all(name in said for name in names) if names else said.split(maxsplit=1)[0] in _NONE
        if full != (option.id in step.key.options):
            stored = " and ".join(_texts(step, "listed")) or "nothing"
            return (
                f"key.options: {option.text!r} is {'wrong' if full else 'right'} where the list is {stored!r}"
            )
    return None


def _region(turn: Turn) -> str | None:
    step = turn.step
    if turn.label is None or (_is_imported(step) and not _texts(step, "truth")):
        return None
    held = any(truth in ("present", "uncertain") for truth in _texts(step, "truth"))
    if turn.label == ("yes" if held else "no"):
        return None
    return (
        f"key.label: {turn.label!r} where the facts hold {'something' if held else 'nothing'} in the region"
    )


def _anything(case: Case, turn: Turn) -> str | None:
    """Against all that the conversation states: what is there anywhere, and lists that would tell everything."""
    label, kind = turn.label, _ANY[turn.step.task]
    if label is None:
        return None
    stated = _stated(case, kind)
    if "present" in stated and label != "yes":
        return f"key.label: {label!r} where turn {stated['present']} holds a {kind} as present"
    if "uncertain" in stated and label == "no":
        return f"key.label: {label!r} where turn {stated['uncertain']} holds a {kind} as uncertain"
    for step in case.steps:
        if _is_imported(step) or not (step.task in _WHOLE or _LISTS.get(step.task) == kind):
            continue
        listed = _texts(step, "truth")
        if not listed and label != "no":
            return f"key.label: {label!r} where turn {step.id} lists no {kind}"
        if "present" not in listed and label == "yes":
            return f"key.label: {label!r} where turn {step.id} lists no {kind} that is present"
    return None


def _stated(case: Case, kind: str) -> dict[str, str]:
    """What is true of anything of a kind, and the turn that says so first.

    Targets tell the kind of what a turn holds as true; lists of both kinds name what is known from other turns.
    """
    ids: set[str] = set()
    for step in case.steps:
        kinds = {fact.about for fact in step.facts if fact.name == "target"}
        if kinds == {kind} or _LISTS.get(step.task) == kind:
            ids.update(fact.about for fact in step.facts if fact.name == "truth")
    found: dict[str, str] = {}
    for step in case.steps:
        kinds = {fact.about for fact in step.facts if fact.name == "target"} & NAMED
        for fact in step.facts:
            if fact.name == "truth" and fact.text and (kinds == {kind} or (fact.about and fact.about in ids)):
                found.setdefault(fact.text, step.id)
    return found


# ---- boxes and projections ------------------------------------------------------------------------------------------


def _boxes(case: Case, step: Step) -> str | None:
    shown = {panel.image for view in case.views if view.id in step.uses for panel in view.panels}
    for box in step.key.boxes:
        if box.image not in shown:
            return f"key.boxes: {box.name!r} lies on {box.image!r}, which the question is not about"
    text = step.key.text or ""
    said = _BOX.findall(text)
    if _is_imported(step) and _OPENING not in text:
        return None
    if len(said) != len(step.key.boxes) or len(said) != text.count(_OPENING):
        return f"key.text: {len(said)} boxes in words where the key has {len(step.key.boxes)}"
    for box, corners in zip(step.key.boxes, said, strict=True):
        if not (_same(corners, box.xyxy) or (_is_imported(step) and _repaired(case, box, corners))):
            return f"key.text: the box ({', '.join(corners)}) in words where the key has {box.xyxy}"
    return None


def _same(said: tuple[str, ...], stored: tuple[float, ...]) -> bool:
    """To the digits that are printed."""
    return all(
        abs(float(word) - number) <= 0.5 * 10.0 ** -len(word.partition(".")[2]) + _ROUNDING
        for word, number in zip(said, stored, strict=True)
    )


def _repaired(case: Case, box: Box, said: tuple[str, ...]) -> bool:
    """Whether a box is the one in words with its corners in order and cut off at its frame, as an import leaves it."""
    image = next(image for image in case.images if image.key == box.image)
    x1, y1, x2, y2 = map(float, said)
    width, height = (side or float("inf") for side in sides(box, image))
    inside = (
        max(0.0, min(x1, x2)),
        max(0.0, min(y1, y2)),
        min(width, max(x1, x2)),
        min(height, max(y1, y2)),
    )
    return all(abs(one - other) <= _ROUNDING for one, other in zip(inside, box.xyxy, strict=True))


def _views(step: Step) -> str | None:
    stored = {view.strip() for text in _texts(step, "view") for view in text.split(",")} & _TOLD.keys()
    right = " and ".join(option.text for option in step.options if option.id in step.key.options)
    for field, text in (("key.text", step.key.text), ("key.options", right)):
        if not (stored and text):
            continue
        for view, told in _TOLD.items():
            if view in stored and not told.search(text):
                return f"{field}: does not tell the {view} projection"
            if view not in stored and _CLAIMED[view].search(text):
                return f"{field}: tells the {view} projection where there is {' and '.join(sorted(stored))}"
    return None
