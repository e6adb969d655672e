"""Gate: is every turn consistent in itself? Images, dependencies, options, boxes, formats, labels.

Rules for every protocol (known ids, each option once, no unfilled slot in a question) are in `carina.cases.faults`.
"""

import math
from collections.abc import Iterator
from typing import Final

from carina.audits.gate import gate
from carina.audits.trek.base import RuleGate, Violation
from carina.audits.trek.conversation import PRESENCE, Conversation, Turn, flatten_name
from carina.audits.trek.facts import truths
from carina.cases.model import Box, Case, CaseImage, Step
from carina.trek.protocol import TREK

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
"""Whether a format has options, a label, boxes and sections."""
_TRUTH: Final = {"present": "yes", "absent": "no", "uncertain": "uncertain"}
_UNITS: Final = {"unit": 1.0, "percent": 100.0, "thousand": 1000.0}
_ROUNDING: Final = 1e-6
_STAGES: Final = tuple(stage.number for stage in TREK.stages)


@gate(
    "turn-structure",
    title="Structure of turns",
    meaning="Every turn has the fields of its format, and every image is shown once and in time.",
    protocols=("trek",),
    order=300,
)
class TurnStructure(RuleGate):
    """Rules of a trek record that one turn or one conversation can violate."""

    cost = 3.0
    rules = ("images", "dependencies", "options", "boxes", "formats", "labels", "answers", "evidence")
    threshold = (
        "every image shown once, current before reference, no later than it is needed; dependencies on earlier turns "
        "of an equal or lower stage; boxes inside their frame; format, score, label and text agree; an answer in words"
    )
    good = "Every turn has the fields of its format, and every image is shown once and in time."
    bad = (
        "Some turns contradict themselves or show images at the wrong place, so they cannot be asked or scored as "
        "intended; rebuild these conversations."
    )

    def find_violations(self, conversation: Conversation) -> Iterator[Violation]:
        case = conversation.case
        yield from _check_images(case)
        stages = {step.id: step.stage for step in case.steps}
        for turn in conversation.turns:
            step = turn.step
            for before in step.depends_on:
                if stages.get(before, 0) > step.stage:
                    what = f"depends_on: {before!r} is of stage {stages[before]}, later than {step.stage}"
                    yield Violation("dependencies", step.id, what)
            key, expected = step.key, _SHAPES.get(step.format)
            shape = (bool(step.options), key.label is not None, bool(key.boxes), bool(key.sections))
            if shape != expected or step.score not in _SCORES[step.format] or step.stage not in _STAGES:
                yield from (Violation("formats", step.id, what) for what in _check_format(step))
            if step.options:
                yield from (Violation("options", step.id, what) for what in _check_options(step))
            if key.boxes:
                yield from (Violation("boxes", step.id, what) for what in _check_boxes(case, step))
            if turn.label is not None:
                yield from (Violation("labels", step.id, what) for what in _check_labels(turn))
            if step.evidence:
                yield from (Violation("evidence", step.id, what) for what in _check_evidence(case, step))
            if not turn.answer:
                yield Violation("answers", step.id, "key.text: no answer in words")


def _check_images(case: Case) -> Iterator[Violation]:
    roles = [image.role for image in case.images]
    if "current" not in roles:
        yield Violation("images", "", "images: no image of the current study")
    if roles != sorted(roles):
        yield Violation("images", "", "images: a reference image before a current one")
    shown = [[panel.image for panel in view.panels] for view in case.views]
    if shown != [[image.key] for image in case.images]:
        yield Violation("images", "", "views: expected one view per image, in the order of the images")
        return
    views = {view.id: image for view, image in zip(case.views, case.images, strict=True)}
    shown_views = [view for step in case.steps for view in step.shows]
    if shown_views != list(views):
        listed = ", ".join(shown_views) or "no view"
        yield Violation(
            "images", "", f"shows: {listed} in all turns, expected {', '.join(views)} once and in order"
        )
    yield from _check_times(case, views)


