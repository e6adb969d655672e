"""How each run looks in every chart: hue and shape tell the model, the filling of its mark tells the history.

What never looks is grey and dashed, and the oracle a star. So no two runs differ by their colour alone.
"""

from collections.abc import Sequence
from typing import Final

from carina.report.draw import Series
from carina.report.draw.shapes import Fill, Shape
from carina.report.read import Run

_SHAPES: Final[tuple[Shape, ...]] = ("circle", "square", "triangle", "down", "pentagon")
_BLIND: Final[tuple[Shape, ...]] = ("diamond", "cross", "saltire", "hexagon")
_HUES: Final = 8
_GREYS: Final = 2
_FILLS: Final[dict[str, Fill]] = {"own": "full", "gold": "hollow", "hint": "half", "none": "dot"}


def styles(runs: Sequence[Run]) -> dict[str, Series]:
    """By id of the run, in order of the runs."""
    seeing = list(dict.fromkeys(run.model for run in runs if not run.baseline and not run.oracle))
    blind = list(dict.fromkeys(run.model for run in runs if run.baseline and not run.oracle))
    several = len({run.history for run in runs}) > 1
    made = {}
    for run in runs:
        name = f"{run.model} · {run.history}" if several else run.model
        fill = _FILLS[run.history]
        if run.oracle:
            made[run.id] = Series(name, "oracle", "star", (1.5, 2.5), fill)
        elif run.baseline:
            place = blind.index(run.model)
            colour = f"b{place % _GREYS + 1}"
            made[run.id] = Series(name, colour, _BLIND[place % len(_BLIND)], (5.0, 3.0), fill)
        else:
            place = seeing.index(run.model)
            colour = f"s{place % _HUES + 1}"
            made[run.id] = Series(name, colour, _SHAPES[place % len(_SHAPES)], None, fill)
    return made


def primary(runs: Sequence[Run]) -> list[Run]:
    """The runs of the history that comes first: own answers, where there are any."""
    return [run for run in runs if run.history == runs[0].history]
