"""A conversation as the gates read it: lower-case text, words, targets and labels, decoded once for all gates."""

import string
from functools import lru_cache
from typing import Final, NamedTuple

from carina.audits.answer_options import Choices, read_choices
from carina.audits.trek.facts import first_target
from carina.cases.model import Case, Step

PROTOCOL: Final = "trek"
NAMED: Final = frozenset({"finding", "device"})
"""Kinds of targets that a question can name and that can be present or absent."""
PRESENCE: Final = frozenset({"presence", "device presence"})
"""Tasks that ask whether a named finding or device is present."""
BREAK: Final = "\n"
_LABELS: Final = frozenset({"yes", "no", "uncertain"})
_PLAIN: Final = str.maketrans(dict.fromkeys(string.punctuation + "\n\t", " "))
_ARTICLES: Final = ("a ", "an ", "the ", "any ")


class Turn(NamedTuple):
    """One question with its right answer."""

    at: int
    step: Step
    kind: str
    """Kind of the first target; "" where none is stated."""
    name: str
    """Name of the first target, in plain words."""
    label: str | None
    """The right answer if it is yes, no or uncertain, to a question in words or with options."""
    choices: Choices | None
    tokens: list[str]
    """Words of the question in lower case, with punctuation."""
    answer: list[str]
    """Words of the answer in lower case, with punctuation."""
    start: int
    """Where the question begins in the text of the conversation."""
    answer_start: int
    """Where the answer begins in it."""
    end: int

    @property
    def is_closed(self) -> bool:
        """Whether the question names a finding or device and the right answer is yes or no."""
        return self.kind in NAMED and self.label in ("yes", "no")


class Conversation(NamedTuple):
    """All turns of a case, and their questions and answers as one text of plain words separated by spaces."""

    case: Case
    turns: list[Turn]
    closed: list[Turn]
    """Turns that name a finding or device and are answered with yes or no."""
    presence: list[Turn]
    """Closed turns that ask whether the finding or device is present."""
    text: str
    words: list[str]
    """Words of all questions and answers in lower case, with punctuation, and `BREAK` between them."""


class ConversationReader:
    """Decodes each case once, however many gates examine it."""

    cost = 8.0

    def __init__(self, _context: object = None) -> None:
        self._case: Case | None = None
        self._conversation: Conversation | None = None

    def read(self, case: Case) -> Conversation | None:
        """The conversation; None for a case of another protocol."""
        if case is not self._case:
            self._case = case
            self._conversation = _decode(case) if case.protocol == PROTOCOL else None
        return self._conversation


def _decode(case: Case) -> Conversation:
    turns: list[Turn] = []
    closed: list[Turn] = []
    presence: list[Turn] = []
    pieces: list[str] = []
    words: list[str] = []
    at = 0
    for place, step in enumerate(case.steps):
        question, answer = step.question.lower(), (step.key.text or "").lower()
        start, answer_start = at, at + len(question) + 2
        at = answer_start + len(answer) + 2
        pieces += (" ", question, "  ", answer, " ")
        kind, target = first_target(step)
        name = flatten_name(target) if target else ""
        choices = read_choices(step) if step.options else None
        label: str | None = step.key.label
        if (
            label is None
            and choices is not None
            and len(choices.right) == 1
            and _LABELS.issuperset(choices.texts)
        ):
            label = choices.texts[min(choices.right)]
        tokens, answer_words = question.split(), answer.split()
        words += tokens
        words.append(BREAK)
        words += answer_words
        words.append(BREAK)
        turn = Turn(place, step, kind, name, label, choices, tokens, answer_words, start, answer_start, at)
        turns.append(turn)
        if label in ("yes", "no") and kind in NAMED:
            closed.append(turn)
            if step.task in PRESENCE:
                presence.append(turn)
    # One pass over the whole text is far cheaper than one per turn. Lengths do not change.
    return Conversation(case, turns, closed, presence, "".join(pieces).translate(_PLAIN), words)


def flatten_text(text: str) -> str:
    """In lower case, without punctuation, words separated by single spaces."""
    return " ".join(text.lower().translate(_PLAIN).split())


@lru_cache(maxsize=65536)
def flatten_name(text: str) -> str:
    """As `flat`, cached: for names and options, which occur often."""
    return flatten_text(text)


@lru_cache(maxsize=65536)
def list_forms(name: str) -> tuple[str, ...]:
    """A name between spaces as it may occur in a text, singular and plural."""
    word = flatten_name(name)
    for article in _ARTICLES:
        word = word.removeprefix(article)
    if not word:
        return ()
    plural = (
        f"{word[:-1]}ies" if word.endswith("y") else f"{word}es" if word.endswith(("s", "x")) else f"{word}s"
    )
    return f" {word} ", f" {plural} "


def mentions(text: str, name: str, start: int = 0, end: int | None = None) -> bool:
    """Whether a plain text contains a name between two places."""
    stop = len(text) if end is None else end
    return any(text.find(form, start, stop) >= 0 for form in list_forms(name))


def slot_name(turn: Turn) -> str:
    """The name that the question uses for its target, if a slot of its wording states it; else the target's name."""
    for slot in turn.step.slots:
        if slot.name.endswith(("finding", "device")):
            return slot.value
    return turn.name
