"""A small benchmark made by hand: percept cases on all three paths and a conversation with every format."""

import numpy as np
import pytest
from PIL import Image as Pil

from carina.cases import (
    Box,
    Branch,
    Case,
    CaseImage,
    CaseView,
    Constraints,
    Fact,
    Key,
    Option,
    Panel,
    Provenance,
    Slot,
    Step,
    open_benchmark,
    write_benchmark,
)

SIZE = 32


def options(*texts, ids=None):
    return tuple(
        Option(id=i, text=t) for i, t in zip(ids or [f"o{n}" for n in range(len(texts))], texts, strict=True)
    )


def listed(question, offered):
    lines = "\n".join(f"({n}) {option.text}" for n, option in enumerate(offered, start=1))
    return f"{question}\nOptions:\n{lines}"


def choice(
    step, stage, task, offered, right, *, multiple=False, shows=(), uses=("v1",), after=None, depends=()
):
    return Step(
        id=step,
        stage=stage,
        task=task,
        format="choice",
        question=listed(f"Question {step}?", offered),
        multiple=multiple,
        options=offered,
        shows=shows,
        uses=uses,
        score="set" if multiple else "exact",
        reached_by=(Branch(step=after[0], options=(after[1],)),) if after else (),
        depends_on=depends,
        key=Key(options=right, kinds=tuple("key" if o.id in right else "wrong" for o in offered)),
        facts=(Fact(name="secret", text=f"the key of {step}"),),
    )


YES_NO = options("Yes", "No", ids=["yes", "no"])
POINTS = options("red point", "blue point", "green point", "None", ids=["p1", "p2", "p3", "none"])
MASKS = options("1st mask", "2nd mask", "3rd mask", "4th mask", ids=["m1", "m2", "m3", "m4"])
ZONES = options("1 zone", "2 zones", "3 zones", "4 zones or more", ids=["1", "2", "3", "4+"])
PLACES = options(
    "right base", "left base", "left apex", "None of the above (options 1-3)", ids=["a", "b", "c", "none"]
)


def case(
    name, steps, *, path=None, protocol="percept", target="edema", views=("v1", "v2", "v3"), patient=None
):
    image = CaseImage(key=f"{name}.png", width=SIZE, height=SIZE, view="PA")
    return Case(
        id=name,
        protocol=protocol,
        study=f"study-{name}",
        patient=patient or f"patient-{name}",
        source="phantom",
        target=target,
        path=path,
        images=(image,),
        views=tuple(CaseView(id=view, panels=(Panel(image=image.key),)) for view in views),
        steps=tuple(steps),
    )


def lesion_free(name="lf", **more):
    return case(name, [choice("1", 1, "detection", YES_NO, ("no",), shows=("v1",))], path="LF", **more)


def revision_required(name="rr", **more):
    steps = [
        choice("1", 1, "detection", YES_NO, ("yes",), shows=("v1",)),
        choice("2", 2, "contour evaluation", YES_NO[::-1], ("yes",), shows=("v2",), uses=("v1", "v2"),
               after=("1", "yes"), depends=("1",)),
        choice("3a", 3, "expansion", POINTS, ("p1", "p3"), multiple=True, shows=("v3",), uses=("v1", "v3"),
               after=("2", "yes"), depends=("2",)),
        choice("3b", 3, "contraction", POINTS, ("none",), multiple=True, uses=("v1", "v3"), after=("2", "yes")),
        choice("3c", 3, "revision", MASKS, ("m2",), after=("2", "yes"), depends=("3a", "3b")),
        choice("4a", 4, "distribution", ZONES, ("2",), after=("2", "yes"), depends=("3c",)),
        choice("4b", 4, "location", PLACES, ("a", "b"), multiple=True, after=("2", "yes")),
    ]  # fmt: skip
    return case(name, steps, path="RR", **more)


def talk(name="talk", **more):
    steps = [
        Step(id="t1", stage=1, task="view", format="open", question="Which projection is this?", shows=("v1",),
             uses=("v1",), score="text", key=Key(text="This is a PA view."), facts=(Fact(name="view", text="PA"),)),
        Step(id="t2", stage=2, task="presence", format="yes_no", question="Is there a pneumothorax?", uses=("v1",),
             key=Key(label="no", text="No"), constraints=Constraints(answer_only=True),
             slots=(Slot(name="finding", value="pneumothorax"),)),
        Step(id="t3", stage=2, task="presence", format="choice", question="What is there? A. edema; B. mass.",
             options=options("edema", "mass", ids=["A", "B"]), uses=("v1",),
             key=Key(options=("A",), text="A. edema", kinds=("key", "distractor"))),
        Step(id="t4", stage=3, task="region box", format="boxes", question="Where is the heart? Give percent of width "
             "and height.", uses=("v1",), score="boxes", depends_on=("t2",),
             key=Key(text="heart: [25%, 50%, 75%, 75%]",
                     boxes=(Box(image=f"{name}.png", xyxy=(25.0, 50.0, 75.0, 75.0), frame="percent", name="heart"),)),
             slots=(Slot(name="the_region", value="the heart"),)),
        Step(id="t5", stage=8, task="impression", format="report", question="Write the impression.", uses=("v1",),
             score="text", key=Key(text="Mild pulmonary edema. No pneumothorax.")),
    ]  # fmt: skip
    return case(name, steps, protocol="trek", target=None, views=("v1",), **more)


CASES = (
    lesion_free(),
    revision_required(),
    talk(),
    *(lesion_free(f"lf-{n}") for n in range(3)),
    *(revision_required(f"rr-{n}") for n in range(3)),
    *(talk(f"talk-{n}") for n in range(3)),
)


@pytest.fixture(scope="session")
def bench(tmp_path_factory):
    """The benchmark on disk, with a picture of its own for each case."""
    folder = tmp_path_factory.mktemp("run") / "bench"
    write_benchmark(folder, CASES, Provenance(command="made by hand"), part_size=5)
    for number, one in enumerate(CASES):
        pixels = np.full((SIZE, SIZE), 10 + 10 * number, np.uint8)
        Pil.fromarray(pixels).save(folder / f"{one.id}.png")
    return open_benchmark(folder)
