import itertools

import numpy as np
import pytest
from skimage.color import deltaE_ciede2000, rgb2lab

from carina.draw import HUES, INK, PALETTE, PANEL, WHITE, Colour, colour_of, contrast, ink_on, luminance
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
