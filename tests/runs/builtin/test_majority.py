"""What the blind model that knows the usual answers takes for usual, worked out by hand."""

import msgspec
import pytest
from tests.runs.conftest import case as plain_case

from carina.cases import (
    Box,
    Case,
    CaseImage,
    CaseView,
    Fact,
    Key,
    Panel,
    Provenance,
    Slot,
    Step,
    open_benchmark,
    write_benchmark,
)
from carina.runs.builtin.majority import Majority, _half
from carina.runs.records import Turn
from carina.runs.walk import without_key


def names_in(half, count):
    """Patients whose own half this is; what they are told was learnt from the other."""
    return [name for name in (f"p{n}" for n in range(200)) if _half(name) == half][:count]


TAUGHT = names_in(0, 6)
ASKED = names_in(1, 1)[0]


def words(text, *facts, task="trend", stage=5, about=None, uses=("v1",)):
    slots = () if about is None else (Slot(name="the_finding", value=about),)
    key = Key(text=text)
    return Step(id="t1", stage=stage, task=task, format="open", question="And?", uses=uses, score="text",
                key=key, facts=facts, slots=slots)  # fmt: skip


def target(name, kind="finding"):
    return Fact(name="target", about=kind, text=name)


def said(tmp_path, taught, asked):
    """What the majority says to `asked`, having learnt the steps `taught`, one patient each."""
    cases = [_whole(name, steps) for name, steps in zip(TAUGHT, taught, strict=False)]
    cases.append(_whole(ASKED, asked))
    write_benchmark(tmp_path / "bench", cases, Provenance(command="test"))
    turn = Turn(case=cases[-1].id, step=without_key(cases[-1].steps[0]), system="", messages=())
    return Majority(open_benchmark(tmp_path / "bench")).answer([turn], lambda *_: b"")[0].text


def _whole(patient, steps):
    steps = steps if isinstance(steps, Case | list) else [steps]
    return steps if isinstance(steps, Case) else plain_case(patient, steps, protocol="trek", patient=patient)


def test_free_text_is_counted_by_facts_and_the_shortest_is_given(tmp_path):
    def edema(text, trend):
        return words(text, target("edema"), Fact(name="trend", about="f1", text=trend), about="the edema")

    taught = [
        edema("A first look shows new edema.", "new"),
        edema("The edema has resolved since.", "resolved"),
        edema("The edema has resolved.", "resolved"),
        edema("The edema has gone away now.", "resolved"),
    ]
    assert said(tmp_path, taught, edema("unknown", "new")) == "The edema has resolved."


def test_answer_keys_are_compared_without_ids(tmp_path):
    def edema(text, number, trend):
        return words(text, target("edema"), Fact(name="trend", about=number, text=trend), about="the edema")

    taught = [
        edema("Edema is new.", "f1", "new"),
        edema("Edema has come up anew.", "f1", "new"),
        edema("Edema is the same.", "f1", "unchanged"),
        edema("Edema is unchanged.", "f2", "unchanged"),
        edema("Edema is as it was.", "f3", "unchanged"),
    ]
    assert said(tmp_path, taught, edema("unknown", "f1", "new")) == "Edema is the same."


def test_an_unseen_subject_gets_the_most_frequent_answer_of_its_kind(tmp_path):
    def of(thing, text):
        return words(text, target(thing), Fact(name="trend", text="new"), about=f"the {thing}")

    taught = [of("edema", "The edema is new."), of("nodule", "The nodule is newly seen.")]
    assert said(tmp_path, taught, of("mass", "unknown")) == "The edema is new."


def _list(text, *found):
    """A list of what is there, and questions that tell what its ids stand for."""
    things = [Fact(name="truth", about=f"f{n}", text="present") for n, _ in enumerate(found, start=1)]
    listed = words(text, target("abnormalities", "study"), *things, task="abnormalities", stage=2)
    tells = [
        Step(id=f"s{n}", stage=2, task="presence", format="yes_no", question=f"Is there {name}?", uses=("v1",),
             key=Key(label="yes", text="Yes"), facts=(target(name), Fact(name="truth", about=f"f{n}", text="present")))
        for n, name in enumerate(found, start=1)
    ]  # fmt: skip
    return [listed, *tells]


def test_lists_are_counted_by_their_facts(tmp_path):
    taught = [
        _list("I see edema.", "edema"),
        _list("I see a mass.", "mass"),
        _list("I see a nodule.", "nodule"),
        _list("There is no abnormality of the chest."),
        _list("No acute abnormality is found in the chest."),
    ]
    assert said(tmp_path, taught, _list("unknown")) == "There is no abnormality of the chest."


def test_subjects_without_a_name_are_kept_apart(tmp_path):
    taught = [
        *(_list(text, "edema")[0] for text in ("I see edema.", "I see a mass.", "I see a nodule.")),
        *(_list(text)[0] for text in ("There is no pleural effusion.", "There is no acute abnormality.")),
    ]
    assert said(tmp_path, taught, _list("unknown")) == "There is no pleural effusion."


