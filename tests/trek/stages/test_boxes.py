"""Boxes: around the masks, in the units that the question states."""

import re
from collections import Counter

import numpy as np
import pytest

from carina.cases import Box
from carina.studies import Annotation, Region
from carina.trek.stages.boxes import convert_box, format_box, format_corners

SPOKEN = re.compile(
    r"<\|ref\|> (.+?) <\|/ref\|> <\|box\|>\(([\d.]+), ([\d.]+)\), \(([\d.]+), ([\d.]+)\)<\|/box\|>"
)


def bounds(mask):
    """Left, top, right, bottom of a mask in pixels, the last pixel included."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    return columns[0], rows[0], columns[-1] + 1, rows[-1] + 1


def expected(regions, image, frame):
    corners = [bounds(region.to_mask()) for region in regions]
    box = (
        min(c[0] for c in corners),
        min(c[1] for c in corners),
        max(c[2] for c in corners),
        max(c[3] for c in corners),
    )
    return scaled(box, image, frame)


def scaled(box, image, frame):
    side = {"percent": 100, "thousand": 1000}.get(frame)
    if side is None:
        return box
    return tuple(at * side / full for at, full in zip(box, (image.width, image.height) * 2, strict=True))


def halves(mask):
    """Both sides of the widest band of empty columns."""
    held = np.flatnonzero(mask.any(axis=0))
    before = held[np.argmax(np.diff(held))]
    left, right = mask.copy(), mask.copy()
    left[:, before + 1 :] = False
    right[:, : before + 1] = False
    return left, right


@pytest.fixture(scope="module")
def asked(conversations):
    return [(t.study, t.case, step) for t in conversations for step in t.case.steps if step.format == "boxes"]


def test_boxes_are_asked_for_anatomy_and_findings_in_all_frames(asked):
    assert {(step.task, step.key.boxes[0].frame) for _, _, step in asked} == {
        (task, frame) for task in ("region box", "finding box") for frame in ("percent", "pixel", "thousand")
    }
    assert any(step.template.startswith("s3.finding-box.boxes-phrase") for _, _, step in asked)


def test_boxes_are_around_the_mask(made, asked):
    rounding = {"percent": 0.0051, "thousand": 0.51, "pixel": 1e-6}
    several = 0
    for study, case, step in asked:
        (where,) = {(box.image, box.frame, box.of) for box in step.key.boxes}
        image, (_, frame, of) = study.image(where[0]), where
        (name,) = made.targets(step)
        if step.task == "region box":
            regions = [a.region for a in study.anatomy if a.name == name and a.image == image.key]
            assert of == "anatomy"
        else:
            things = [
                t for t in (*study.findings, *study.devices) if t.name == name and t.certainty != "absent"
            ]
            regions = [a.region for t in things for a in t.annotations if a.image == image.key]
            assert of == "finding"
        limit = {"percent": (100, 100), "thousand": (1000, 1000), "pixel": (image.width, image.height)}[frame]
        for box in step.key.boxes:
            x1, y1, x2, y2 = box.xyxy
            assert 0 <= x1 < x2 <= limit[0]
            assert 0 <= y1 < y2 <= limit[1]
        if len(step.key.boxes) > 1:
            # One a side: nothing of the drawing lies between them or outside.
            several += 1
            assert things[0].location.side == "bilateral"
            (whole,) = regions
            left, right = (bounds(half) for half in halves(whole.to_mask()))
            wanted = [scaled(corners, image, frame) for corners in (left, right)]
        else:
            wanted = [expected(regions, image, frame)]
        for box, corners in zip(step.key.boxes, wanted, strict=True):
            assert box.xyxy == pytest.approx(corners, abs=rounding[frame])
        # The image that is meant has entered, and is the only one in use.
        (view,) = step.uses
        assert case.view(view).panels[0].image == image.key
        assert case.image(image.key).role == "current"
    assert several > 3


def test_the_answer_text_has_the_boxes_of_the_key(made, asked):
    for _, _, step in asked:
        spoken = SPOKEN.findall(step.key.text)
        assert [name for name, *_ in spoken] == [box.name for box in step.key.boxes]
        for (_, *corners), box in zip(spoken, step.key.boxes, strict=True):
            assert tuple(map(float, corners)) == pytest.approx(box.xyxy)
            if box.frame == "percent":
                assert all(re.fullmatch(r"\d+\.\d\d", corner) for corner in corners)
        frame = made.words.wording.common["frame"][step.key.boxes[0].frame]
        assert any(text in step.question for text in frame)
        # Who asks for one box gets one.
        assert ("boxes-several" in step.template) == (len(step.key.boxes) > 1)


def test_no_box_is_asked_for_twice(made, conversations):
    for talk in conversations:
        boxes = Counter(
            (made.targets(step)[0], step.key.boxes[0].image, step.task)
            for step in talk.case.steps
            if step.format == "boxes"
        )
        assert set(boxes.values()) <= {1}


def test_a_quoted_phrase_is_a_sentence_of_the_report_about_that_finding_alone(made, asked):
    checked = 0
    for study, _, step in asked:
        phrase = next((slot.value for slot in step.slots if slot.name == "phrase"), None)
        if phrase is None:
            continue
        numbers = [
            n
            for n, s in enumerate(study.report.sentences)
            if study.report.quote(s).strip().rstrip(".") == phrase
        ]
        (name,) = made.targets(step)
        thing = next(
            t for t in (*study.findings, *study.devices) if t.name == name and t.certainty != "absent"
        )
        assert set(numbers) & set(thing.evidence)
        for number in set(numbers) & set(thing.evidence):
            assert sum(number in t.evidence for t in (*study.findings, *study.devices)) == 1
        checked += 1
    assert checked > 10


def test_what_a_box_holds_is_asked_with_the_box_of_the_finding(made, conversations):
    checked = 0
    for talk in conversations:
        for step in talk.case.steps:
            if step.task != "box content":
                continue
            (name,) = made.targets(step)
            thing = next(
                t
                for t in talk.study.findings + talk.study.devices
                if t.name == name and t.certainty != "absent"
            )
            corners = [
                float(n) for n in re.findall(r"[\d.]+", next(s.value for s in step.slots if s.name == "box"))
            ]
            image = talk.case.view(step.uses[0]).panels[0].image
            frame = max(
                ("percent", "pixel", "thousand"),
                key=lambda frame: any(
                    text in step.question for text in made.words.wording.common["frame"][frame]
                ),
            )
            regions = [a.region for a in thing.annotations if a.image == image]
            options = [
                expected(regions, talk.study.image(image), f) for f in ("percent", "pixel", "thousand")
            ]
            assert any(corners == pytest.approx(o, abs=0.51) for o in options), (frame, corners)
            assert made.words.name(name).a.removeprefix("a ").removeprefix("an ") in step.key.text.lower()
            assert thing.certainty == "present" or made.hedges.search(step.key.text)
            checked += 1
    assert checked > 10


def test_the_content_of_a_box_is_asked_with_the_units_of_its_corners(conversations):
    """Without them a number is a pixel, a percent or a thousandth."""
    for talk in conversations:
        for step in talk.case.steps:
            if step.task == "box content":
                corners = next(s.value for s in step.slots if s.name == "box")
                assert re.search(r"percent|%|pixel|thousand|1000", step.question), (corners, step.question)


# ---- by hand ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("frame", "corners", "text"),
    [
        ("pixel", (30, 10, 80, 30), "(30, 10), (80, 30)"),
        ("percent", (15.0, 10.0, 40.0, 30.0), "(15.00, 10.00), (40.00, 30.00)"),
        ("thousand", (150, 100, 400, 300), "(150, 100), (400, 300)"),
    ],
)
def test_boxes_are_in_the_units_of_the_frame(made, frame, corners, text):
    image = made.study().images[0]
    box = convert_box((30, 10, 50, 20), image, frame, name="heart", of="anatomy")
    assert box == Box(image="s.png", xyxy=corners, frame=frame, name="heart", of="anatomy")
    assert format_corners(box) == text
    assert format_box(box, "the heart") == f"<|ref|> the heart <|/ref|> <|box|>{text}<|/box|>"


def test_boxes_are_rounded_to_the_units_of_the_frame(made):
    image = made.study().images[0]
    assert convert_box((1, 33, 2, 1), image, "percent", name="dot").xyxy == (0.5, 33.0, 1.5, 34.0)
    assert convert_box((1, 33, 2, 1), image, "thousand", name="dot").xyxy == (5, 330, 15, 340)
    odd = made.replace(image, width=333, height=777)
    assert convert_box((1, 1, 100, 100), odd, "percent", name="dot").xyxy == (0.3, 0.13, 30.33, 13.0)
    assert convert_box((0, 0, 333, 777), odd, "thousand", name="all").xyxy == (0, 0, 1000, 1000)


def test_a_region_that_rounds_to_nothing_has_no_box(made):
    large = made.replace(made.study().images[0], width=5000, height=5000)
    assert convert_box((3, 3, 1, 1), large, "thousand", name="dot") is None
    assert convert_box((3, 3, 1, 1), large, "pixel", name="dot").xyxy == (3, 3, 4, 4)


def test_an_empty_region_is_not_asked_for(made):
    empty = Region.from_mask(np.zeros((100, 200), bool))
    study = made.study(
        made.finding("mass", boxed=empty), anatomy=made.anatomy(heart=empty, spine=made.rectangle(1, 1, 9, 9))
    )
    steps = [step for case in made.talks(40, study) for step in case.steps if step.format == "boxes"]
    assert {name for step in steps for name in made.targets(step)} == {"spine"}
    assert not any(step.task == "box content" for case in made.talks(40, study) for step in case.steps)


def test_without_regions_there_are_no_boxes(made):
    study = made.study(made.finding("mass", zones=("left upper",), side="left"))
    assert not any(
        s.format == "boxes" or s.task == "box content" for case in made.talks(20, study) for s in case.steps
    )


def test_anatomy_of_an_image_that_is_not_shown_is_not_asked_for(made):
    study = made.study(
        made.finding("mass"),
        views=("PA", "lateral"),
        anatomy=(
            *made.anatomy("s.png", heart=made.rectangle(1, 1, 9, 9)),
            *made.anatomy("s-2.png", spine=made.rectangle(1, 1, 9, 9)),
        ),
    )
    names = Counter(
        name
        for case in made.talks(20, study, most_images=1)
        for step in case.steps
        if step.task == "region box"
        for name in made.targets(step)
    )
    assert set(names) == {"heart"}


@pytest.mark.parametrize(
    ("drawn", "views", "boxes"),
    [
        # Rectangles as (x, width) on an image 200 wide, 20 high at 10.
        ([(20, 40), (120, 40)], ("PA",), [(20, 60), (120, 160)]),
        ([(20, 40), (75, 10), (110, 20)], ("PA",), [(20, 85), (110, 130)]),  # the widest gap is in one lung
        ([(20, 40), (61, 100)], ("PA",), [(20, 161)]),  # none is at the border of the lungs
        ([(20, 60), (80, 80)], ("PA",), [(20, 160)]),  # no gap at all
        ([(20, 60), (120, 1)], ("PA",), [(20, 121)]),  # a speck is no side
        ([(20, 40), (120, 40)], ("lateral",), [(20, 160)]),  # front and back are no sides
    ],
)
def test_a_region_drawn_in_both_lungs_has_a_box_for_each_side(made, drawn, views, boxes):
    region = made.rectangle(10, 1, 20, 1)
    mask = np.zeros((region.height, region.width), bool)
    for x, width in drawn:
        mask[10:30, x : x + width] = True
    study = made.study(
        made.finding("pleural effusion", side="bilateral", boxed=Region.from_mask(mask)), views=views
    )
    steps = [
        s for case in made.talks(60, study, frame="pixel") for s in case.steps if s.task == "finding box"
    ]
    assert steps
    for step in steps:
        assert [box.xyxy for box in step.key.boxes] == [(x1, 10, x2, 30) for x1, x2 in boxes]


def test_a_finding_in_two_pieces_has_both_in_its_boxes(made):
    pieces = tuple(
        Annotation(image="s.png", region=region, drawn="mask", annotator="reader")
        for region in (made.rectangle(10, 10, 20, 20), made.rectangle(60, 150, 20, 20))
    )
    study = made.study(made.finding("pleural effusion", side="bilateral", annotations=pieces))
    steps = [
        s for case in made.talks(60, study, frame="pixel") for s in case.steps if s.task == "finding box"
    ]
    assert steps
    for step in steps:
        corners = {box.xyxy for box in step.key.boxes}
        assert corners in ({(10, 10, 30, 30), (150, 60, 170, 80)}, {(10, 10, 170, 80)})


@pytest.mark.parametrize(
    ("other", "asked"),
    [
        (lambda _: [], True),
        (lambda m: [m.finding("fracture", "absent")], True),
        (lambda m: [m.finding("fracture", boxed=m.rectangle(60, 150, 20, 20))], True),
        (lambda m: [m.finding("fracture", boxed=m.rectangle(25, 25, 20, 20))], False),
        (lambda m: [m.finding("fracture", "uncertain", boxed=m.rectangle(0, 0, 90, 90))], False),
        # What is drawn beside the box is not in it.
        (lambda m: [m.finding("fracture", boxed=m.rectangle(10, 30, 20, 20))], True),
        # What nobody has drawn may lie anywhere.
        (lambda m: [m.finding("fracture")], False),
        (lambda m: [m.device("pacemaker")], False),
    ],
)
def test_what_a_box_holds_is_asked_only_where_nothing_else_could_lie_in_it(made, other, asked):
    study = made.study(made.finding("mass", boxed=made.rectangle(10, 10, 20, 20)), *other(made))
    tasks = {
        step.task
        for case in made.talks(100, study)
        for step in case.steps
        if step.stage == 3 and "mass" in made.targets(step)
    }
    assert "finding box" in tasks
    assert ("box content" in tasks) == asked


def test_the_question_names_the_image_that_it_is_about(made):
    """Two images of a projection could not be told apart, so one of them is shown."""
    views = ("PA", "PA", "lateral")
    keys = ("s.png", "s-2.png", "s-3.png")
    study = made.study(
        made.finding("mass"),
        views=views,
        anatomy=tuple(a for key in keys for a in made.anatomy(key, heart=made.rectangle(1, 1, 9, 9))),
    )
    asked = Counter()
    for case in made.talks(30, study, quotas=made.everything):
        for step in case.steps:
            if step.task == "region box":
                image = step.key.boxes[0].image
                other = {"s.png": "lateral", "s-3.png": "frontal"}[image]
                assert {"frontal": "lateral", "lateral": "frontal"}[other] in step.question, step.question
                assert other not in step.question
                asked[image] += 1
    assert set(asked) == {"s.png", "s-3.png"}
