"""A conversation like those of trek: two current images, a late reference image, and every format of question."""

import numpy as np

from carina.cases.model import (
    Box,
    Case,
    CaseImage,
    CaseView,
    Constraints,
    Context,
    Evidence,
    Fact,
    Key,
    Option,
    Origin,
    Panel,
    Slot,
    Step,
)
from carina.studies import ReportSection

WIDE, HIGH = 200, 100
KEYS = ("images/now-pa.png", "images/now-lateral.png", "images/before-ap.png")


def image_pixels() -> np.ndarray:
    """All images of the case: a grey ramp, not square."""
    return np.tile(np.linspace(20, 200, WIDE), (HIGH, 1)).astype(np.uint8)


def turn(number: int, what: str, form: str, question: str, key: Key, **more: object) -> Step:
    """A step whose stage and task are told together: "2 presence"."""
    stage, task = what.split(" ", 1)
    score = {"open": "text", "report": "text", "boxes": "boxes"}.get(form, "exact")
    made = {"uses": ("v1",), "score": score, **more}
    return Step(id=f"t{number}", stage=int(stage), task=task, format=form, question=question, key=key, **made)


def boxed(number: int, xyxy: tuple[float, ...], frame: str, **more: object) -> Step:
    x0, y0, x1, y1 = xyxy
    box = Box(image=KEYS[0], xyxy=xyxy, frame=frame, name="heart", of="anatomy")
    text = f"It is <|ref|> heart <|/ref|> <|box|>({x0}, {y0}), ({x1}, {y1})<|/box|>."
    return turn(number, "3 region box", "boxes", "Box the heart.", Key(text=text, boxes=(box,)), **more)


def steps() -> tuple[Step, ...]:
    zones = tuple(
        Option(id=name, text=text) for name, text in zip("ABC", ("upper", "mid", "lower"), strict=True)
    )
    sections = (
        ReportSection(name="impression", text="Effusion."),
        ReportSection(name="findings", text="One.\nTwo."),
    )
    return (
        turn(1, "1 view", "open", "Here are two films. Which views are they?", Key(text="PA and lateral."),
             shows=("v1", "v2"), uses=("v1", "v2"), constraints=Constraints(max_words=20),
             context="The request reads: cough."),
        turn(2, "2 presence", "yes_no", "Is there an effusion?", Key(label="yes", text="Yes, there is one."),
             evidence=(Evidence(report="current", sentence=6), Evidence(report="current", sentence=2)),
             facts=(Fact(name="target", about="finding", text="pleural effusion"),)),
        turn(3, "2 presence", "yes_no", "Is there a nodule? Answer in one word.",
             Key(label="uncertain", text="Uncertain"), constraints=Constraints(answer_only=True),
             facts=(Fact(name="target", about="finding", text="nodule"),)),
        turn(4, "2 device presence", "yes_no", "Is there a pacemaker?", Key(label="no", text="No."),
             facts=(Fact(name="target", about="device", text="pacemaker"),)),
        turn(5, "3 location", "choice", "Which zones hold it? [A. upper; B. mid; C. lower] Choose all that do.",
             Key(options=("B", "C"), kinds=("distractor", "key", "key"), text="B. mid and C. lower"),
             options=zones, multiple=True, score="set", depends_on=("t2",), restates=True,
             template="s3.location.choice.004", slots=(Slot(name="the_finding", value="the effusion"),)),
        boxed(6, (10.0, 10.0, 30.0, 50.0), "percent"),
        turn(7, "3 box content", "open", "What lies in (10.0, 10.0), (30.0, 50.0)?", Key(text="The heart.")),
        turn(8, "5 trend", "open", "Here is an older film. Has it grown?", Key(text="It has grown."),
             shows=("v3",), uses=("v1", "v3"), depends_on=("t2", "t5"),
             evidence=(Evidence(report="current", sentence=0), Evidence(report="reference", sentence=3)),
             origin=Origin(method="llm", model="m1", review="accepted")),
        turn(9, "8 full report", "report", "Write the report.", Key(text="Impression: Effusion.", sections=sections),
             constraints=Constraints(min_words=2)),
    )  # fmt: skip


def conversation(**changes: object) -> Case:
    roles = ("current", "current", "reference")
    views = ("PA", "lateral", "AP")
    made: dict[str, object] = {
        "id": "trek-p1-s2",
        "protocol": "trek",
        "study": "p1-s2",
        "patient": "p1",
        "source": "phantom",
        "reference_study": "p1-s1",
        "later_study": "p1-s3",
        "context": Context(indication="Cough.", age=63, sex="F"),
        "images": tuple(
            CaseImage(key=key, width=WIDE, height=HIGH, role=role, view=view)
            for key, role, view in zip(KEYS, roles, views, strict=True)
        ),
        "views": tuple(
            CaseView(id=f"v{place}", panels=(Panel(image=key),)) for place, key in enumerate(KEYS, start=1)
        ),
        "steps": steps(),
        "facts": (
            Fact(name="order", about="current", value=1.0),
            Fact(name="date", about="current", text="2141-03-02"),
            Fact(name="date", about="reference", text="2141-03-01"),
            Fact(name="date", about="later", text="2141-03-12"),
        ),
    }
    return Case(**(made | changes))
