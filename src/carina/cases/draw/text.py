"""Text on images: crisp, the same pixels every time, and legible on any background.

Glyphs come from the outline font that Pillow carries, so that no font of the machine is needed or used. The masks of
texts are cached, because pages and views repeat the same few texts.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from carina.cases.draw.image import Rgb, Size
from carina.cases.draw.palette import INK, WHITE, Colour

_PAD = 4
_CHIP = 4
"""Width of the strip of colour at the left of a label."""


@lru_cache(maxsize=16)
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size=size)


@lru_cache(maxsize=2048)
def _glyphs(text: str, size: int) -> NDArray[np.uint8]:
    """Coverage of one line of text, 0-255, in a box of the line's full height."""
    font = _font(size)
    text = text.replace("\n", " ")
    left, _, right, _ = font.getbbox(text)
    mask = Image.new("L", (max(1, round(right - left)), line_height(size)))
    ImageDraw.Draw(mask).text((-left, 0), text, fill=255, font=font)
    coverage = np.asarray(mask)
    coverage.setflags(write=False)
    return coverage


def line_height(size: int) -> int:
    """Height of a line of text, in pixels, for a font size."""
    return round(size * 1.3)


def text_size(text: str, *, size: int) -> Size:
    """Size of one line of text in pixels."""
    height, width = _glyphs(text, size).shape
    return Size(width=width, height=height)


def put_text(image: Rgb, text: str, *, x: int, y: int, size: int, colour: Colour) -> None:
    """One line of text with its top left corner at (x, y), in place; parts outside the image are cut off."""
    glyphs = _glyphs(text, size)
    top, left = max(0, y), max(0, x)
    bottom, right = max(top, image.shape[0]), max(left, image.shape[1])
    glyphs = glyphs[top - y : bottom - y, left - x : right - x]
    if not glyphs.size:
        return
    part = image[top : top + glyphs.shape[0], left : left + glyphs.shape[1]]
    share = glyphs[..., None].astype(np.uint16)
    part[:] = (part * (255 - share) + np.array(colour, np.uint16) * share + 127) // 255


def put_label(image: Rgb, text: str, *, x: int, y: int, size: int, colour: Colour) -> Size:
    """White text on a dark plate with a strip of `colour`, in place, moved to fit into the image.

    The plate makes it legible on air and on bone alike. Returns the size of the plate.
    """
    glyphs = text_size(text, size=size)
    plate = Size(width=glyphs.width + _CHIP + 2 * _PAD, height=glyphs.height + _PAD // 2)
    x = max(0, min(x, image.shape[1] - plate.width))
    y = max(0, min(y, image.shape[0] - plate.height))
    image[y : y + plate.height, x : x + plate.width] = INK
    image[y : y + plate.height, x : x + _CHIP] = colour
    put_text(image, text, x=x + _CHIP + _PAD, y=y + _PAD // 4, size=size, colour=WHITE)
    return plate


def wrap(text: str, *, width: int, size: int) -> list[str]:
    """Text broken at spaces into lines that fit `width`; a word longer than a line is cut into pieces."""
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        line = ""
        for word in paragraph.split():
            candidate = f"{line} {word}" if line else word
            if _font(size).getlength(candidate) <= width:
                line = candidate
                continue
            if line:
                lines.append(line)
            *pieces, line = _pieces(word, width=width, size=size)
            lines.extend(pieces)
        lines.append(line)
    return lines


def shorten(text: str, *, width: int, size: int) -> str:
    """One line that fits `width`, with an ellipsis where text was cut off."""
    if _font(size).getlength(text) <= width:
        return text
    while text and _font(size).getlength(text + "…") > width:
        text = text[:-1]
    return text.rstrip() + "…"


def _pieces(word: str, *, width: int, size: int) -> list[str]:
    pieces = [""]
    for letter in word:
        if pieces[-1] and _font(size).getlength(pieces[-1] + letter) > width:
            pieces.append("")
        pieces[-1] += letter
    return pieces
