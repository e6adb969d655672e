"""Gate: is every text a finished one? Unfilled slots, doubled words, misspellings, repeated phrases."""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from operator import eq
from typing import Final

from carina.cases.audit import GateResult, Objections, defects
from carina.cases.model import Case
from carina.trek.audit.limits import Limits
from carina.trek.audit.tallies import graded, limited
from carina.trek.audit.turns import BREAK, Decoder, Turn

_SLOT: Final = re.compile(r"\{\s*[A-Za-z_][\w .-]*\}|\[\[\w*")
_WORD: Final = re.compile(r"\n|[^\s]+")
_MAY_DOUBLE: Final = frozenset({"that", "had"})
_TYPOS: Final = """boxs explaination enviroment occured occuring seperate seperately definately recieve recieved refered
    refering abnormalitys opacitys radiograpgh radiogragh pnuemonia pnemonia pneumothroax pnuemothorax atelactasis
    atalectasis consolidaton cardiomegally effussion plueral positon postion locaton sevrity severety diagnois imgae
    imgaes iamge teh hte adn thier wich whcih beetween betwen accross untill becuase"""
TYPOS: Final = frozenset(_TYPOS.split())
"""Misspellings that templates of such sets have held or are prone to."""
_TYPOS_MARKED: Final = frozenset(
    f"{before}{word}{after}" for word in TYPOS for before in ("", "(", '"') for after in ("", *".,;:!?)\"'")
)
"""As they stand in a text, so that it need not be taken apart once more."""
_PHRASES: Final = (2, 3)
"""Words of a phrase that stands twice in a row."""
_MARKS: Final = ".,;:!?()[]\"'"


class Wording:
    """Residue and slips in questions, options and answers."""

    cost = 8.0

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._limits = limits
        self.decoder = decoder
        self._objections = Objections(limits.common.worst)
        self._found: Counter[str] = Counter()
        self._n = self._turns = 0

    def see(self, case: Case) -> None:
        conversation = self.decoder.read(case)
        if conversation is None:
            return
        self._n += 1
        self._turns += len(conversation.turns)
        misspelt = not _TYPOS_MARKED.isdisjoint(conversation.words)
        stammering = any(_stammers(conversation.words, size) for size in (1, *_PHRASES))
        for turn in conversation.turns:
            for slot in unfilled(turn):
                self._note(case, turn, "unfilled slots", f"the unfilled slot {slot!r}")
            if misspelt and (typos := TYPOS.intersection(conversation.text[turn.start : turn.end].split())):
                self._note(case, turn, "misspellings", repr(min(typos)))
            if stammering:
                self._stammer(case, turn)

    def _stammer(self, case: Case, turn: Turn) -> None:
        for text in (turn.step.question, turn.step.key.text or ""):
            tokens = _prose(text, turn)
            if word := doubled(tokens):
                self._note(case, turn, "doubled words", f"{word!r} twice in a row")
            if phrase := repeated(tokens):
                self._note(case, turn, "repeated phrases", f"{phrase!r} twice in a row")

    def _note(self, case: Case, turn: Turn, rule: str, what: str) -> None:
        self._found[rule] += 1
        self._objections.add(case.id, f"turn {turn.step.id}: {what}", rule == "unfilled slots")

    def result(self) -> GateResult:
        limits = self._limits
        rows = tuple(
            limited(
                rule,
                min(self._found[rule], self._turns),
                self._turns,
                limit=0.0 if rule == "unfilled slots" else limits.doubled,
                thresholds=limits.common,
                note=f"{self._found[rule]} of {self._turns} turns" if self._found[rule] else "",
            )
            for rule in ("unfilled slots", "doubled words", "misspellings", "repeated phrases")
        )
        return graded(
            defects(
                "wording",
                self._n,
                self._objections,
                threshold="no unfilled slot; doubled words, misspellings and repeated phrases in at most "
                f"{limits.doubled:.1%} of turns",
                good="Every text is finished: no slot, doubled word, known misspelling or repeated phrase.",
                bad="Some texts hold unfilled slots or slips; mend the templates and render them anew.",
                unit="conversations",
                rows=rows if self._n else (),
            )
        )


def unfilled(turn: Turn) -> Iterator[str]:
    """Slots that were left in question, context, options or answer."""
    step = turn.step
    texts = [step.question, step.key.text or ""]
    if step.context:
        texts.append(step.context)
    if step.options:
        texts += [option.text for option in step.options]
    for text in texts:
        if ("{" in text or "[[" in text) and (slot := _SLOT.search(text)):
            yield slot.group()


def _stammers(words: list[str], size: int) -> bool:
    """Whether so many words in a row equal those after them; of a whole conversation at once, which is quick."""
    return b"\x01" * size in bytes(map(eq, words, words[size:]))


def _prose(text: str, turn: Turn) -> list[str]:
    """Words without options: a list of them repeats itself by nature, and lines end where they end."""
    text = text.lower()
    for option in turn.step.options:
        text = text.replace(option.text.lower(), BREAK)
    return _WORD.findall(text)


def doubled(tokens: list[str]) -> str | None:
    """A word that stands twice in a row; figures may."""
    pairs = (one for one, other in pairwise(tokens) if one == other)
    return next((word for word in pairs if word.isalpha() and word not in _MAY_DOUBLE), None)


def repeated(tokens: list[str]) -> str | None:
    """A phrase of two or three words that stands twice in a row; figures may."""
    for size in _PHRASES:
        run = 0
        for at, alike in enumerate(map(eq, tokens, tokens[size:])):
            run = run + 1 if alike else 0
            if run == size:
                phrase = tokens[at - size + 1 : at + 1]
                if len(set(phrase)) > 1 and all(word.strip(_MARKS).isalpha() for word in phrase):
                    return " ".join(phrase)
                run -= 1
    return None
