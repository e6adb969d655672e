"""Boxes in four conventions and in the dialects of models."""

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

REPLIES = [
    (PERCENT, "<|ref|> heart <|/ref|> <|box|>(10.00, 20.00), (30.00, 40.00)<|/box|>", HEART),
    (PERCENT, "The box is <|ref|> heart <|/ref|> <|box|>(10, 20), (30, 40)<|/box|>.", HEART),
    (PERCENT, "[10, 20, 30, 40]", HEART),
    (PERCENT, "(10, 20, 30, 40)", HEART),
    (PERCENT, "10, 20, 30, 40", HEART),
    (PERCENT, "heart: [10%, 20%, 30%, 40%]", HEART),
    (PERCENT, "**Answer:** [10, 20, 30, 40]", HEART),
    (PERCENT, "First guess [1, 2, 3, 4]. Final answer: [10, 20, 30, 40]", HEART),
    (PERCENT, "<think>[1, 2, 3, 4]</think>[10, 20, 30, 40]", HEART),
    (PERCENT, "from (10, 20) to (30, 40)", HEART),
    (PERCENT, "x1=10, y1=20, x2=30, y2=40", HEART),
    (PERCENT, "x_min: 10, y_min: 20, x_max: 30, y_max: 40", HEART),
    (PERCENT, "x: 10, y: 20, width: 20, height: 20", HEART),
    (PERCENT, '{"bbox": [10, 20, 30, 40], "label": "heart"}', HEART),
    (PERCENT, '```json\n[{"bbox_2d": [10, 20, 30, 40], "label": "heart"}]\n```', HEART),
    (PERCENT, '{"boxes": [[10, 20, 30, 40]]}', HEART),
    (PERCENT, '{"x1": 10, "y1": 20, "x2": 30, "y2": 40}', HEART),
    (PERCENT, '{"heart": [[10, 20], [30, 40]]}', HEART),
    (PERCENT, '[{"box_2d": [200, 100, 400, 300], "label": "heart"}]', HEART),
    (PERCENT, 'Here: "box_2d": [200, 100, 400, 300]', HEART),
    (PERCENT, "<box>[[100, 200, 300, 400]]</box>", HEART),
    (PERCENT, "<ref>heart</ref><box>(100,200),(300,400)</box>", HEART),
    (
        PERCENT,
        "<|object_ref_start|>heart<|object_ref_end|><|box_start|>(100,200),(300,400)<|box_end|>",
        HEART,
    ),
    (PERCENT, "[0.1, 0.2, 0.3, 0.4]", HEART),
    (PERCENT, "[40px, 40px, 120px, 80px]", HEART),
    (PERCENT, "In pixels: [40, 40, 120, 80]", HEART),
    (PERCENT, "［１０，２０，３０，４０］", HEART),
    (PIXEL, "[40, 40, 120, 80]", (40.0, 40.0, 120.0, 80.0)),
    (PIXEL, "[10%, 20%, 30%, 40%]", (40.0, 40.0, 120.0, 80.0)),
    (PIXEL, "[0.1, 0.2, 0.3, 0.4]", (40.0, 40.0, 120.0, 80.0)),
    (PIXEL, "<loc0256><loc0512><loc0512><loc1024> heart", (200.0, 50.0, 400.0, 100.0)),
    (THOUSAND, "[100, 200, 300, 400]", (100.0, 200.0, 300.0, 400.0)),
    (THOUSAND, "[10%, 20%, 30%, 40%]", (100.0, 200.0, 300.0, 400.0)),
    (UNIT, "[0.1, 0.2, 0.3, 0.4]", (0.1, 0.2, 0.3, 0.4)),
    (UNIT, "[10%, 20%, 30%, 40%]", (0.1, 0.2, 0.3, 0.4)),
]


