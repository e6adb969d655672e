"""Small records that occur many times: each is made once, since one object instead of many is also stored faster."""

from functools import lru_cache
from typing import Final, Literal

from carina.cases import Evidence, Option, Slot

ReportOf = Literal["current", "reference", "later"]
_KEPT: Final = 16384
"""Most records of a kind that are kept: those of the last few thousand questions."""


@lru_cache(_KEPT)
def cite(report: ReportOf, sentences: tuple[int, ...]) -> tuple[Evidence, ...]:
    """Evidence: sentences of a report, by number."""
    return tuple([_cite_sentence(report, number) for number in sentences])


@lru_cache(_KEPT)
def _cite_sentence(report: ReportOf, number: int) -> Evidence:
    return Evidence(report=report, sentence=number)


@lru_cache(_KEPT)
def make_slot(name: str, value: str) -> Slot:
    """A value that a wording was filled with."""
    return Slot(name=name, value=value)


@lru_cache(_KEPT)
def make_option(mark: str, text: str) -> Option:
    """One of the answers to choose from."""
    return Option(id=mark, text=text)
