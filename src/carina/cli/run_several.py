"""`carina run` with several benchmarks, models or histories, or with a file that describes them."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from carina.cli.console import format_share, print_json, print_line, print_table, progress
from carina.cli.run_scores import NOT_READ, describe_scores, print_failures
from carina.store.counts import format_count
from carina.store.errors import CarinaError

if TYPE_CHECKING:
    from carina.runs import RunSet
    from carina.runs.analysis.stage_scores import ScoreSummary
    from carina.runs.options import HistoryName

_WITH_A_FILE: Final = frozenset({"bench", "out", "json"})
"""Options of the command that go together with a file; all others are in the file."""


def run_combinations(
    benchmarks: Sequence[Path],
    models: Sequence[str],
    histories: "Sequence[HistoryName]",
    out: Path,
    options: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Make every combination that the options of the command name."""
    from carina.runs import run_all

    runs = run_all(
        list(benchmarks),
        list(models),
        out,
        histories=list(histories),
        options=options,
        progress=partial(progress, quiet=as_json),
        notify=_print_notice,
    )
    _print_runs(runs, as_json=as_json)


def run_file(context: typer.Context, file: Path, out: Path | None, *, as_json: bool) -> None:
    """Make the runs that a YAML file describes."""
    from carina.runs import run_experiment

    given = [
        name
        for name in context.params
        if name not in _WITH_A_FILE
        and getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    if given:
        option = given[0].replace("_", "-")
        raise CarinaError(f"--{option}: does not go together with {file}; write it into the file")
    runs = run_experiment(file, out, progress=partial(progress, quiet=as_json), notify=_print_notice)
    _print_runs(runs, as_json=as_json)


def _print_notice(sentence: str) -> None:
    print_line(sentence, err=True)


def _print_runs(runs: "RunSet", *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "runs": [
                    {
                        "run": one.path,
                        "model": one.info.model,
                        "history": one.info.policy.history,
                        "counts": one.counts,
                        "failed": one.failures,
                        **describe_scores(runs.summaries[one.path]),
                    }
                    for one in runs
                ],
                "errors": [{"run": path, "error": reason} for path, reason in runs.errors.items()],
            }
        )
    else:
        print_line(runs.path)
        _print_table(runs)
    for one in runs:
        if one.failures:
            print_line(f"{one.path}:", err=True)
            print_failures(one.failures)
    for path, reason in runs.errors.items():
        print_line(f"failed: {path}: {reason}", fg=typer.colors.YELLOW, err=True)
    if runs.errors:
        print_line(f"{format_count(len(runs.errors), 'run')} failed; repeat the command to resume", err=True)
    if runs.errors or any(one.failures for one in runs):
        raise typer.Exit(1)


def _print_table(runs: "RunSet") -> None:
    """One line per run and protocol: the measures of whole runs with intervals, then every stage by its number."""
    summaries = [(one.path.name, runs.summaries[one.path]) for one in runs]
    scores = [score for _, summary in summaries for score in summary.scores]
    whole = list(dict.fromkeys(score.title for score in scores if not score.name))
    stages = sorted({int(score.name) for score in scores if score.level == "stage"})
    text = sorted({int(score.name) for score in scores if score.level == "words"})
    heads = [
        *whole,
        *(f"stage {number}" for number in stages),
        *(f"text {number}" for number in text),
        NOT_READ,
    ]
    rows = [
        [name, protocol, *_cells(summary, protocol, heads)]
        for name, summary in summaries
        for protocol in dict.fromkeys(score.protocol for score in summary.scores)
    ]
    print_table(("run", "protocol", *heads), rows)


def _cells(summary: "ScoreSummary", protocol: str, heads: Sequence[str]) -> list[str]:
    cells = {NOT_READ: format_share(summary.not_read)}
    for score in summary.scores:
        if score.protocol != protocol:
            continue
        if not score.name:
            cells[score.title] = format_share(score.value, score.low, score.high)
        else:
            kind = "stage" if score.level == "stage" else "text"
            cells[f"{kind} {score.name}"] = format_share(score.value)
    return [cells.get(head, "-") for head in heads]
