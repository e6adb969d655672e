"""One list of shapes, as SVG and as PNG."""

import io
import xml.etree.ElementTree as ET
from typing import get_args

import numpy as np
import pytest
from PIL import Image

from carina.report.draw import Drawing, captioned, png_bytes, svg
from carina.report.draw.errors import ink_of
from carina.report.draw.png import SCALE, _dashes
from carina.report.draw.shapes import (
    COLOURS,
    Area,
    Line,
    Mark,
    Shape,
    Words,
    left_half,
    outline,
    rectangle,
    text_width,
)


@pytest.fixture
def drawing():
    made = Drawing("one", 100, 50, 'A "chart" <of> one & another')
    made.items += [
        Area(rectangle(10, 10, 20, 20), "s1"),
        Area(rectangle(60, 10, 20, 20), "s2", 0.5),
        Line(((0, 40), (100, 40)), "ink", 2.0),
        Words(50, 48, "a < b", 8, "middle"),
    ]
    return made


def test_svg_alone_is_well_formed_and_has_literal_colours(drawing):
    told = svg(drawing, alone=True)
    root = ET.fromstring(told)  # noqa: S314 - our own
    assert root.attrib["viewBox"] == "0 0 100 50"
    assert root.attrib["aria-label"] == drawing.title
    assert "var(" not in told
    assert [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")] == ["a < b"]


def test_svg_in_a_page_takes_its_colours(drawing):
    told = svg(drawing, alone=False)
    assert "fill:var(--s1)" in told
    assert "#" not in told


def test_png_has_the_same_shapes(drawing):
    picture = np.asarray(Image.open(io.BytesIO(png_bytes(drawing))).convert("RGB"))
    assert picture.shape == (50 * SCALE, 100 * SCALE, 3)

    def at(x, y):
        return tuple(int(channel) for channel in picture[round(y * SCALE), round(x * SCALE)])

    blue = tuple(int(COLOURS["s1"][0][place : place + 2], 16) for place in (1, 3, 5))
    orange = tuple(int(COLOURS["s2"][0][place : place + 2], 16) for place in (1, 3, 5))
    assert at(20, 20) == blue
    assert at(70, 20) == pytest.approx([(channel + 255) / 2 for channel in orange], abs=1)
    assert at(45, 20) == (255, 255, 255)
    assert at(50, 40) == tuple(int(COLOURS["ink"][0][place : place + 2], 16) for place in (1, 3, 5))
    assert png_bytes(drawing) == png_bytes(drawing)


def drawn(shape, fill):
    """Where a mark in the middle of 20 by 20 has its colour."""
    made = Drawing("one", 20, 20, "mark")
    made.items.append(Mark(10, 10, shape, "s3", 6, fill))
    picture = np.asarray(Image.open(io.BytesIO(png_bytes(made))).convert("RGB")).astype(int)
    return np.abs(picture - [0, 0x80, 0x5D]).sum(axis=2) < 30


@pytest.mark.parametrize("shape", get_args(Shape))
def test_fillings_of_a_mark(shape):
    left, right, middle = (np.s_[30, 24], np.s_[30, 36], np.s_[29:32, 29:32])
    full, hollow, half, dot = (drawn(shape, fill) for fill in ("full", "hollow", "half", "dot"))
    assert (full[left], full[right], full[middle].all()) == (True, True, True)
    assert (hollow[middle].any(), hollow.any()) == (False, True)
    # The rim of a narrow mark may cover what is beside its middle; the halves still differ.
    assert half[:, :30].sum() > 1.2 * half[:, 31:].sum()
    assert dot[middle].all()
    pictures = {picture.tobytes() for picture in (full, hollow, half, dot)}
    assert len(pictures) == 4


def test_no_two_shapes_are_drawn_alike():
    assert len({drawn(shape, "full").tobytes() for shape in get_args(Shape)}) == len(get_args(Shape)) == 10


def area(points):
    """By the shoelace formula."""
    return (
        abs(
            sum(
                x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in zip(points, (*points[1:], points[0]), strict=True)
            )
        )
        / 2
    )


@pytest.mark.parametrize("shape", get_args(Shape))
def test_the_left_half_is_half_of_a_mark(shape):
    mark = Mark(3, 7, shape, "s1", 5)
    half = left_half(mark)
    assert all(x <= 3 + 1e-9 for x, _ in half)
    assert area(half) == pytest.approx(area(outline(mark)) / 2)


def test_a_drawing_tells_its_main_figures_to_those_who_do_not_see_it(drawing):
    drawing.told = "a 1%, b 2%"
    for alone in (True, False):
        assert 'aria-label="A &quot;chart&quot; &lt;of&gt; one &amp; another. a 1%, b 2%"' in svg(
            drawing, alone=alone
        )


def test_a_figure_by_itself_is_explained_below(drawing):
    drawing.note = "word " * 40
    made = captioned(drawing)
    added = made.items[len(drawing.items) :]
    assert " ".join(item.text for item in added).split() == ["word"] * 40
    assert all(50 < item.y < made.height for item in added)
    assert captioned(Drawing("two", 100, 50, "bare")).height == 50


def luminance(colour):
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_words_and_marks_stand_out_from_the_ground(theme):
    ground = COLOURS["surface"][theme]
    for role in ("ink", "quiet"):
        assert contrast(COLOURS[role][theme], ground) >= 4.5
    for role in ("b1", "b2", "oracle", *(f"s{number}" for number in range(1, 9))):
        assert contrast(COLOURS[role][theme], ground) >= 3
    # Words on the bars of first errors, in the ink that is chosen for each.
    for role in ("good", *(f"e{number}" for number in range(1, 9))):
        assert contrast(COLOURS[role][theme], COLOURS[ink_of(role)][theme]) >= 4.5


def test_dashes_cover_their_share_of_a_bent_line():
    line = Line(((0, 0), (30, 0), (30, 30)), "ink", 1, (4.0, 2.0))
    length = sum(abs(x1 - x0) + abs(y1 - y0) for (x0, y0), (x1, y1) in _dashes(line))
    assert length == pytest.approx(40, abs=0.01)


def test_longer_text_is_longer():
    assert text_width("wider", 12) > text_width("wide", 12) > 0
    assert text_width("wide", 24) == pytest.approx(2 * text_width("wide", 12))


def test_a_minus_sign_is_drawn():
    def written(text):
        made = Drawing("one", 40, 20, "words")
        made.items.append(Words(4, 14, text, 12))
        return png_bytes(made)

    # A sign that the font lacks would be a box.
    assert written("−5") == written("-5") != written("\uffff5")
