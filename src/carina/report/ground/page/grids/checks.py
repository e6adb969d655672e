"""Whether maps depend on the image, the text and the weights: one table a question, a row a run."""

from collections.abc import Sequence
from typing import Final

from carina.report.analyse.figures import Contrast
from carina.report.ground.analyse.checks import FOLLOWED, RunChecks
from carina.report.ground.analysis import GroundAnalysis
from carina.report.ground.figures import Figure, key_of
from carina.report.ground.page.grids.common import run_head
from carina.report.page.cells import MINUS, Cell, Grid, Head, Row, p_value

_ALIKE: Final = {"pearson": "Pearson", "spearman": "Spearman", "ssim": "Structural similarity"}
_WEIGHTS: Final = "weights."
_WHOLE: Final = "whole"
_AREA: Final = ".4f"
_LIKE: Final = ".2f"
_OVER: Final = "Means over the checked probes, with 95% interval over patients where there are five or more."


def faithful(told: GroundAnalysis) -> Grid:
    """Deletion and insertion beside random maps."""
    rows = []
    for one in told.checks:
        less = {item.metric: item for item in one.differences}
        cells = [
            cell
            for name in FOLLOWED
            for cell in (
                *_cells(one, (name, f"{name}.random"), _AREA),
                _less(less.get(name)),
            )
        ]
        rows.append(_row(one, cells))
    return Grid(
        title="Image: deletion and insertion",
        corner="Model and method",
        columns=tuple(
            Head(text=name.capitalize(), note=note)
            for name in FOLLOWED
            for note in ("the map", "a random map", "map less random, paired")
        ),
        rows=tuple(rows),
        note="Cells are deleted from the image, or put into a blurred one, the highest of the map first; the figure is "
        "the area under the model's score. A map that shows what the model looks at has a lower area of deletion and "
        "a higher one of insertion than a random map: a difference below 0, then one above 0. "
        f"{_OVER} Differences are paired on probes; p after Holm's correction over both. Bold with a star: below 0.05.",
    )


def otherwise(told: GroundAnalysis) -> Grid:
    """Maps of another text, and of shuffled weights."""
    kinds = (("swap", "another finding"), (f"{_WEIGHTS}{_WHOLE}", "all weights shuffled"))
    rows = [
        _row(one, _cells(one, [f"{kind}.{name}" for kind, _ in kinds for name in _ALIKE], _LIKE))
        for one in told.checks
    ]
    return Grid(
        title="Text and weights: likeness with the map of another text, and of shuffled weights",
        corner="Model and method",
        columns=tuple(Head(text=title, note=words) for _, words in kinds for title in _ALIKE.values()),
        rows=tuple(rows),
        note="Near 1 the map stays the same whatever it is asked for (another finding on the same image), or whatever "
        "was learnt (image tower with shuffled weights); near 0 it depends on it. Blank where there is no second "
        f"finding, or no image tower to shuffle. {_OVER}",
    )


def stages(told: GroundAnalysis) -> Grid:
    """Weights shuffled part by part, where they were."""
    rows = [
        Row(
            head=Head(text=stage),
            cells=tuple(_cells(one, [f"{_WEIGHTS}{stage}.{name}" for name in _ALIKE], _LIKE)),
            group=one.run.title,
        )
        for one in told.checks
        for stage in _stages(one.figures)
    ]
    return Grid(
        title="Weights, shuffled part by part from the output on",
        corner="Shuffled down to",
        columns=tuple(Head(text=title) for title in _ALIKE.values()),
        rows=tuple(rows),
        note="Likeness with the map of the model as it is: a map that depends on what was learnt becomes less alike "
        f"with every part that is shuffled. {_OVER}",
    )


def peaks(told: GroundAnalysis) -> Grid:
    """Height and spread of maps where the finding is and where it is not."""
    names = [f"{what}.{side}" for what in ("peak", "spread") for side in ("present", "absent")]
    return Grid(
        title="Presence: maps where the finding is and where it is not",
        corner="Model and method",
        columns=tuple(
            Head(text=what, note=note)
            for what in ("Highest value", "Spread over cells")
            for note in ("finding is there", "finding is not there")
        ),
        rows=tuple(_row(one, _cells(one, names, ".3g")) for one in told.checks),
        note="A map of its own finding should be higher, and stand out more, where the finding is there; where both "
        f"are alike, the height of a peak does not tell whether there is anything to see. {_OVER}",
    )


def _row(one: RunChecks, cells: Sequence[Cell]) -> Row:
    head = run_head(one.run)
    return Row(head=Head(text=head.text, note=f"{one.probes:,} probes", mark=head.mark), cells=tuple(cells))


def _stages(figures: Sequence[Figure]) -> list[str]:
    """In the order in which they were shuffled."""
    names = [one.metric for one in figures if one.metric.startswith(_WEIGHTS)]
    found = dict.fromkeys(name.removeprefix(_WEIGHTS).rpartition(".")[0] for name in names)
    return [name for name in found if name != _WHOLE]


def _cells(one: RunChecks, names: Sequence[str], form: str) -> list[Cell]:
    known = {item.metric: item for item in one.figures}
    return [_cell(known.get(name), form) for name in names]


def _cell(figure: Figure | None, form: str) -> Cell:
    if figure is None or figure.value is None:
        return Cell()
    return Cell(
        text=_number(figure.value, form),
        sub=_range(figure.low, figure.high, form),
        n=f"n {figure.n:,}",
        key=key_of(figure),
        title=f"{figure.metric}, n = {figure.n:,} of {figure.patients:,} patients",
    )


def _less(item: Contrast | None) -> Cell:
    if item is None:
        return Cell()
    return Cell(
        text=_number(item.value, f"+{_AREA}"),
        sub=_range(item.low, item.high, f"+{_AREA}"),
        p=p_value(item.adjusted),
        bold=item.sure,
        key="|".join((item.one, item.other, item.level, item.name, item.metric)),
        title=f"n = {item.n}, p = {item.p:.4f} before and {item.adjusted:.4f} after Holm's correction",
    )


def _number(value: float, form: str) -> str:
    """With a sign where it is not nothing."""
    text = f"{value:{form}}"
    return text.replace("-", MINUS) if float(text) else text.lstrip("+-")


def _range(low: float | None, high: float | None, form: str) -> str:
    return "" if low is None or high is None else f"{_number(low, form)} to {_number(high, form)}"
