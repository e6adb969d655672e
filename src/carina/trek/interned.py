"""Small records that occur many times: each is made once, since one object instead of many is also stored faster."""

from functools import lru_cache
from typing import Final, Literal

from carina.cases import Evidence, Option, Slot

ReportOf = Literal["current", "reference", "later"]
_KEPT: Final = 16384
"""How many of a kind are kept at most: those of the last few thousand questions."""


@lru_cache(_KEPT)
def cite(report: ReportOf, sentences: tuple[int, ...]) -> tuple[Evidence, ...]:
    """Sentences of a report, by number."""
    return tuple([_sentence(report, number) for number in sentences])


@lru_cache(_KEPT)
def _sentence(report: ReportOf, number: int) -> Evidence:
    return Evidence(report=report, sentence=number)


@lru_cache(_KEPT)
def slot(name: str, value: str) -> Slot:
    """A value that a wording was filled with."""
    return Slot(name=name, value=value)


@lru_cache(_KEPT)
def option(mark: str, text: str) -> Option:
    """One of the answers to choose from."""
    return Option(id=mark, text=text)
