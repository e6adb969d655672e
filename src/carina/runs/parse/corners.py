"""Find boxes in the notations that models use: tokens, JSON, labelled and plain coordinates."""

import math
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from carina.cases.model import Frame
from carina.runs.parse.choices import word_set
from carina.runs.parse.normalise import fold_characters
from carina.runs.parse.structured import NO_VALUE, decode_json

_MOST: Final = 256
"""Most boxes that are kept from one reply."""
_LEVELS: Final = 6

_N: Final = r"[-+]?(?:\d{1,7}(?:\.\d{0,12})?|\.\d{1,12})"
_GAP: Final = r"\s?(%|px|pixels)?[\s,;:()\[\]<>|]{1,8}(?:(?:to|and|-)[\s(\[]{1,4})?"
_FIRST: Final = r"[-+]?(?:\d{1,7}(?:\.(?:\d{1,12}|(?=\s?,)))?|\.\d{1,12})"
_FIRST_GAP: Final = r"\s?(%|px|pixels)?[\s,;<>|]{1,8}(?:(?:to|and|-)\s{1,4})?"
"""No bracket or colon may follow the first coordinate: the 1 in "1. [10, ..." and "Box 1: (10, ..." numbers an item."""
_NOT_AFTER: Final = "".join(
    rf"(?<!\b{word}\s)(?<!\b{word}\s#)"
    for word in ("image", "figure", "fig.", "view", "film", "picture", "panel")
).replace(".", r"\.")
_QUAD: Final = re.compile(
    rf"(?<![\w.\-]){_NOT_AFTER}({_FIRST}){_FIRST_GAP}({_N}){_GAP}({_N}){_GAP}({_N})\s?(%|px|pixels)?(?!\w|\.\d)",
    re.IGNORECASE,
)
_POINT: Final = re.compile(rf"{_N}\s?,\s?{_N}\s?[)\]]")
_POINTS: Final = re.compile(
    rf"{_N}\s?,\s?{_N}\s?[)\]](?:[\s,;]{{1,3}}(?:and\s)?[(\[]\s?{_N}\s?,\s?{_N}\s?[)\]])+"
)
_TWO: Final = rf"[\s(\[]{{0,4}}({_N})\s?(%|px|pixels)?\s?[,;]\s?({_N})\s?(%|px|pixels)?"
_CORNER: Final = re.compile(
    r"\b(top|upper|bottom|lower)[\s_-]?(left|right)\b(?:\s(?:corner|point|coordinates?)\b)?"
    rf"[\s:=*_]{{0,6}}(?:(?:is|at|of|lies|located|are)\s){{0,3}}{_TWO}",
    re.IGNORECASE,
)
_PAIR: Final = re.compile(
    rf"\bx_?(1|2|min|max)\s?,\s?y_?(1|2|min|max)\b\s?[)\]]?\s?(?:[=:]|is|at){_TWO}", re.IGNORECASE
)
_EQUAL_SPAN: Final = re.compile(
    rf"\b(x|y)\s?=\s?({_N})\s?(%|px|pixels)?\s?(?:to|-|and|\.\.)\s?\1\s?=\s?({_N})\s?(%|px|pixels)?",
    re.IGNORECASE,
)
_BRACKET_SPAN: Final = re.compile(
    rf"\b(x|y)[\s-]?(?:range|axis|coordinates?)?\s?[=:]?\s?[\[(]\s?({_N})\s?(%|px|pixels)?\s?,\s?({_N})\s?(%|px|pixels)?"
    r"\s?[\])]",
    re.IGNORECASE,
)
_VERTICAL: Final = ("y", "height", "row", "vertical")
"""Beginnings of the names of the vertical axis."""
_TWO_POINTS: Final = re.compile(
    rf"\bx\s?[=:]\s?({_N})\s?(%|px|pixels)?,?\s(?:and\s)?y\s?[=:]\s?({_N})\s?(?:%|px|pixels)?[)\]]?,?\s?(?:to|-|and|until)\s?"
    rf"[(\[]?x\s?[=:]\s?({_N})\s?(?:%|px|pixels)?,?\s(?:and\s)?y\s?[=:]\s?({_N})",
    re.IGNORECASE,
)
_SPAN_BEFORE_AXIS: Final = re.compile(
    rf"(?<![\w.])({_N})\s?(%|percent|px|pixels)?\s?(?:to|-|and)\s?({_N})\s?(%|percent|px|pixels)?\s?"
    r"(?:(?:in|of|on|along|for|across|down)\s)?(?:the\s)?(?:image\s)?(x|y|width|height|horizontal|vertical)(?:ly|-axis)?\b",
    re.IGNORECASE,
)
_SIZED: Final = re.compile(
    rf"(center(?:ed)?|centre(?:d)?)?(?:\s(?:at|on|is|around|near|about)){{0,2}}\s?[(\[]\s?({_N})\s?(%|px|pixels)?\s?,"
    rf"\s?({_N})\s?(?:%|px|pixels)?\s?[)\]][^()\[\]\n\d]{{0,40}}?\bwidth\s?(?:of|is|=|:)?\s?({_N})\s?(?:%|px|pixels)?"
    rf"[^()\[\]\n\d]{{0,20}}?\bheight\s?(?:of|is|=|:)?\s?({_N})",
    re.IGNORECASE,
)
_SPAN: Final = re.compile(
    r"\b(x|y|horizontal(?:ly)?|vertical(?:ly)?|columns?|rows?)(?:[\s-](?:axis|coordinates?|values?|ranges?|runs|goes|extends|direction|is)){0,2}"
    rf"[\s:=]{{0,3}}(?:(?:from|between|in)\s)?[\s(\[]{{0,3}}({_N})\s?(%|px|pixels)?\s?(?:to|-|and|\.\.)\s?({_N})"
    r"\s?(%|px|pixels)?",
    re.IGNORECASE,
)
_LOCATION: Final = re.compile(r"<loc(\d{4})>\s?<loc(\d{4})>\s?<loc(\d{4})>\s?<loc(\d{4})>\s?([^<;\n]{0,80})")
_REFERENCE: Final = re.compile(
    r"<(?:\|ref\||ref|\|object_ref_start\||p)>([^<>]{0,200})<(?:\|/ref\||/ref|\|object_ref_end\||/p)>",
    re.IGNORECASE,
)
_TOKENS: Final = re.compile(r"<(?:\|box\||box|\|box_start\|)>", re.IGNORECASE)
_NAMED: Final = re.compile(r"([A-Za-z][\w /&'-]{0,60}?)\s{0,3}:\s{0,3}[\[(]{0,2}$")
_LABELLED: Final = re.compile(
    r"\b(x_?1|y_?1|x_?2|y_?2|x_?min|y_?min|x_?max|y_?max|left|top|right|bottom|width|height|w|h|x|y)\b[\"']?"
    r"(?:\s(?:edge|border|side|margin|boundary))?"
    rf"(?:\s{{0,3}}[=:]\s{{0,3}}|\s(?:is\s)?at\s(?:[xy]\s?=\s?)?)[\"']?({_N})\s?(%|px)?",
    re.IGNORECASE,
)
_PLACES: Final = {
    **dict.fromkeys(("x1", "xmin", "left", "x"), "x1"),
    **dict.fromkeys(("y1", "ymin", "top", "y"), "y1"),
    **dict.fromkeys(("x2", "xmax", "right"), "x2"),
    **dict.fromkeys(("y2", "ymax", "bottom"), "y2"),
    **dict.fromkeys(("width", "w"), "w"),
    **dict.fromkeys(("height", "h"), "h"),
}
_CORNER_PLACES: Final = {
    **dict.fromkeys(("left", "top", "upper", "1", "min"), 1),
    **dict.fromkeys(("right", "bottom", "lower", "2", "max"), 2),
}
_BOX_KEYS: Final = word_set(
    "bbox bbox2d box box2d boxes bboxes boundingbox boundingboxes coordinates coords rectangle xyxy location"
)
_NOTATIONS: Final = {"box2d": "gemini", "bbox2d": "qwen"}
_NAME_KEYS: Final = word_set("label name ref finding region class object description")
_NOT_KEY: Final = re.compile(r"[^a-z0-9]+")
_GEMINI: Final = re.compile(r"(?<!b)box_2d[\"']?\s{0,3}:\s{0,3}[\[(]?\s{0,3}$", re.IGNORECASE)
_QWEN: Final = re.compile(r"bbox_2d[\"']?\s{0,3}:\s{0,3}[\[(]{0,2}\s{0,3}$", re.IGNORECASE)
_BEFORE: Final = 80


