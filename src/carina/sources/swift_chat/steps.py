"""One question of a published conversation as a step: its format by what it holds, its answer key, its defects."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from carina.cases import Box, CaseImage, Constraints, Fact, Key, Option, Origin, Step
from carina.cases.model import Format, Label, Score
from carina.sources._record import RecordError
from carina.sources.swift_chat import texts
from carina.sources.swift_chat.record import Defect, Fields
from carina.sources.swift_chat.texts import Target
from carina.trek.facts import TargetFact, TrekStepFacts

_MULTI: Final = re.compile(r"multi-?choice-?(\d+)", re.IGNORECASE)
_FRAMES: Final = {"pixel": None, "percent": 100.0, "unit": 1.0, "thousand": 1000.0}
"""Frames of boxes, and how far they reach; pixels as far as the image, whose size may be unknown."""
_TYPO: Final[dict[Defect, re.Pattern[str]]] = {
    "boxs": re.compile(r"\bboxs\b", re.IGNORECASE),
    "explaination": re.compile(r"\bexplaination", re.IGNORECASE),
}
_NONE_OF: Final = re.compile(r"\W*(none|neither|not any|no option)\b", re.IGNORECASE)
_SCORES: Final[dict[Format, Score]] = {
    "open": "text",
    "report": "text",
    "yes_no": "exact",
    "choice": "exact",
    "boxes": "boxes",
}


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A question and its answer without placeholders, and the views that enter with it."""

    question: str
    answer: str
    shows: tuple[str, ...]
    uses: tuple[str, ...]


def read_step(
    number: int, item: Fields, turn: Turn, current: Sequence[CaseImage], defects: Counter[Defect]
) -> Step:
    """The step of one item of `content`; defects that it has are counted in `defects`."""
    question = _repair_text(turn.question, defects)
    answer = _repair_text(turn.answer, defects)
    if not question.strip():
        raise RecordError(item.full_name("question"), "is empty")
    stage = item.integer("stage")
    if stage is None or not 1 <= stage <= 8:
        raise RecordError(item.full_name("stage"), f"is {stage}, expected 1 to 8")
    label = item.text("task_type") or ""
    target = item.text("target")
    options = _read_options(item, defects)
    boxes = _read_boxes(item, label, answer, current, defects)
    word = _read_label(item, answer)
    form = _choose_format(item, stage, options=bool(options), boxes=bool(boxes), word=word, defects=defects)
    task = texts.read_label(label, stage=stage, form=form, target=target)
    defects["unknown label"] += not task.known
    defects["label of another stage"] += task.home is not None and task.home != stage
    key = Key(text=answer, label=word if form == "yes_no" else None)
    if form == "choice" and options:
        key = Key(text=answer, options=options.right, kinds=options.kinds)
    elif form == "boxes":
        key = Key(text=answer, boxes=tuple(boxes))
    elif form == "report":
        key = Key(text=answer, sections=texts.read_sections(task.task, answer))
    constraints, broken = _read_constraints(item, question, answer)
    defects["limit not obeyed"] += broken
    several = item.boolean("multiple") is True
    multiple = form == "choice" and (several or len(key.options) > 1)
    return Step(
        id=f"t{number}",
        stage=stage,
        task=task.task,
        format=form,
        question=question,
        multiple=multiple,
        options=options.options if form == "choice" and options else (),
        shows=turn.shows,
        uses=turn.uses,
        score="set" if multiple else _SCORES[form],
        restates=task.task == "impression from findings",
        constraints=constraints,
        origin=_read_origin(item),
        key=key,
        facts=_make_facts(
            item, texts.read_target(target, task=task.task), key, presence="presence" in task.task
        ),
    )


def _repair_text(text: str, defects: Counter[Defect]) -> str:
    for defect, pattern in _TYPO.items():
        defects[defect] += len(pattern.findall(text))
    defects["doubled word"] += texts.count_doubled_words(text)
    repaired, slots = texts.fill_slots(text)
    defects["unfilled slot"] += slots
    return repaired


# ---- formats --------------------------------------------------------------------------------------------------------


def _choose_format(
    item: Fields, stage: int, *, options: bool, boxes: bool, word: Label | None, defects: Counter[Defect]
) -> Format:
    """The format by the content of the item, because the names of types are not reliable."""
    name = (item.text("qtype") or "").strip()
    given: Format = "report" if stage == 8 else "open"
    if options:
        given = "choice"
    elif boxes:
        given = "boxes"
    elif (
        item.boolean("is_joint_sent") is not None
        or name in ("open", "report")
        or item.texts("option_list")
        or item.boxes("bbox_list")
    ):
        pass  # open by its own word, or for want of a key that can be used
    elif word is not None and stage != 8:
        given = "yes_no"
    elif "yes" in name.lower():
        defects["yes/no without its word"] += 1
    multi = _MULTI.fullmatch(name)
    if multi:
        defects["multi-choice-N"] += 1
        defects["wrong number in multi-choice-N"] += options and int(multi.group(1)) != len(
            item.texts("option_list")
        )
    stated = "choice" if multi else name if name in _SCORES else given
    defects["type name against content"] += stated != given and {stated, given} != {"open", "report"}
    return given


def _read_label(item: Fields, answer: str) -> Label | None:
    """The label that the file states, or the first word of the answer; "uncertain" is never guessed."""
    stated = item.text("label")
    if stated is None:
        word = texts.read_yes_no(answer)
        return "yes" if word == "yes" else "no" if word == "no" else None
    for label in ("yes", "no", "uncertain"):
        if stated == label:
            return label
    raise RecordError(item.full_name("label"), f"is {stated!r}, expected yes, no or uncertain")


