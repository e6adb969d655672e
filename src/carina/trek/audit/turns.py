"""A conversation as the gates read it: text in lower case, words, targets and labels, taken apart once for all."""

import string
from functools import lru_cache
from typing import Final, NamedTuple

from carina.cases.audit.steps import Choices, choices
from carina.cases.model import Case, Step

PROTOCOL: Final = "trek"
NAMED: Final = frozenset({"finding", "device"})
"""Kinds of targets that a question can name and that can be there or not."""
PRESENCE: Final = frozenset({"presence", "device presence"})
"""Families that ask whether something named is there."""
BREAK: Final = "\n"
_LABELS: Final = frozenset({"yes", "no", "uncertain"})
_PLAIN: Final = str.maketrans(dict.fromkeys(string.punctuation + "\n\t", " "))
_ARTICLES: Final = ("a ", "an ", "the ", "any ")


class Turn(NamedTuple):
    """One question with its right answer."""

    at: int
    step: Step
    kind: str
    """Of the first target; "" where none is stated."""
    name: str
    """Of the first target, in plain words."""
    label: str | None
    """Yes, no or uncertain, whether it is asked for in words or with options."""
    choices: Choices | None
    tokens: list[str]
    """Of the question in lower case, marks included."""
    answer: list[str]
    """Words of the answer in lower case, marks included."""
    start: int
    """Where its question begins in the text of the conversation."""
    answered: int
    """Where its answer begins there."""
    end: int

    @property
    def closed(self) -> bool:
        """Whether yes or no is right about something that the question names."""
        return self.kind in NAMED and self.label in ("yes", "no")


class Conversation(NamedTuple):
    """All turns of a case, and what is said in them as one text of plain words between blanks."""

    case: Case
    turns: list[Turn]
    closed: list[Turn]
    """Those that are answered with yes or no and name a finding or device."""
    presence: list[Turn]
    """Of these, those that ask whether it is there."""
    text: str
    words: list[str]
    """Of all questions and answers in lower case, marks included, with a mark of its own between them."""


class Decoder:
    """Takes each case apart once, however many gates look at it."""

    cost = 8.0

    def __init__(self) -> None:
        self._case: Case | None = None
        self._read: Conversation | None = None

    def read(self, case: Case) -> Conversation | None:
        """The conversation; None for a case of another protocol."""
        if case is not self._case:
            self._case = case
            self._read = _conversation(case) if case.protocol == PROTOCOL else None
        return self._read


def _conversation(case: Case) -> Conversation:
    turns: list[Turn] = []
    closed: list[Turn] = []
    presence: list[Turn] = []
    pieces: list[str] = []
    words: list[str] = []
    at = 0
    for place, step in enumerate(case.steps):
        question, answer = step.question.lower(), (step.key.text or "").lower()
        start, answered = at, at + len(question) + 2
        at = answered + len(answer) + 2
        pieces += (" ", question, "  ", answer, " ")
        kind = name = ""
        for fact in step.facts:
            if fact.name == "target":
                kind, name = fact.about, plain(fact.text or "")
                break
        found = choices(step) if step.options else None
        label: str | None = step.key.label
        if label is None and found is not None and len(found.right) == 1 and _LABELS.issuperset(found.texts):
            label = found.texts[min(found.right)]
        tokens, said = question.split(), answer.split()
        words += tokens
        words.append(BREAK)
        words += said
        words.append(BREAK)
        turn = Turn(place, step, kind, name, label, found, tokens, said, start, answered, at)
        turns.append(turn)
        if label in ("yes", "no") and kind in NAMED:
            closed.append(turn)
            if step.task in PRESENCE:
                presence.append(turn)
    # One pass over the whole text is far cheaper than one a turn. Lengths do not change.
    return Conversation(case, turns, closed, presence, "".join(pieces).translate(_PLAIN), words)


def flat(text: str) -> str:
    """Lower case, words between single blanks, without marks."""
    return " ".join(text.lower().translate(_PLAIN).split())


@lru_cache(maxsize=65536)
def plain(text: str) -> str:
    """The same for names and options, which come again and again."""
    return flat(text)


@lru_cache(maxsize=65536)
def forms(name: str) -> tuple[str, ...]:
    """A name as it may stand in a text between blanks, singular or plural."""
    word = plain(name)
    for article in _ARTICLES:
        word = word.removeprefix(article)
    if not word:
        return ()
    plural = (
        f"{word[:-1]}ies" if word.endswith("y") else f"{word}es" if word.endswith(("s", "x")) else f"{word}s"
    )
    return f" {word} ", f" {plural} "


def mentioned(text: str, name: str, start: int = 0, end: int | None = None) -> bool:
    """Whether a plain text names it between two places."""
    stop = len(text) if end is None else end
    return any(text.find(form, start, stop) >= 0 for form in forms(name))


def slot_name(turn: Turn) -> str:
    """What the question calls its target, where a slot of the wording tells; otherwise the target's own name."""
    for slot in turn.step.slots:
        if slot.name.endswith(("finding", "device")):
            return slot.value
    return turn.name
