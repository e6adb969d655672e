"""Gate: does every turn hold together? Images, dependencies, options, boxes, formats, labels.

What holds for every protocol (known ids, options once, no unfilled slot in a question) is for `carina.cases.faults`.
"""

import math
from collections.abc import Iterator
from typing import Final

from carina.cases.model import Box, Case, CaseImage, Step
from carina.trek.audit.ruled import Broken, Ruled
from carina.trek.audit.turns import PRESENCE, Conversation, Turn, plain

_SCORES: Final = {
    "open": ("text",),
    "report": ("text",),
    "yes_no": ("exact",),
    "choice": ("exact", "set"),
    "boxes": ("boxes",),
}
_SHAPES: Final = {
    "open": (False, False, False, False),
    "report": (False, False, False, True),
    "yes_no": (False, True, False, False),
    "choice": (True, False, False, False),
    "boxes": (False, False, True, False),
}
"""Which of options, label, boxes and sections a format has."""
_TRUTH: Final = {"present": "yes", "absent": "no", "uncertain": "uncertain"}
_UNITS: Final = {"unit": 1.0, "percent": 100.0, "thousand": 1000.0}
_ROUNDING: Final = 1e-6
_STAGES: Final = range(1, 9)


class Form(Ruled):
    """The rules of a trek record that one turn or one conversation can break."""

    cost = 3.0
    name = "form"
    rules = ("images", "dependencies", "options", "boxes", "formats", "labels", "answers", "evidence")
    threshold = (
        "every image once, current before reference, no later than it is needed; dependencies on earlier turns of an "
        "equal or lower stage; boxes inside their frame; format, score, label and text agree; an answer in words"
    )
    good = "Every turn holds what its format says, and every image enters once and in time."
    bad = (
        "Some turns contradict themselves or show images at the wrong place, so they cannot be asked or scored as "
        "meant; build these conversations anew."
    )

    def broken(self, conversation: Conversation) -> Iterator[Broken]:
        case = conversation.case
        yield from _images(case)
        stages = {step.id: step.stage for step in case.steps}
        for turn in conversation.turns:
            step = turn.step
            for before in step.depends_on:
                if stages.get(before, 0) > step.stage:
                    what = f"depends_on: {before!r} is of stage {stages[before]}, later than {step.stage}"
                    yield Broken("dependencies", step.id, what)
            key, stated = step.key, _SHAPES.get(step.format)
            shape = (bool(step.options), key.label is not None, bool(key.boxes), bool(key.sections))
            if shape != stated or step.score not in _SCORES[step.format] or step.stage not in _STAGES:
                yield from (Broken("formats", step.id, what) for what in _format(step))
            if step.options:
                yield from (Broken("options", step.id, what) for what in _options(step))
            if key.boxes:
                yield from (Broken("boxes", step.id, what) for what in _boxes(case, step))
            if turn.label is not None:
                yield from (Broken("labels", step.id, what) for what in _labels(turn))
            if step.evidence:
                yield from (Broken("evidence", step.id, what) for what in _evidence(case, step))
            if not turn.answer:
                yield Broken("answers", step.id, "key.text: there is no answer in words")


def _images(case: Case) -> Iterator[Broken]:
    roles = [image.role for image in case.images]
    if "current" not in roles:
        yield Broken("images", "", "images: none is of the current study")
    if roles != sorted(roles):
        yield Broken("images", "", "images: a reference image stands before a current one")
    shown = [[panel.image for panel in view.panels] for view in case.views]
    if shown != [[image.key] for image in case.images]:
        yield Broken("images", "", "views: not one a picture, in the order of the images")
        return
    views = {view.id: image for view, image in zip(case.views, case.images, strict=True)}
    entered = [(step, view) for step in case.steps for view in step.shows]
    if [view for _, view in entered] != list(views):
        listed = ", ".join(view for _, view in entered) or "no view"
        yield Broken(
            "images", "", f"shows: {listed} over all turns, expected {', '.join(views)} once and in order"
        )
    yield from _in_time(case, views)