@dataclass(frozen=True, kw_only=True)
class _Options:
    options: tuple[Option, ...]
    right: tuple[str, ...]
    kinds: tuple[str, ...]


def _read_options(item: Fields, defects: Counter[Defect]) -> _Options | None:
    """The options of an item and which of them are right; None where there are none, or the right ones are unknown."""
    listed = [_repair_text(text, defects) for text in item.texts("option_list")]
    answers = [texts.fill_slots(text)[0] for text in item.texts("answer_list")]
    if not listed:
        return None
    labels, words = texts.split_labels(listed)
    by_text = {texts.make_comparable(word): label for label, word in zip(labels, words, strict=True)}
    if len(by_text) < len(words) or not all(words):
        defects["equal options"] += 1
        return None
    right = set()
    for answer in answers:
        whole, bare = texts.make_comparable(answer), texts.make_comparable(texts.remove_label(answer))
        keyed = by_text.get(whole) or by_text.get(bare)
        if keyed is None and answer.strip(" .()") in labels:
            keyed = answer.strip(" .()")
        if keyed is None:
            defects["answer not among options"] += 1
            return None
        right.add(keyed)
    if not right:
        defects["answer not among options"] += 1
        return None
    return _Options(
        options=tuple(Option(id=label, text=word) for label, word in zip(labels, words, strict=True)),
        right=tuple(label for label in labels if label in right),
        kinds=tuple(
            "key" if label in right else "none" if _NONE_OF.match(word) else "distractor"
            for label, word in zip(labels, words, strict=True)
        ),
    )


# ---- boxes ----------------------------------------------------------------------------------------------------------


def _read_boxes(
    item: Fields, label: str, answer: str, current: Sequence[CaseImage], defects: Counter[Defect]
) -> list[Box]:
    """Boxes in the frame of the file; none where they cannot be read or their image is unknown."""
    listed, frame, names = item.boxes("bbox_list"), item.text("bbox_frame"), item.texts("bbox_names")
    said = texts.read_boxes(answer)
    if not listed and said is None and "<|box|>" not in answer:
        return []
    image = _find_image(item, current)
    if frame is not None:
        named = [(names[place] if place < len(names) else "", box) for place, box in enumerate(listed)]
    else:
        frame, named = "percent", [(box.name, box.xyxy) for box in said or ()]
    if frame not in _FRAMES:
        raise RecordError(item.full_name("bbox_frame"), f"is {frame!r}, expected {', '.join(_FRAMES)}")
    if image is None or not named:
        defects["unreadable box"] += 1
        return []
    of_finding = label.lower().startswith("phrase_grounding") or label == "finding box"
    sizes = (image.width, image.height)
    boxes = []
    for name, xyxy in named:
        limit = _FRAMES[frame]
        reach = tuple(size or None for size in sizes) if limit is None else (limit, limit)
        inside = _fit_box(xyxy, reach, defects)
        if inside is None:
            defects["unreadable box"] += 1
            return []
        boxes.append(
            Box(
                image=image.key,
                xyxy=inside,
                frame=frame,  # type: ignore[arg-type]  # one of _FRAMES
                name=name,
                of="finding" if of_finding else "anatomy",
            )
        )
    return boxes


def _find_image(item: Fields, current: Sequence[CaseImage]) -> CaseImage | None:
    """The image that boxes lie on; its number counts current images from 1."""
    place = item.integer("image_id")
    if place is None:
        return current[0] if len(current) == 1 else None
    return current[place - 1] if 1 <= place <= len(current) else None


def _fit_box(
    xyxy: tuple[float, float, float, float],
    reach: tuple[float | None, ...],
    defects: Counter[Defect],
) -> tuple[float, float, float, float] | None:
    """A box with its corners in order and within the frame; None where nothing of it is left."""
    x1, x2 = sorted((xyxy[0], xyxy[2]))
    y1, y2 = sorted((xyxy[1], xyxy[3]))
    if (x1, y1, x2, y2) != xyxy:
        defects["corners exchanged"] += 1
    width, height = (float("inf") if end is None else end for end in reach)
    cut = (max(0.0, x1), max(0.0, y1), min(width, x2), min(height, y2))
    if cut != (x1, y1, x2, y2):
        defects["box outside the frame"] += 1
    return cut if cut[0] < cut[2] and cut[1] < cut[3] else None


# ---- constraints, facts, origin -------------------------------------------------------------------------------------


def _read_constraints(item: Fields, question: str, answer: str) -> tuple[Constraints, bool]:
    """As files that Carina exported state them, or as the question words them."""
    if not item.has("constraints"):
        return texts.read_constraints(question, answer)
    stated = item.inner("constraints")
    return Constraints(
        max_words=stated.integer("max_words"),
        min_words=stated.integer("min_words"),
        answer_only=stated.boolean("answer_only") is True,
    ), False


def _make_facts(item: Fields, target: Target, key: Key, *, presence: bool) -> tuple[Fact, ...]:
    truth: dict[str, str] = {}
    if presence and key.label is not None:
        truth[""] = {"yes": "present", "no": "absent", "uncertain": "uncertain"}[key.label]
    return TrekStepFacts(
        targets=(TargetFact(kind=item.text("target_kind") or target.kind, name=target.name),),
        truth=truth,
        history="required" if item.boolean("link_tag") else None,
        judge=item.text("reason"),
    ).rows()


def _read_origin(item: Fields) -> Origin:
    """The review of a question: the verdict of a model, or its rewriting."""
    verdict = item.boolean("qwen_accepted")
    polished = item.flags("polish")
    if polished:
        return Origin(method="import", review="rewritten", note=", ".join(polished))
    if verdict is None:
        return Origin(method="import")
    return Origin(method="import", review="accepted" if verdict else "rejected")
