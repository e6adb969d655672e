"""From a turn to the words that are sent: options, instructions and the key that obeys them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from carina.cases import Constraints, Key, Option
from carina.cases.model import Frame, Label
from carina.trek.interned import option
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


class Phrased(msgspec.Struct, frozen=True, gc=False):
    """What is sent, and what is right, in words and as marks."""

    text: str
    key: Key
    constraints: Constraints
    options: tuple[Option, ...] = ()


def word_count(text: str) -> int:
    """Words as limits count them: what stands between spaces."""
    return len(text.split())


def phrase(turn: Turn, sampler: Sampler, common: Mapping[str, Any], frame: Frame) -> Phrased:
    """The question as it is sent, without what enters with it."""
    instruction = common["instruction"]
    if turn.format == "open":
        return _open(turn, sampler, instruction)
    if turn.format == "choice":
        return _choice(turn, sampler, instruction)
    if turn.format == "yes_no":
        return _yes_no(turn, sampler, instruction)
    if turn.format == "boxes":
        text = f"{turn.core} {sampler.pick(common['frame'][frame])}"
        return Phrased(text, Key(text=turn.answer, boxes=turn.boxes), _NO_CONSTRAINTS)
    return Phrased(turn.core, Key(text=turn.answer, sections=turn.sections), _NO_CONSTRAINTS)


# ---- open -----------------------------------------------------------------------------------------------------------


def _open(turn: Turn, sampler: Sampler, instruction: Mapping[str, Sequence[str]]) -> Phrased:
    asked: list[str] = []
    constraints = _NO_CONSTRAINTS
    if turn.history and sampler.chance(0.6):
        asked.append(sampler.pick(instruction["history"]))
    share = sampler.share()
    # Words for a blank are as many as they are.
    if share < _LIMITED and not turn.template.has_gap:
        words = word_count(turn.answer)
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
    return Phrased(text, Key(text=turn.answer), constraints)


# ---- yes or no ------------------------------------------------------------------------------------------------------


def _yes_no(turn: Turn, sampler: Sampler, instruction: Mapping[str, Sequence[str]]) -> Phrased:
    label = turn.label
    assert label is not None  # noqa: S101 - every yes/no question has one
    share = sampler.share()
    if share < 0.35:
        text = f"{turn.core} {sampler.pick(instruction['yes_no_only'])}"
        return Phrased(text, Key(text=_WORDS[label], label=label), _ANSWER_ONLY)
    text = turn.core
    if share < 0.65:
        text = f"{text} {sampler.pick(instruction['yes_no_free'])}"
    return Phrased(text, Key(text=turn.answer, label=label), _NO_CONSTRAINTS)


# ---- choice ---------------------------------------------------------------------------------------------------------

_LABELS: Final = (("{letter}. ", "", "{number}. ", "{number}). "), (0.8, 0.1, 0.09, 0.01))
_SEPARATORS: Final = (("; ", ", ", " or ", "\n", ". "), (0.35, 0.15, 0.1, 0.3, 0.1))
"""Styles, and how often each is used."""
_MARKS: Final = {
    label: [label.format(letter=letter, number=number) for number, letter in enumerate(_LETTERS, start=1)]
    for label in _LABELS[0]
}
"""What stands before each option, by style."""


def _choice(turn: Turn, sampler: Sampler, instruction: Mapping[str, Any]) -> Phrased:
    choices = _in_order(turn.choices, sampler)
    marks = _MARKS[sampler.weighted(*_LABELS)]
    shown = [marks[place] + choice.text for place, choice in enumerate(choices)]
    separator = sampler.weighted(*_SEPARATORS)
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
    options = tuple([option(_LETTERS[place], choice.text) for place, choice in enumerate(choices)])
    return Phrased(text, key, _ANSWER_ONLY if answer_only else _NO_CONSTRAINTS, options)


def _in_order(choices: Sequence[Choice], sampler: Sampler) -> list[Choice]:
    """In random order, "none of these" last; of two that read the same the right one stays."""
    unlike: dict[str, Choice] = {}
    for choice in choices:
        unlike.setdefault(" ".join(choice.text.lower().split()), choice)
    kept = list(unlike.values())
    return [*sampler.shuffled([c for c in kept if not c.none]), *(c for c in kept if c.none)]
