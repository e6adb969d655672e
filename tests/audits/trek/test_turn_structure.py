"""Turns, boxes and images that contradict themselves."""

import pytest
from tests.audits.gates import objecting
from tests.audits.trek.breaking import (
    audited,
    change,
    first,
    one_step,
    referred,
    replaced,
    row,
    told,
    with_key,
)

from carina.cases.model import Box, Evidence


@pytest.mark.parametrize(
    ("task", "make", "rule", "words"),
    [
        ("location", lambda s: with_key(s, text=None), "answers", "key.text: no answer in words"),
        ("location", lambda s: change(s, score="exact"), "formats", "score: 'exact' does not fit"),
        ("location", lambda s: change(s, format="report"), "formats", "key.sections: 0 with"),
        ("location", lambda s: with_key(s, label="yes"), "formats", "key.label: 'yes' with"),
        ("location", lambda s: change(s, stage=9), "formats", "stage: 9, expected 1 to 8"),
        (
            "view",
            lambda s: change(s, depends_on=("t9",)),
            "dependencies",
            "'t9' is of stage 2, later than 1",
        ),
        (
            "view",
            lambda s: with_key(s, kinds=s.key.kinds[::-1]),
            "options",
            "key.kinds: option",
        ),
        ("view", lambda s: change(s, multiple=True), "options", "score: 'exact' where several"),
        (
            "statement",
            lambda s: with_key(s, text="Yes." if s.key.label == "no" else "No."),
            "labels",
            "key.text: begins with",
        ),
        ("statement", lambda s: with_key(s, text="It does."), "labels", "does not begin with"),
        (
            "statement",
            lambda s: with_key(s, label="uncertain"),
            "labels",
            "where key.label is 'uncertain'",
        ),
        (
            "location",
            lambda s: change(s, evidence=(Evidence(report="current", sentence=-1),)),
            "evidence",
            "-1",
        ),
    ],
)
def test_turn_structure_fails_for_a_turn_that_contradicts_itself(sound, task, make, rule, words):
    cases, case, step = one_step(sound, task, make)
    result = audited(cases)
    assert "turn-structure" in objecting(result, to=("fail",))
    assert words in told(result, "turn-structure")
    assert f"{case.id}: turn {step.id}: " in told(result, "turn-structure")
    assert row(result, "turn-structure", rule).value == pytest.approx(1 / 150)
    assert result.gate("turn-structure").count == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"xyxy": (10.0, 10.0, 101.0, 20.0)}, "exceeds its percent frame of 100 x 100"),
        ({"xyxy": (10.0, 10.0, 10.0, 20.0)}, "has no area"),
        ({"xyxy": (10.0, 10.0, float("nan"), 20.0)}, "exceeds its percent frame"),
        ({"xyxy": (0.0, 0.0, 512.0, 401.0), "frame": "pixel"}, "exceeds its pixel frame of 512 x 400"),
        ({"image": "other.png"}, "which the case does not have"),
    ],
)
def test_turn_structure_fails_for_a_box_outside_its_frame(sound, changes, words):
    cases, *_ = one_step(
        sound, "region box", lambda s: with_key(s, boxes=(change(s.key.boxes[0], **changes),))
    )
    result = audited(cases)
    assert objecting(result) >= {"turn-structure"}
    assert words in told(result, "turn-structure")
    assert row(result, "turn-structure", "boxes").status == "fail"


def test_turn_structure_accepts_boxes_that_touch_their_frame(sound):
    whole = Box(image="", xyxy=(0.0, 0.0, 512.0, 400.0), frame="pixel", name="heart", of="anatomy")
    cases, *_ = one_step(
        sound, "region box", lambda s: with_key(s, boxes=(change(whole, image=s.key.boxes[0].image),))
    )
    assert audited(cases).gate("turn-structure").status == "pass"


def test_turn_structure_fails_for_images_shown_late_twice_or_never(sound):
    at = first(sound, referred)
    case = sound[at]
    compared = next(s for s in case.steps if s.stage == 5)
    last = case.steps[-1].id

    def moved(to):
        steps = (change(s, shows=("v2",)) if s.id == to else s for s in case.steps)
        return tuple(change(s, shows=()) if s.id == compared.id and to != compared.id else s for s in steps)

    second = change(compared, id="t99", question="And beside the earlier image?", shows=("v2",))
    first_of_two = change(compared, shows=())
    at_five = case.steps.index(compared)
    late = (*case.steps[:at_five], first_of_two, second, *case.steps[at_five + 1 :])
    for steps, words in (
        (late, "turn t99: shows: a reference image after the first turn of stage 5"),
        (moved(""), "shows: v1 in all turns, expected v1, v2"),
        (moved(last), f"turn {last}: shows: a reference image after the first turn of stage 5"),
        ((change(case.steps[0], shows=("v2", "v1")), *moved("")[1:]), "v2, v1 in all turns"),
    ):
        result = audited(replaced(sound, at, change(case, steps=steps)))
        assert words in told(result, "turn-structure"), words
        assert row(result, "turn-structure", "images").status == "fail"
    early = (change(case.steps[0], shows=("v1", "v2")), *moved("")[1:])
    assert audited(replaced(sound, at, change(case, steps=early))).gate("turn-structure").status == "pass"
    flipped = change(case, images=case.images[::-1], views=case.views)
    assert "a reference image before" in told(audited(replaced(sound, at, flipped)), "turn-structure")
