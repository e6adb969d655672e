"""Units, images and names of boxes. The notations themselves are in the bank."""

import pytest
from tests.runs.parse.steps import make_step

from carina.runs.parse import parse

PERCENT = make_step(
    "boxes", "Where is the heart? Give each box as x1, y1, x2, y2 in percent of width and height."
)
PIXEL = make_step(
    "boxes", "Where is the heart? Write a box in pixel coordinates in the order x1, y1, x2, y2."
)
THOUSAND = make_step(
    "boxes", "Where is the heart? State the coordinates from 0 to 1000 as x1, y1 and x2, y2."
)
UNIT = make_step("boxes", "Where is the heart? Give normalised coordinates x1, y1, x2, y2 between 0 and 1.")
IMAGES = {"a.png": (400, 200), "b.png": (100, 100)}

HEART = (10.0, 20.0, 30.0, 40.0)


@pytest.mark.parametrize(
    ("step", "frame"), [(PERCENT, "percent"), (PIXEL, "pixel"), (THOUSAND, "thousand"), (UNIT, "unit")]
)
def test_a_box_is_in_the_unit_of_the_question_and_on_the_first_image(step, frame):
    (box,) = parse(step, "[10%, 20%, 30%, 40%]", images=IMAGES).boxes
    assert (box.frame, box.image) == (frame, "a.png")


def test_a_box_a_little_outside_is_clipped():
    (box,) = parse(PERCENT, "[-1, 20, 30, 101]", images=IMAGES).boxes
    assert box.xyxy == (0.0, 20.0, 30.0, 100.0)


def test_repeated_boxes_are_kept_once_with_their_names():
    said = "<|ref|> nodule <|/ref|> <|box|>(1, 2), (3, 4)<|/box|> <|ref|> mass <|/ref|> <|box|>(5, 6), (7, 8)<|/box|>"
    boxes = parse(PERCENT, f"{said}\n{said}", images=IMAGES).boxes
    assert [(box.name, box.xyxy) for box in boxes] == [("nodule", (1, 2, 3, 4)), ("mass", (5, 6, 7, 8))]


def test_a_box_lies_on_the_image_that_the_question_names():
    step = make_step("boxes", "Where is the heart on image 2? Give each box in pixels.")
    (box,) = parse(step, "[10, 20, 30, 40]", images=IMAGES).boxes
    assert box.image == "b.png"


def test_without_the_size_of_an_image_a_box_keeps_its_unit():
    (box,) = parse(PIXEL, "[10%, 20%, 30%, 40%]").boxes
    assert (box.frame, box.xyxy, box.image) == ("percent", HEART, "")


def test_the_number_of_an_image_is_no_coordinate():
    (box,) = parse(PERCENT, "On image 2: [51.56, 42.19, 60.16, 55.47]", images=IMAGES).boxes
    assert (box.xyxy, box.image) == ((51.56, 42.19, 60.16, 55.47), "b.png")


def test_two_boxes_given_by_corners_are_both_read():
    said = "Top-left (10, 20), bottom-right (30, 40). Top-left (50, 60), bottom-right (70, 80)."
    boxes = parse(PERCENT, said, images=IMAGES).boxes
    assert [box.xyxy for box in boxes] == [HEART, (50.0, 60.0, 70.0, 80.0)]
