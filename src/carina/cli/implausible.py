"""Images that do not look like what the study says of them: how `carina check` and `carina import` print them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from carina.cli.console import print_line

if TYPE_CHECKING:
    from carina.studies.plausibility import PlausibilityProblem


def print_implausible(messages: Sequence[str], *, limit: int | None = None, more: str = "") -> None:
    """Print one line a problem to standard error.

    Args:
        messages: Problems in words.
        limit: Largest number of lines; None for all.
        more: Where the others are, in words.
    """
    for message in messages[:limit]:
        print_line(f"Implausible: {message}", err=True)
    if limit is not None and len(messages) > limit:
        print_line(f"... and {len(messages) - limit} more images that are implausible, {more}", err=True)


def describe_problem(problem: "PlausibilityProblem") -> dict[str, str]:
    """A problem for JSON; what can be done about it is left out."""
    described: dict[str, str] = msgspec.structs.asdict(problem)
    del described["correction"]
    return described
