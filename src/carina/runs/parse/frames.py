"""Units of boxes: in which a question asks for them, in which an answer gives them, and from one to the other."""

import re
from functools import lru_cache
from typing import Final

from carina.cases.model import Frame

_SIDES: Final[dict[Frame, float]] = {"percent": 100.0, "unit": 1.0, "thousand": 1000.0}
_MARGIN: Final = 0.02
"""By how much of a side a box may stand out of its frame."""

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
"""Words that state a frame; the most telling first, as a scale "in pixels of a 0-1000 grid" is one of thousandths."""


@lru_cache(maxsize=4096)
def stated(text: str) -> Frame | None:
    """The frame that lower-case words state, if they state one."""
    return next((frame for frame, pattern in _STATED if pattern.search(text)), None)


def fitted(
    corners: tuple[float, float, float, float], frame: Frame, size: tuple[int, int] | None
) -> tuple[float, float, float, float] | None:
    """The corners within their frame; None where they stand out of it by more than a little, or enclose nothing."""
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


def converted(
    corners: tuple[float, float, float, float], frame: Frame, wanted: Frame, size: tuple[int, int] | None
) -> tuple[tuple[float, float, float, float], Frame]:
    """The corners in another frame; as they are where the size of the image is not known."""
    given, asked = _sides(frame, size), _sides(wanted, size)
    if frame == wanted or given is None or asked is None:
        return corners, frame
    across, down = asked[0] / given[0], asked[1] / given[1]
    x1, y1, x2, y2 = corners
    return (x1 * across, y1 * down, x2 * across, y2 * down), wanted


def _sides(frame: Frame, size: tuple[int, int] | None) -> tuple[float, float] | None:
    side = _SIDES.get(frame)
    if side is not None:
        return side, side
    return (float(size[0]), float(size[1])) if size is not None and size[0] > 0 and size[1] > 0 else None
