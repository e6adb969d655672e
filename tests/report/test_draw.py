"""One list of shapes, as SVG and as PNG."""

import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from carina.report.draw import Drawing, png_bytes, svg
from carina.report.draw.png import SCALE, _dashes
from carina.report.draw.shapes import COLOURS, Area, Line, Mark, Words, rectangle, text_width


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


@pytest.mark.parametrize("shape", ["circle", "square", "triangle", "diamond", "cross", "ring"])
def test_marks_cover_their_middle(shape):
    made = Drawing("one", 20, 20, "mark")
    made.items.append(Mark(10, 10, shape, "s3", 6))
    picture = np.asarray(Image.open(io.BytesIO(png_bytes(made))).convert("RGB")).astype(int)
    filled = (np.abs(picture - [0, 0x80, 0x5D]).sum(axis=2) < 30).reshape(-1)
    assert filled.any()
    middle = picture[10 * SCALE, 10 * SCALE]
    assert (middle.sum() > 700) == (shape == "ring")
    assert "circle" in svg(made, alone=False) or shape not in ("circle", "ring")


def test_dashes_cover_their_share_of_a_bent_line():
    line = Line(((0, 0), (30, 0), (30, 30)), "ink", 1, (4.0, 2.0))
    length = sum(abs(x1 - x0) + abs(y1 - y0) for (x0, y0), (x1, y1) in _dashes(line))
    assert length == pytest.approx(40, abs=0.01)


def test_longer_text_is_longer():
    assert text_width("wider", 12) > text_width("wide", 12) > 0
    assert text_width("wide", 24) == pytest.approx(2 * text_width("wide", 12))


def test_a_minus_sign_is_drawn():
    def drawn(text):
        made = Drawing("one", 40, 20, "words")
        made.items.append(Words(4, 14, text, 12))
        return png_bytes(made)

    # A sign that the font lacks would be a box.
    assert drawn("−5") == drawn("-5") != drawn("\uffff5")
