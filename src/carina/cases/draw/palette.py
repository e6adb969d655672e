"""Colours that colour-blind readers can tell apart on a dark radiograph, and a stable one for every name.

The hues are Okabe and Ito's (Color Universal Design, 2008) without black, which is the background here. Their
tints are used where seven hues are too few; numbers beside the marks tell apart what shares a colour.
Points have other colours, which readers recognise by the plain names that questions use ("the red point").
"""

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple


class Colour(NamedTuple):
    """Red, green and blue, 0-255."""

    red: int
    green: int
    blue: int

    @property
    def hex(self) -> str:
        """The colour in CSS: "#e69f00"."""
        return f"#{self.red:02x}{self.green:02x}{self.blue:02x}"


WHITE: Final = Colour(255, 255, 255)
INK: Final = Colour(12, 14, 17)
"""Nearly black: plates behind text and rings around marks."""
PANEL: Final = Colour(23, 26, 30)
"""Dark neutral ground of sheets and panels."""
MUTED: Final = Colour(154, 163, 173)
"""Captions and other quiet text on `PANEL`."""

HUES: Final[Mapping[str, Colour]] = MappingProxyType(
    {
        "orange": Colour(230, 159, 0),
        "sky blue": Colour(86, 180, 233),
        "bluish green": Colour(0, 158, 115),
        "yellow": Colour(240, 228, 66),
        "blue": Colour(0, 114, 178),
        "vermillion": Colour(213, 94, 0),
        "reddish purple": Colour(204, 121, 167),
    }
)


def _tint(colour: Colour) -> Colour:
    """Half-way to white."""
    return Colour(*((channel + 255) // 2 for channel in colour))


PALETTE: Final[Mapping[str, Colour]] = MappingProxyType(
    {**HUES, **{f"light {name}": _tint(colour) for name, colour in HUES.items()}}
)
"""Every colour by name: the seven hues, then their tints."""

CYAN: Final = Colour(0, 255, 255)
"""Colour of masks, as in CheXpercept."""

MARKS: Final[Mapping[str, Colour]] = MappingProxyType(
    {
        # Found by search: near what most people call by the name (the centres of the XKCD colour survey), and with
        # the largest least difference of two for readers of any kind of colour vision.
        "red": Colour(212, 30, 46),
        "orange": Colour(245, 118, 0),
        "yellow": Colour(255, 232, 0),
        "green": Colour(34, 190, 104),
        "blue": Colour(0, 100, 255),
        "purple": Colour(140, 6, 146),
        "pink": Colour(255, 164, 226),
        "brown": Colour(86, 38, 0),
    }
)
"""The colours of points, by the names that questions use, in CheXpercept's order."""

NAMED: Final[Mapping[str, Colour]] = MappingProxyType({**MARKS, "cyan": CYAN})
"""Colours that a case may name."""

_FINDINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # Findings that are confused or seen together have different hues.
        "pleural effusion": "sky blue",
        "pneumothorax": "yellow",
        "consolidation": "orange",
        "pneumonia": "vermillion",
        "atelectasis": "bluish green",
        "cardiomegaly": "reddish purple",
        "edema": "blue",
        "lung opacity": "light orange",
        "mass": "light vermillion",
        "nodule": "light yellow",
        "fracture": "light reddish purple",
        "endotracheal tube": "light bluish green",
        "nasogastric tube": "yellow",
        "central venous line": "light blue",
        "pacemaker": "light reddish purple",
        "chest tube": "light vermillion",
        # Anatomy has tints, so that it stays behind findings.
        "lung": "light sky blue",
        "heart": "light reddish purple",
        "mediastinum": "light yellow",
        "trachea": "light bluish green",
        "clavicle": "light orange",
        "hemidiaphragm": "light vermillion",
        "spine": "light blue",
    }
)


def colour_of(name: str) -> Colour:
    """The colour of a finding, device or structure: the same in every image, and on both sides."""
    plain = name.strip().lower().removeprefix("left ").removeprefix("right ")
    if plain in _FINDINGS:
        return PALETTE[_FINDINGS[plain]]
    digest = hashlib.sha256(plain.encode()).digest()
    return tuple(PALETTE.values())[digest[0] % len(PALETTE)]


def luminance(colour: Colour) -> float:
    """Relative luminance, 0-1, as WCAG 2 defines it."""
    red, green, blue = (
        channel / 255 / 12.92 if channel / 255 <= 0.04045 else ((channel / 255 + 0.055) / 1.055) ** 2.4
        for channel in colour
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: Colour, other: Colour) -> float:
    """Contrast ratio, 1-21, as WCAG 2 defines it; 4.5 is enough for text, 3 for marks."""
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


def ink_on(ground: Colour) -> Colour:
    """Black or white: whichever reads better on `ground`."""
    return WHITE if contrast(WHITE, ground) > contrast(INK, ground) else INK
