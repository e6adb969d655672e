import numpy as np
import pytest

from carina.cases.draw import HUES, INK, WHITE, line_height, put_label, put_text, shorten, text_size, wrap


def test_text_size_is_that_of_the_drawn_text() -> None:
    picture = np.zeros((60, 200, 3), np.uint8)
    size = text_size("nodule", size=20)
    put_text(picture, "nodule", x=10, y=5, size=20, colour=WHITE)
    rows, columns = np.nonzero(picture.any(axis=2))
    assert rows.min() >= 5
    assert rows.max() < 5 + size.height == 5 + line_height(20)
    assert columns.min() >= 10
    assert columns.max() < 10 + size.width
    assert picture.max() == 255  # full strokes, not a grey haze


@pytest.mark.parametrize(
    ("x", "y"),
    [(-30, 5), (190, 5), (10, -12), (10, 55), (10, 63), (203, 5), (500, 500), (-500, -500)],
)
def test_text_is_cut_at_the_edge(x: int, y: int) -> None:
    wide = np.zeros((1100, 1300, 3), np.uint8)
    put_text(wide, "consolidation", x=x + 500, y=y + 500, size=20, colour=WHITE)
    picture = np.zeros((60, 200, 3), np.uint8)
    put_text(picture, "consolidation", x=x, y=y, size=20, colour=WHITE)
    np.testing.assert_array_equal(picture, wide[500:560, 500:700])


@pytest.mark.parametrize("ground", [0, 128, 255])
def test_label_is_legible_on_any_ground(ground: int) -> None:
    picture = np.full((60, 200, 3), ground, np.uint8)
    plate = put_label(picture, "1 nodule", x=20, y=10, size=18, colour=HUES["orange"])
    part = picture[10 : 10 + plate.height, 20 : 20 + plate.width]
    assert (part[:, :4] == HUES["orange"]).all()
    assert (part[0, 4:] == INK).all()
    assert part[:, 4:].max() == 255
    outside = np.ones(picture.shape[:2], bool)
    outside[10 : 10 + plate.height, 20 : 20 + plate.width] = False
    assert (picture[outside] == ground).all()


def test_label_is_moved_into_the_image() -> None:
    there, pushed = np.zeros((2, 60, 200, 3), np.uint8)
    plate = put_label(there, "mass", x=200, y=60, size=18, colour=WHITE)
    put_label(pushed, "mass", x=200 - plate.width, y=60 - plate.height, size=18, colour=WHITE)
    np.testing.assert_array_equal(there, pushed)


def test_wrapped_lines_fit_and_lose_nothing() -> None:
    text = "There is a moderate left pleural effusion.\nNo pneumothorax.  " + "x" * 80
    lines = wrap(text, width=150, size=15)
    assert all(text_size(line, size=15).width <= 150 for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "").replace("\n", "")
    assert any(line.startswith("No pneumothorax") for line in lines)
    assert wrap("", width=150, size=15) == [""]


def test_shortened_line_fits() -> None:
    assert shorten("mass", width=100, size=15) == "mass"
    short = shorten("a very long caption that does not fit", width=100, size=15)
    assert short.endswith("…")
    assert text_size(short, size=15).width <= 100


def test_text_is_the_same_every_time() -> None:
    pictures = np.zeros((2, 40, 300, 3), np.uint8)
    for picture in pictures:
        put_text(picture, "4.1 cm above the carina", x=3, y=3, size=17, colour=WHITE)
    assert pictures[0].tobytes() == pictures[1].tobytes()
