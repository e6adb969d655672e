"""Questions about presence and contour: detection, contour evaluation, and the three revision steps."""

from typing import Final, Literal

import numpy as np

from carina.cases import Branch, Key, Option, Step
from carina.cases.facts import Margin
from carina.percept import wording
from carina.percept.drawing import Drawing
from carina.percept.facts import MaskOptionFacts, PerceptStepFacts, PointFacts
from carina.percept.mask_options import KEY, OPTIONS
from carina.percept.steps import Assembly, make_choice_step


def make_detection_step(assembly: Assembly) -> Step:
    answer = "no" if assembly.path == "LF" else "yes"
    return make_choice_step(
        "1",
        task="detection",
        question=wording.detection(assembly.lesion),
        options=_order_yes_no(assembly, "1", answer),
        key=answer,
        shows=("v1",),
        uses=("v1",),
    )


def make_evaluation_step(assembly: Assembly) -> Step:
    answer = "yes" if assembly.path == "RR" else "no"
    return make_choice_step(
        "2",
        task="contour evaluation",
        question=wording.contour_evaluation(assembly.lesion),
        options=_order_yes_no(assembly, "2", answer),
        key=answer,
        shows=("v2",),
        uses=("v1", "v2"),
        reached_by=(Branch(step="1", options=("yes",)),),
        depends_on=("1",),
    )


def _order_yes_no(assembly: Assembly, step: str, answer: str) -> list[Option]:
    names = [answer, "no" if answer == "yes" else "yes"]
    if assembly.key_position(step, 2):
        names.reverse()
    return [Option(id=name, text=wording.YES_NO[name]) for name in names]


_REVISION_BRANCH: Final = (Branch(step="2", options=("yes",)),)


def make_points_step(drawing: Drawing, operation: Literal["expansion", "contraction"]) -> Step:
    assembly = drawing.assembly
    options = [
        Option(id=f"p{n}", text=f"{colour} point", mark=str(n))
        for n, colour in enumerate(drawing.colours, start=1)
    ]
    options.append(Option(id="none", text=wording.NONE))
    right = tuple(f"p{n}" for n, placed in enumerate(drawing.points, start=1) if placed.kind == operation)
    ask = wording.expansion if operation == "expansion" else wording.contraction
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
        reached_by=_REVISION_BRANCH,
        depends_on=("2",) if first else (),
        key=Key(options=right or ("none",), kinds=(*(placed.kind for placed in drawing.points), "none")),
        facts=PerceptStepFacts(points=_point_facts(drawing)).rows() if first else (),
    )


def _point_facts(drawing: Drawing) -> dict[str, PointFacts]:
    rules, scale = drawing.assembly.rules, drawing.analysis.scale
    facts: dict[str, PointFacts] = {}
    for n, placed in enumerate(drawing.points, start=1):
        others = [other.point for k, other in enumerate(drawing.points, start=1) if k != n]
        nearest = min(float(np.hypot(*np.subtract(placed.point, other))) for other in others)
        change = placed.nearest_change
        facts[f"p{n}"] = PointFacts(
            nearest_point=Margin(nearest, rules.point_gap * scale),
            distance_to_contour=placed.contour_distance,
            nearest_change=None if change is None else Margin(change, rules.change_gap * scale),
        )
    return facts


def make_revision_step(drawing: Drawing) -> Step:
    assembly, rules, analysis = drawing.assembly, drawing.assembly.rules, drawing.analysis
    options = [Option(id=f"o{n + 1}", text=wording.ORDINALS[n], view=f"v{n + 4}") for n in range(OPTIONS)]
    chosen = [drawing.options[n] for n in drawing.order]
    right = next(n for n, choice in enumerate(chosen) if choice.kind == KEY)
    facts = {
        f"o{n + 1}": MaskOptionFacts(
            iou_with_shown=Margin(choice.region.iou(analysis.shown), high=rules.option_iou),
            iou_with_key=None
            if n == right
            else Margin(choice.region.iou(chosen[right].region), high=rules.option_iou_key),
            iou_between={
                f"o{m + 1}": Margin(choice.region.iou(chosen[m].region), high=rules.option_iou)
                for m in range(n + 1, OPTIONS)
            },
        )
        for n, choice in enumerate(chosen)
    }
    return Step(
        id="3c",
        stage=3,
        task="revision",
        format="choice",
        question=wording.with_options(wording.revision(assembly.lesion), [option.text for option in options]),
        options=tuple(options),
        shows=tuple(f"v{n + 4}" for n in range(OPTIONS)),
        uses=("v1", *(f"v{n + 4}" for n in range(OPTIONS))),
        reached_by=_REVISION_BRANCH,
        depends_on=("3a", "3b"),
        key=Key(options=(f"o{right + 1}",), kinds=tuple(choice.kind for choice in chosen)),
        facts=PerceptStepFacts(masks=facts).rows(),
    )
