"""A staged conversation by hand, with every format, two current images and one reference image; its benchmark."""

import cv2
import numpy as np

from carina.cases import (
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
    Panel,
    Provenance,
    Slot,
    Step,
    write_benchmark,
)
from carina.store import SourceInfo
from carina.studies.model import ReportSection

SIZE = (40, 48)
"""Width and height of every image."""
FRONTAL, LATERAL, PRIOR = "p1/s2/frontal.png", "p1/s2/lateral.png", "p1/s1/frontal.png"
BOX = "<|ref|> heart <|/ref|> <|box|>(31.25, 40.62), (80.36, 90.18)<|/box|>"


def target(kind, name=None):
    return Fact(name="target", about=kind, text=name)


def choice(step_id, stage, task, question, texts, *, right, **more):
    options = tuple(Option(id="ABCDEF"[n], text=text) for n, text in enumerate(texts))
    rendered = [f"{option.id}. {option.text}" for option in options]
    keyed = [option.id for n, option in enumerate(options) if n in right]
    return Step(
        id=step_id,
        stage=stage,
        task=task,
        format="choice",
        question=f"{question} {'; '.join(rendered)}",
        options=options,
        multiple=len(right) > 1,
        score="set" if len(right) > 1 else "exact",
        key=Key(
            options=tuple(keyed),
            kinds=tuple("key" if n in right else "distractor" for n in range(len(texts))),
            text=" and ".join(rendered[n] for n in sorted(right)),
        ),
        **more,
    )


def opened(step_id, stage, task, question, text, **more):
    more = {"format": "open", **more}
    return Step(
        id=step_id, stage=stage, task=task, question=question, score="text", key=Key(text=text), **more
    )


def steps():
    current, all_three = ("v1", "v2"), ("v1", "v2", "v3")
    return (
        opened(
            "t1",
            1,
            "view",
            "These are the current images. Which projections are they?",
            "A frontal and a lateral view.",
            shows=current,
            uses=current,
            facts=(target("view"),),
        ),
        Step(
            id="t2",
            stage=2,
            task="presence",
            format="yes_no",
            question="Is there a pleural effusion? Answer with yes or no only.",
            key=Key(label="yes", text="Yes"),
            constraints=Constraints(answer_only=True),
            uses=current,
            template="s2.presence.yes_no.003",
            slots=(Slot(name="finding", value="pleural effusion"),),
            evidence=(Evidence(report="current", sentence=1),),
            facts=(target("finding", "pleural effusion"), Fact(name="truth", about="f1", text="present")),
        ),
        Step(
            id="t3",
            stage=2,
            task="device presence",
            format="yes_no",
            question="Do you see a pacemaker?",
            key=Key(label="no", text="No, there is no pacemaker."),
            uses=current,
            facts=(target("device", "pacemaker"), Fact(name="truth", text="absent")),
        ),
        choice(
            "t4",
            3,
            "severity",
            "How large is the pleural effusion?",
            ("small", "moderate", "large"),
            right={1},
            uses=current,
            facts=(target("finding", "pleural effusion"),),
        ),
        choice(
            "t5",
            3,
            "location",
            "Where does it lie?",
            ("right lung", "left lung", "apex"),
            right={0, 1},
            uses=current,
            facts=(target("finding", "pleural effusion"),),
        ),
        Step(
            id="t6",
            stage=3,
            task="region box",
            format="boxes",
            question="[detection] Where is the heart?",
            score="boxes",
            key=Key(
                boxes=(
                    Box(
                        image=FRONTAL,
                        xyxy=(31.25, 40.62, 80.36, 90.18),
                        frame="percent",
                        name="heart",
                        of="anatomy",
                    ),
                ),
                text=f"It is here: {BOX}",
            ),
            uses=("v1",),
            facts=(target("region", "heart"),),
        ),
        opened(
            "t7",
            5,
            "comparison",
            "The earlier image is added for reference. What has changed?",
            "The effusion has grown.",
            shows=("v3",),
            uses=all_three,
            depends_on=("t2",),
            facts=(target("study"),),
        ),
        opened("t8", 6, "outlook", "What is to be expected?", "It should clear.", facts=(target("study"),)),
        Step(
            id="t9",
            stage=8,
            task="impression",
            format="report",
            question="Write the impression, in at most 20 words.",
            score="text",
            key=Key(
                sections=(ReportSection(name="impression", text="Larger effusion."),), text="Larger effusion."
            ),
            constraints=Constraints(max_words=20),
            facts=(target("study"),),
        ),
    )


def case(number=1, *, split="train", **changes):
    images = (
        CaseImage(key=FRONTAL, width=SIZE[0], height=SIZE[1], view="PA"),
        CaseImage(key=LATERAL, width=SIZE[0], height=SIZE[1], view="lateral"),
        CaseImage(key=PRIOR, width=SIZE[0], height=SIZE[1], role="reference", view="AP"),
    )
    fields = {
        "id": f"trek-s{number}",
        "protocol": "trek",
        "study": f"s{number}",
        "patient": f"p{number}",
        "source": "by hand",
        "split": split,
        "reference_study": "s0",
        "later_study": "s9",
        "context": Context(indication="Cough.", age=61, sex="F"),
        "images": images,
        "views": tuple(
            CaseView(id=f"v{n}", panels=(Panel(image=image.key),)) for n, image in enumerate(images, start=1)
        ),
        "steps": steps(),
        "facts": (Fact(name="order", about="current", value=1.0),),
    }
    return Case(**{**fields, **changes})


def pixels(key):
    """Each image looks different, and the same every time."""
    ramp = np.add.outer(np.arange(SIZE[1]), np.arange(SIZE[0]))
    return (ramp * (1 + sum(key.encode()) % 5) % 256).astype(np.uint8)


def write(directory, cases, *, part_size=2):
    """A benchmark of these cases, with its images beside it."""
    keys = {image.key for case in cases for image in case.images}
    for key in keys:
        path = directory.parent / "images" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), pixels(key))
    write_benchmark(
        directory,
        cases,
        Provenance(
            command="by hand",
            sources=(SourceInfo(name="by hand", licence="CC0-1.0", url="https://example.org/data"),),
            image_root="../images",
        ),
        part_size=part_size,
    )
    return directory
