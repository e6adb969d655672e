"""What a case says of itself, and what is left of it without its keys."""

from carina.cases import (
    Branch,
    Case,
    CaseImage,
    CaseRegion,
    CaseView,
    Fact,
    Key,
    Option,
    Overlay,
    Panel,
    Step,
    case_image,
    without_keys,
)
from carina.studies import Image, Quality, Region

DRAWN = Region.from_box(1, 1, 2, 2, height=8, width=8)
TRUTH = Region.from_box(2, 2, 4, 4, height=8, width=8)
YES_NO = (Option(id="no", text="No"), Option(id="yes", text="Yes"))


def case():
    return Case(
        id="c1",
        protocol="percept",
        study="s1",
        patient="p1",
        source="made",
        target="edema",
        path="RR",
        images=(CaseImage(key="a.png", width=8, height=8),),
        regions=(
            CaseRegion(name="r1", image="a.png", region=DRAWN),
            CaseRegion(name="r2", image="a.png", region=TRUTH),
        ),
        views=(CaseView(id="v1", panels=(Panel(image="a.png", overlays=(Overlay(region="r1"),)),)),),
        steps=(
            Step(
                id="1",
                stage=1,
                task="detection",
                format="choice",
                question="?",
                options=YES_NO,
                shows=("v1",),
                uses=("v1",),
                key=Key(options=("yes",)),
            ),
            Step(
                id="2",
                stage=2,
                task="contour evaluation",
                format="choice",
                question="?",
                options=YES_NO,
                uses=("v1",),
                reached_by=(Branch(step="1", options=("yes",)),),
                depends_on=("1",),
                key=Key(options=("no",)),
                facts=(Fact(name="share", value=0.5),),
            ),
        ),
        facts=(Fact(name="role", about="r2", text="truth"),),
        extra="{}",
    )


def test_numbers_of_right_options_count_from_one():
    assert [step.right for step in case().steps] == [(2,), (1,)]
    assert case().cell == "edema/RR"


def test_a_case_without_keys_holds_nothing_that_reveals_an_answer():
    bare = without_keys(case())
    assert bare.path is None
    assert bare.facts == ()
    assert bare.extra is None
    for step in bare.steps:
        assert step.key == Key()
        assert step.right == ()
        assert (step.facts, step.evidence, step.reached_by, step.depends_on) == ((), (), (), ())
    # The truth is the region that no view draws.
    assert [region.name for region in bare.regions] == ["r1"]
    assert [step.options for step in bare.steps] == [YES_NO, YES_NO]


def test_an_image_of_a_study_becomes_an_image_of_a_case_with_all_that_its_display_needs():
    image = Image(
        key="a/b.png",
        view="lateral",
        width=8,
        height=4,
        bits=12,
        monochrome1=True,
        rescale=(2.0, -100.0),
        window=(40.0, 400.0),
        spacing_mm=(0.2, 0.2),
        sha256="0f",
        quality=Quality(inspiration="poor"),
    )
    assert case_image(image, role="reference") == CaseImage(
        key="a/b.png",
        width=8,
        height=4,
        role="reference",
        view="lateral",
        bits=12,
        monochrome1=True,
        rescale=(2.0, -100.0),
        window=(40.0, 400.0),
        sha256="0f",
    )
