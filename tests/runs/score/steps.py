"""Builders of steps of one case, and scores of answers to them."""

import numpy as np

from carina.cases import Box, Case, CaseImage, CaseRegion, Constraints, Fact, Key, Option, Step
from carina.runs.records import ParsedAnswer
from carina.runs.score import score
from carina.studies import Region


def make_case(*steps, regions=()):
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


def make_region(name, top, left, height, width):
    """A rectangle of pixels on the first image."""
    mask = np.zeros((100, 200), bool)
    mask[top : top + height, left : left + width] = True
    return CaseRegion(name=name, image="a.png", region=Region.from_mask(mask))


def choice_step(texts, right, *, ids=None, multiple=False, kinds=(), question="Which?", **constraints):
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


def yes_no_step(label, **constraints):
    return Step(
        id="t1",
        stage=2,
        task="presence",
        format="yes_no",
        question="Is there an effusion?",
        constraints=Constraints(**constraints),
        key=Key(label=label),
    )


def boxes_step(*boxes, regions=()):
    return Step(
        id="t1",
        stage=3,
        task="region box",
        format="boxes",
        question="Where?",
        score="boxes",
        key=Key(boxes=tuple(boxes), regions=tuple(regions)),
    )


def make_box(x1, y1, x2, y2, *, frame="pixel", image="a.png"):
    return Box(image=image, xyxy=(x1, y1, x2, y2), frame=frame)


def open_step(key, *facts, task="abnormalities", question="What do you see?", form="open", **constraints):
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


def score_step(step, *, status="ok", raw="", regions=(), **parsed):
    """Scores of an answer; the raw answer is its text, unless the text is given."""
    if step.format in ("open", "report"):
        parsed.setdefault("text", raw)
    return score(make_case(step, regions=regions), step, ParsedAnswer(status=status, **parsed), raw)


def score_in_case(whole, step, text):
    """Scores of an answer in words to a step of a case."""
    return score(whole, step, ParsedAnswer(status="ok", text=text), text)


def score_answer(step, text):
    """Scores of an answer in words."""
    return score_step(step, raw=text)
