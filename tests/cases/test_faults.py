"""Everything in which a case can contradict itself is found."""

import msgspec
import numpy as np
import pytest

from carina.cases import (
    Box,
    Branch,
    Case,
    CaseImage,
    CaseRegion,
    CaseView,
    Constraints,
    Context,
    Evidence,
    Fact,
    Key,
    Mark,
    Option,
    Overlay,
    Panel,
    Step,
)
from carina.cases.faults import faults
from carina.studies import Region
from carina.studies.model import ReportSection

NAN, INFINITY = float("nan"), float("inf")
OPTIONS = (Option(id="yes", text="Yes"), Option(id="no", text="No"))
FIRST = Step(
    id="1",
    stage=1,
    task="detection",
    format="choice",
    question="Is there edema?",
    options=OPTIONS,
    shows=("v1",),
    uses=("v1",),
    key=Key(options=("yes",)),
)
SECOND = Step(
    id="2",
    stage=2,
    task="box",
    format="boxes",
    score="boxes",
    question="Where?",
    uses=("v1",),
    reached_by=(Branch(step="1", options=("yes",)),),
    depends_on=("1",),
    key=Key(boxes=(Box(image="a.png", xyxy=(1, 1, 4, 3)),), regions=("r1",)),
)
CASE = Case(
    id="c1",
    protocol="test",
    study="s",
    patient=None,
    source="made",
    images=(CaseImage(key="a.png", width=8, height=4),),
    regions=(CaseRegion(name="r1", image="a.png", region=Region.from_mask(np.ones((4, 8), bool))),),
    views=(
        CaseView(
            id="v1",
            panels=(
                Panel(
                    image="a.png",
                    overlays=(Overlay(region="r1"),),
                    marks=(Mark(x=1, y=1, colour="red", text="1"),),
                ),
            ),
        ),
    ),
    steps=(FIRST, SECOND),
)


def change(**fields):
    return msgspec.structs.replace(CASE, **fields)


def with_image(**fields):
    return change(images=(msgspec.structs.replace(CASE.images[0], **fields),))


def with_view(**fields):
    return change(views=(msgspec.structs.replace(CASE.views[0], **fields),))


def with_panel(**fields):
    return with_view(panels=(msgspec.structs.replace(CASE.views[0].panels[0], **fields),))


def with_step(at, **fields):
    steps = list(CASE.steps)
    steps[at] = msgspec.structs.replace(steps[at], **fields)
    return change(steps=tuple(steps))


