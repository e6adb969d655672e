"""What the reader measures, on pictures of which the truth is drawn by hand."""

import re

import cv2
import numpy as np
import pytest
from tests.runs.builtin.chests import (
    FRAME,
    HEART,
    LEFT,
    RIGHT,
    answer_text,
    chest,
    disc,
    make_options,
    png,
    step,
    tint_mask,
    with_disc,
)

from carina.cases.draw import MARKS
from carina.runs.builtin.reader import Reader
from carina.runs.builtin.reader.reading import Reading
from carina.runs.builtin.reader.rendered_image import read_image
from carina.runs.builtin.reader.thorax import find_thorax


def reading(image):
    return Reading(read_image(png(image)))


# ---- pictures -----------------------------------------------------------------------------------------------------


def test_a_tinted_contour_is_found_and_removed_from_the_grey_values():
    image, mask = chest(), disc(LEFT, 20)
    found = read_image(png(tint_mask(image, mask)))
    np.testing.assert_array_equal(found.contour, mask)
    # Half a grey value is rounded away under the tint.
    np.testing.assert_allclose(found.grey, image, atol=1)


def test_a_grey_image_has_neither_contour_nor_marks():
    found = read_image(png(chest(size=512)))
    assert found.contour is None
    assert found.marks == {}
    assert (found.width, found.height) == (512, 512)
    assert found.grey.shape == (256, 256)


def test_an_outline_stands_for_its_interior():
    rgb = np.repeat(chest()[:, :, None], 3, axis=2)
    cv2.circle(rgb, LEFT, 20, (0, 255, 255), 1)
    np.testing.assert_array_equal(read_image(png(rgb)).contour, disc(LEFT, 20))


def test_marks_are_found_by_the_colour_that_the_question_names():
    rgb = tint_mask(chest(size=512), disc((352, 236), 40, 512))
    places = {"red": (100, 120), "yellow": (352, 236), "brown": (300, 60), "blue": (210, 400)}
    for name, place in places.items():
        cv2.circle(rgb, place, 8, MARKS[name], -1)
    found = read_image(png(rgb)).marks
    assert set(found) == set(places)
    for name, (x, y) in places.items():
        assert found[name] == pytest.approx(((x + 0.5) / 2, (y + 0.5) / 2), abs=0.5)


@pytest.mark.parametrize("content", [b"", b"no picture", png(chest())[:60]])
def test_a_file_that_is_no_image_is_read_as_a_blank_image(content):
    found = Reading(read_image(content))
    assert found.is_blank
    assert found.findings == ()


# ---- anatomy ------------------------------------------------------------------------------------------------------


def test_the_lungs_are_found_where_they_are_drawn():
    image = chest()
    frame = find_thorax(image.astype(np.float32)).frame
    assert frame == pytest.approx(FRAME, abs=8)


def test_lungs_that_lie_further_to_the_side_are_found_there():
    moved = np.roll(chest(), 20, axis=1)
    here, there = (find_thorax(image.astype(np.float32)).frame for image in (chest(), moved))
    assert (there.left - here.left, there.right - here.right) == pytest.approx((20, 20), abs=3)


@pytest.mark.parametrize(("half", "enlarged"), [(42, False), (56, True)])
def test_the_width_of_the_heart_follows_its_edges(half, enlarged):
    found = reading(chest(heart_half=half))
    left, _, right, _ = found.thorax.heart
    assert (left, right) == pytest.approx((HEART[0] - half, HEART[0] + half), abs=10)
    assert found.has_finding("cardiomegaly") == enlarged


def test_without_edges_the_thorax_has_its_usual_position():
    frame = find_thorax(np.full((256, 256), 90, np.float32)).frame
    assert frame == pytest.approx((0.133 * 256, 0.866 * 256, 0.122 * 256, 0.828 * 256), abs=4)


# ---- lesions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("centre", "zone"), [((80, 70), "right upper zone"), ((200, 120), "left mid zone")])
def test_a_bright_disc_moves_the_box_and_the_answer(centre, zone):
    clear, ill = chest(), with_disc(chest(), centre, 20, 165)
    asked = step("finding box", "boxes", "Box the consolidation, in pixels as x1, y1, x2, y2.")
    reader = Reader()
    box = answer_text(reader, asked, v1=png(ill))
    x1, y1, x2, y2 = (float(number) for number in re.findall(r"[\d.]+", box))
    assert ((x1 + x2) / 2, (y1 + y2) / 2) == pytest.approx(centre, abs=8)
    assert (x2 - x1, y2 - y1) == pytest.approx((40, 40), abs=12)
    assert answer_text(reader, asked, v1=png(clear)) != box
    where = step("location", "open", "Where is the consolidation?")
    assert answer_text(reader, where, v1=png(ill)) == f"The consolidation is seen in the {zone}."