def test_texts_without_entities_are_skipped(tmp_path):
    taught = [_list("Our list is complete."), _list("There is no pleural effusion.")]
    assert said(tmp_path, taught, _list("unknown")) == "There is no pleural effusion."


@pytest.mark.parametrize(
    ("uses", "right"), [(("v1",), "This is an AP view."), (("v1", "v2"), "These are PA and lateral views.")]
)
def test_questions_about_projections_are_counted_by_number_of_images(tmp_path, uses, right):
    def view(text, name, shown):
        return words(
            text, target(name, "view"), Fact(name="view", text=name), task="view", stage=1, uses=shown
        )

    one, two = ("v1",), ("v1", "v2")
    taught = [
        view("This is an AP view.", "AP", one),
        *(view("These are PA and lateral views.", "PA, lateral", two) for _ in range(2)),
    ]
    assert said(tmp_path, taught, view("unknown", "PA", uses)) == right


def _films(patient, view, xyxy, question="Where is the heart?", uses=None):
    """A case of two projections, with the box on one of them."""
    images = tuple(
        CaseImage(key=f"{patient}-{v}.png", width=32, height=32, view=v) for v in ("PA", "lateral")
    )
    views = tuple(CaseView(id=i.view, panels=(Panel(image=i.key),)) for i in images)
    box = Box(image=f"{patient}-{view}.png", xyxy=xyxy, frame="percent", name="heart")
    step = Step(id="t1", stage=3, task="region box", format="boxes", question=question, uses=uses or (view,),
                score="boxes", key=Key(boxes=(box,)), slots=(Slot(name="the_region", value="the heart"),))  # fmt: skip
    return Case(id=patient, protocol="trek", study=patient, patient=patient, source="phantom", images=images,
                views=views, steps=(step,))  # fmt: skip


@pytest.mark.parametrize(
    ("view", "uses", "question", "right"),
    [
        ("PA", None, "Where is the heart?", "heart: [25%, 50%, 75%, 80%]"),
        ("lateral", None, "Where is the heart?", "heart: [10%, 40%, 50%, 60%]"),
        ("PA", ("PA", "lateral"), "Where is the heart?", "heart: [25%, 50%, 75%, 80%]"),
        ("PA", ("PA", "lateral"), "Where is it on the lateral film?", "heart: [10%, 40%, 50%, 60%]"),
    ],
)
def test_boxes_are_averaged_over_one_projection(tmp_path, view, uses, question, right):
    taught = [
        _films(TAUGHT[0], "PA", (20.0, 50.0, 70.0, 80.0)),
        _films(TAUGHT[1], "PA", (30.0, 50.0, 80.0, 80.0)),
        _films(TAUGHT[2], "lateral", (10.0, 40.0, 50.0, 60.0)),
    ]
    assert said(tmp_path, taught, _films(ASKED, view, (0.0, 0.0, 1.0, 1.0), question, uses)) == right


def test_several_boxes_are_averaged_each_in_its_place_where_several_are_asked_for(tmp_path):
    one, several = "s3.finding-box.boxes", "s3.finding-box.boxes-several"
    left, right = (10.0, 20.0, 30.0, 40.0), (60.0, 20.0, 80.0, 40.0)
    moved = [tuple(corner + 10 for corner in box) for box in (left, right)]

    def case(patient, template, *boxes):
        (step,) = _films(patient, "PA", left).steps
        key = Key(boxes=tuple(msgspec.structs.replace(step.key.boxes[0], xyxy=box) for box in boxes))
        changed = msgspec.structs.replace(step, key=key, template=f"{template}.001")
        return msgspec.structs.replace(_films(patient, "PA", left), steps=(changed,))

    taught = [
        case(TAUGHT[0], several, left, right),
        case(TAUGHT[1], several, *moved),
        case(TAUGHT[2], several, left, right, moved[0]),
        case(TAUGHT[3], one, (0.0, 0.0, 50.0, 50.0)),
    ]
    both = said(tmp_path / "both", taught, case(ASKED, several, left))
    assert both == "heart: [15%, 25%, 35%, 45%]\nheart: [65%, 25%, 85%, 45%]"
    assert said(tmp_path / "one", taught, case(ASKED, one, left)) == "heart: [0%, 0%, 50%, 50%]"


def test_boxes_of_an_unseen_projection_are_the_mean_of_the_others(tmp_path):
    taught = [_films(TAUGHT[0], "PA", (20.0, 50.0, 70.0, 80.0))]
    asked = _films(ASKED, "lateral", (0.0, 0.0, 1.0, 1.0))
    assert said(tmp_path, taught, asked) == "heart: [20%, 50%, 70%, 80%]"


def test_majority_learns_from_the_other_half_of_the_patients_only(tmp_path):
    own = words("It is new.", target("edema"), Fact(name="trend", text="new"), about="the edema")
    assert said(tmp_path, [], own) == "No acute cardiopulmonary abnormality."