class Corners(NamedTuple):
    """One box as the reply gives it."""

    xyxy: tuple[float, float, float, float]
    name: str = ""
    frame: Frame | None = None
    """Frame that is written with the box, or that its notation always has."""
    dialect: Frame | None = None
    """Frame that its notation usually has, used where no other fits."""


def find_corners(text: str) -> list[Corners]:
    """All distinct boxes of a reply, in order."""
    value = decode_json(text)
    found: Iterator[Corners]
    if value is not NO_VALUE:
        found = _find_in_json(value, "", 0)
        boxes = _keep_distinct(found)
        if boxes:
            return boxes
    text = fold_characters(text)
    if "<loc" in text:
        boxes = _keep_distinct(_find_location_tokens(text))
        if boxes:
            return boxes
    return (
        _keep_distinct(_find_number_rows(text))
        or _keep_distinct(_find_corner_pairs(_CORNER, text))
        or _keep_distinct(_find_corner_pairs(_PAIR, text))
        or _keep_distinct(_find_sized(text))
        or _keep_distinct(_find_two_points(text))
        or _keep_distinct(_find_spans(_EQUAL_SPAN, text))
        or _keep_distinct(_find_spans(_BRACKET_SPAN, text))
        or _keep_distinct(_find_spans(_SPAN, text))
        or _keep_distinct(_find_spans(_SPAN_BEFORE_AXIS, text))
        or _keep_distinct(_find_labelled(text))
    )


