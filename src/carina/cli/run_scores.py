"""What `carina run` prints at its end: scores by stage, and cases that failed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import typer

from carina.cli.console import format_share, print_line, print_table
from carina.store.counts import format_count

if TYPE_CHECKING:
    from carina.runs import Failure
    from carina.runs.analysis.stage_scores import ScoreSummary

_LISTED: Final = 10
"""Failed cases that are listed."""
NOT_READ: Final = "answers not read"


def print_scores(summary: "ScoreSummary") -> None:
    """Print one line per measure, and what the blind baseline is."""
    several = len({score.protocol for score in summary.scores}) > 1
    rows = [
        [
            *([score.protocol] if several else []),
            score.title,
            score.metric,
            format_share(score.value, score.low, score.high),
            str(score.n),
            format_share(score.chance),
            format_share(score.blind),
        ]
        for score in summary.scores
    ]
    unread = [NOT_READ, "share", format_share(summary.not_read), str(summary.answers), "-", "-"]
    rows.append(["-", *unread] if several else unread)
    heads = ("measure", "metric", "score", "n", "chance", "blind")
    print_table(("protocol", *heads) if several else heads, rows)
    print_line(summary.baseline.sentence, err=True)


def describe_scores(summary: "ScoreSummary") -> dict[str, Any]:
    """The same for JSON."""
    return {
        "scores": summary.scores,
        "blind_baseline": summary.baseline,
        "not_read": {"share": summary.not_read, "answers": summary.answers},
    }


def print_failures(failures: "Sequence[Failure]") -> bool:
    """Print the first cases that failed; whether there are any."""
    for case, reason in failures[:_LISTED]:
        print_line(f"failed: {case}: {reason}", fg=typer.colors.YELLOW, err=True)
    if failures:
        more = len(failures) - _LISTED
        listed = f" ({more} more)" if more > 0 else ""
        print_line(
            f"{format_count(len(failures), 'case')} failed{listed}; repeat the command to ask again", err=True
        )
    return bool(failures)
