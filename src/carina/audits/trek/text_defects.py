"""Gate: is every text finished? Unfilled slots, doubled words, misspellings, repeated phrases."""

import re
from collections.abc import Iterator
from itertools import pairwise
from operator import eq
from typing import Annotated, Final

from msgspec import Meta

from carina.audits.gate import AuditContext, Limits, Share, gate
from carina.audits.result import GateResult
from carina.audits.trek.base import DefectGate
from carina.audits.trek.conversation import BREAK, Conversation, Turn
from carina.audits.trek.proportions import limited_row, with_status_of_rows
from carina.cases.model import Case

_SLOT: Final = re.compile(r"\{\s*[A-Za-z_][\w .-]*\}|\[\[\w*")
_WORD: Final = re.compile(r"\n|[^\s]+")
_MAY_DOUBLE: Final = frozenset({"that", "had"})
_TYPOS: Final = """boxs explaination enviroment occured occuring seperate seperately definately recieve recieved refered
    refering abnormalitys opacitys radiograpgh radiogragh pnuemonia pnemonia pneumothroax pnuemothorax atelactasis
    atalectasis consolidaton cardiomegally effussion plueral positon postion locaton sevrity severety diagnois imgae
    imgaes iamge teh hte adn thier wich whcih beetween betwen accross untill becuase"""
TYPOS: Final = frozenset(_TYPOS.split())
"""Misspellings that templates of such benchmarks have contained, or easily contain."""
_TYPOS_MARKED: Final = frozenset(
    f"{before}{word}{after}" for word in TYPOS for before in ("", "(", '"') for after in ("", *".,;:!?)\"'")
)
"""The same with adjacent punctuation, so that the text need not be split again."""
_PHRASES: Final = (2, 3)
"""Lengths of phrases that are searched for repetitions, in words."""
_PUNCTUATION: Final = ".,;:!?()[]\"'"


class TextDefectsLimits(Limits, frozen=True):
    """Limits of `text-defects`."""

    max_share: Annotated[
        Share, Meta(description="Share of turns with a doubled word, a misspelling or a repeated phrase.")
    ] = 0.0


@gate(
    "text-defects",
    title="Defects of texts",
    meaning="No text has an unfilled slot, a doubled word, a known misspelling or a repeated phrase.",
    limits=TextDefectsLimits,
    protocols=("trek",),
    order=360,
)
class TextDefects(DefectGate[TextDefectsLimits]):
    """Unfilled slots and slips in questions, options and answers."""

    cost = 8.0

    def __init__(self, context: AuditContext, limits: TextDefectsLimits) -> None:
        super().__init__(context, limits)
        self._turns = 0

    def examine(self, conversation: Conversation) -> None:
        case = conversation.case
        self._turns += len(conversation.turns)
        has_typo = not _TYPOS_MARKED.isdisjoint(conversation.words)
        has_repetition = any(_has_repetition(conversation.words, size) for size in (1, *_PHRASES))
        for turn in conversation.turns:
            for slot in find_unfilled_slots(turn):
                self._report(case, turn, "unfilled slots", f"the unfilled slot {slot!r}")
            if has_typo and (typos := TYPOS.intersection(conversation.text[turn.start : turn.end].split())):
                self._report(case, turn, "misspellings", repr(min(typos)))
            if has_repetition:
                self._report_repetitions(case, turn)

    def _report_repetitions(self, case: Case, turn: Turn) -> None:
        for text in (turn.step.question, turn.step.key.text or ""):
            tokens = _split_prose(text, turn)
            if word := find_doubled_word(tokens):
                self._report(case, turn, "doubled words", f"{word!r} twice in a row")
            if phrase := find_repeated_phrase(tokens):
                self._report(case, turn, "repeated phrases", f"{phrase!r} twice in a row")

    def _report(self, case: Case, turn: Turn, rule: str, what: str) -> None:
        self._counts[rule] += 1
        self._objections.add(case.id, f"turn {turn.step.id}: {what}", rule == "unfilled slots")

    def result(self) -> GateResult:
        limits = self.limits
        rows = tuple(
            limited_row(
                rule,
                min(self._counts[rule], self._turns),
                self._turns,
                limit=0.0 if rule == "unfilled slots" else limits.max_share,
                context=self.context,
                note=f"{self._counts[rule]} of {self._turns} turns" if self._counts[rule] else "",
            )
            for rule in ("unfilled slots", "doubled words", "misspellings", "repeated phrases")
        )
        return with_status_of_rows(
            self.report_defects(
                self._n,
                self._objections,
                threshold="no unfilled slot; doubled words, misspellings and repeated phrases in at most "
                f"{limits.max_share:.1%} of turns",
                good="No text has an unfilled slot, a doubled word, a known misspelling or a repeated phrase.",
                bad="Some texts have unfilled slots or slips; correct the templates and generate the texts again.",
                unit="conversations",
                rows=rows if self._n else (),
            )
        )


def find_unfilled_slots(turn: Turn) -> Iterator[str]:
    """Unfilled slots in question, context, options or answer."""
    step = turn.step
    texts = [step.question, step.key.text or ""]
    if step.context:
        texts.append(step.context)
    if step.options:
        texts += [option.text for option in step.options]
    for text in texts:
        if ("{" in text or "[[" in text) and (slot := _SLOT.search(text)):
            yield slot.group()


def _has_repetition(words: list[str], size: int) -> bool:
    """Whether `size` words in a row equal the next ones; for a whole conversation at once, which is fast."""
    return b"\x01" * size in bytes(map(eq, words, words[size:]))


def _split_prose(text: str, turn: Turn) -> list[str]:
    """Words of a text without its options, because lists of options repeat words by nature."""
    text = text.lower()
    for option in turn.step.options:
        text = text.replace(option.text.lower(), BREAK)
    return _WORD.findall(text)


def find_doubled_word(tokens: list[str]) -> str | None:
    """A word that occurs twice in a row; numbers may, and so may what de-identification leaves, such as "xxxx"."""
    pairs = (one for one, other in pairwise(tokens) if one == other)
    return next(
        (word for word in pairs if word.isalpha() and word not in _MAY_DOUBLE and set(word) != {"x"}), None
    )


def find_repeated_phrase(tokens: list[str]) -> str | None:
    """A phrase of two or three words that occurs twice in a row; numbers may."""
    for size in _PHRASES:
        run = 0
        for at, is_equal in enumerate(map(eq, tokens, tokens[size:])):
            run = run + 1 if is_equal else 0
            if run == size:
                phrase = tokens[at - size + 1 : at + 1]
                if len(set(phrase)) > 1 and all(word.strip(_PUNCTUATION).isalpha() for word in phrase):
                    return " ".join(phrase)
                run -= 1
    return None
