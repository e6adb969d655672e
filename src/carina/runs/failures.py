"""Questions that got no answer: the reasons, grouped and counted, and the error of a run without a single answer."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar, Final

from carina.runs.results import Failure
from carina.store.counts import format_count
from carina.store.errors import CarinaError

_LISTED: Final = 10
"""Reasons that are listed, the most frequent first."""
_NAMED: Final = 3
"""Cases that are named for each reason."""


class NothingAnsweredError(CarinaError):
    """A run in which every request failed; the directory holds the reasons, and the same command asks again."""

    exit_code: ClassVar[int] = 1


def describe_failures(failures: Sequence[Failure]) -> Iterator[str]:
    """Sentences about cases that failed, one for each reason, the most frequent first.

    Example:
        >>> failures = [Failure("c1", "HTTP 500: full"), Failure("c2", "no image"), Failure("c3", "HTTP 500: full")]
        >>> print(*describe_failures(failures), sep="\\n")
        failed: 2 cases (c1, c3): HTTP 500: full
        failed: c2: no image
    """
    counts = Counter(failure.reason for failure in failures)
    for reason, _ in counts.most_common(_LISTED):
        cases = list(dict.fromkeys(failure.case for failure in failures if failure.reason == reason))
        named = ", ".join(cases[:_NAMED])
        more = f" and {len(cases) - _NAMED} more" if len(cases) > _NAMED else ""
        number = f"{len(cases)} cases ({named}{more})" if len(cases) > 1 else named
        yield f"failed: {number}: {reason}"
    if len(counts) > _LISTED:
        yield f"failed: other cases, for {format_count(len(counts) - _LISTED, 'other reason')}"


def refuse_without_answers(model: str, answered: int, failures: Sequence[Failure]) -> None:
    """Raise where every request of a run failed.

    Raises:
        NothingAnsweredError: No question was answered; the message has the counts and the most frequent reason.
    """
    if answered or not failures:
        return
    reason = Counter(failure.reason for failure in failures).most_common(1)[0][0]
    cases = {failure.case for failure in failures}
    alike = {failure.case for failure in failures if failure.reason == reason}
    share = "" if alike == cases else f", {len(alike)} of them"
    raise NothingAnsweredError(
        f"model {model!r}: no question was answered: {format_count(len(cases), 'case')} failed{share} with {reason}; "
        "repeat the command to ask again"
    )
