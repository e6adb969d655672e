"""Width of text in the font that matplotlib carries, and text cut or wrapped to a width."""

from functools import lru_cache
from pathlib import Path
from typing import Final

import matplotlib
from matplotlib.font_manager import get_font

SMALL: Final = 11.0
TEXT: Final = 12.0
"""Font sizes in pixels."""
_EM: Final = 100


@lru_cache(maxsize=4096)
def _em_width(character: str, *, bold: bool) -> float:
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    font = get_font(str(Path(matplotlib.get_data_path(), "fonts", "ttf", name)))
    font.set_size(_EM, 72)
    return font.load_char(ord(character)).linearHoriAdvance / 2**16 / _EM


def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Width of a line of text in pixels. The font is a wide one: in other fonts the text hardly gets longer."""
    return size * sum(_em_width(character, bold=bold) for character in text)


def cut_text(text: str, width: float, size: float, *, bold: bool = False) -> str:
    """The text as far as it fits, with an ellipsis where something was cut."""
    if text_width(text, size, bold=bold) <= width:
        return text
    while text and text_width(text + "…", size, bold=bold) > width:
        text = text[:-1]
    return text.rstrip() + "…"


def wrap_text(text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
    """The text in lines that fit, broken at spaces; a word that is too long is cut."""
    lines: list[str] = []
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(joined, size, bold=bold) <= width:
            lines[-1] = joined
        else:
            lines.append(word)
    return [cut_text(line, width + 6, size, bold=bold) for line in lines]
