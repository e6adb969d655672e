"""Phrases of the lexicon, and how they are found: a tree of words, walked once from left to right.

The longest phrase that starts at a word wins, and the walk goes on behind it, so that the time is linear in the number
of words (phrases are short), whatever the text.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from typing import Final, NamedTuple

WORD: Final = re.compile(r"[a-z]+|[0-9]+(?:\.[0-9]+)?|[^\sa-z0-9]")
"""Of lower-case text: letters, numbers with their decimals, and every other sign by itself."""
JOINTS: Final = frozenset("-–'\u2019")
"""Signs that only join words: "plate-like" is the same as "plate like"."""
ANY: Final = "<any>"
"""In a phrase: one arbitrary word."""
GAPS: Final = {"...": frozenset(".;:!?|"), "..": frozenset(".;:!?|,")}
"""In a phrase: any number of words, up to the end of the sentence or, for "..", up to the next comma."""
LONGEST: Final = 60
"""Words of a phrase with its gap, at most."""


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
    """A phrase in a sentence: words `start` to `end` (exclusive), and its roles."""

    start: int
    end: int
    roles: tuple[Role, ...]


@dataclass(slots=True)
class WordClass:
    """Words that may stand at one place of a phrase."""

    words: frozenset[str]
    stems: tuple[str, ...] = ()
    """Beginnings of further words: "improv" for improved, improving, improvement."""

    def __contains__(self, word: str) -> bool:
        return word in self.words or word.startswith(self.stems)


@dataclass(slots=True)
class _AnyWord:
    """Any token except `stops`; without `stops`, any token except punctuation."""

    stops: frozenset[str] = frozenset()

    def __contains__(self, word: str) -> bool:
        return word not in self.stops if self.stops else word[0].isalnum()


@dataclass(slots=True)
class _Node:
    next: dict[str, "_Node"] = field(default_factory=dict)
    roles: tuple[Role, ...] = ()
    classes: dict[str, tuple[WordClass | _AnyWord, "_Node"]] = field(default_factory=dict)


def split_words(text: str) -> list[Word]:
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


def spell_out(phrase: str) -> Iterator[tuple[str, ...]]:
    """Every row of words that a lexicon phrase stands for: "(a) b/c d(s)" is eight of them.

    An underscore is a space within an alternative: "cannot/can_not". "<name>" is a word of a class; "..." and ".."
    are gaps.
    """
    for row in product(*(_list_choices(part) for part in phrase.split())):
        found = tuple(word for part in row for word in _split_alternatives(part))
        if found:
            yield found


@lru_cache(maxsize=4096)
def _split_alternatives(part: str) -> tuple[str, ...]:
    if part in GAPS or part.startswith("<"):
        return (part,)
    return tuple(word.text for word in split_words(part.replace("_", " ")))


def _list_choices(part: str) -> list[str]:
    if part.startswith("(") and part.endswith(")"):
        return [choice for word in part[1:-1].split("/") for choice in _list_endings(word)] + [""]
    return [choice for word in part.split("/") for choice in _list_endings(word)]


def _list_endings(word: str) -> list[str]:
    stem, bracket, ending = word.partition("(")
    return [stem, stem + ending.rstrip(")")] if bracket else [word]


class Phrases:
    """A tree of phrases.

    Args:
        classes: Words by the name of their class, for phrases that use "<name>".
    """

    def __init__(self, classes: Mapping[str, WordClass] | None = None) -> None:
        self._root = _Node()
        self._classes = classes or {}

    def add(self, phrase: str, role: Role) -> None:
        for row in spell_out(phrase):
            node = self._root
            for word in row:
                node = self._step(node, word)
            if role not in node.roles:
                node.roles = (*node.roles, role)

    def add_all(self, phrases: Iterable[str], role: Role) -> None:
        for phrase in phrases:
            self.add(phrase, role)

    def _step(self, node: _Node, word: str) -> _Node:
        if word in GAPS:
            # A gap may be empty: it is a loop at the node before what follows.
            node.classes.setdefault(word, (_AnyWord(GAPS[word]), node))
            return node
        if not word.startswith("<"):
            return node.next.setdefault(word, _Node())
        if word not in node.classes:
            allowed = _AnyWord() if word == ANY else self._classes[word]
            node.classes[word] = (allowed, _Node())
        return node.classes[word][1]

    def find(self, text: list[Word]) -> list[Item]:
        """The phrases in a row of words, longest first from the left, without overlap."""
        if self._classes:
            return self._find_with_classes(text)
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

    def _find_with_classes(self, text: list[Word]) -> list[Item]:
        found: list[Item] = []
        spelling = [word.text for word in text]
        position, count = 0, len(spelling)
        while position < count:
            end, roles = _find_longest(self._root, spelling, position, min(count, position + LONGEST))
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


def _find_longest(node: _Node, spelling: list[str], position: int, last: int) -> tuple[int, tuple[Role, ...]]:
    """End and roles of the longest phrase that continues from a node, up to a word; no roles where there is none."""
    best = (position, node.roles)
    if position == last:
        return best
    word = spelling[position]
    following = node.next.get(word)
    nodes = [following] if following is not None else []
    if node.classes:
        nodes += [ahead for allowed, ahead in node.classes.values() if word in allowed]
    for ahead in nodes:
        end, roles = _find_longest(ahead, spelling, position + 1, last)
        if roles and (not best[1] or end > best[0]):
            best = (end, roles)
    return best
