"""Cases in the interchange form of staged conversations, `staged-cxr/1`: facts, evidence and keys in plain JSON.

Images are referred to by key and shown without overlays: a case whose views draw on an image has no such form.
"""

from typing import Any, Final

from carina.cases.messages import answer
from carina.cases.model import Box, Case, Key, Step
from carina.store.errors import BenchmarkError

SCHEMA: Final = "staged-cxr/1"
_VIEWS: Final = {"lateral": "LL"}
_OF: Final = {"anatomy": "region", "finding": "finding"}


def make_staged_record(case: Case, *, answers: bool = True) -> dict[str, Any]:
    """The record of a case; without answers, its turns hold the questions and no facts behind an answer."""
    ordinals = {image.key: place for place, image in enumerate(case.images, start=1)}
    views = {view: ordinals[key] for view, key in _images_by_view(case).items()}
    numbers = {step.id: place for place, step in enumerate(case.steps, start=1)}
    return {
        "schema": SCHEMA,
        "id": ":".join((case.source, case.patient or "none", case.study, case.reference_study or "none")),
        "case": case.id,
        "source": case.source,
        "patient": case.patient,
        "study": case.study,
        "reference_study": case.reference_study,
        "later_study": case.later_study,
        "split": case.split,
        "images": [
            {
                "key": image.key,
                "role": image.role,
                "ordinal": ordinals[image.key],
                "view": _VIEWS.get(image.view, image.view),
                "width": image.width,
                "height": image.height,
                "sha256": image.sha256,
            }
            for image in case.images
        ],
        "context": {
            "indication": case.context.indication,
            "age": case.context.age,
            "sex": case.context.sex,
        },
        "turns": [
            {
                **_question_fields(step, numbers, views),
                **(_answer_fields(case, step, ordinals) if answers else {}),
            }
            for step in case.steps
        ],
        "order": case.order,
    }


def _images_by_view(case: Case) -> dict[str, str]:
    """The image of each view, which must show nothing else."""
    found = {}
    for view in case.views:
        panel = view.panels[0]
        if len(view.panels) > 1 or panel.overlays or panel.marks or panel.crop or panel.caption or view.side:
            raise BenchmarkError(
                f"case {case.id!r}: view {view.id!r} is drawn or cut, but {SCHEMA} shows images as they are: choose "
                "another layout"
            )
        found[view.id] = panel.image
    return found


def _question_fields(step: Step, numbers: dict[str, int], views: dict[str, int]) -> dict[str, Any]:
    return {
        "tid": numbers[step.id],
        "stage": step.stage,
        "task": step.task,
        "format": step.format,
        "template": step.template,
        "slots": {slot.name: slot.value for slot in step.slots},
        "context": step.context,
        "question": step.question,
        "shows_images": [views[view] for view in step.shows],
        "uses_images": [views[view] for view in step.uses],
        "depends_on": [numbers[before] for before in step.depends_on],
        "history_required": bool(step.depends_on),
        "restates": step.restates,
        "constraints": {
            "max_words": step.constraints.max_words,
            "min_words": step.constraints.min_words,
            "answer_only": step.constraints.answer_only,
        },
        "options": [{"id": option.id, "text": option.text} for option in step.options],
        "multiple": step.multiple,
    }


def _answer_fields(case: Case, step: Step, ordinals: dict[str, int]) -> dict[str, Any]:
    key, origin = step.key, step.origin
    return {
        "options": [
            {"id": option.id, "text": option.text, "correct": option.id in key.options}
            for option in step.options
        ],
        "answer": {
            "text": answer(case, step),
            "label": key.label,
            "boxes": [_box_fields(box, ordinals) for box in key.boxes],
            "sections": _section_texts(key),
        },
        "evidence": [{"report": found.report, "sentence": found.sentence} for found in step.evidence],
        "provenance": {
            "method": origin.method,
            "model": origin.model,
            "review": origin.review,
            "note": origin.note,
        },
    }


def _box_fields(box: Box, ordinals: dict[str, int]) -> dict[str, Any]:
    return {
        "image": ordinals[box.image],
        "frame": box.frame,
        "xyxy": list(box.xyxy),
        "name": box.name,
        "of": _OF[box.of],
    }


def _section_texts(key: Key) -> dict[str, str | None]:
    named: dict[str, str | None] = {"findings": None, "impression": None}
    return named | {section.name: section.text for section in key.sections}