def _check_times(case: Case, views: dict[str, CaseImage]) -> Iterator[Violation]:
    """Current images belong to the first turn; reference images come no later than the first comparison."""
    compared = False
    for place, step in enumerate(case.steps):
        compared = compared or step.stage == 5
        roles = {views[view].role for view in step.shows if view in views}
        if "current" in roles and place:
            yield Violation("images", step.id, "shows: a current image after the first turn")
        if "reference" in roles and compared and any(before.stage == 5 for before in case.steps[:place]):
            yield Violation("images", step.id, "shows: a reference image after the first turn of stage 5")


def _check_options(step: Step) -> Iterator[str]:
    texts = [flatten_name(option.text) for option in step.options]
    if len(set(texts)) < len(texts):
        yield "options: two options have the same words"
    right = set(step.key.options)
    if not right <= {option.id for option in step.options}:
        yield "key.options: a key is not among the options"
    if len(step.key.kinds) == len(step.options):
        for option, kind in zip(step.options, step.key.kinds, strict=True):
            if (kind == "key" and option.id not in right) or (kind == "distractor" and option.id in right):
                yield f"key.kinds: option {option.id!r} is a {kind}, but the key contradicts that"
    if step.multiple != (step.score == "set"):
        yield f"score: {step.score!r} where {'several options' if step.multiple else 'one option'} may be right"


def _check_boxes(case: Case, step: Step) -> Iterator[str]:
    images = {image.key: image for image in case.images}
    for box in step.key.boxes:
        image = images.get(box.image)
        if image is None:
            yield f"key.boxes: {box.name!r} lies on image {box.image!r}, which the case does not have"
            continue
        x1, y1, x2, y2 = box.xyxy
        width, height = frame_size(box, image)
        inside = (
            all(map(math.isfinite, box.xyxy))
            and min(x1, y1) >= -_ROUNDING
            and x2 <= width + _ROUNDING
            and y2 <= height + _ROUNDING
        )
        if not inside:
            yield f"key.boxes: {box.name!r} {box.xyxy} exceeds its {box.frame} frame of {width:g} x {height:g}"
        elif not (x1 < x2 and y1 < y2):
            yield f"key.boxes: {box.name!r} {box.xyxy} has no area"


def frame_size(box: Box, image: CaseImage) -> tuple[float, float]:
    """Width and height of the frame in which the coordinates of a box are given."""
    unit = _UNITS.get(box.frame)
    return (float(image.width), float(image.height)) if unit is None else (unit, unit)


def _check_format(step: Step) -> Iterator[str]:
    """Fields that do not fit the format."""
    key, form = step.key, step.format
    if step.stage not in _STAGES:
        yield f"stage: {step.stage}, expected 1 to 8"
    if form not in _SCORES:
        yield f"format: {form!r} is not a format of trek"
        return
    if step.score not in _SCORES[form]:
        yield f"score: {step.score!r} does not fit format {form!r}"
    if bool(step.options) != (form == "choice"):
        yield f"options: {len(step.options)} with format {form!r}"
    if (key.label is not None) != (form == "yes_no") and not (form == "choice" and key.label):
        yield f"key.label: {key.label!r} with format {form!r}"
    if bool(key.boxes) != (form == "boxes"):
        yield f"key.boxes: {len(key.boxes)} with format {form!r}"
    if bool(key.sections) != (form == "report"):
        yield f"key.sections: {len(key.sections)} with format {form!r}"


def _check_evidence(case: Case, step: Step) -> Iterator[str]:
    studies = {"current": True, "reference": case.reference_study, "later": case.later_study}
    for cited in step.evidence:
        if not studies[cited.report] or cited.sentence < 0:
            yield f"evidence: sentence {cited.sentence} of the {cited.report} report, which does not exist"


def _check_labels(turn: Turn) -> Iterator[str]:
    """Disagreements between label, words and truth; uncertain is not the same as no."""
    step, label = turn.step, turn.label
    if step.format == "yes_no" and turn.answer:
        word = turn.answer[0].strip(".,;:!")
        if word in ("yes", "no") and word != label:
            yield f"key.text: begins with {word!r} where key.label is {label!r}"
        elif label in ("yes", "no") and word != label:
            yield f"key.text: does not begin with {label!r}, the value of key.label"
    if step.task in PRESENCE:
        for truth in truths(step):
            if _TRUTH.get(truth) != label and truth != "uncertain":
                yield f"key: {label!r} where the truth is {truth!r}"
