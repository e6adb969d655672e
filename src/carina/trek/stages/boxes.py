"""Stage 3, in boxes: where named anatomy lies, where a finding lies, and what a given box holds."""

from collections.abc import Sequence
from typing import Final, Literal

from carina.cases import Box
from carina.cases.model import Frame
from carina.studies.model import Image
from carina.studies.region import Region, bounding_boxes
from carina.trek.facts import target_row
from carina.trek.stages.attributes import restate_presence
from carina.trek.subject import KINDS, Thing
from carina.trek.turn import ConversationDraft, Turn

_MIDLINE: Final = (0.35, 0.65)
"""Shares of the width of a frontal image between which the border of the two lungs lies."""
_LEAST_SIDE: Final = 0.02
"""Least share of a drawing that a side must have to get a box of its own."""
_QUOTED_SHARE: Final = 0.4
"""Share of the findings with a sentence of their own that are asked for by quoting it."""
_STEPS: Final = {"percent": (10_000, 100), "thousand": (1000, 1)}
"""By frame, the number of steps into which the side of an image is divided, and the number of steps in one unit."""


def ask_for_regions(draft: ConversationDraft, number: int) -> None:
    """Ask for boxes of anatomy, on images on which it was drawn; each box once."""
    drawn = draft.subject.structures
    shown = {image.key: place for place, image in enumerate(draft.subject.images)}
    fit: Sequence[int] = range(len(drawn.images))
    if not shown.keys() >= set(drawn.images):
        fit = [place for place in fit if drawn.images[place] in shown]
    asked = draft.sampler.sample(fit, number)
    around = bounding_boxes([drawn.region(structure) for structure in asked])
    for structure, corners in zip(asked, around, strict=True):
        name, place = drawn.names[structure], shown[drawn.images[structure]]
        box = _make_box(draft, corners, place, name=name, of="anatomy")
        if box is not None:
            slots = {"the_region": draft.words.region(name), "image": draft.image(place)}
            turn = draft.add_question(3, "region box", "boxes", slots, facts=[target_row("region", name)])
            _set_key(draft, turn, (box,), place)


def ask_for_findings(draft: ConversationDraft) -> None:
    """Ask for boxes of findings, after their locations were asked for in words."""
    shown = {image.key: place for place, image in enumerate(draft.subject.images)}
    for thing in draft.subject.things:
        outlined = [mark for mark in thing.annotations if mark.image in shown]
        if not outlined or not thing.alone or not draft.sampler.chance(0.2):
            continue
        first = outlined[0]
        place = shown[first.image]
        # Everything that one annotator drew, since a finding may lie in several places.
        drawn = [m for m in outlined if (m.image, m.annotator) == (first.image, first.annotator)]
        frontal = draft.subject.images[place].view in ("PA", "AP")
        several = frontal and len(thing.sides) > 1
        parts = [
            part for mark in drawn for part in (_split_by_lung(mark.region) if several else (mark.region,))
        ]
        around = bounding_boxes(parts)
        found = [_make_box(draft, corners, place, name=thing.name) for corners in around]
        boxes = tuple(sorted([box for box in found if box is not None], key=lambda box: box.xyxy))
        if not boxes:
            continue
        asks_content = len(boxes) == 1 and draft.sampler.chance(0.25) and _is_alone(draft, thing, first.image)
        if asks_content and draft.is_complete("box content", *KINDS):
            _ask_content(draft, thing, boxes[0], place)
        else:
            _ask_box(draft, thing, boxes, place)


def _split_by_lung(region: Region) -> Sequence[Region]:
    """The parts of a drawing in each lung, for separate boxes; the whole drawing where it covers the mediastinum."""
    halves = region.halves(*_MIDLINE)
    if halves is None or min(half.area for half in halves) < _LEAST_SIDE * region.area:
        return (region,)
    return halves


def _is_alone(draft: ConversationDraft, thing: Thing, image: str) -> bool:
    """Whether no other finding could lie in the box of a thing: all others are drawn, and drawn elsewhere."""
    marks = [mark for mark in thing.annotations if mark.image == image]
    for other in draft.subject.things:
        if other is not thing:
            drawn = [mark for mark in other.annotations if mark.image == image]
            if not drawn or _do_touch([m.region for m in marks], [m.region for m in drawn]):
                return False
    return True