def test_a_sound_case_has_no_fault():
    assert list(faults(CASE)) == []


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (change(id=""), "id: empty"),
        (change(context=Context(age=-1)), "age -1"),
        (change(facts=(Fact(name="ctr", value=NAN),)), "fact 'ctr' is nan"),
        (change(facts=(Fact(name="ctr", low=2.0, high=1.0),)), "holds from 2.0 to 1.0"),
        (change(images=CASE.images * 2), "image 'a.png' occurs 2 times"),
        (with_image(width=-8), "-8 x 4 pixels"),
        (with_image(width=2**40, height=2**40), "more than the limit"),
        (with_image(bits=0), "0 bits"),
        (with_image(bits=17), "17 bits"),
        (with_image(sha256="no checksum"), "sha256"),
        (with_image(window=(NAN, 1.0)), "window"),
        (with_view(panels=()), "has no panel"),
        (with_view(side=0), "side is 0"),
        (with_view(side=10**9), "more than the limit"),
        (with_panel(image="gone.png"), "shows image 'gone.png'"),
        (with_panel(crop=(0, 0, 9, 4)), "leaves the image"),
        (with_panel(overlays=(Overlay(region="gone"),)), "draws region 'gone'"),
        (with_panel(overlays=(Overlay(region="r1", fill=NAN),)), "fill nan"),
        (with_panel(overlays=(Overlay(region="r1", outline=-1),)), "outline of -1"),
        (with_panel(overlays=(Overlay(region="r1", outline=10**9),)), "outline of 1000000000"),
        (with_panel(overlays=(Overlay(region="r1", colour="octarine"),)), "octarine"),
        (with_panel(marks=(Mark(x=NAN, y=1, colour="red"),)), "lies outside its image"),
        (with_panel(marks=(Mark(x=1, y=1, colour="octarine"),)), "octarine"),
        (change(steps=()), "steps: empty"),
        (with_step(0, id="2"), "step '2' occurs 2 times"),
        (with_step(0, id=""), "empty id"),
        (with_step(0, stage=0), "stage 0"),
        (with_step(0, question=" "), "empty question"),
        (with_step(0, uses=("v2",)), "uses view 'v2'"),
        (with_step(0, options=()), "is a choice without options"),
        (with_step(0, options=(OPTIONS[0], Option(id="", text="No"))), "option with an empty id"),
        (
            with_step(0, key=Key(options=("maybe",))),
            "is keyed to option 'maybe', which the case does not have",
        ),
        (with_step(0, key=Key(options=("yes", "no"))), "is keyed to 2 options but takes one"),
        (with_step(0, key=Key(options=("yes", "yes")), multiple=True), "key option 'yes' occurs 2 times"),
        (with_step(0, key=Key()), "has options and no key"),
        (with_step(0, constraints=Constraints(max_words=0)), "words"),
        (with_step(0, constraints=Constraints(min_words=5, max_words=2)), "5 to 2 words"),
        (with_step(0, evidence=(Evidence(report="current", sentence=-1),)), "sentence -1"),
        (with_step(1, depends_on=("3",)), "depends on step '3'"),
        (with_step(0, depends_on=("2",)), "depends on step '2'"),
        (with_step(1, reached_by=(Branch(step="9", options=("yes",)),)), "'9', which is not an earlier step"),
        (with_step(1, reached_by=(Branch(step="1", options=("yes", "x")),)), "option 'x' of step '1'"),
        (with_step(1, reached_by=(Branch(step="1", options=("no",)),)), "is not reached on the path"),
        (with_step(1, key=Key(regions=("gone",))), "is keyed to region 'gone'"),
        (
            with_step(1, key=Key(boxes=(Box(image="gone.png", xyxy=(0, 0, 1, 1)),))),
            "a box on image 'gone.png'",
        ),
        (with_step(1, key=Key(boxes=(Box(image="a.png", xyxy=(0, 0, NAN, 1)),))), "expected finite numbers"),
        (with_step(1, key=Key(boxes=(Box(image="a.png", xyxy=(0, 0, INFINITY, 1)),))), "expected finite"),
        (
            with_step(1, key=Key(boxes=(Box(image="a.png", xyxy=(9, 0, 12, 3)),))),
            "lies outside image 'a.png'",
        ),
        (
            with_step(1, key=Key(boxes=(Box(image="a.png", xyxy=(101, 0, 120, 50), frame="percent"),))),
            "lies outside image 'a.png'",
        ),
        (with_step(1, format="yes_no", key=Key(text="Yes.")), "without a label"),
        (
            with_step(1, key=Key(sections=(ReportSection(name="findings", text="x"),) * 2)),
            "key section 'findings' occurs 2 times",
        ),
    ],
)
def test_a_case_that_contradicts_itself_has_a_fault_that_says_where(case, words):
    assert any(words in fault for fault in faults(case)), list(faults(case))


def test_an_image_that_was_imported_without_its_file_has_no_size_and_no_fault():
    case = with_panel(overlays=(), marks=())
    unknown = msgspec.structs.replace(case.images[0], width=0, height=0)
    steps = (CASE.steps[0], msgspec.structs.replace(SECOND, key=Key(boxes=SECOND.key.boxes)))
    assert list(faults(msgspec.structs.replace(case, images=(unknown,), regions=(), steps=steps))) == []
