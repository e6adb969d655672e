"""Rules of English for filled templates: articles, lists, capital letters, spaces, dates."""

import datetime
import re
from collections.abc import Sequence
from typing import Final

_ARTICLE: Final = re.compile(r"\b([Aa]) (?=(\S+))")
_SPACES: Final = re.compile(r" {2,}")
_SPACE_BEFORE: Final = re.compile(r" +([.,;:])")
# Numbers that begin with a vowel sound: eight, eleven, eighteen, eighty-one.
_VOWEL_NUMBER: Final = re.compile(r"(8|11|18|8\d)(\D|$)")
_DAY_ZERO: Final = re.compile(r"\b0(?=\d[ ,])")
_VOWEL_INITIALS: Final = ("NG", "ET")
_CONSONANT_U: Final = ("uni", "use", "usu", "one")


class Noun:
    """A noun, parsed from "effusion / effusions" (count), "edema" (mass: no article) or "/ markings" (plural only)."""

    __slots__ = ("mass", "plural", "singular")

    def __init__(self, text: str) -> None:
        singular, _, plural = text.partition("/")
        self.singular = singular.strip()
        self.plural = plural.strip()
        self.mass = not self.plural


def polish_sentence(text: str) -> str:
    """Turn text into a sentence: "a" or "an", single spaces, a capital letter first."""
    text = _SPACE_BEFORE.sub(r"\1", _SPACES.sub(" ", text)).strip()
    text = _ARTICLE.sub(_add_article, text)
    return text[:1].upper() + text[1:]


def _add_article(match: re.Match[str]) -> str:
    return f"{match[1]}n " if _has_vowel_sound(match[2]) else match[0]


def _has_vowel_sound(word: str) -> bool:
    if word.startswith(_VOWEL_INITIALS) or _VOWEL_NUMBER.match(word):
        return True
    lower = word.lower()
    return lower[0] in "aeiou" and not lower.startswith(_CONSONANT_U)


def format_date(date: datetime.date, style: str) -> str:
    """Format a date as `strftime` does, without the leading zero of "March 04, 2021"."""
    return _DAY_ZERO.sub("", date.strftime(style))


def join_items(items: Sequence[str], word: str) -> str:
    """Join items with a conjunction: "a", "a or b", "a, b, or c"."""
    if len(items) <= 2:
        return f" {word} ".join(items)
    return f"{', '.join(items[:-1])}, {word} {items[-1]}"