def _do_touch(some: list[Region], others: list[Region]) -> bool:
    boxes = [box for box in bounding_boxes(some) if box is not None]
    return any(
        x < x2 + w2 and x2 < x + w and y < y2 + h2 and y2 < y + h
        for x, y, w, h in boxes
        for x2, y2, w2, h2 in (box for box in bounding_boxes(others) if box is not None)
    )


def _ask_box(draft: ConversationDraft, thing: Thing, boxes: tuple[Box, ...], place: int) -> Turn:
    slots = {"image": draft.image(place), "the_finding": thing.the}
    phrase = (
        _find_own_sentence(draft, thing) if len(boxes) == 1 and draft.sampler.chance(_QUOTED_SHARE) else None
    )
    variant = "boxes" if len(boxes) == 1 else "boxes/several"
    if phrase is not None:
        variant, slots["phrase"] = "boxes/phrase", phrase
    turn = draft.add_question(3, "finding box", variant, slots, facts=[thing.target])
    restate_presence(draft, turn, thing)
    _set_key(draft, turn, boxes, place)
    return turn


def _find_own_sentence(draft: ConversationDraft, thing: Thing) -> str | None:
    """A sentence of the report about this thing alone that reveals no later key; None where there is none."""
    study = draft.subject.study
    # A sentence about a change would reveal the key of a later stage.
    if study.report is None or not thing.evidence or thing.trend is not None:
        return None
    number = thing.evidence[0]
    # A sentence about several things would need several boxes; relations and recommendations are asked about later.
    stated = [
        *(one.evidence for one in study.findings),
        *(one.evidence for one in study.devices),
        *(one.evidence for one in study.relations),
        *(one.evidence for one in study.recommendations),
    ]
    if sum(number in numbers for numbers in stated) != 1:
        return None
    return study.report.quote(study.report.sentences[number]).strip().rstrip(".")


def _ask_content(draft: ConversationDraft, thing: Thing, box: Box, place: int) -> Turn:
    slots = {
        "image": draft.image(place),
        "box": f"{format_corners(box)} {draft.words.wording.grammar['units'][box.frame]}",
    }
    facts = [thing.target, thing.truth]
    turn = draft.add_question(3, "box content", "open", slots, facts=facts)
    turn.images = (place,)
    turn.evidence = thing.marks
    kind = "some" if thing.is_present else "possible"
    turn.answer = draft.fill_answer(turn, kind, {"list": thing.plain, "possible": thing.plain})
    return turn


def _set_key(draft: ConversationDraft, turn: Turn, boxes: tuple[Box, ...], place: int) -> None:
    turn.images = (place,)
    turn.boxes = boxes
    turn.answer = draft.fill_answer(
        turn, "any", {"boxes": " ".join([format_box(box, box.name) for box in boxes])}
    )


def _make_box(
    draft: ConversationDraft,
    corners: tuple[int, int, int, int] | None,
    place: int,
    *,
    name: str,
    of: Literal["finding", "anatomy"] = "finding",
) -> Box | None:
    if corners is None:
        return None
    return convert_box(corners, draft.subject.images[place], draft.options.frame, name=name, of=of)


def convert_box(
    corners: tuple[int, int, int, int],
    image: Image,
    frame: Frame,
    *,
    name: str,
    of: Literal["finding", "anatomy"] = "finding",
) -> Box | None:
    """A rectangle (x, y, width, height in pixels) as a box in the units of a frame; None where rounding empties it."""
    x, y, width, height = corners
    x1, y1, x2, y2 = float(x), float(y), float(x + width), float(y + height)
    if frame in _STEPS:
        steps, unit = _STEPS[frame]
        across, down = steps / image.width, steps / image.height
        x1, y1, x2, y2 = (
            round(x1 * across) / unit,
            round(y1 * down) / unit,
            round(x2 * across) / unit,
            round(y2 * down) / unit,
        )
    if x1 >= x2 or y1 >= y2:
        return None
    return Box(image=image.key, xyxy=(x1, y1, x2, y2), frame=frame, name=name, of=of)


def format_corners(box: Box) -> str:
    """The corners of a box, in the units of its frame."""
    x1, y1, x2, y2 = box.xyxy
    if box.frame == "percent":
        return f"({x1:.2f}, {y1:.2f}), ({x2:.2f}, {y2:.2f})"
    return f"({x1:g}, {y1:g}), ({x2:g}, {y2:g})"


def format_box(box: Box, name: str) -> str:
    """A box with the name of its content, in the notation of CXRTrek."""
    return f"<|ref|> {name} <|/ref|> <|box|>{format_corners(box)}<|/box|>"