def test_a_clear_chest_has_no_consolidation_and_a_bright_patch_is_one():
    asked = step("detection", "choice", "Is a consolidation visible?", make_options("No", "Yes"), stage=1)
    reader = Reader()
    assert answer_text(reader, asked, v1=png(chest())) == "Answer: 1"
    assert answer_text(reader, asked, v1=png(with_disc(chest(), RIGHT, 26, 165))) == "Answer: 2"


LESION = with_disc(chest(), (196, 110), 22, 165)


@pytest.mark.parametrize(
    ("proposed", "answer"), [(disc((196, 110), 22), "Answer: 2"), (disc((196, 140), 20), "Answer: 1")]
)
def test_a_contour_beside_the_lesion_needs_a_revision(proposed, answer):
    asked = step(
        "contour evaluation",
        "choice",
        "A contour of the consolidation. Does the contour need a major revision?",
        make_options("Yes", "No"),
        stage=2,
        uses=("v1", "v2"),
    )
    shown = png(tint_mask(LESION, proposed))
    assert answer_text(Reader(), asked, v1=png(LESION), v2=shown) == answer
    # The image under the tint will do.
    assert answer_text(Reader(), asked, v2=shown) == answer


def test_points_say_where_the_contour_is_too_small_and_where_too_large():
    proposed = disc((196, 128), 22)
    rgb = tint_mask(cv2.resize(LESION, (512, 512)), cv2.resize(proposed.astype(np.uint8), (512, 512)) > 0)
    # Above the contour and in the lesion; in both; below the lesion but in the contour; in neither.
    for colour, place in (
        ("red", (392, 196)),
        ("green", (392, 240)),
        ("blue", (392, 288)),
        ("yellow", (400, 356)),
    ):
        cv2.circle(rgb, place, 8, MARKS[colour], -1)
    points = make_options("red point", "green point", "blue point", "yellow point", "None")
    shown = png(tint_mask(LESION, proposed))
    answers = [
        answer_text(
            Reader(),
            step(task, "choice", "Points of the consolidation?", points, multiple=True),
            v1=png(LESION),
            v2=shown,
            v3=png(rgb),
        )
        for task in ("expansion", "contraction")
    ]
    assert answers == ["Answer: 1", "Answer: 3"]


def test_the_mask_that_fits_the_image_is_chosen():
    masks = [disc((196, 128), 22), disc((196, 110), 12), disc((196, 110), 22), disc((184, 90), 24)]
    pictures = {f"v{n}": png(tint_mask(LESION, mask)) for n, mask in enumerate(masks, start=4)}
    options = make_options("1st mask", "2nd mask", "3rd mask", "4th mask", views=tuple(pictures))
    asked = step("revision", "choice", "Which is the contour of the consolidation?", options)
    shown = png(tint_mask(LESION, disc((196, 118), 22)))
    assert answer_text(Reader(), asked, v1=png(LESION), v2=shown, **pictures) == "Answer: 3"


def test_attributes_are_those_of_the_contour_that_was_shown():
    shown = {"v1": png(LESION), "v2": png(tint_mask(LESION, disc((196, 110), 22)))}

    def answer(task, question, *texts, multiple=False):
        asked = step(task, "choice", question, make_options(*texts), stage=4, multiple=multiple)
        return answer_text(Reader(), asked, **shown)

    zones = ("4 zones or more", "3 zones", "2 zones", "1 zone")
    # The disc reaches from row 88 to row 132 of a lung from row 31 to row 204: the middle third begins at 89.
    assert answer("distribution", "How many zones hold the consolidation?", *zones) == "Answer: 4"
    places = (
        "lateral half of the left upper zone",
        "medial half of the left mid zone",
        "periphery of the right mid zone",
        "None of the above (options 1-3)",
    )
    assert answer("location", "Where is the consolidation?", *places, multiple=True) == "Answer: 2"
    shares = ("2/3 or more", "less than 1/3", "1/3 to less than 2/3")
    question = "How much of the patient's left lung does the consolidation occupy?"
    assert answer("severity", question, *shares) == "Answer: 2"
    sides = (
        "larger in the left lung",
        "in one lung only",
        "similar in both lungs",
        "larger in the right lung",
    )
    assert answer("comparison", "How do the two lungs compare in the consolidation?", *sides) == "Answer: 2"


# ---- boxes of structures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("units", "times"),
    [("in percent", 100 / 256), ("from 0 to 1000", 1000 / 256), ("in pixels", 2.0), ("from 0 to 1", 1 / 256)],
)
def test_a_box_is_given_in_the_units_that_are_asked_for(units, times):
    asked = step("region box", "boxes", f"Box the heart, {units} of the image.")
    picture = png(chest(size=512))
    found = reading(chest(size=512)).thorax.heart
    corners = ", ".join(f"{value * times:.{4 if times < 0.1 else 2}f}" for value in found)
    x1, y1, x2, y2 = corners.split(", ")
    told = f"<|ref|> heart <|/ref|> <|box|>({x1}, {y1}), ({x2}, {y2})<|/box|>"
    assert answer_text(Reader(), asked, v1=picture) == told
