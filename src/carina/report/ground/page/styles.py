"""How each explain run and each control looks in every chart: no two differ by their colour alone."""

from collections.abc import Sequence
from typing import Final

from carina.report.draw import Series
from carina.report.draw.shapes import Fill, Shape
from carina.report.ground.read import MapsRun

_SHAPES: Final[tuple[Shape, ...]] = ("circle", "square", "triangle", "down", "pentagon")
_FILLS: Final[tuple[Fill, ...]] = ("full", "hollow", "half", "dot")
_HUES: Final = 8
_PLAIN: Final[dict[str, tuple[str, Shape]]] = {
    "control/uniform": ("b2", "hexagon"),
    "control/random": ("b2", "saltire"),
    "control/centre": ("b1", "cross"),
    "control/lungs": ("b1", "diamond"),
    "control/mean-region": ("b1", "hexagon"),
    "control/oracle": ("oracle", "star"),
}
_DASH: Final = (5.0, 3.0)


def styles(runs: Sequence[MapsRun]) -> dict[str, Series]:
    """By id of the run, in order of the runs: hue and shape tell the model, the filling the method.

    More methods than fillings, or models than shapes, take marks that nobody else has as long as there are any. Lines
    of random weights are dashed.
    """
    models = list(dict.fromkeys(run.model for run in runs if not run.control))
    marks = _marks([run for run in runs if not run.control], models)
    made = {}
    for run in runs:
        if run.control:
            made[run.id] = _control(run.model, run.title, "hollow")
            continue
        shape, fill = marks[run.id]
        colour = f"s{models.index(run.model) % _HUES + 1}"
        made[run.id] = Series(run.title, colour, shape, _DASH if run.baseline else None, fill)
    return made


def _marks(runs: Sequence[MapsRun], models: Sequence[str]) -> dict[str, tuple[Shape, Fill]]:
    """Shape and filling by id: first for those that get the shape of their model, then for the others."""
    made: dict[str, tuple[Shape, Fill]] = {}
    others = []
    for run in runs:
        place = models.index(run.model)
        same = [one.id for one in runs if one.model == run.model].index(run.id)
        if place < len(_SHAPES) and same < len(_FILLS):
            made[run.id] = _SHAPES[place], _FILLS[same]
        else:
            others.append(run)
    every = [(shape, fill) for fill in _FILLS for shape in _SHAPES]
    free = [mark for mark in every if mark not in made.values()]
    for place, run in enumerate(others):
        made[run.id] = free[place] if place < len(free) else every[place % len(every)]
    return made


def control_styles(sources: Sequence[str]) -> dict[str, Series]:
    """Controls that were scored beside a model, by source."""
    return {source: _control(source, source, "full") for source in sources}


def _control(source: str, title: str, fill: Fill) -> Series:
    colour, shape = _PLAIN.get(source, ("b2", "diamond"))
    return Series(title, colour, shape, (1.5, 2.5) if colour == "oracle" else _DASH, fill)
