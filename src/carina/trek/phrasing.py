"""The text of a turn as it is sent: the question with options and instructions, and the key that follows them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from carina.cases import Constraints, Key, Option
from carina.cases.model import Frame, Label
from carina.trek.interned import make_option
from carina.trek.sampling import Sampler
from carina.trek.turn import Choice, Turn

_NO_CONSTRAINTS: Final = Constraints()
_ANSWER_ONLY: Final = Constraints(answer_only=True)
_WORDS: Final[dict[Label, str]] = {"yes": "Yes", "no": "No", "uncertain": "Uncertain"}
_AT_MOST: Final = 0.06
_AT_LEAST: Final = 0.1
_LIMITED: Final = 0.35
"""Up to which share of open questions the length of the answer is limited to a number of words, asked to be a number
of words at least, or asked to be short or long."""
_ROUND: Final = 5
_SHORT: Final = 20
_FEW: Final = 15
_MANY: Final = 35
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class PhrasedTurn(msgspec.Struct, frozen=True, gc=False):
    """The text that is sent, and the key, in words and as marks of options."""

    text: str
    key: Key
    constraints: Constraints
    options: tuple[Option, ...] = ()


def count_words(text: str) -> int:
    """Number of words separated by spaces, as limits of length count them."""
    return len(text.split())


def phrase_turn(turn: Turn, sampler: Sampler, common: Mapping[str, Any], frame: Frame) -> PhrasedTurn:
    """The question as it is sent, without lead-ins of images and the indication."""
    instruction = common["instruction"]
    if turn.format == "open":
        return _phrase_open(turn, sampler, instruction)
    if turn.format == "choice":
        return _phrase_choice(turn, sampler, instruction)
    if turn.format == "yes_no":
        return _phrase_yes_no(turn, sampler, instruction)
    if turn.format == "boxes":
        text = f"{turn.core} {sampler.pick(common['frame'][frame])}"
        return PhrasedTurn(text, Key(text=turn.answer, boxes=turn.boxes), _NO_CONSTRAINTS)
    return PhrasedTurn(turn.core, Key(text=turn.answer, sections=turn.sections), _NO_CONSTRAINTS)


# ---- open -----------------------------------------------------------------------------------------------------------


def _phrase_open(turn: Turn, sampler: Sampler, instruction: Mapping[str, Sequence[str]]) -> PhrasedTurn:
    asked: list[str] = []
    constraints = _NO_CONSTRAINTS
    if turn.history and sampler.chance(0.6):
        asked.append(sampler.pick(instruction["history"]))
    share = sampler.share()
    # The length of words that fill a blank is not limited.
    if share < _LIMITED and not turn.template.has_gap:
        words = count_words(turn.answer)
        if share < _AT_MOST:
            most = max(_SHORT, -(-words // _ROUND) * _ROUND)
            constraints = Constraints(max_words=most)
            asked.append(sampler.pick(instruction["at_most"]).format(words=most))
        elif share < _AT_LEAST and words >= 2 * _FEW:
            least = words // 10 * 10
            constraints = Constraints(min_words=least)
            asked.append(sampler.pick(instruction["at_least"]).format(words=least))
        elif words <= _FEW:
            asked.append(sampler.pick(instruction["short"]))
        elif words >= _MANY:
            asked.append(sampler.pick(instruction["long"]))
    text = " ".join([turn.core, *asked]) if asked else turn.core
    return PhrasedTurn(text, Key(text=turn.answer), constraints)


# ---- yes or no ------------------------------------------------------------------------------------------------------


def _phrase_yes_no(turn: Turn, sampler: Sampler, instruction: Mapping[str, Sequence[str]]) -> PhrasedTurn:
    label = turn.label
    assert label is not None  # noqa: S101 - every yes/no question has one
    share = sampler.share()
    if share < 0.35:
        text = f"{turn.core} {sampler.pick(instruction['yes_no_only'])}"
        return PhrasedTurn(text, Key(text=_WORDS[label], label=label), _ANSWER_ONLY)
    text = turn.core
    if share < 0.65:
        text = f"{text} {sampler.pick(instruction['yes_no_free'])}"
    return PhrasedTurn(text, Key(text=turn.answer, label=label), _NO_CONSTRAINTS)


# ---- choice ---------------------------------------------------------------------------------------------------------

_LABELS: Final = (("{letter}. ", "", "{number}. ", "{number}). "), (0.8, 0.1, 0.09, 0.01))
_SEPARATORS: Final = (("; ", ", ", " or ", "\n", ". "), (0.35, 0.15, 0.1, 0.3, 0.1))
"""Styles, and how often each is used."""
_MARKS: Final = {
    label: [label.format(letter=letter, number=number) for number, letter in enumerate(_LETTERS, start=1)]
    for label in _LABELS[0]
}
"""Marks before the options, by style."""


def _phrase_choice(turn: Turn, sampler: Sampler, instruction: Mapping[str, Any]) -> PhrasedTurn:
    choices = _order_choices(turn.choices, sampler)
    marks = _MARKS[sampler.pick_weighted(*_LABELS)]
    shown = [marks[place] + choice.text for place, choice in enumerate(choices)]
    separator = sampler.pick_weighted(*_SEPARATORS)
    between = (",", "or") if separator == " or " else (separator.strip(),)
    texts = "\n".join([choice.text for choice in choices])
    if separator != "\n" and any(mark in texts for mark in between):
        # A separator that an option contains would hide where the option ends.
        separator = "\n"
    listed = separator.join(shown)
    if separator == " or ":
        listed = f"{', '.join(shown[:-1])} or {shown[-1]}"
    if separator == "\n":
        listed = f"\n{listed}\n"
    elif sampler.chance(0.45):
        listed = f" [{listed}] "
    else:
        listed = f" {listed}. "
    answer_only = sampler.chance(0.4)
    asked: list[str] = []
    if turn.multiple:
        asked.append(sampler.pick(instruction["several"]))
    elif sampler.chance(0.2):
        asked.append(sampler.pick(instruction["one"]))
    before = ""
    if answer_only:
        if sampler.chance(0.4):
            before = f"{sampler.pick(instruction['answer_only']['before'])} "
        else:
            asked.append(sampler.pick(instruction["answer_only"]["after"]))
    text = f"{before}{turn.core}{listed}{' '.join(asked)}".strip()
    right = [place for place, choice in enumerate(choices) if choice.right]
    joined = sampler.pick((" and ", ", ", "\n")).join([shown[place] for place in right])
    key = Key(
        options=tuple([_LETTERS[place] for place in right]),
        kinds=tuple(["key" if c.right else "none" if c.none else "distractor" for c in choices]),
        text=joined,
    )
    options = tuple([make_option(_LETTERS[place], choice.text) for place, choice in enumerate(choices)])
    return PhrasedTurn(text, key, _ANSWER_ONLY if answer_only else _NO_CONSTRAINTS, options)


def _order_choices(choices: Sequence[Choice], sampler: Sampler) -> list[Choice]:
    """Choices in random order, "none of these" last; of two with the same text, the right one is kept."""
    unlike: dict[str, Choice] = {}
    for choice in choices:
        unlike.setdefault(" ".join(choice.text.lower().split()), choice)
    kept = list(unlike.values())
    return [*sampler.shuffle([c for c in kept if not c.none]), *(c for c in kept if c.none)]
