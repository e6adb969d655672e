"""Phrases of the lexicon and how they are found: a tree of words, walked once from left to right.

The longest phrase that starts at a word wins and the walk goes on behind it, so that the time is linear in the number
of words (the longest phrase is short), whatever the text.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Final, NamedTuple

WORD: Final = re.compile(r"[a-z]+|[0-9]+(?:\.[0-9]+)?|[^\sa-z0-9]")
"""Of lower-case text: letters, numbers with their decimals, and every other sign by itself."""
JOINTS: Final = frozenset("-–'\u2019")
"""Signs that only join words: "plate-like" is the same as "plate like"."""


def word_set(text: str) -> frozenset[str]:
    """The words of a string, as a set."""
    return frozenset(text.split())


class Word(NamedTuple):
    text: str
    start: int
    end: int


class Role(NamedTuple):
    """What a phrase does: a kind ("finding", "denial", ...) and a key within it."""

    kind: str
    key: str = ""


class Item(NamedTuple):
    """A phrase found: words `start` to `end` (exclusive) of a sentence, and its roles."""

    start: int
    end: int
    roles: tuple[Role, ...]


@dataclass(slots=True)
class _Node:
    next: dict[str, "_Node"] = field(default_factory=dict)
    roles: tuple[Role, ...] = ()


def words(text: str) -> list[Word]:
    """The words of a text in lower case, with their offsets."""
    # Lower-casing may lengthen a text ("İ"): such letters stay as they are, so that offsets hold.
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text)
    # Straight to the tuple: a report has a hundred words, and the named constructor is half of the time.
    make, joints = tuple.__new__, JOINTS
    return [
        make(Word, (word, *match.span()))
        for match in WORD.finditer(lower)
        if (word := match.group()) not in joints
    ]


def spelled(phrase: str) -> Iterator[tuple[str, ...]]:
    """Every row of words that a lexicon phrase stands for: "(a) b/c d(s)" is eight of them.

    An underscore is a space within an alternative: "cannot/can_not".
    """
    for row in product(*(_choices(part) for part in phrase.split())):
        found = tuple(word.text for word in words(" ".join(row).replace("_", " ")))
        if found:
            yield found


def _choices(part: str) -> list[str]:
    if part.startswith("(") and part.endswith(")"):
        return [choice for word in part[1:-1].split("/") for choice in _endings(word)] + [""]
    return [choice for word in part.split("/") for choice in _endings(word)]


def _endings(word: str) -> list[str]:
    stem, bracket, ending = word.partition("(")
    return [stem, stem + ending.rstrip(")")] if bracket else [word]


class Phrases:
    """A tree of phrases."""

    def __init__(self) -> None:
        self._root = _Node()

    def add(self, phrase: str, role: Role) -> None:
        for row in spelled(phrase):
            node = self._root
            for word in row:
                node = node.next.setdefault(word, _Node())
            if role not in node.roles:
                node.roles = (*node.roles, role)

    def add_all(self, phrases: Iterable[str], role: Role) -> None:
        for phrase in phrases:
            self.add(phrase, role)

    def find(self, text: list[Word]) -> list[Item]:
        """The phrases in a row of words, longest first from the left, without overlap."""
        found: list[Item] = []
        position, count, root = 0, len(text), self._root.next
        while position < count:
            node: _Node | None = root.get(text[position].text)
            roles: tuple[Role, ...] = ()
            end = ahead = position
            while node is not None:
                ahead += 1
                if node.roles:
                    end, roles = ahead, node.roles
                node = node.next.get(text[ahead].text) if ahead < count else None
            if roles:
                found.append(Item(position, end, roles))
                position = end
            else:
                position += 1
        return found

    def roles(self, word: str) -> tuple[Role, ...]:
        """The roles of a word that is a phrase by itself."""
        node = self._root.next.get(word)
        return node.roles if node else ()
