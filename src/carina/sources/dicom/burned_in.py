"""Looks for text in the pixels of an image, with rapidocr (the extra `ocr`).

What is read is compared with a list of markers that identify nobody, such as the letter of a side, and forgotten: it is
neither written nor counted by its words.
"""

import importlib
import importlib.metadata
import importlib.util
import re
from functools import cache
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.sources._record import SourceError
from carina.store.errors import install
from carina.studies.pixels import Pixels

MARKERS: Final = frozenset(
    ("L", "R", "LT", "RT", "LEFT", "RIGHT", "LINKS", "RECHTS", "PA", "AP", "LAT", "LATERAL", "LL", "RL", "PORTABLE",
     "PORT", "MOBILE", "BED", "BEDSIDE", "SUPINE", "SUP", "ERECT", "UPRIGHT", "SEMI", "SEMIERECT", "SEMIUPRIGHT",
     "SITTING", "STANDING", "INSP", "EXP", "INSPIRATION", "EXPIRATION", "DECUB", "DECUBITUS", "LLD", "RLD", "CHEST",
     "THORAX", "CM", "MM", "KV", "MAS", "ICU", "ER", "UP", "DOWN", "ARROW", "TUBE")
)  # fmt: skip
"""Words that may stand in an image: sides, views, positions, units. They identify nobody."""
LEAST_CERTAIN: Final = 0.5
"""Certainty from which on rapidocr's reading counts as text, as it does by default."""
LONGEST_SIDE: Final = 1000
"""Pixels to which an image is reduced before rapidocr looks at it. It finds more in smaller images: tried on one
radiograph of 3,000 pixels with letters of 20 to 60, all with 1,000 pixels, and none with its own limit of 2,000."""
LEAST_SIDE: Final = 5
"""Pixels: letters have five rows at the least, so that an image with a shorter side holds none."""
LONGEST_RATIO: Final = 2.0
"""Longer to shorter side of what rapidocr looks at; narrower images are filled up with black. It enlarges an image
until the shorter side has 736 pixels, which takes all memory where the other is a thousand times as long."""
_QUARTER: Final = 0.55
"""Share of height and width of a quarter of an image, so that quarters overlap."""
_MARGIN: Final = 0.35
"""Share of the height of a text by which its box grows on all sides before it is filled."""


Handling: TypeAlias = Literal["skip", "mask", "keep"]
"""What is done with an image that holds text."""
Looking: TypeAlias = Literal["always", "unknown", "never"]
"""Which images are looked at for text: all, those whose header does not say that there is none, or no image."""


class TextBox(NamedTuple):
    """A box around text, in pixels; the ends are exclusive."""

    left: int
    top: int
    right: int
    bottom: int


