"""Questions about presence and contour: is the lesion there, is its contour right, where is it wrong, what is right."""

from typing import Final, Literal

import numpy as np

from carina.cases import Branch, Fact, Key, Option, Step
from carina.percept import wording
from carina.percept.drawing import Drawing
from carina.percept.options import KEY, OPTIONS
from carina.percept.steps import Assembly, single


def detection(assembly: Assembly) -> Step:
    answer = "no" if assembly.path == "LF" else "yes"
    return single(
        "1",
        task="detection",
        question=wording.detection(assembly.lesion),
        options=_yes_no(assembly, "1", answer),
        key=answer,
        shows=("v1",),
        uses=("v1",),
    )


def evaluation(assembly: Assembly) -> Step:
    answer = "yes" if assembly.path == "RR" else "no"
    return single(
        "2",
        task="contour evaluation",
        question=wording.contour_evaluation(assembly.lesion),
        options=_yes_no(assembly, "2", answer),
        key=answer,
        shows=("v2",),
        uses=("v1", "v2"),
        reached_by=(Branch(step="1", options=("yes",)),),
        depends_on=("1",),
    )


def _yes_no(assembly: Assembly, step: str, answer: str) -> list[Option]:
    names = [answer, "no" if answer == "yes" else "yes"]
    if assembly.due(step, 2):
        names.reverse()
    return [Option(id=name, text=wording.YES_NO[name]) for name in names]


_REVISING: Final = (Branch(step="2", options=("yes",)),)


def points_step(drawing: Drawing, operation: Literal["expansion", "contraction"]) -> Step:
    assembly, rules, scale = drawing.assembly, drawing.assembly.rules, drawing.examined.scale
    options = [
        Option(id=f"p{n}", text=f"{colour} point", mark=str(n))
        for n, colour in enumerate(drawing.colours, start=1)
    ]
    options.append(Option(id="none", text=wording.NONE))
    right = tuple(f"p{n}" for n, placed in enumerate(drawing.points, start=1) if placed.kind == operation)
    ask = wording.expansion if operation == "expansion" else wording.contraction
    facts: list[Fact] = []
    for n, placed in enumerate(drawing.points, start=1):
        about = f"p{n}"
        others = [other.point for k, other in enumerate(drawing.points, start=1) if k != n]
        nearest = min(float(np.hypot(*np.subtract(placed.point, other))) for other in others)
        facts.append(Fact(name="nearest point", about=about, value=nearest, low=rules.point_gap * scale))
        facts.append(Fact(name="distance to contour", about=about, value=placed.contour_distance))
        if placed.nearest_change is not None:
            facts.append(
                Fact(
                    name="nearest change",
                    about=about,
                    value=placed.nearest_change,
                    low=rules.change_gap * scale,
                )
            )
    first = operation == "expansion"
    return Step(
        id="3a" if first else "3b",
        stage=3,
        task=operation,
        format="choice",
        multiple=True,
        score="set",
        context=wording.points_context(assembly.lesion) if first else None,
        question=wording.with_options(ask(assembly.lesion), [option.text for option in options]),
        options=tuple(options),
        shows=("v3",) if first else (),
        uses=("v1", "v3"),
        reached_by=_REVISING,
        depends_on=("2",) if first else (),
        key=Key(options=right or ("none",), kinds=(*(placed.kind for placed in drawing.points), "none")),
        facts=tuple(facts) if first else (),
    )


def revision(drawing: Drawing) -> Step:
    assembly, rules, examined = drawing.assembly, drawing.assembly.rules, drawing.examined
    options = [Option(id=f"o{n + 1}", text=wording.ORDINALS[n], view=f"v{n + 4}") for n in range(OPTIONS)]
    chosen = [drawing.options[n] for n in drawing.order]
    right = next(n for n, choice in enumerate(chosen) if choice.kind == KEY)
    facts: list[Fact] = []
    for n, choice in enumerate(chosen):
        about = f"o{n + 1}"
        with_shown = choice.region.iou(examined.shown)
        facts.append(Fact(name="iou with shown", about=about, value=with_shown, high=rules.option_iou))
        if n != right:
            with_key = choice.region.iou(chosen[right].region)
            facts.append(Fact(name="iou with key", about=about, value=with_key, high=rules.option_iou_key))
        for m in range(n + 1, OPTIONS):
            between = choice.region.iou(chosen[m].region)
            facts.append(
                Fact(name="iou between", about=f"o{n + 1} o{m + 1}", value=between, high=rules.option_iou)
            )
    return Step(
        id="3c",
        stage=3,
        task="revision",
        format="choice",
        question=wording.with_options(wording.revision(assembly.lesion), [option.text for option in options]),
        options=tuple(options),
        shows=tuple(f"v{n + 4}" for n in range(OPTIONS)),
        uses=("v1", *(f"v{n + 4}" for n in range(OPTIONS))),
        reached_by=_REVISING,
        depends_on=("3a", "3b"),
        key=Key(options=(f"o{right + 1}",), kinds=tuple(choice.kind for choice in chosen)),
        facts=tuple(facts),
    )