def _keep_distinct(found: Iterator[Corners]) -> list[Corners]:
    kept: dict[tuple[float, float, float, float], Corners] = {}
    for box in found:
        if all(map(math.isfinite, box.xyxy)):
            kept.setdefault(box.xyxy, box)
        if len(kept) >= _MOST:
            break
    return list(kept.values())


def _find_unit(signs: tuple[str | None, ...]) -> Frame | None:
    signed = next((sign for sign in signs if sign), None)
    if signed is None:
        return None
    return "percent" if signed.lower() in ("%", "percent") else "pixel"


def _find_location_tokens(text: str) -> Iterator[Corners]:
    """Boxes in the notation of PaliGemma: y1, x1, y2, x2 in 1024ths."""
    for match in _LOCATION.finditer(text):
        y1, x1, y2, x2 = (int(match[place]) / 1024 for place in (1, 2, 3, 4))
        yield Corners((x1, y1, x2, y2), match[5].strip(), "unit")


def _find_number_rows(text: str) -> Iterator[Corners]:
    """Boxes written as four numbers in a row, with the name before them."""
    names = [(found.end(), found[1].strip()) for found in _REFERENCE.finditer(text)]
    tokens = [found.end() for found in _TOKENS.finditer(text)] if "<" in text else []
    name, next_name, next_token = "", 0, 0
    odd_until = even_until = -1
    for match in _QUAD.finditer(text):
        start = match.start()
        if start < odd_until:
            continue
        points = _POINTS.match(text, start) if start >= even_until else None
        if points is not None:
            if len(_POINT.findall(points[0])) % 2:
                # An odd number of points is an outline and no box.
                odd_until = points.end()
                continue
            even_until = points.end()
        while next_name < len(names) and names[next_name][0] <= start:
            name = names[next_name][1]
            next_name += 1
        in_token = False
        while next_token < len(tokens) and tokens[next_token] <= start:
            in_token = start - tokens[next_token] <= 8
            next_token += 1
        before = text[max(0, start - _BEFORE) : start]
        said = name
        if not names:
            named = _NAMED.search(before.rpartition("\n")[2])
            said = named[1].strip() if named is not None else ""
        a, b, c, d = (float(match[place]) for place in (1, 3, 5, 7))
        unit = _find_unit((match[2], match[4], match[6], match[8]))
        if _GEMINI.search(before):
            yield Corners((b, a, d, c), "", "thousand")
        else:
            has_dialect = in_token or _QWEN.search(before) is not None
            yield Corners((a, b, c, d), said, unit, "thousand" if has_dialect else None)


def _find_labelled(text: str) -> Iterator[Corners]:
    """Boxes such as `x1=10, y1=20, x2=30, y2=40`; a repeated label begins a new box."""
    parts: dict[str, float] = {}
    unit: Frame | None = None
    for match in _LABELLED.finditer(text):
        place = _PLACES[match[1].lower().replace("_", "")]
        if place in parts:
            parts, unit = {}, None
        parts[place] = float(match[2])
        unit = unit or _find_unit((match[3],))
        box = _box_from_parts(parts)
        if box is not None:
            yield Corners(box, "", unit)
            parts, unit = {}, None


def _find_corner_pairs(pattern: re.Pattern[str], text: str) -> Iterator[Corners]:
    """Boxes by two named corners: "top-left: (10, 20), bottom-right: (30, 40)", "x1, y1 = 10, 20"."""
    parts: dict[str, float] = {}
    units: list[str | None] = []
    for match in pattern.finditer(text):
        across, down = _CORNER_PLACES[match[2].lower()], _CORNER_PLACES[match[1].lower()]
        if pattern is _PAIR:
            across, down = down, across
        x, y = f"x{across}", f"y{down}"
        if x in parts or y in parts:
            parts, units = {}, []
        parts[x], parts[y] = float(match[3]), float(match[5])
        units += [match[4], match[6]]
        box = _box_from_parts(parts)
        if box is not None:
            yield Corners(box, "", _find_unit(tuple(units)))
            parts, units = {}, []