def has_text_detector() -> bool:
    """Whether the extra `ocr` is installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("rapidocr", "onnxruntime"))


def name_text_detector() -> str:
    """The detector and its version, for the manifest."""
    return f"rapidocr {importlib.metadata.version('rapidocr')}" if has_text_detector() else "none"


def choose_looking(burned_in: Handling, look_for_text: Looking | None) -> Looking:
    """Which images are looked at for text: all where the extra `ocr` is installed, if the user does not say.

    Example:
        >>> choose_looking("skip", "unknown"), choose_looking("keep", None)
        ('unknown', 'never')
    """
    if burned_in == "keep":
        return "never"
    return look_for_text or ("always" if has_text_detector() else "never")


def describe_decision(burned_in: Handling, looking: Looking) -> str:
    """How it was decided which images hold text, in a sentence."""
    if looking == "always":
        result = (
            "the text that was found is covered" if burned_in == "mask" else "images with text are left out"
        )
        return f"Text was looked for in every image, by {name_text_detector()}: {result}."
    if looking == "unknown":
        return (
            f"Text was looked for by {name_text_detector()} where the header does not say that there is none; the "
            "other images are used on the word of their header, and counted."
        )
    if burned_in == "keep":
        return "Text was looked for in no image, and images with text are used."
    return "Text was looked for in no image: all but those whose header says that there is text are used, and counted."


def require_text_detector(option: str) -> None:
    """Refuse an option that needs the extra `ocr`.

    Raises:
        SourceError: It is not installed.
    """
    if not has_text_detector():
        raise SourceError(f"{option}: looking for text in images needs rapidocr: {install('ocr')}")


def is_marker(text: str) -> bool:
    """Whether a text consists of words that identify nobody: of `MARKERS`, and of single letters and digits.

    Example:
        >>> is_marker("PORTABLE  l"), is_marker("R. Miller")
        (True, False)
    """
    words = re.findall(r"\w+", text.upper().replace("-", ""))
    return all(word in MARKERS or len(word) == 1 for word in words)


@cache
def _load_detector() -> Any:  # noqa: ANN401 - of an optional package
    """One detector a process, with one thread, since imports have workers."""
    rapidocr = importlib.import_module("rapidocr")
    settings = {
        "Global.log_level": "critical",
        "Global.text_score": LEAST_CERTAIN,
        "EngineConfig.onnxruntime.intra_op_num_threads": 1,
        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
    }
    return rapidocr.RapidOCR(params=settings)


def find_text(displayed: NDArray[np.uint8]) -> list[TextBox]:
    """Boxes around text that may identify somebody.

    Args:
        displayed: The image as it is displayed, grey values of 8 bits.

    Returns:
        A box around each text that is no marker.
    """
    if min(displayed.shape) < LEAST_SIDE:
        return []
    return [
        box
        for window in _list_windows(*displayed.shape)
        for box in _find_in_window(displayed[window.top : window.bottom, window.left : window.right], window)
    ]


def _list_windows(height: int, width: int) -> list[TextBox]:
    """Parts of an image to look at: the whole of it, for large letters, and of a large one its quarters, for small."""
    whole = TextBox(0, 0, width, height)
    if max(height, width) <= 1.5 * LONGEST_SIDE:
        return [whole]
    high, wide = round(_QUARTER * height), round(_QUARTER * width)
    return [
        whole,
        *(
            TextBox(left, top, left + wide, top + high)
            for top in (0, height - high)
            for left in (0, width - wide)
        ),
    ]


def _find_in_window(part: NDArray[np.uint8], window: TextBox) -> list[TextBox]:
    """Boxes around text in a part of an image, in pixels of the image."""
    scale = min(1.0, LONGEST_SIDE / max(part.shape))
    size = tuple(max(1, round(scale * side)) for side in reversed(part.shape))
    small = cv2.resize(part, size, interpolation=cv2.INTER_AREA) if scale < 1 else part
    filled = _fill_up(small.astype(np.uint8, copy=False))
    found = _load_detector()(np.repeat(filled[:, :, np.newaxis], 3, axis=2))
    if found.boxes is None or found.txts is None:
        return []
    height, width = part.shape
    boxes = []
    for corners, text in zip(found.boxes, found.txts, strict=True):
        if not is_marker(text):
            (left, top), (right, bottom) = np.min(corners, axis=0) / scale, np.max(corners, axis=0) / scale
            margin = _MARGIN * min(bottom - top, right - left)
            boxes.append(
                TextBox(
                    window.left + max(0, int(left - margin)),
                    window.top + max(0, int(top - margin)),
                    window.left + min(width, int(right + margin) + 1),
                    window.top + min(height, int(bottom + margin) + 1),
                )
            )
    return boxes


def _fill_up(part: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A part of an image, with black at the right or below it where it is too narrow."""
    least = round(max(part.shape) / LONGEST_RATIO)
    missing = [(0, max(0, least - side)) for side in part.shape]
    return np.pad(part, missing) if max(part.shape) > LONGEST_RATIO * min(part.shape) else part


def fill_boxes(pixels: Pixels, boxes: list[TextBox], value: int) -> Pixels:
    """The image with boxes filled with one value."""
    filled = pixels.copy()
    for left, top, right, bottom in boxes:
        filled[top:bottom, left:right] = value
    return filled
