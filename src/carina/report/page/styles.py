"""How each run looks in every chart: a hue a model, grey for what never looks, hollow marks for mended histories."""

from collections.abc import Sequence
from typing import Final

from carina.report.draw import Series
from carina.report.draw.shapes import Shape
from carina.report.read import Run

_SHAPES: Final[tuple[Shape, ...]] = ("circle", "square", "triangle", "diamond")
_HUES: Final = 8


def styles(runs: Sequence[Run]) -> dict[str, Series]:
    """By id of the run, in order of the runs."""
    seeing = list(dict.fromkeys(run.model for run in runs if not run.baseline and not run.oracle))
    blind = list(dict.fromkeys(run.model for run in runs if run.baseline and not run.oracle))
    several = len({run.history for run in runs}) > 1
    made = {}
    for run in runs:
        name = f"{run.model} · {run.history}" if several else run.model
        if run.oracle:
            made[run.id] = Series(name, "oracle", "cross", (1.5, 2.5))
        elif run.baseline:
            place = blind.index(run.model)
            made[run.id] = Series(name, f"b{place % 2 + 1}", "cross" if place % 2 else "diamond", (5.0, 3.0))
        else:
            place = seeing.index(run.model)
            shape: Shape = "ring" if run.history in ("gold", "hint") else _SHAPES[place % len(_SHAPES)]
            made[run.id] = Series(name, f"s{place % _HUES + 1}", shape)
    return made


def primary(runs: Sequence[Run]) -> list[Run]:
    """The runs of the history that comes first: own answers, where there are any."""
    return [run for run in runs if run.history == runs[0].history]
