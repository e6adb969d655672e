"""Parse boxes, and convert them to the frame (unit) that the question asks for."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from carina.cases import Box, Step
from carina.cases.model import Frame
from carina.runs.parse.corners import Corners, find_corners
from carina.runs.parse.failure import classify_failure, is_unfinished
from carina.runs.parse.normalise import (
    ANSWER_SIGN,
    VisibleReply,
    fold_characters,
    make_storable,
    normalise_text,
)
from carina.runs.records import ParsedAnswer

_HEAD: Final = 2000
"""Characters from either end of a reply in which it may state its units."""
_SHORT: Final = 100
"""Longest reply that may say that there is no box."""
_FINAL: Final = re.compile(
    r"(?:final answer|\banswer\b)[^\n]{0,20}[:=\n]|\bfinal(?: [a-z]{1,12}){0,2}?[*_]{0,2}\s?(?:[:=]|is\b|are\b)"
    r"|<answer>|\\boxed\s?\{",
    re.IGNORECASE,
)
_NUMBERED_IMAGE: Final = re.compile(
    r"\bimage\s?(?:no\.?\s?)?#?(\d{1,2})\b|\b(1st|2nd|3rd|4th|first|second|third|fourth) image\b"
)
_ORDINALS: Final = {"1st": 1, "first": 1, "2nd": 2, "second": 2, "3rd": 3, "third": 3, "4th": 4, "fourth": 4}
_SIDES: Final[dict[Frame, float]] = {"percent": 100.0, "unit": 1.0, "thousand": 1000.0}
_MARGIN: Final = 0.02
"""Share of a side by which a box may extend beyond its frame."""

_NO_BOX: Final = re.compile(
    r"(?:(?:final )?answer ?[:=]? ?)?(?:json )?"
    r"(?:\[ ?\]|\{ ?\"(?:boxes|box|bbox|bbox_2d|bounding_boxes|answer)\" ?: ?(?:\[ ?\]|null) ?\}|none"
    r"|(?:there (?:is|are) )?no (?:bounding )?box(?:es)?(?: (?:needed|present|found|applicable|to draw|to report))?)"
    r"\.?"
)
"""A whole reply that says that there is no box."""

_STATED: Final[tuple[tuple[Frame, re.Pattern[str]], ...]] = (
    (
        "thousand",
        re.compile(r"\bthousand|\b0 ?(?:to|-|\.\.|,|and) ?1,?000\b|per ?mille|‰|\b1000 ?(?:x|by) ?1000 grid"),
    ),
    ("percent", re.compile(r"%|\bper ?cent|\b0 ?(?:to|-|\.\.|,|and) ?100\b(?! ?0)")),
    (
        "unit",
        re.compile(
            r"\b0(?:\.0)? ?(?:to|-|\.\.|,|and) ?1(?:\.0)?(?![\d.,]*\d)|\bnormali[sz]ed|\bfractions? of|\bshares? of"
            r"|\brelative coordinates|\bunit (?:square|interval|coordinates)"
        ),
    ),
    ("pixel", re.compile(r"\bpixels?\b|\bpx\b|\d ?px\b")),
)
"""Words that state a frame, the most specific first: "in pixels of a 0-1000 grid" means thousandths."""


def parse_boxes(
    step: Step, reply: VisibleReply, stop: str, images: Mapping[str, tuple[int, int]]
) -> ParsedAnswer:
    """The boxes of a reply, or why there are none: `out_of_range` where all lie outside the image or are empty.

    A reply that is nothing but "no box", or an empty list, is an answer without a box.
    """
    text = _find_answer_part(reply.text)
    found = find_corners(text)
    if not found:
        if len(reply.text) <= _SHORT and not is_unfinished(reply, stop) and _says_no_box(reply.text):
            return ParsedAnswer(status="ok")
        return classify_failure(normalise_text(reply.text), reply, stop)
    question = fold_characters(step.question).lower()
    wanted = find_stated_frame(question)
    unit = find_stated_frame(_unit_text(text))
    keys = list(images)
    image = keys[_image_place(question, len(keys))] if keys else ""
    on_images = [
        keys[_image_place(corners.name.lower(), len(keys))] if len(keys) > 1 and corners.name else image
        for corners in found
    ]
    located = list(zip(found, on_images, strict=True))
    boxes = [_make_box(corners, wanted, unit, key, images.get(key)) for corners, key in located]
    if None in boxes and any(corners.dialect is not None for corners in found):
        # Boxes of one reply are in one unit: if one does not fit the unit that is asked for, none is read in it.
        boxes = [
            _make_box(corners, wanted, corners.dialect or unit, key, images.get(key), has_dialect=True)
            for corners, key in located
        ]
    inside = tuple(box for box in boxes if box is not None)
    if not inside:
        return ParsedAnswer(status="out_of_range")
    return ParsedAnswer(status="ok", boxes=inside)


def _says_no_box(text: str) -> bool:
    words = " ".join(normalise_text(text).replace(ANSWER_SIGN, "answer: ").split())
    return _NO_BOX.fullmatch(words) is not None


def _find_answer_part(text: str) -> str:
    """The text after the last words that announce an answer, if it has a box; else the whole text."""
    ends = [marker.end() for marker in _FINAL.finditer(text)]
    if ends:
        tail = text[ends[-1] :]
        if any(sign.isdigit() for sign in tail) and find_corners(tail):
            return tail
    return text


def _unit_text(text: str) -> str:
    """The part of a reply in which it may state its units, in lower case."""
    words = text if len(text) <= 2 * _HEAD else f"{text[:_HEAD]} {text[-_HEAD:]}"
    return fold_characters(words).lower()


def _make_box(
    corners: Corners,
    wanted: Frame | None,
    unit: Frame | None,
    image: str,
    size: tuple[int, int] | None,
    *,
    has_dialect: bool = False,
) -> Box | None:
    """The box in the frame that is asked for; None where it does not fit."""
    frame = corners.frame or unit or wanted or "pixel"
    xyxy = corners.xyxy
    if corners.frame is None and frame != "unit" and max(xyxy) <= 1.0 and any(at != int(at) for at in xyxy):
        # No box is smaller than one pixel or one percent, so fractions below 1 are shares of the image.
        frame = "unit"
    fit = fit_to_frame(xyxy, frame, size)
    if fit is None and has_dialect and size is not None and max(xyxy) > _SIDES["thousand"]:
        # Older versions of Qwen-VL count pixels.
        frame = "pixel"
        fit = fit_to_frame(xyxy, frame, size)
    if fit is None:
        return None
    inside, framed = convert_corners(fit, frame, wanted or frame, size)
    return Box(image=image, xyxy=inside, frame=framed, name=make_storable(corners.name))


def _image_place(words: str, images: int) -> int:
    """Place of the image that a text names, from 0; the first image where it names none."""
    found = _NUMBERED_IMAGE.search(words)
    if found is None:
        return 0
    number = int(found[1]) if found[1] else _ORDINALS[found[2]]
    return number - 1 if 1 <= number <= images else 0


# ---- units of boxes --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def find_stated_frame(text: str) -> Frame | None:
    """The frame that a lower-case text states, or None."""
    return next((frame for frame, pattern in _STATED if pattern.search(text)), None)


def fit_to_frame(
    corners: tuple[float, float, float, float], frame: Frame, size: tuple[int, int] | None
) -> tuple[float, float, float, float] | None:
    """The corners, clipped to their frame; None if they exceed it by more than `_MARGIN` or enclose no area."""
    x1, y1, x2, y2 = corners
    sides = _sides(frame, size)
    if sides is not None:
        width, height = sides
        if (
            min(x1, x2) < -_MARGIN * width
            or min(y1, y2) < -_MARGIN * height
            or max(x1, x2) > (1 + _MARGIN) * width
            or max(y1, y2) > (1 + _MARGIN) * height
        ):
            return None
        x1, y1, x2, y2 = max(x1, 0.0), max(y1, 0.0), min(x2, width), min(y2, height)
    return (x1, y1, x2, y2) if x1 < x2 and y1 < y2 else None


def convert_corners(
    corners: tuple[float, float, float, float], frame: Frame, wanted: Frame, size: tuple[int, int] | None
) -> tuple[tuple[float, float, float, float], Frame]:
    """The corners in another frame; unchanged where the size of the image is not known."""
    given, target = _sides(frame, size), _sides(wanted, size)
    if frame == wanted or given is None or target is None:
        return corners, frame
    across, down = target[0] / given[0], target[1] / given[1]
    x1, y1, x2, y2 = corners
    return (x1 * across, y1 * down, x2 * across, y2 * down), wanted


def _sides(frame: Frame, size: tuple[int, int] | None) -> tuple[float, float] | None:
    side = _SIDES.get(frame)
    if side is not None:
        return side, side
    return (float(size[0]), float(size[1])) if size is not None and size[0] > 0 and size[1] > 0 else None
