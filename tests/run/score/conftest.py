"""Steps of one case, put together by hand, and the scores of an answer to one of them."""

from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from carina.cases import Box, Case, CaseImage, CaseRegion, Constraints, Fact, Key, Option, Step
from carina.run.records import Parsed
from carina.run.score import score
from carina.studies import Region


def case(*steps, regions=()):
    """A case on two images: `a.png` is 200 wide and 100 high, `b.png` 100 wide and 100 high."""
    images = (CaseImage(key="a.png", width=200, height=100), CaseImage(key="b.png", width=100, height=100))
    return Case(
        id="c",
        protocol="trek",
        study="s",
        patient="p",
        source="made",
        images=images,
        regions=regions,
        steps=steps,
    )


def region(name, top, left, height, width):
    """A rectangle of pixels on the first image."""
    mask = np.zeros((100, 200), bool)
    mask[top : top + height, left : left + width] = True
    return CaseRegion(name=name, image="a.png", region=Region.from_mask(mask))


def choice(texts, right, *, ids=None, multiple=False, kinds=(), question="Which?", **constraints):
    ids = ids or "ABCDEFGHIJ"[: len(texts)]
    return Step(
        id="t1",
        stage=2,
        task="presence",
        format="choice",
        question=question,
        multiple=multiple,
        options=tuple(Option(id=i, text=text) for i, text in zip(ids, texts, strict=True)),
        constraints=Constraints(**constraints),
        key=Key(options=tuple(right), kinds=tuple(kinds)),
    )


def yes_no(label, **constraints):
    return Step(
        id="t1",
        stage=2,
        task="presence",
        format="yes_no",
        question="Is there an effusion?",
        constraints=Constraints(**constraints),
        key=Key(label=label),
    )


def boxed(*boxes, regions=()):
    return Step(
        id="t1",
        stage=3,
        task="region box",
        format="boxes",
        question="Where?",
        score="boxes",
        key=Key(boxes=tuple(boxes), regions=tuple(regions)),
    )


def box(x1, y1, x2, y2, *, frame="pixel", image="a.png"):
    return Box(image=image, xyxy=(x1, y1, x2, y2), frame=frame)


def told(key, *facts, task="abnormalities", question="What do you see?", form="open", **constraints):
    """A question that is answered in words; facts as (name, about, text)."""
    return Step(
        id="t1",
        stage=3,
        task=task,
        format=form,
        question=question,
        score="text",
        constraints=Constraints(**constraints),
        key=Key(text=key),
        facts=tuple(Fact(name=name, about=about, text=text) for name, about, text in facts),
    )


def scored(step, *, status="ok", raw="", regions=(), **said):
    """Scores of an answer; words are its text unless the text is given apart."""
    if step.format in ("open", "report"):
        said.setdefault("text", raw)
    return score(case(step, regions=regions), step, Parsed(status=status, **said), raw)


def scored_in(whole, step, text):
    """Scores of an answer in words to a step of a case."""
    return score(whole, step, Parsed(status="ok", text=text), text)


def said(step, text):
    """Scores of an answer in words."""
    return scored(step, raw=text)


@pytest.fixture(scope="session")
def made():
    """Makers of steps and of scores."""
    return SimpleNamespace(
        case=case,
        region=region,
        choice=choice,
        yes_no=yes_no,
        boxed=boxed,
        box=box,
        told=told,
        scored=scored,
        said=said,
        scored_in=scored_in,
        replace=msgspec.structs.replace,
    )
