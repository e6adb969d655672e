import itertools

import numpy as np
import pytest
from skimage.color import deltaE_ciede2000, rgb2lab

from carina.cases.draw import (
    HUES,
    INK,
    MARKS,
    NAMED,
    PALETTE,
    PANEL,
    WHITE,
    Colour,
    colour_of,
    contrast,
    ink_on,
    luminance,
)
from carina.studies.vocabulary import DEVICES, FINDINGS

# Machado, Oliveira & Fernandes 2009, full severity, on linear RGB.
BLINDNESS = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900],
    ],
}  # fmt: skip


def seen(colour: Colour, matrix: list[list[float]]) -> np.ndarray:
    """CIE Lab of a colour as a colour-blind reader sees it."""
    channels = np.array(colour) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(matrix) @ linear, 0, 1)
    return rgb2lab(np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055))


@pytest.mark.parametrize("kind", BLINDNESS)
def test_hues_differ_for_colour_blind_readers(kind: str) -> None:
    labs = {name: seen(colour, BLINDNESS[kind]) for name, colour in HUES.items()}
    for one, other in itertools.combinations(HUES, 2):
        # A difference of 2 is just seen side by side; apart on an image it takes several times that.
        assert deltaE_ciede2000(labs[one], labs[other]) > 8, (one, other)


@pytest.mark.parametrize("name", PALETTE)
def test_every_colour_stands_out_from_dark_grounds_and_carries_text(name: str) -> None:
    colour = PALETTE[name]
    assert contrast(colour, PANEL) >= 3
    assert contrast(ink_on(colour), colour) >= 4.5


def test_contrast_is_that_of_wcag() -> None:
    assert contrast(Colour(0, 0, 0), WHITE) == pytest.approx(21)
    assert contrast(WHITE, WHITE) == 1
    assert luminance(Colour(255, 0, 0)) == pytest.approx(0.2126)
    # Worked by hand: 119 / 255 -> 0.1845 linear; 1.05 / 0.2345.
    assert contrast(Colour(119, 119, 119), WHITE) == pytest.approx(4.48, abs=0.01)
    assert contrast(WHITE, INK) > 15


def test_known_names_have_their_own_colours() -> None:
    assert len({colour_of(name) for name in FINDINGS}) == len(FINDINGS)
    assert len({colour_of(name) for name in DEVICES}) == len(DEVICES)


def test_a_name_keeps_its_colour() -> None:
    assert colour_of("pleural effusion") == HUES["sky blue"]
    assert colour_of(" Pleural Effusion") == HUES["sky blue"]
    assert colour_of("right lung") == colour_of("left lung")
    # Names that nobody foresaw: the same in every process, whatever PYTHONHASHSEED is.
    assert colour_of("aortic enlargement") == HUES["sky blue"]
    assert HUES["orange"].hex == "#e69f00"


# ---- marks ----

SIGHT = {"usual": np.eye(3).tolist(), **BLINDNESS}
# A difference of 2 is just seen with colours side by side. Marks lie 100 pixels apart and are compared from memory with
# a name: for the usual reader twice 12 keeps eight names apart, and 12 is still six times what can just be seen for a
# dichromat, who has the number too. A search near the names found no eight above 16, and those had a brown like black.
LEAST = {"usual": 24, "protanopia": 12, "deuteranopia": 12, "tritanopia": 12}


@pytest.mark.parametrize("kind", SIGHT)
def test_mark_colours_can_be_distinguished(kind: str) -> None:
    labs = {name: seen(colour, SIGHT[kind]) for name, colour in MARKS.items()}
    differences = {
        pair: float(deltaE_ciede2000(labs[pair[0]], labs[pair[1]]))
        for pair in itertools.combinations(MARKS, 2)
    }
    assert min(differences.values()) > LEAST[kind], min(differences, key=differences.get)


# Centres of what people named in the XKCD colour survey (2010): the eight, and neighbours they could be taken for.
SURVEY = {
    "red": (229, 0, 0), "orange": (249, 115, 6), "yellow": (255, 255, 20), "green": (21, 176, 26),
    "blue": (3, 67, 223), "purple": (126, 30, 156), "pink": (255, 129, 192), "brown": (101, 55, 0),
    "teal": (2, 147, 134), "light blue": (149, 208, 252), "magenta": (194, 0, 120), "grey": (146, 149, 145),
    "black": (0, 0, 0), "white": (255, 255, 255), "cyan": (0, 255, 255), "navy": (1, 21, 62), "olive": (110, 117, 14),
    "tan": (209, 178, 111), "maroon": (101, 0, 33), "lavender": (199, 159, 239), "gold": (219, 180, 12),
    "salmon": (255, 121, 108), "turquoise": (6, 194, 172), "violet": (154, 14, 234), "lime": (170, 255, 50),
    "peach": (255, 176, 124), "dark green": (3, 53, 0), "beige": (230, 218, 166),
}  # fmt: skip


@pytest.mark.parametrize("name", MARKS)
def test_mark_colour_is_nearest_to_its_name(name: str) -> None:
    lab = rgb2lab(np.array(MARKS[name]) / 255)
    distances = {
        other: float(deltaE_ciede2000(lab, rgb2lab(np.array(rgb) / 255))) for other, rgb in SURVEY.items()
    }
    assert min(distances, key=distances.get) == name


@pytest.mark.parametrize("name", MARKS)
def test_mark_colour_contrasts_with_its_number(name: str) -> None:
    colour = MARKS[name]
    # One of the two rings stands out from the disc; 4.5 is WCAG's for text, 3 its for marks.
    assert max(contrast(colour, WHITE), contrast(colour, INK)) >= 4.5
    assert contrast(ink_on(colour), colour) >= 4.5
    for grey in range(256):
        for ground in (Colour(grey, grey, grey), Colour(round(grey / 2), *[round((grey + 255) / 2)] * 2)):
            assert max(contrast(WHITE, ground), contrast(INK, ground)) >= 4.3


def test_mark_names_are_those_of_chexpercept_in_order() -> None:
    assert list(MARKS) == ["red", "orange", "yellow", "green", "blue", "purple", "pink", "brown"]
    assert dict(NAMED) == {**MARKS, "cyan": (0, 255, 255)}
