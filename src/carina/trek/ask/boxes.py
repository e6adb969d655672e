"""Stage 3, in boxes: where named anatomy lies, where a finding lies, and what a given box holds."""

from typing import Final

from pycocotools import mask as coco

from carina.cases import Box
from carina.cases.model import Frame
from carina.studies.model import Anatomy, Image
from carina.studies.region import Region
from carina.trek.subject import Thing
from carina.trek.turn import Examiner, Turn, target

_REFERENCE: Final = "<|ref|> {name} <|/ref|> <|box|>{corners}<|/box|>"
"""The dialect in which boxes are said and understood: percent, pixels or thousandths by the frame that is stated."""
_SIDES: Final = {"percent": 100.0, "thousand": 1000.0}


def ask_for_regions(examiner: Examiner, number: int) -> None:
    """Boxes of anatomy, on images on which it was drawn; no two questions for the same box."""
    shown = {image.key: place for place, image in enumerate(examiner.subject.images)}
    drawn = [structure for structure in examiner.subject.study.anatomy if structure.image in shown]
    for structure in examiner.draw.sample(drawn, number):
        _ask_region(examiner, structure, shown[structure.image])


def _ask_region(examiner: Examiner, structure: Anatomy, place: int) -> None:
    image = examiner.subject.images[place]
    box = box_of(structure.region, image, examiner.options.frame, name=structure.name, of="anatomy")
    if box is None:
        return
    slots = {"the_region": f"the {structure.name}", "image": examiner.image(place)}
    turn = examiner.ask(3, "region box", "boxes", slots, facts=[target("region", structure.name)])
    _key(examiner, turn, (box,), place)


def ask_for_findings(examiner: Examiner) -> None:
    """Boxes of what is there, after its place was asked for in words."""
    shown = {image.key: place for place, image in enumerate(examiner.subject.images)}
    for thing in examiner.subject.things:
        outlined = [mark for mark in thing.annotations if mark.image in shown]
        if not outlined or not thing.alone or not examiner.draw.chance(0.2):
            continue
        first = outlined[0]
        place = shown[first.image]
        image, frame = examiner.subject.images[place], examiner.options.frame
        # All that one annotator drew: a finding may lie in several places.
        drawn = [m for m in outlined if (m.image, m.annotator) == (first.image, first.annotator)]
        found = [box_of(mark.region, image, frame, name=thing.name) for mark in drawn]
        boxes = tuple(box for box in found if box is not None)
        if not boxes:
            continue
        if len(boxes) == 1 and examiner.draw.chance(0.25):
            _ask_content(examiner, thing, boxes[0], place)
        else:
            _ask_box(examiner, thing, boxes, place)


def _ask_box(examiner: Examiner, thing: Thing, boxes: tuple[Box, ...], place: int) -> Turn:
    slots = {"image": examiner.image(place), "the_finding": thing.the}
    variant = "boxes"
    report = examiner.subject.study.report
    # A sentence on what has changed would tell the key of a later stage.
    if report is not None and thing.evidence and thing.trend is None and examiner.draw.chance(0.4):
        number = thing.evidence[0]
        # A sentence that tells of several things would ask for several boxes.
        study = examiner.subject.study
        stated = [other.evidence for other in study.findings] + [other.evidence for other in study.devices]
        if sum(number in numbers for numbers in stated) == 1:
            phrase = report.quote(report.sentences[number]).strip().rstrip(".")
            variant, slots["phrase"] = "boxes/phrase", phrase
    turn = examiner.ask(3, "finding box", variant, slots, facts=[thing.target])
    turn.restates = True
    turn.evidence = thing.marks
    settled = examiner.presence.get(thing.id)
    if settled is not None:
        turn.depends.append(settled)
    _key(examiner, turn, boxes, place)
    return turn


def _ask_content(examiner: Examiner, thing: Thing, box: Box, place: int) -> Turn:
    slots = {"image": examiner.image(place), "box": coordinates(box)}
    facts = [thing.target, thing.truth]
    turn = examiner.ask(3, "box content", "open", slots, facts=facts)
    turn.images = (place,)
    turn.evidence = thing.marks
    kind = "some" if thing.is_present else "possible"
    turn.answer = examiner.say(turn, kind, {"list": thing.plain, "possible": thing.plain})
    return turn


def _key(examiner: Examiner, turn: Turn, boxes: tuple[Box, ...], place: int) -> None:
    turn.images = (place,)
    turn.boxes = boxes
    turn.answer = examiner.say(turn, "any", {"boxes": " ".join(said(box, box.name) for box in boxes)})


def box_of(region: Region, image: Image, frame: Frame, *, name: str = "", of: str = "finding") -> Box | None:
    """The box around a region in the units of a frame; None for an empty region."""
    x, y, width, height = coco.toBbox(
        {"size": [region.height, region.width], "counts": region.counts}
    ).tolist()
    if width <= 0 or height <= 0:
        return None
    corners = (x, y, x + width, y + height)
    side = _SIDES.get(frame)
    if side is not None:
        digits = 2 if side == 100 else 0
        extent = (image.width, image.height) * 2
        corners = tuple(round(at * side / full, digits) for at, full in zip(corners, extent, strict=True))
    if corners[0] >= corners[2] or corners[1] >= corners[3]:
        return None
    return Box(image=image.key, xyxy=corners, frame=frame, name=name, of=of)  # type: ignore[arg-type]


def coordinates(box: Box) -> str:
    """The corners of a box, in the units of its frame."""
    x1, y1, x2, y2 = (f"{at:.2f}" if box.frame == "percent" else f"{at:g}" for at in box.xyxy)
    return f"({x1}, {y1}), ({x2}, {y2})"


def said(box: Box, name: str) -> str:
    """A box with the name of what it holds, in the dialect of the original."""
    return _REFERENCE.format(name=name, corners=coordinates(box))