def _in_time(case: Case, views: dict[str, CaseImage]) -> Iterator[Broken]:
    """Current images at the first turn; reference images no later than the first comparison."""
    compared = False
    for place, step in enumerate(case.steps):
        compared = compared or step.stage == 5
        roles = {views[view].role for view in step.shows if view in views}
        if "current" in roles and place:
            yield Broken("images", step.id, "shows: a current image after the first turn")
        if "reference" in roles and compared and any(before.stage == 5 for before in case.steps[:place]):
            yield Broken("images", step.id, "shows: a reference image after the first turn of stage 5")


def _options(step: Step) -> Iterator[str]:
    texts = [plain(option.text) for option in step.options]
    if len(set(texts)) < len(texts):
        yield "options: two have the same words"
    right = set(step.key.options)
    if not right <= {option.id for option in step.options}:
        yield "key.options: not among the options"
    if len(step.key.kinds) == len(step.options):
        for option, kind in zip(step.options, step.key.kinds, strict=True):
            if (kind == "key" and option.id not in right) or (kind == "distractor" and option.id in right):
                yield f"key.kinds: option {option.id!r} is a {kind}, which the key contradicts"
    if step.multiple != (step.score == "set"):
        yield f"score: {step.score!r} where {'several options' if step.multiple else 'one option'} may be right"


def _boxes(case: Case, step: Step) -> Iterator[str]:
    images = {image.key: image for image in case.images}
    for box in step.key.boxes:
        image = images.get(box.image)
        if image is None:
            yield f"key.boxes: {box.name!r} lies on image {box.image!r}, which is not there"
            continue
        x1, y1, x2, y2 = box.xyxy
        width, height = sides(box, image)
        inside = (
            all(map(math.isfinite, box.xyxy))
            and min(x1, y1) >= -_ROUNDING
            and x2 <= width + _ROUNDING
            and y2 <= height + _ROUNDING
        )
        if not inside:
            yield f"key.boxes: {box.name!r} {box.xyxy} leaves its {box.frame} frame of {width:g} x {height:g}"
        elif not (x1 < x2 and y1 < y2):
            yield f"key.boxes: {box.name!r} {box.xyxy} has no area"


def sides(box: Box, image: CaseImage) -> tuple[float, float]:
    """Width and height of the frame that a box is given in."""
    unit = _UNITS.get(box.frame)
    return (float(image.width), float(image.height)) if unit is None else (unit, unit)


def _format(step: Step) -> Iterator[str]:
    """Whether the fields are those of the format."""
    key, has = step.key, step.format
    if step.stage not in _STAGES:
        yield f"stage: {step.stage}, expected 1 to 8"
    if has not in _SCORES:
        yield f"format: {has!r} is none of trek's"
        return
    if step.score not in _SCORES[has]:
        yield f"score: {step.score!r} does not go with format {has!r}"
    if bool(step.options) != (has == "choice"):
        yield f"options: {len(step.options)} with format {has!r}"
    if (key.label is not None) != (has == "yes_no") and not (has == "choice" and key.label):
        yield f"key.label: {key.label!r} with format {has!r}"
    if bool(key.boxes) != (has == "boxes"):
        yield f"key.boxes: {len(key.boxes)} with format {has!r}"
    if bool(key.sections) != (has == "report"):
        yield f"key.sections: {len(key.sections)} with format {has!r}"


def _evidence(case: Case, step: Step) -> Iterator[str]:
    there = {"current": True, "reference": case.reference_study, "later": case.later_study}
    for cited in step.evidence:
        if not there[cited.report] or cited.sentence < 0:
            yield f"evidence: sentence {cited.sentence} of the {cited.report} report, which is not there"


def _labels(turn: Turn) -> Iterator[str]:
    """Whether label, words and truth agree, and uncertain stays apart from no."""
    step, label = turn.step, turn.label
    if step.format == "yes_no" and turn.answer:
        word = turn.answer[0].strip(".,;:!")
        if word in ("yes", "no") and word != label:
            yield f"key.text: begins with {word!r} where key.label is {label!r}"
        elif label in ("yes", "no") and word != label:
            yield f"key.text: does not begin with {label!r}, which key.label says"
    if step.task in PRESENCE:
        for fact in step.facts:
            if (
                fact.name == "truth"
                and fact.text
                and _TRUTH.get(fact.text) != label
                and fact.text != "uncertain"
            ):
                yield f"key: {label!r} where the truth is {fact.text!r}"
