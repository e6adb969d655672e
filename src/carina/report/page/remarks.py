"""What a reader must know before the figures: what is missing, what does not beat guessing, what could not be read."""

from dataclasses import dataclass
from typing import Final, Literal

from carina.report.analyse.compare import AgainstBlind
from carina.report.analyse.figures import Contrast
from carina.report.analysis import Analysis
from carina.report.page.cells import percent, points
from carina.report.read import Run

UNREAD: Final = 0.02
"""Share of answers that could not be read from which a reader is warned."""


@dataclass(frozen=True)
class Remark:
    """One remark: `grave` ones first."""

    level: Literal["grave", "note"]
    text: str


def remarks(told: Analysis) -> list[Remark]:
    """Of one exam, gravest first."""
    exam = told.exam
    found = [*_incomplete(told), *_not_above(told), *_unread(told)]
    if not any(run.baseline for run in exam.runs) and any(not run.oracle for run in exam.runs):
        found.append(
            Remark(
                "note",
                f"{exam.protocol}: no blind baseline is among these runs, so nothing here shows that a model looks "
                "at the pictures. Run builtin/majority, or the same model with --blind.",
            )
        )
    held = {run.id: set(exam.outcomes[run.id].all_steps["case"].unique()) for run in exam.runs}
    everything = set().union(*held.values())
    partial = [run for run in exam.runs if held[run.id] != everything]
    if partial:
        names = ", ".join(f"{_name(run)} ({len(held[run.id])} of {len(everything)})" for run in partial)
        found.append(
            Remark(
                "note",
                f"{exam.protocol}: runs do not hold the same cases: {names}. Figures are each run's own; differences "
                "are over cases that both have.",
            )
        )
    return sorted(found, key=lambda item: item.level != "grave")


def _incomplete(told: Analysis) -> list[Remark]:
    made = []
    for run in told.exam.runs:
        found = told.exam.outcomes[run.id]
        cases = found.all_steps["case"].n_unique()
        missing = cases - len(found.complete)
        if missing:
            made.append(
                Remark(
                    "grave",
                    f"{_name(run)}: {missing} of {cases} {told.exam.protocol} cases are incomplete. They are neither "
                    "right nor wrong here; run again to finish them.",
                )
            )
    return made


def _not_above(told: Analysis) -> list[Remark]:
    titles = {measure.key: measure.title for measure in told.measures}
    made = []
    for item in told.blind:
        short = [f"{titles[_key(one)]} ({_range(one)})" for one in item.not_above]
        name = f"{_name(item.run)} on {told.exam.protocol}"
        if len(short) == len(item.differences) and short:
            made.append(
                Remark(
                    "grave",
                    f"{name} is not above the blind baseline {_beside(item)} in any figure. Nothing here shows "
                    "that it looks at the pictures.",
                )
            )
        elif short:
            made.append(
                Remark(
                    "grave" if _headline(told, item.not_above) else "note",
                    f"{name} is not above the blind baseline {_beside(item)} in: {'; '.join(short)}.",
                )
            )
    return made


def _headline(told: Analysis, items: list[Contrast]) -> bool:
    """Whether the leading figure is among them."""
    return told.measures[0].key in [_key(item) for item in items]


def _unread(told: Analysis) -> list[Remark]:
    listed = [
        f"{item.model} · {item.history} ({percent(item.value)}% of {item.n})"
        for item in told.reading
        if item.name == "not read" and item.value is not None and item.value > UNREAD
    ]
    if not listed:
        return []
    return [
        Remark(
            "note",
            f"{told.exam.protocol}: more than {UNREAD:.0%} of the answers could not be read: {'; '.join(listed)}. They "
            "count as wrong; their classes are below.",
        )
    ]


def _name(run: Run) -> str:
    return f"{run.model} · {run.history}"


def _beside(item: AgainstBlind) -> str:
    """The baseline, with its history where that is another."""
    baseline = item.baseline
    return (
        baseline.model if baseline.history == item.run.history else f"{baseline.model} ({baseline.history})"
    )


def _range(item: Contrast) -> str:
    if item.low is None or item.high is None:
        return points(item.value)
    return f"{points(item.value)} points, {points(item.low)} to {points(item.high)}"


def _key(item: Contrast) -> tuple[str, str, str]:
    return item.level, item.name, item.metric
