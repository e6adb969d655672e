"""One question of a published conversation as a step: its format by what it holds, its key, and what it lacks."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from carina.cases import Box, CaseImage, Constraints, Fact, Key, Option, Origin, Step
from carina.cases.model import Format, Label, Score
from carina.trek.swift import texts
from carina.trek.swift.faults import Defect, RecordError
from carina.trek.swift.fields import Fields
from carina.trek.swift.tasks import Target, label_of, target_of

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
class Said:
    """A question and its answer in words, without placeholders, and the pictures that enter with it."""

    question: str
    answer: str
    shows: tuple[str, ...]
    uses: tuple[str, ...]


def step_of(
    number: int, item: Fields, said: Said, current: Sequence[CaseImage], found: Counter[Defect]
) -> Step:
    """The step of one item of `content`; defects that it has are counted in `found`."""
    question = _repaired(said.question, found)
    answer = _repaired(said.answer, found)
    if not question.strip():
        raise RecordError(item.called("question"), "is empty")
    stage = item.whole("stage")
    if stage is None or not 1 <= stage <= 8:
        raise RecordError(item.called("stage"), f"is {stage}, expected 1 to 8")
    label = item.text("task_type") or ""
    probed = item.text("target")
    options = _options(item, found)
    boxes = _boxes(item, label, answer, current, found)
    word = _label(item, answer)
    form = _format(item, stage, options=bool(options), boxes=bool(boxes), word=word, found=found)
    family = label_of(label, stage=stage, form=form, target=probed)
    found["unknown label"] += not family.known
    found["label of another stage"] += family.home is not None and family.home != stage
    key = Key(text=answer, label=word if form == "yes_no" else None)
    if form == "choice" and options:
        key = Key(text=answer, options=options.right, kinds=options.kinds)
    elif form == "boxes":
        key = Key(text=answer, boxes=tuple(boxes))
    elif form == "report":
        key = Key(text=answer, sections=texts.sections(family.task, answer))
    constraints, broken = _constraints(item, question, answer)
    found["limit not obeyed"] += broken
    several = item.truth("multiple") is True
    multiple = form == "choice" and (several or len(key.options) > 1)
    return Step(
        id=f"t{number}",
        stage=stage,
        task=family.task,
        format=form,
        question=question,
        multiple=multiple,
        options=options.options if form == "choice" and options else (),
        shows=said.shows,
        uses=said.uses,
        score="set" if multiple else _SCORES[form],
        restates=family.task == "impression from findings",
        constraints=constraints,
        origin=_origin(item),
        key=key,
        facts=_facts(item, target_of(probed, task=family.task), key, presence="presence" in family.task),
    )


def _repaired(text: str, found: Counter[Defect]) -> str:
    for defect, pattern in _TYPO.items():
        found[defect] += len(pattern.findall(text))
    found["doubled word"] += texts.doubled_words(text)
    repaired, slots = texts.fill_slots(text)
    found["unfilled slot"] += slots
    return repaired


# ---- formats ------------------------------------------------------------------------------------------------------


def _format(
    item: Fields, stage: int, *, options: bool, boxes: bool, word: Label | None, found: Counter[Defect]
) -> Format:
    """By what the item holds: names of types are not to be relied upon."""
    name = (item.text("qtype") or "").strip()
    given: Format = "report" if stage == 8 else "open"
    if options:
        given = "choice"
    elif boxes:
        given = "boxes"
    elif (
        item.truth("is_joint_sent") is not None
        or name in ("open", "report")
        or item.texts("option_list")
        or item.boxes("bbox_list")
    ):
        pass  # open by its own word, or for want of a key that can be used
    elif word is not None and stage != 8:
        given = "yes_no"
    elif "yes" in name.lower():
        found["yes/no without its word"] += 1
    multi = _MULTI.fullmatch(name)
    if multi:
        found["multi-choice-N"] += 1
        found["wrong number in multi-choice-N"] += options and int(multi.group(1)) != len(
            item.texts("option_list")
        )
    stated = "choice" if multi else name if name in _SCORES else given
    found["type name against content"] += stated != given and {stated, given} != {"open", "report"}
    return given


def _label(item: Fields, answer: str) -> Label | None:
    """As the file states it, or the word with which the answer begins; never "uncertain" by guess."""
    stated = item.text("label")
    if stated is None:
        word = texts.yes_or_no(answer)
        return "yes" if word == "yes" else "no" if word == "no" else None
    for label in ("yes", "no", "uncertain"):
        if stated == label:
            return label
    raise RecordError(item.called("label"), f"is {stated!r}, expected yes, no or uncertain")


@dataclass(frozen=True, kw_only=True)
class _Options:
    options: tuple[Option, ...]
    right: tuple[str, ...]
    kinds: tuple[str, ...]


def _options(item: Fields, found: Counter[Defect]) -> _Options | None:
    """The options of an item and which of them are right; None where there are none, or it cannot be told."""
    listed = [_repaired(text, found) for text in item.texts("option_list")]
    answers = [texts.fill_slots(text)[0] for text in item.texts("answer_list")]
    if not listed:
        return None
    labels, words = texts.unlabelled(listed)
    by_text = {texts.same(word): label for label, word in zip(labels, words, strict=True)}
    if len(by_text) < len(words) or not all(words):
        found["equal options"] += 1
        return None
    right = set()
    for answer in answers:
        whole, bare = texts.same(answer), texts.same(texts.without_label(answer))
        keyed = by_text.get(whole) or by_text.get(bare)
        if keyed is None and answer.strip(" .()") in labels:
            keyed = answer.strip(" .()")
        if keyed is None:
            found["answer not among options"] += 1
            return None
        right.add(keyed)
    if not right:
        found["answer not among options"] += 1
        return None
    return _Options(
        options=tuple(Option(id=label, text=word) for label, word in zip(labels, words, strict=True)),
        right=tuple(label for label in labels if label in right),
        kinds=tuple(
            "key" if label in right else "none" if _NONE_OF.match(word) else "distractor"
            for label, word in zip(labels, words, strict=True)
        ),
    )


# ---- boxes --------------------------------------------------------------------------------------------------------


def _boxes(
    item: Fields, label: str, answer: str, current: Sequence[CaseImage], found: Counter[Defect]
) -> list[Box]:
    """Boxes in the frame in which the file gives them; none where they cannot be read, or not on which image."""
    listed, frame, names = item.boxes("bbox_list"), item.text("bbox_frame"), item.texts("bbox_names")
    said = texts.boxes_in(answer)
    if not listed and said is None and "<|box|>" not in answer:
        return []
    image = _image(item, current)
    if frame is not None:
        named = [(names[place] if place < len(names) else "", box) for place, box in enumerate(listed)]
    else:
        frame, named = "percent", [(box.name, box.xyxy) for box in said or ()]
    if frame not in _FRAMES:
        raise RecordError(item.called("bbox_frame"), f"is {frame!r}, expected {', '.join(_FRAMES)}")
    if image is None or not named:
        found["unreadable box"] += 1
        return []
    of_finding = label.lower().startswith("phrase_grounding") or label == "finding box"
    sizes = (image.width, image.height)
    boxes = []
    for name, xyxy in named:
        limit = _FRAMES[frame]
        reach = tuple(size or None for size in sizes) if limit is None else (limit, limit)
        inside = _inside(xyxy, reach, found)
        if inside is None:
            found["unreadable box"] += 1
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


def _image(item: Fields, current: Sequence[CaseImage]) -> CaseImage | None:
    """The image that boxes lie on, counted from 1 among the current ones."""
    place = item.whole("image_id")
    if place is None:
        return current[0] if len(current) == 1 else None
    return current[place - 1] if 1 <= place <= len(current) else None


def _inside(
    xyxy: tuple[float, float, float, float],
    reach: tuple[float | None, ...],
    found: Counter[Defect],
) -> tuple[float, float, float, float] | None:
    """A box with its corners in order and within the frame; None where nothing of it is left."""
    x1, x2 = sorted((xyxy[0], xyxy[2]))
    y1, y2 = sorted((xyxy[1], xyxy[3]))
    if (x1, y1, x2, y2) != xyxy:
        found["corners exchanged"] += 1
    width, height = (float("inf") if end is None else end for end in reach)
    cut = (max(0.0, x1), max(0.0, y1), min(width, x2), min(height, y2))
    if cut != (x1, y1, x2, y2):
        found["box outside the frame"] += 1
    return cut if cut[0] < cut[2] and cut[1] < cut[3] else None


# ---- what is known beside -----------------------------------------------------------------------------------------


def _constraints(item: Fields, question: str, answer: str) -> tuple[Constraints, bool]:
    """As our own files state them, or as the question words them."""
    if not item.has("constraints"):
        return texts.limits(question, answer)
    stated = item.inner("constraints")
    return Constraints(
        max_words=stated.whole("max_words"),
        min_words=stated.whole("min_words"),
        answer_only=stated.truth("answer_only") is True,
    ), False


def _facts(item: Fields, target: Target, key: Key, *, presence: bool) -> tuple[Fact, ...]:
    facts = [Fact(name="target", about=item.text("target_kind") or target.kind, text=target.name)]
    if presence and key.label is not None:
        truth = {"yes": "present", "no": "absent", "uncertain": "uncertain"}[key.label]
        facts.append(Fact(name="truth", text=truth))
    if item.truth("link_tag"):
        facts.append(Fact(name="history", text="required"))
    reason = item.text("reason")
    if reason is not None:
        facts.append(Fact(name="judge", text=reason))
    return tuple(facts)


def _origin(item: Fields) -> Origin:
    """Who has looked at it: a model's verdict, or its rewriting."""
    verdict = item.truth("qwen_accepted")
    polished = item.flags("polish")
    if polished:
        return Origin(method="import", review="rewritten", note=", ".join(polished))
    if verdict is None:
        return Origin(method="import")
    return Origin(method="import", review="accepted" if verdict else "rejected")
