"""Small records that come again and again: each is made once, and what is one object is also stored the faster."""

from functools import lru_cache
from typing import Final, Literal

from carina.cases import Evidence, Fact, Option, Slot

ReportOf = Literal["current", "reference", "later"]
_KEPT: Final = 16384
"""How many of a kind are kept at most: those of the last few thousand questions."""


@lru_cache(_KEPT)
def fact(name: str, about: str, text: str | None) -> Fact:
    """Something that a key rests on."""
    return Fact(name=name, about=about, text=text)


def target(kind: str, name: str) -> Fact:
    """What a question is about."""
    return fact("target", kind, name)


@lru_cache(_KEPT)
def cited(report: ReportOf, sentences: tuple[int, ...]) -> tuple[Evidence, ...]:
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
