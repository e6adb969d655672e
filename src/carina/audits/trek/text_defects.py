"""Gate: is every text finished? Unfilled slots, doubled words, misspellings, repeated phrases.

What a text quotes from a report is the radiologist's own wording: its slips are counted apart and cause a warning.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from operator import eq
from typing import Annotated, Final

from msgspec import Meta

from carina.audits.gate import AuditContext, Limits, Share, gate
from carina.audits.result import GateResult
from carina.audits.trek.base import DefectGate
from carina.audits.trek.conversation import BREAK, Conversation, Turn
from carina.audits.trek.facts import quoted_texts
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
_QUOTED: Final = "slips in quoted reports"
_OWN: Final = ("unfilled slots", "doubled words", "misspellings", "repeated phrases")
"""Defects of texts that were made from templates."""


class TextDefectsLimits(Limits, frozen=True):
    """Limits of `text-defects`."""

    max_share: Annotated[
        Share, Meta(description="Share of turns with a doubled word, a misspelling or a repeated phrase.")
    ] = 0.0


@gate(
    "text-defects",
    title="Defects of texts",
    meaning="No text has an unfilled slot, a doubled word, a known misspelling or a repeated phrase, "
    "except in what it quotes from a report.",
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
        quotes = _list_quotes(case) if has_typo or has_repetition else []
        for turn in conversation.turns:
            for slot in find_unfilled_slots(turn):
                self._report(case, turn, "unfilled slots", f"the unfilled slot {slot!r}")
            if has_typo or has_repetition:
                self._report_slips(case, turn, quotes)

    def _report_slips(self, case: Case, turn: Turn, quotes: list[str]) -> None:
        for text in (turn.step.question, turn.step.key.text or ""):
            own = set(_find_slips(_split_prose(text, turn, quotes)))
            for rule, what in sorted(own):
                self._report(case, turn, rule, what)
            for _, what in sorted(set(_find_slips(_split_prose(text, turn))) - own):
                self._report(case, turn, _QUOTED, f"{what}, in words of the report")

    def _report(self, case: Case, turn: Turn, rule: str, what: str) -> None:
        self._counts[rule] += 1
        badness = 2.0 if rule == "unfilled slots" else 1.0 if rule in _OWN else 0.0
        self._objections.add(case.id, f"turn {turn.step.id}: {what}", badness)

    def result(self) -> GateResult:
        limits = self.limits
        rows = tuple(
            limited_row(
                rule,
                min(self._counts[rule], self._turns),
                self._turns,
                limit=0.0 if rule == "unfilled slots" else limits.max_share,
                context=self.context,
                severity="fail" if rule in _OWN else "warn",
                note=f"{self._counts[rule]} of {self._turns} turns" if self._counts[rule] else "",
            )
            for rule in (*_OWN, _QUOTED)
        )
        return with_status_of_rows(
            self.report_defects(
                self._n,
                self._objections,
                threshold="no unfilled slot; doubled words, misspellings and repeated phrases in at most "
                f"{limits.max_share:.1%} of turns; those of quoted reports only cause a warning",
                good="No text has an unfilled slot, a doubled word, a known misspelling or a repeated phrase.",
                bad="Some texts have unfilled slots or slips; correct the templates and generate the texts again."
                if any(self._counts[rule] for rule in _OWN)
                else "Only texts that are quoted from reports have slips, which are those of the radiologists: leave "
                "them, or leave out these studies.",
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


def _list_quotes(case: Case) -> list[str]:
    """What the texts of a case quote from reports, in lower case, the longest first."""
    quotes = {text.lower() for step in case.steps for text in quoted_texts(step)}
    return sorted(quotes - {""}, key=lambda text: (-len(text), text))


def _find_slips(tokens: list[str]) -> Iterator[tuple[str, str]]:
    """The kind of each slip, and what it is."""
    if word := find_doubled_word(tokens):
        yield "doubled words", f"{word!r} twice in a row"
    if typos := TYPOS.intersection(token.strip(_PUNCTUATION) for token in tokens):
        yield "misspellings", repr(min(typos))
    if phrase := find_repeated_phrase(tokens):
        yield "repeated phrases", f"{phrase!r} twice in a row"


def _split_prose(text: str, turn: Turn, quotes: Iterable[str] = ()) -> list[str]:
    """Words of a text without its options, because lists of options repeat words by nature, and without quotes."""
    text = text.lower()
    for part in (*quotes, *(option.text.lower() for option in turn.step.options)):
        text = text.replace(part, BREAK)
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
