"""Layouts of conversations for other tools, one function for each layout; each makes the record of one case.

| layout | record |
|---|---|
| openai | `id`, `messages` of role and content; a user's content is a list of parts, `image_url` or `text` |
| llava | `id`, `image` (paths), `conversations` of `from` (human, gpt) and `value` with `<image>` |
| swift | `id`, `messages` of role and content with `<image>`, `images` (paths), and what an import needs |
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from carina.cases.messages import Message, inline, view_ids
from carina.cases.model import Case, Step
from carina.trek.facts import TrekStepFacts

Refer = Callable[[str], str]
"""From the id of a view to the address of its picture."""
Layout = Callable[[Case, Sequence[Message], Refer], dict[str, Any]]

_TARGETS: Final = {"finding": "abnormality_[{}]", "device": "foreign_body_[{}]"}
"""How the published sample names what a question is about."""


def openai(case: Case, said: Sequence[Message], refer: Refer) -> dict[str, Any]:
    """Chat messages whose content is a list of parts; an address is a path or a data URI."""
    return {"id": case.id, "messages": [_make_parts(message, refer) for message in said]}


def llava(case: Case, said: Sequence[Message], refer: Refer) -> dict[str, Any]:
    """Conversations with `<image>` where a picture enters; no field `image` where there is none."""
    speakers = {"user": "human", "assistant": "gpt"}
    record: dict[str, Any] = {"id": case.id}
    pictures = [refer(view) for view in view_ids(said)]
    if pictures:
        record["image"] = pictures
    record["conversations"] = [{"from": speakers[message.role], "value": inline(message)} for message in said]
    return record


def swift(case: Case, said: Sequence[Message], refer: Refer) -> dict[str, Any]:
    """Messages with `<image>` where a picture enters, and a list of pictures.

    The further fields are those of the published staged conversations, without their second copy of the text: a
    conversation that is read again has the same questions, answers, formats and boxes.
    """
    record: dict[str, Any] = {
        "id": case.id,
        "messages": [{"role": message.role, "content": inline(message)} for message in said],
    }
    pictures = [refer(view) for view in view_ids(said)]
    if pictures:
        record["images"] = pictures
    record |= {
        "source": case.source,
        "pat_id": case.patient or "",
        "study_id": case.study,
        "ref_study_id": case.reference_study or "",
        "pos_study_id": case.later_study or "",
        **({"split": case.split} if case.split else {}),
    }
    if any(message.role == "assistant" for message in said):
        record["content"] = _describe_questions(case)
    return record


LAYOUTS: Final[dict[str, Layout]] = {"openai": openai, "llava": llava, "swift": swift}
"""Layouts that hold pictures, by name."""


def _make_parts(message: Message, refer: Refer) -> dict[str, Any]:
    if message.role == "assistant":
        return {"role": "assistant", "content": message.text}
    pictures = [{"type": "image_url", "image_url": {"url": refer(view)}} for view in message.shows]
    return {"role": "user", "content": [*pictures, {"type": "text", "text": message.text}]}


def _describe_questions(case: Case) -> list[dict[str, Any]]:
    """The fields of each question besides its text."""
    current = [image.key for image in case.images if image.role == "current"]
    items, seen = [], 0
    for step in case.steps:
        seen += len(step.shows)
        items.append(
            {
                "stage": step.stage,
                "task_type": step.task,
                "qtype": step.format,
                "image_input_count": seen,
                "num_of_images": len(current),
                **_target_fields(step),
                **_choice_fields(step),
                **_box_fields(step, current),
                "constraints": _constraint_fields(step),
                **({"label": step.key.label} if step.key.label else {}),
                **({"link_tag": True} if step.depends_on else {}),
            }
        )
    return items


def _target_fields(step: Step) -> dict[str, str]:
    target = TrekStepFacts.of(step).target
    if target is None:
        return {}
    return {"target": _TARGETS.get(target.kind, "{}").format(target.name), "target_kind": target.kind}


def _choice_fields(step: Step) -> dict[str, Any]:
    if not step.options:
        return {}
    return {
        "option_list": [option.text for option in step.options],
        "answer_list": [step.options[number - 1].text for number in step.right],
        **({"multiple": True} if step.multiple else {}),
    }


def _constraint_fields(step: Step) -> dict[str, Any]:
    given = step.constraints
    stated = {
        "max_words": given.max_words,
        "min_words": given.min_words,
        "answer_only": given.answer_only or None,
    }
    return {name: value for name, value in stated.items() if value is not None}


def _box_fields(step: Step, current: Sequence[str]) -> dict[str, Any]:
    """Boxes of one image and one frame; the published fields cannot express more."""
    boxes = step.key.boxes
    places = {(box.image, box.frame) for box in boxes}
    if len(places) != 1:
        return {}
    ((image, frame),) = places
    if image not in current:
        return {}
    return {
        "bbox_list": [list(box.xyxy) for box in boxes],
        "bbox_frame": frame,
        "bbox_names": [box.name for box in boxes],
        "image_id": current.index(image) + 1,
    }
