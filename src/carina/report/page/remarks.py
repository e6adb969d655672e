"""What a reader must know before the figures: what is missing, what does not beat guessing, what could not be read."""

from dataclasses import dataclass
from typing import Final, Literal

from carina.report.analyse.compare import AgainstBlind
from carina.report.analyse.figures import Contrast, Figure
from carina.report.analysis import Analysis
from carina.report.page.cells import percent, points, spread
from carina.report.page.styles import primary
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
    found = [
        *_unanswered(told),
        *_incomplete(told),
        *_not_above(told),
        *_below_constant(told),
        *_unread(told),
    ]
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


def _unanswered(told: Analysis) -> list[Remark]:
    """Runs without a single answer."""
    made = []
    for run in told.exam.runs:
        found = told.exam.outcomes[run.id]
        if found.all_steps.is_empty():
            text = "the run holds no steps, so it has no figures here."
        elif (found.all_steps["state"] != "answered").all():
            text = (
                f"not one of its {found.all_steps.height:,} steps was answered, so it has no figures of its own; run "
                "again to ask them."
            )
        else:
            continue
        made.append(Remark("grave", f"{_name(run)} on {told.exam.protocol}: {text}"))
    return made


def _incomplete(told: Analysis) -> list[Remark]:
    made = []
    for run in told.exam.runs:
        found = told.exam.outcomes[run.id]
        if (found.all_steps["state"] != "answered").all():
            continue
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
        if _told_of_another(told, item.run):
            continue
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


def _below_constant(told: Analysis) -> list[Remark]:
    """Seeing models whose interval does not lie above what the best constant answer gives."""
    made = []
    for run in told.exam.runs:
        if run.baseline or run.oracle or _told_of_another(told, run):
            continue
        short = []
        for measure in told.measures:
            figure = told.headline[run.id, measure.key]
            low = figure.value if figure.low is None else figure.low
            if low is not None and figure.constant is not None and low <= figure.constant:
                short.append((measure, f"{measure.title} ({_beside_constant(figure)})"))
        if short:
            leads = any(measure is told.lead for measure, _ in short)
            made.append(
                Remark(
                    "grave" if leads else "note",
                    f"{_name(run)} on {told.exam.protocol} is not above the best constant answer in: "
                    f"{'; '.join(text for _, text in short)}.",
                )
            )
    return made


def _told_of_another(told: Analysis, run: Run) -> bool:
    """Whether the same model has a run with the history that comes first, of which the same is said."""
    return run not in (first := primary(told.exam.runs)) and run.model in [one.model for one in first]


def _beside_constant(figure: Figure) -> str:
    bounds = spread(figure.low, figure.high)
    told = f"{percent(figure.value or 0.0)}%" + (f", {bounds}" if bounds else "")
    return f"{told}, against {percent(figure.constant or 0.0)}%"


def _headline(told: Analysis, items: list[Contrast]) -> bool:
    """Whether the leading figure is among them."""
    return told.lead.key in [_key(item) for item in items]


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
