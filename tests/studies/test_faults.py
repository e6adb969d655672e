"""Each thing that can be wrong inside a study is told by a sentence that names it."""

import msgspec
import pytest

from carina.phantom import make_studies
from carina.phantom.options import PhantomOptions
from carina.studies import (
    Anatomy,
    Annotation,
    Assessed,
    Device,
    Finding,
    Image,
    Measure,
    Recommendation,
    Region,
    Relation,
    Report,
    ReportSection,
    SalientPoint,
    Sentence,
    Statement,
    Study,
    Tip,
)
from carina.studies.faults import faults, is_sound_image

FULL = Region.full(4, 8)
SMALL = Region.full(4, 4)
MARK = Annotation(image="k", region=FULL, drawn="mask", annotator="a")
EDEMA = Finding(id="f1", name="edema", certainty="present", annotations=(MARK,), evidence=(0,))
TUBE = Device(id="d1", name="chest tube", certainty="present", tips=(Tip(image="k", x=1.0, y=2.0),))
POINT = SalientPoint(image="k", x=1.0, y=2.0, annotator="a")
SAID = Sentence(section="findings", start=0, end=6, states=(Statement(kind="finding", about="f1"),))
SOUND = Study(
    id="s",
    patient="p",
    source="test",
    order=0,
    images=(Image(key="k", view="PA", width=8, height=4),),
    findings=(EDEMA,),
    devices=(TUBE,),
    anatomy=(Anatomy(name="heart", image="k", region=FULL, annotator="a"),),
    relations=(Relation(id="x1", subject="d1", kind="accompanies", object="f1"),),
    recommendations=(Recommendation(id="r1", action="chest CT", about=("f1",)),),
    report=Report(sections=(ReportSection(name="findings", text="Edema."),), sentences=(SAID,)),
)


def changed(record, **fields):
    return msgspec.structs.replace(record, **fields)


def test_a_valid_study_has_no_problems():
    assert list(faults(SOUND)) == []


def test_phantom_studies_have_no_problems():
    for study, _ in make_studies(12, 3, PhantomOptions(size=64)):
        assert list(faults(study)) == []


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"images": SOUND.images * 2}, "images: key 'k' occurs 2 times"),
        ({"images": (changed(SOUND.images[0], bits=0),)}, "images: 'k' is 8 x 4 of 0 bits"),
        (
            {"images": (changed(SOUND.images[0], window=(40.0, 0.5)),)},
            "images: 'k': window: centre 40.0 and width 0.5, expected numbers and a width of 1 or more",
        ),
        (
            {"images": (changed(SOUND.images[0], rescale=(0.0, 1.0)),)},
            "images: 'k': rescale: slope 0.0 and intercept 1.0, expected numbers and a slope other than 0",
        ),
        ({"devices": (changed(TUBE, id="f1"),)}, "id 'f1' occurs 2 times"),
        (
            {"anatomy": (changed(SOUND.anatomy[0], image="other"),)},
            "anatomy 'heart': its region lies on image 'other', which the study does not have",
        ),
        (
            {"findings": (changed(EDEMA, annotations=(changed(MARK, region=SMALL),)),)},
            "edema 'f1': its region is for an image of 4 x 4, but 'k' is 8 x 4",
        ),
        (
            {"anatomy": (changed(SOUND.anatomy[0], region=Region(4, 8, "zzzz")),)},
            "anatomy 'heart': its region on 'k': ",
        ),
        (
            {"findings": (changed(EDEMA, measures=(Measure(name="size", value=float("nan"), unit="cm"),)),)},
            "edema 'f1': size is nan",
        ),
        (
            {"findings": (changed(EDEMA, comparisons=(changed(MARK, region=SMALL),)),)},
            "edema 'f1': its region is for an image of 4 x 4, but 'k' is 8 x 4",
        ),
        (
            {"findings": (changed(EDEMA, points=(changed(POINT, image="other"),)),)},
            "edema 'f1': point at (1.0, 2.0) of image 'other'",
        ),
        (
            {"devices": (changed(TUBE, points=(changed(POINT, y=float("nan")),)),)},
            "chest tube 'd1': point at (1.0, nan) of image 'k'",
        ),
        (
            {"devices": (changed(TUBE, tips=(Tip(image="k", x=float("inf"), y=0.0),)),)},
            "chest tube 'd1': tip at (inf, 0.0) of image 'k'",
        ),
        (
            {"relations": (changed(SOUND.relations[0], object="f9"),)},
            "relation 'x1': refers to 'f9', which the study does not have",
        ),
        (
            {"recommendations": (changed(SOUND.recommendations[0], about=("f9",)),)},
            "recommendation 'r1': refers to 'f9'",
        ),
        ({"findings": (changed(EDEMA, evidence=(1,)),)}, "'f1': its evidence is sentence 1 of 1"),
        (
            {"report": changed(SOUND.report, sentences=(changed(SAID, end=7),))},
            "sentence 0 to 7 of section 'findings': the section has 6 characters",
        ),
        (
            {"report": changed(SOUND.report, sentences=(changed(SAID, section="impression"),))},
            "sentence 0 to 6 of section 'impression': the section is missing",
        ),
        (
            {"assessed": Assessed(findings="every", listed=("mass", "nodule"))},
            "assessed.listed: names 2 findings or devices, but the scope of findings is 'every' and that of devices is "
            "'unknown'; expected 'listed' for one of them",
        ),
        (
            {"assessed": Assessed(findings="listed", listed=("mass", "mass"))},
            "assessed.listed: name 'mass' occurs 2 times",
        ),
        ({"assessed": Assessed(devices="listed", listed=(" ",))}, "assessed.listed: an empty name"),
    ],
)
def test_each_problem_is_found_with_its_field(fields, sentence):
    found = list(faults(changed(SOUND, **fields)))
    assert any(fault.startswith(sentence) for fault in found), found


@pytest.mark.parametrize(
    "assessed",
    [
        Assessed(),
        Assessed(findings="every", devices="every", text=True),
        Assessed(findings="listed", listed=("edema", "mass")),
        Assessed(findings="every", devices="listed", listed=("chest tube",)),
        Assessed(findings="listed"),
    ],
    ids=["unknown", "every", "recorded and listed", "listed devices", "empty list"],
)
def test_a_name_may_be_both_listed_and_recorded(assessed):
    assert list(faults(changed(SOUND, assessed=assessed))) == []


def test_an_image_of_unknown_size_is_no_problem_but_shows_nothing():
    unknown = Image(key="k", view="PA", width=0, height=0)
    assert list(faults(Study(id="s", patient="p", source="test", images=(unknown,)))) == []
    assert not is_sound_image(unknown)
    assert is_sound_image(SOUND.images[0])
    half = changed(unknown, width=8)
    assert list(faults(Study(id="s", patient="p", source="test", images=(half,)))) == [
        "images: 'k' is 8 x 0 of 8 bits"
    ]
    drawn = changed(SOUND, images=(unknown,), devices=(), anatomy=())
    assert "its region is for an image of 8 x 4, but 'k' is 0 x 0" in next(iter(faults(drawn)))
