"""The leading figure of an exam in a few lines: the best model, beside what can be had without looking."""

from dataclasses import dataclass

from carina.report.analyse.figures import Figure
from carina.report.analysis import Analysis
from carina.report.page.cells import percent, spread
from carina.report.page.styles import primary
from carina.report.read import Run


@dataclass(frozen=True)
class Lead:
    title: str
    lines: tuple[tuple[str, str, str], ...]
    """What it is, its figure, and its interval."""


def lead(told: Analysis) -> Lead | None:
    """None where no run but the oracle has a figure."""
    measure = told.lead
    rated = [
        (figure.value, run, figure)
        for run in primary(told.exam.runs)
        if not run.oracle and (figure := told.headline[run.id, measure.key]).value is not None
    ]
    if not rated:
        return None
    # Who was asked about a few cases only is not compared with who was asked about all.
    cases = {run.id: len(run.cases(told.exam.protocol)) for _, run, _ in rated}
    rated = [item for item in rated if cases[item[1].id] == max(cases.values())]
    lines = []
    for baseline, words in ((False, "Highest"), (True, "Highest without looking")):
        group = [item for item in rated if item[1].baseline is baseline]
        if group:
            _, run, figure = max(group, key=lambda item: item[0])
            lines.append(_line(words, run, figure))
    for words, value in (("Best constant answer", rated[0][2].constant), ("Chance", rated[0][2].chance)):
        if value is not None:
            lines.append((words, f"{percent(value)}%", ""))
    return Lead(f"{measure.title}, {measure.metric}", tuple(lines))


def _line(words: str, run: Run, figure: Figure) -> tuple[str, str, str]:
    bounds = spread(figure.low, figure.high)
    return f"{words}: {run.model}", f"{percent(figure.value or 0.0)}%", f"({bounds})" if bounds else ""
