"""The options of a step, indexed so that they are recognised in a reply by text, letter or number."""

import re
from functools import lru_cache
from typing import Any, Final

from carina.cases import Option
from carina.cases.model import Label
from carina.runs.parse.normalise import normalise_text

TOKEN: Final = re.compile(
    r"[^\W\d_][^\W_]*(?:'[^\W_]+)?|\d+(?:[./]\d+)+|\d+(?:st|nd|rd|th)(?![^\W_])|[^\W_]+(?:'[^\W_]+)?|\S"
)
"""A word, a decimal number or fraction, an ordinal, a word that begins with a digit, or a single sign."""
_COMPARED: Final = frozenset("<>≥≤=")
"""Signs of comparison tell options apart, so they are words too."""
_SAME: Final = {
    **dict(
        zip(
            ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
            map(str, range(1, 11)),
            strict=True,
        )
    ),
    **dict(
        zip(
            ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"],
            ["1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th"],
            strict=True,
        )
    ),
}
FIGURES: Final = frozenset(_SAME)
"""Words for numbers and ordinals."""
_THIRDS: Final = re.compile(r"\b(?:one[ -]third|two[ -]thirds)\b")
ARTICLES: Final = frozenset(("the", "a", "an"))
_NONE: Final = re.compile(
    r"[\s\"'(\[]*(?:none\b|nothing (?:(?:on|in|from) (?:this|the) list|of the kind|of these|of the above|listed)\b"
    r"|no (?:option|answer|statement|choice)s? (?:applies|apply|fits?|[io]n this list|(?:is|are) (?:right|correct))\b"
    r"|not (?:any|one) of (?:these|those|the (?:above|options|others))\b|neither this nor any other\b"
    r"|neither of (?:these|those|the (?:above|options|others))\b)"
)

_UNCERTAIN: Final = re.compile(
    r"(?:uncertain|unsure|unclear|not sure|maybe|indeterminate|equivocal|can(?:not|'t) (?:tell|be determined|say))\b"
)
_FULL: Final = ""
_ONLY: Final = " "
"""Keys of a node that no word can have: the option whose text ends here, and the only option that continues."""
_SEVERAL: Final = -1

Node = dict[str, Any]


def word_set(words: str) -> frozenset[str]:
    """The words of a string, for long word lists."""
    return frozenset(words.split())


def split_tokens(text: str) -> list[str]:
    """Split a normalised text into words and signs; number words and ordinals become digits."""
    if "third" in text:
        text = _THIRDS.sub(lambda match: "1/3" if match[0][0] == "o" else "2/3", text)
    tokens = TOKEN.findall(text)
    if _SAME.keys().isdisjoint(tokens):
        return tokens
    return [_SAME.get(token, token) for token in tokens]


def is_word(token: str) -> bool:
    """Whether a token is more than punctuation."""
    first = token[:1]
    return first.isalnum() or first in _COMPARED


def says_none(text: str) -> bool:
    """Whether the text of an option says that none of the others is right."""
    return _NONE.match(normalise_text(text)) is not None


class Choices:
    """Options by id, letter, number and text."""

    __slots__ = (
        "ids",
        "label_at",
        "labels",
        "letters",
        "multiple",
        "none",
        "number",
        "question",
        "root",
        "short",
        "texts",
        "words",
    )

    def __init__(self, options: tuple[Option, ...], *, multiple: bool, question: str) -> None:
        self.ids = tuple(option.id for option in options)
        self.number = len(options)
        self.multiple = multiple
        self.question = question
        self.root: Node = {}
        self.texts = texts = tuple(normalise_text(option.text) for option in options)
        self.none = next(
            (n for n, option in enumerate(options) if option.id == "none" or says_none(texts[n])), None
        )
        names = [option.id.lower() for option in options]
        lettered = all(len(name) == 1 and "a" <= name <= "z" for name in names)
        self.letters = {name: n for n, name in enumerate(names)} if lettered else {}
        self.labels = _find_labels(texts)
        """The options yes, no and uncertain by label; empty where there are others."""
        self.label_at = {place: label for label, place in self.labels.items()}
        self.short = frozenset(n for n, text in enumerate(texts) if n == self.none or text in ("yes", "no"))
        """Options that may be followed by a clause without a comma: "Yes it is", "None is needed"."""
        words = [[t for t in split_tokens(text) if is_word(t) and t not in ARTICLES] for text in texts]
        for number, word in enumerate(words):
            self._add(word, number)
        self.words = frozenset(self.letters).union(*words)
        """Every word that may name an option, except its number."""

    def _add(self, words: list[str], number: int) -> None:
        node = self.root
        has_word = False
        for word in words:
            node = node.setdefault(word, {})
            # Digits alone are the number of an option, never the beginning of its text.
            has_word = has_word or not word.isdigit()
            if has_word:
                node[_ONLY] = number if _ONLY not in node else _SEVERAL
        if words:
            node[_FULL] = number if _FULL not in node else _SEVERAL

    def find_text(self, tokens: list[str], at: int) -> tuple[int, int, int, int]:
        """Find the option whose text begins at a token.

        Returns:
            Option and end for its full text, then option and end for the beginning of its text; -1 for none.
        """
        node = self.root
        full = end = only = stop = -1
        place, last, size = at, at, len(tokens)
        while place < size:
            word = tokens[place]
            child = node.get(word)
            if child is None:
                # Punctuation and articles within a text are ignored.
                if last == at or place - last > 1 or not (word in ARTICLES or not is_word(word)):
                    break
                place += 1
                continue
            node = child
            place += 1
            last = place
            number = node.get(_FULL, -1)
            if number >= 0:
                full, end = number, place
            number = node.get(_ONLY, -1)
            only, stop = (number, place) if number >= 0 else (-1, -1)
        return full, end, only, stop


def _find_labels(texts: tuple[str, ...]) -> dict[Label, int]:
    labels: dict[Label, int] = {}
    for place, text in enumerate(texts):
        label: Label
        if text == "yes":
            label = "yes"
        elif text == "no":
            label = "no"
        elif _UNCERTAIN.match(text):
            label = "uncertain"
        else:
            return {}
        if label in labels:
            return {}
        labels[label] = place
    return labels if "yes" in labels and "no" in labels else {}


@lru_cache(maxsize=4096)
def make_choices(options: tuple[Option, ...], multiple: bool, question: str) -> Choices:  # noqa: FBT001 - a key of the cache
    """The indexed options of a step, cached for steps with the same question and options."""
    return Choices(options, multiple=multiple, question=question)
