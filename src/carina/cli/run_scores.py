"""What `carina run` prints at its end: scores by stage, and cases that failed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from carina.cli.console import format_share, print_line, print_table
from carina.store.counts import format_count

if TYPE_CHECKING:
    from carina.runs import Failure
    from carina.runs.analysis.stage_scores import ScoreSummary

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
    """Print how many cases failed; whether there are any. The reasons are notices of the run."""
    if failures:
        number = len({failure.case for failure in failures})
        print_line(f"{format_count(number, 'case')} failed; repeat the command to ask again", err=True)
    return bool(failures)
