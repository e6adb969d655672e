"""Who points right beside who answers right."""

from collections.abc import Iterator

from carina.report.ground.analyse.answers import Joint
from carina.report.ground.analysis import GroundAnalysis
from carina.report.page.cells import Cell, Grid, Head, Row, percent, points, spread
from carina.stats import Interval


def answers(told: GroundAnalysis) -> Iterator[Grid]:
    """A table an exam: right and wrong answers where a model points right and where it does not."""
    for exam in dict.fromkeys(one.exam for one in told.joints):
        rows = [
            Row(
                head=Head(text=one.run.model, note=_history(one) + ("same model" if one.same else "")),
                cells=(
                    *(Cell(text=f"{count:,}") for pair in one.counts for count in pair),
                    *(_accuracy(found) for found in one.accuracy),
                    _gap(one.difference),
                ),
                group=f"Where {one.pointer.title} points",
            )
            for one in _by_pointer(told)
            if one.exam is exam
        ]
        yield Grid(
            title=f"Pointing and answering: {exam.title}",
            corner="Who answers",
            columns=(
                Head(text="Points right, answers right"),
                Head(text="Points right, answers wrong"),
                Head(text="Points wrong, answers right"),
                Head(text="Points wrong, answers wrong"),
                Head(text="Accuracy", note="where it points right"),
                Head(text="Accuracy", note="where it points wrong"),
                Head(text="Difference", note="percentage points"),
            ),
            rows=tuple(rows),
            note="Questions with a right answer about findings of studies that were pointed at; boxes are left out, "
            "for they point themselves. Percent, with 95% interval over patients. Large and plain findings are "
            "easier both to point at and to answer about: a difference says that the two go together, not that "
            "one makes the other. Of fewer than five patients there is no interval.",
        )


def _by_pointer(told: GroundAnalysis) -> list[Joint]:
    """In order of who points."""
    order = list(dict.fromkeys(one.pointer.id for one in told.joints))
    return sorted(told.joints, key=lambda one: order.index(one.pointer.id))


def _history(one: Joint) -> str:
    return "" if one.run.history == "own" else f"history {one.run.history} "


def _accuracy(found: Interval) -> Cell:
    if found.value is None:
        return Cell()
    return Cell(text=percent(found.value), sub=spread(found.low, found.high), n=f"n {found.n}")


def _gap(found: Interval) -> Cell:
    if found.value is None:
        return Cell()
    bounds = "" if found.low is None or found.high is None else f"{points(found.low)} to {points(found.high)}"
    return Cell(text=points(found.value), sub=bounds)
