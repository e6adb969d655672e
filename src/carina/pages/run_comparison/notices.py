"""What a reader must know of the numbers: warnings and notes by kind, and the leading measure in a few lines."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from carina.pages.run_comparison.cells import (
    format_interval,
    format_percent,
    format_points,
    format_points_interval,
)
from carina.pages.words import join_names
from carina.runs.analysis.comparisons import AgainstBlind
from carina.runs.analysis.counts import UNPARSED
from carina.runs.analysis.estimates import Difference, Estimate
from carina.runs.analysis.read import ComparedRun
from carina.runs.analysis.run_analysis import RunAnalysis

Level = Literal["warning", "note"]
_NOT_ABOVE_BLIND: Final = "Not above a blind baseline"
MOST_UNPARSED: Final = 0.02
"""Share of answers that could not be parsed from which there is a note."""


@dataclass(frozen=True)
class Notice:
    """One sentence or two about the numbers."""

    level: Level
    kind: str
    """A few words that all notices of the same kind share."""
    text: str


@dataclass(frozen=True)
class NoticeGroup:
    """The notices of one kind."""

    level: Level
    kind: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class HeadlineSummary:
    """The leading measure: the best model beside what can be reached without the images."""

    title: str
    lines: tuple[tuple[str, str, str], ...]
    """Name, value and interval."""


def run_notices(analysis: RunAnalysis) -> list[Notice]:
    """Notices about a group of runs."""
    group = analysis.group
    notices = [
        *_program_notices(analysis),
        *_unfinished_notices(analysis),
        *_unanswered_notices(analysis),
        *_incomplete_notices(analysis),
        *_blind_baseline_notices(analysis),
        *_constant_answer_notices(analysis),
        *_parsing_notices(analysis),
    ]
    if not any(run.is_baseline for run in group.runs) and any(not run.is_oracle for run in group.runs):
        notices.append(
            Notice(
                "note",
                "No blind baseline",
                f"{group.protocol}: no blind baseline is among these runs, so nothing here shows that a model looks "
                "at the images. Run builtin/majority, or the same model with --blind.",
            )
        )
    held = {run.id: set(group.outcomes[run.id].all_steps["case"].unique()) for run in group.runs}
    every = set().union(*held.values())
    partial = [run for run in group.runs if held[run.id] != every]
    if partial:
        names = ", ".join(f"{_run_name(run)} ({len(held[run.id])} of {len(every)})" for run in partial)
        notices.append(
            Notice(
                "note",
                "Different cases",
                f"{group.protocol}: runs do not hold the same cases: {names}. Estimates are over each run's own cases; "
                "differences are over cases that both runs have.",
            )
        )
    return notices


def group_notices(notices: Iterable[Notice]) -> list[NoticeGroup]:
    """Notices by kind, warnings before notes."""
    texts: dict[tuple[Level, str], dict[str, None]] = {}
    for one in notices:
        texts.setdefault((one.level, one.kind), {})[one.text] = None
    groups = [NoticeGroup(level, kind, tuple(own)) for (level, kind), own in texts.items()]
    return sorted(groups, key=lambda group: group.level != "warning")


def _program_notices(analysis: RunAnalysis) -> list[Notice]:
    """Keys that rest on what a program drew or stated: never expert truth."""
    group = analysis.group
    drawn, stated = group.facts.by_program, group.facts.stated_by_program
    notices = []
    if drawn:
        text = (
            f"{group.protocol}: a program drew the regions that the keys of {drawn:,} of the {len(group.cases):,} "
            "cases rest on, and no person has reviewed them: agreement with these keys is agreement with that "
            "program, not with readers."
        )
        notices.append(Notice("warning", "Keys by a program", text))
    if stated:
        text = (
            f"{group.protocol}: in {stated:,} of the {len(group.cases):,} cases, a key rests on a finding of which "
            "only a program says whether it is present, such as a label that was mined from a report: agreement with "
            "these keys is agreement with that program, not with readers."
        )
        notices.append(Notice("warning", "Keys by a program", text))
    return notices


def _unfinished_notices(analysis: RunAnalysis) -> list[Notice]:
    """Runs whose last call did not end, and what could not be compared with checksums."""
    notices = [
        Notice("warning", "Unfinished runs", f"{_run_name(run)}: {text}.")
        for run in analysis.group.runs
        for text in run.unfinished
    ]
    unchecked: dict[str, list[str]] = {}
    for run in analysis.group.runs:
        for text in run.unchecked:
            unchecked.setdefault(text, []).append(_run_name(run))
    return notices + [
        Notice("note", "Not compared with checksums", f"{join_names(names)}: {text}.")
        for text, names in unchecked.items()
    ]


def _unanswered_notices(analysis: RunAnalysis) -> list[Notice]:
    """Runs without a single answer."""
    notices = []
    for run in analysis.group.runs:
        steps = analysis.group.outcomes[run.id].all_steps
        if steps.is_empty():
            text = "the run holds no steps, so it has no results here."
        elif (steps["state"] != "answered").all():
            text = (
                f"not one of its {steps.height:,} steps was answered, so it has no results here; repeat the run to "
                "ask them."
            )
        else:
            continue
        subject = f"{_run_name(run)} on {analysis.group.protocol}"
        notices.append(Notice("warning", "Runs without answers", f"{subject}: {text}"))
    return notices


def _incomplete_notices(analysis: RunAnalysis) -> list[Notice]:
    notices = []
    for run in analysis.group.runs:
        outcomes = analysis.group.outcomes[run.id]
        if (outcomes.all_steps["state"] != "answered").all():
            continue
        cases = outcomes.all_steps["case"].n_unique()
        missing = cases - len(outcomes.complete)
        if missing:
            notices.append(
                Notice(
                    "warning",
                    "Incomplete cases",
                    f"{_run_name(run)}: {missing} of {cases} {analysis.group.protocol} cases are incomplete. They "
                    "count as neither right nor wrong; repeat the run to finish them.",
                )
            )
    return notices


def _blind_baseline_notices(analysis: RunAnalysis) -> list[Notice]:
    titles = {measure.key: measure.title for measure in analysis.measures}
    notices = []
    for item in analysis.blind:
        if _has_primary_run(analysis, item.run):
            continue
        below = [f"{titles[one.key]} ({_describe_difference(one)})" for one in item.not_above]
        name = f"{_run_name(item.run)} on {analysis.group.protocol}"
        start = f"{name} is not significantly above the blind baseline {_baseline(item)} in"
        if below and len(below) == len(item.differences):
            text = f"{start} any measure. Nothing here shows that it looks at the images."
            notices.append(Notice("warning", _NOT_ABOVE_BLIND, text))
        elif below:
            is_leading = analysis.leading_measure.key in [one.key for one in item.not_above]
            level: Level = "warning" if is_leading else "note"
            notices.append(Notice(level, _NOT_ABOVE_BLIND, f"{start}: {'; '.join(below)}."))
    return notices


def _constant_answer_notices(analysis: RunAnalysis) -> list[Notice]:
    """Models that see the images and whose interval does not lie above the best constant answer."""
    notices = []
    for run in analysis.group.runs:
        if run.is_baseline or run.is_oracle or _has_primary_run(analysis, run):
            continue
        below = []
        for measure in analysis.measures:
            estimate = analysis.headline[run.id, measure.key]
            low = estimate.value if estimate.low is None else estimate.low
            if low is not None and estimate.constant is not None and low <= estimate.constant:
                below.append((measure, f"{measure.title} ({_beside_constant(estimate)})"))
        if below:
            is_leading = any(measure is analysis.leading_measure for measure, _ in below)
            notices.append(
                Notice(
                    "warning" if is_leading else "note",
                    "Not above the best constant answer",
                    f"{_run_name(run)} on {analysis.group.protocol} is not significantly above the best constant "
                    f"answer in: {'; '.join(text for _, text in below)}.",
                )
            )
    return notices


def _has_primary_run(analysis: RunAnalysis, run: ComparedRun) -> bool:
    """Whether the same model has a run with the history that comes first, about which the same is said."""
    primary = analysis.group.primary_runs
    return run not in primary and run.model in [one.model for one in primary]


def _beside_constant(estimate: Estimate) -> str:
    bounds = format_interval(estimate.low, estimate.high)
    value = f"{format_percent(estimate.value or 0.0)}%" + (f", {bounds}" if bounds else "")
    return f"{value}, against {format_percent(estimate.constant or 0.0)}%"


def _parsing_notices(analysis: RunAnalysis) -> list[Notice]:
    names = {run.id: _run_name(run) for run in analysis.group.runs}
    listed = [
        f"{names[item.run]} ({format_percent(item.value)}% of {item.n})"
        for item in analysis.parsing
        if item.name == UNPARSED and item.value is not None and item.value > MOST_UNPARSED
    ]
    if not listed:
        return []
    return [
        Notice(
            "note",
            "Answers that could not be parsed",
            f"{analysis.group.protocol}: more than {MOST_UNPARSED:.0%} of the answers could not be parsed: "
            f"{'; '.join(listed)}. They count as wrong; the reasons are in the table of parsing results.",
        )
    ]


def _run_name(run: ComparedRun) -> str:
    return f"{run.name} · {run.setting}"


def _baseline(item: AgainstBlind) -> str:
    """The baseline, with its history where that differs."""
    baseline = item.baseline
    return baseline.name if baseline.history == item.run.history else f"{baseline.name} ({baseline.history})"


def _describe_difference(item: Difference) -> str:
    bounds = format_points_interval(item.low, item.high)
    return f"{format_points(item.value)} points, {bounds}" if bounds else format_points(item.value)


def summarise_headline(analysis: RunAnalysis) -> HeadlineSummary | None:
    """The best model in the leading measure; None where no run but the oracle has a value."""
    measure = analysis.leading_measure
    rated = [
        (estimate.value, run, estimate)
        for run in analysis.group.primary_runs
        if not run.is_oracle and (estimate := analysis.headline[run.id, measure.key]).value is not None
    ]
    if not rated:
        return None
    # A run on a few cases only is not compared with one on all of them.
    cases = {run.id: len(run.cases(analysis.group.protocol)) for _, run, _ in rated}
    rated = [item for item in rated if cases[item[1].id] == max(cases.values())]
    lines = []
    for is_baseline, words in ((False, "Highest"), (True, "Highest blind baseline")):
        own = [item for item in rated if item[1].is_baseline is is_baseline]
        if own:
            _, run, estimate = max(own, key=lambda item: item[0])
            bounds = format_interval(estimate.low, estimate.high)
            lines.append(
                (
                    f"{words}: {run.name}",
                    f"{format_percent(estimate.value or 0.0)}%",
                    f"({bounds})" if bounds else "",
                )
            )
    first = rated[0][2]
    for words, value in (("Best constant answer", first.constant), ("Chance", first.chance)):
        if value is not None:
            lines.append((words, f"{format_percent(value)}%", ""))
    return HeadlineSummary(f"{measure.title}, {measure.metric}", tuple(lines))