def _find_sized(text: str) -> Iterator[Corners]:
    """Boxes such as `(10, 20) with a width of 20 and a height of 20`; a centre is said to be one."""
    for match in _SIZED.finditer(text):
        x, y, width, height = (float(match[place]) for place in (2, 4, 5, 6))
        if match[1]:
            x, y = x - width / 2, y - height / 2
        yield Corners((x, y, x + width, y + height), "", _find_unit((match[3],)))


def _find_two_points(text: str) -> Iterator[Corners]:
    """Boxes such as `x=10, y=20 to x=30, y=40`."""
    for match in _TWO_POINTS.finditer(text):
        x1, y1, x2, y2 = (float(match[place]) for place in (1, 3, 4, 5))
        yield Corners((x1, y1, x2, y2), "", _find_unit((match[2],)))


def _find_spans(pattern: re.Pattern[str], text: str) -> Iterator[Corners]:
    """Boxes such as `x from 10 to 30, y from 20 to 40`, and `10% to 30% in x, 20% to 40% in y`."""
    parts: dict[str, float] = {}
    units: list[str | None] = []
    for match in pattern.finditer(text):
        groups = match.groups()
        name, low, low_unit, high, high_unit = (
            (groups[4], *groups[:4]) if pattern is _SPAN_BEFORE_AXIS else groups
        )
        axis = "y" if name.lower().startswith(_VERTICAL) else "x"
        if f"{axis}1" in parts:
            parts, units = {}, []
        parts[f"{axis}1"], parts[f"{axis}2"] = float(low), float(high)
        units += [low_unit, high_unit]
        box = _box_from_parts(parts)
        if box is not None:
            yield Corners(box, "", _find_unit(tuple(units)))
            parts, units = {}, []


def _box_from_parts(parts: dict[str, float]) -> tuple[float, float, float, float] | None:
    if not {"x1", "y1"} <= parts.keys():
        return None
    x1, y1 = parts["x1"], parts["y1"]
    if {"x2", "y2"} <= parts.keys():
        return x1, y1, parts["x2"], parts["y2"]
    if {"w", "h"} <= parts.keys():
        return x1, y1, x1 + parts["w"], y1 + parts["h"]
    return None


# ---- JSON -----------------------------------------------------------------------------------------------------------


def _find_in_json(value: object, name: str, level: int) -> Iterator[Corners]:
    """Boxes at any level of a JSON value, each with the name in the same record."""
    if level > _LEVELS:
        return
    if isinstance(value, dict):
        keys = {_NOT_KEY.sub("", key.lower()): key for key in value}
        name = next(
            (value[keys[k]] for k in keys if k in _NAME_KEYS and isinstance(value[keys[k]], str)), name
        )
        parts = {
            _PLACES[key]: float(value[keys[key]])
            for key in keys
            if key in _PLACES and _is_number(value[keys[key]])
        }
        whole = _box_from_parts(parts)
        if whole is not None:
            yield Corners(whole, name)
            return
        for key, spelt in keys.items():
            part = value[spelt]
            if key in _BOX_KEYS:
                yield from _read_json_boxes(part, name, level, notation=_NOTATIONS.get(key, ""))
            elif isinstance(part, dict | list):
                # The key of a box may be its name.
                yield from _find_in_json(part, name or spelt, level + 1)
    elif isinstance(value, list):
        yield from _read_json_boxes(value, name, level)


def _read_json_boxes(value: object, name: str, level: int, *, notation: str = "") -> Iterator[Corners]:
    """The box or boxes of a JSON value under a key for boxes, in the notation of a model or as x1, y1, x2, y2."""
    if isinstance(value, str):
        for box in _find_number_rows(fold_characters(value[:4000])):
            yield box._replace(name=name or box.name)
        return
    if isinstance(value, dict):
        yield from _find_in_json(value, name, level + 1)
        return
    if not isinstance(value, list):
        return
    numbers = _read_four_numbers(value)
    if numbers is not None:
        a, b, c, d = numbers
        if notation == "gemini":
            yield Corners((b, a, d, c), name, "thousand")
        else:
            yield Corners((a, b, c, d), name, dialect="thousand" if notation == "qwen" else None)
        return
    if level <= _LEVELS:
        for part in value:
            if isinstance(part, list):
                yield from _read_json_boxes(part, name, level + 1, notation=notation)
            else:
                yield from _find_in_json(part, name, level + 1)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e9


def _read_four_numbers(value: list[Any]) -> tuple[float, float, float, float] | None:
    """Four numbers from one list or from two corners, or None."""
    if len(value) == 2 and all(isinstance(part, list) and len(part) == 2 for part in value):
        value = [*value[0], *value[1]]
    if len(value) != 4 or not all(map(_is_number, value)):
        return None
    a, b, c, d = map(float, value)
    return a, b, c, d
