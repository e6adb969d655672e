"""Answers in boxes: in the frame that the question asks for, whatever frame they are given in."""

import re
from collections.abc import Mapping
from typing import Final

from carina.cases import Box, Step
from carina.cases.model import Frame
from carina.runs.parse.corners import Corners, corners_in
from carina.runs.parse.failure import failed
from carina.runs.parse.frames import converted, fitted, stated
from carina.runs.parse.normalise import Spoken, folded, plain, storable
from carina.runs.records import Parsed

_HEAD: Final = 2000
"""Characters from either end of a reply in which it may state its units."""
_FINAL: Final = re.compile(
    r"(?:final answer|\banswer\b)[^\n]{0,20}[:=\n]|\bfinal(?: [a-z]{1,12}){0,2}?[*_]{0,2}\s?(?:[:=]|is\b|are\b)"
    r"|<answer>|\\boxed\s?\{",
    re.IGNORECASE,
)
_NUMBERED_IMAGE: Final = re.compile(
    r"\bimage\s?(?:no\.?\s?)?#?(\d{1,2})\b|\b(1st|2nd|3rd|4th|first|second|third|fourth) image\b"
)
_ORDINALS: Final = {"1st": 1, "first": 1, "2nd": 2, "second": 2, "3rd": 3, "third": 3, "4th": 4, "fourth": 4}


def parse_boxes(step: Step, said: Spoken, stop: str, images: Mapping[str, tuple[int, int]]) -> Parsed:
    """The boxes of a reply. Without any: why; `out_of_range` where none lies in its image or encloses anything."""
    text = _answer(said.text)
    found = corners_in(text)
    if not found:
        return failed(plain(said.text), said, stop)
    question = folded(step.question).lower()
    wanted = stated(question)
    unit = stated(_without_boxes(text))
    keys = list(images)
    image = keys[_number(question, len(keys))] if keys else ""
    boxes = []
    for corners in found:
        key = keys[_number(corners.name.lower(), len(keys))] if len(keys) > 1 and corners.name else image
        box = _box(corners, wanted, unit, key, images.get(key))
        if box is not None:
            boxes.append(box)
    if not boxes:
        return Parsed(status="out_of_range")
    return Parsed(status="ok", boxes=tuple(boxes))


def _answer(text: str) -> str:
    """What follows the last words that announce the answer, if a box does; else all of it."""
    ends = [marker.end() for marker in _FINAL.finditer(text)]
    if ends:
        tail = text[ends[-1] :]
        if any(sign.isdigit() for sign in tail) and corners_in(tail):
            return tail
    return text


def _without_boxes(text: str) -> str:
    """The words in which a reply may state its units."""
    words = text if len(text) <= 2 * _HEAD else f"{text[:_HEAD]} {text[-_HEAD:]}"
    return folded(words).lower()


def _box(
    corners: Corners, wanted: Frame | None, unit: Frame | None, image: str, size: tuple[int, int] | None
) -> Box | None:
    frame = corners.frame or unit or wanted or "pixel"
    xyxy = corners.xyxy
    if corners.frame is None and frame != "unit" and max(xyxy) <= 1.0 and any(at != int(at) for at in xyxy):
        # Nothing in an image is smaller than a pixel or a hundredth of it: these are shares.
        frame = "unit"
    fit = fitted(xyxy, frame, size)
    if fit is None and corners.dialect is not None and corners.frame is None:
        frame = corners.dialect
        fit = fitted(xyxy, frame, size)
    if fit is None:
        return None
    inside, framed = converted(fit, frame, wanted or frame, size)
    return Box(image=image, xyxy=inside, frame=framed, name=storable(corners.name))


def _number(words: str, images: int) -> int:
    """Which image words speak of, from 0; the first where they do not say."""
    found = _NUMBERED_IMAGE.search(words)
    if found is None:
        return 0
    number = int(found[1]) if found[1] else _ORDINALS[found[2]]
    return number - 1 if 1 <= number <= images else 0