@pytest.mark.parametrize(("step", "reply", "expected"), REPLIES, ids=[reply[:50] for _, reply, _ in REPLIES])
def test_each_notation_of_a_box_is_read_in_the_unit_of_the_question(step, reply, expected):
    parsed = parse(step, reply, images=IMAGES)
    assert parsed.status == "ok"
    (box,) = parsed.boxes
    assert box.xyxy == pytest.approx(expected)
    assert box.image == "a.png"
    assert (
        box.frame
        == {id(PERCENT): "percent", id(PIXEL): "pixel", id(THOUSAND): "thousand", id(UNIT): "unit"}[id(step)]
    )


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("[30, 20, 10, 40]", "out_of_range"),
        ("[10, 20, 10, 40]", "out_of_range"),
        ("[10, 20, 300, 400]", "out_of_range"),
        ("[-10, 20, 30, 40]", "out_of_range"),
        ("The heart is at 10 and 20.", "no_answer"),
        ("Series 1.2.3.4 of 2020-01-02", "no_answer"),
        ("", "no_answer"),
        ("I'm sorry, but I can't interpret medical images.", "refusal"),
        ("<think>[10, 20, 30, 40]", "truncated"),
    ],
)
def test_a_reply_without_a_valid_box_has_the_class_of_its_failure(reply, status):
    parsed = parse(PERCENT, reply, images=IMAGES)
    assert (parsed.status, parsed.boxes) == (status, ())


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


@pytest.mark.parametrize(
    "reply",
    [
        "Top-left: (10, 20)\nBottom-right: (30, 40)",
        "Top-left corner:\n(10, 20)\nBottom-right corner:\n(30, 40)",
        "**Top-left:** (10, 20)\n**Bottom-right:** (30, 40)",
        "Upper left (10%, 20%), lower right (30%, 40%)",
        "The upper left corner is at (10, 20) and the lower right corner is at (30, 40).",
        "Top right: (30, 20), bottom left: (10, 40)",
        "x1, y1 = 10, 20; x2, y2 = 30, 40",
        "(x1, y1) = (10, 20), (x2, y2) = (30, 40)",
        "xmin, ymin: 10, 20\nxmax, ymax: 30, 40",
        "x from 10% to 30%, y from 20% to 40%",
        "x: 10-30, y: 20-40",
        "x ranges from 10 to 30 and y ranges from 20 to 40",
        "I think [1, 1, 2, 2] at first. Final: [10, 20, 30, 40]",
        "I think [1, 1, 2, 2] at first. **Final:** [10, 20, 30, 40]",
        "[1, 1, 2, 2]? No. The final box is [10, 20, 30, 40].",
        "1. [10, 20, 30, 40]",
        "Box 1: [10, 20, 30, 40]",
        "Figure 1: 10, 20, 30, 40",
        "Image 1: 10, 20, 30, 40",
        "In view 1 (10, 20, 30, 40)",
    ],
)
def test_numbers_in_prose_around_a_box_are_not_its_coordinates(reply):
    (box,) = parse(PERCENT, reply, images=IMAGES).boxes
    assert (box.xyxy, box.frame, box.image) == (HEART, "percent", "a.png")


@pytest.mark.parametrize(
    "reply",
    [
        "Top-left: (51.56, 42.19)\nBottom-right: (60.16, 55.47)",
        "Upper left (51.56%, 42.19%), lower right (60.16%, 55.47%)",
        "x1, y1 = 51.56, 42.19; x2, y2 = 60.16, 55.47",
    ],
)
def test_corners_with_decimals_are_read_exactly(reply):
    (box,) = parse(PERCENT, reply, images=IMAGES).boxes
    assert box.xyxy == (51.56, 42.19, 60.16, 55.47)


def test_the_number_of_an_image_is_no_coordinate():
    (box,) = parse(PERCENT, "On image 2: [51.56, 42.19, 60.16, 55.47]", images=IMAGES).boxes
    assert (box.xyxy, box.image) == ((51.56, 42.19, 60.16, 55.47), "b.png")


def test_two_boxes_given_by_corners_are_both_read():
    said = "Top-left (10, 20), bottom-right (30, 40). Top-left (50, 60), bottom-right (70, 80)."
    boxes = parse(PERCENT, said, images=IMAGES).boxes
    assert [box.xyxy for box in boxes] == [HEART, (50.0, 60.0, 70.0, 80.0)]


@pytest.mark.parametrize("reply", ["Top-left: (10, 20)", "x from 10 to 30", "The top left is clear."])
def test_half_a_box_is_no_answer(reply):
    assert parse(PERCENT, reply, images=IMAGES).status == "no_answer"
