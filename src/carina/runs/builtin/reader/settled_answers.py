"""The answers that the earlier turns of a percept conversation give, read from its messages alone.

With history policy `gold` they are the right answers; with `hint` a later message corrects them. The corrected answer
counts.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from carina.cases import Option, Step
from carina.cases.messages import Message
from carina.runs.parse import parse
from carina.runs.parse.choices import says_none
from carina.runs.prompts import NO_ANSWER, OPERATIONS, split_facts, split_hints

_OPTION: Final = re.compile(r"\((\d+)\)\s+(.*?)\s*(?=\(\d+\)\s|$)", re.DOTALL)


class SettledAnswers(NamedTuple):
    """Answers of the earlier turns; None for a question that was not asked or not answered."""

    has_lesion: bool | None = None
    """Whether the lesion is present."""
    needs_revision: bool | None = None
    """Whether its contour needs a major revision."""
    expand: frozenset[str] | None = None
    """Names of the points towards which the contour must be expanded."""
    contract: frozenset[str] | None = None
    """Names of the points at which the contour must be contracted."""
    mask: str | None = None
    """View with the contour that was chosen as right."""


class _Exchange(NamedTuple):
    question: str
    """The question without its options."""
    options: tuple[str, ...]
    chosen: tuple[int, ...]
    """Positions of the chosen options, from 0."""
    shows: tuple[str, ...]


def read_settled_answers(messages: Sequence[Message]) -> SettledAnswers:
    """Read the answers of all turns before the last one; the later of two answers to a question counts."""
    found = SettledAnswers()
    for one in _read_exchanges(messages):
        if one.chosen:
            found = _add_exchange(found, one)
    return found


def _add_exchange(so_far: SettledAnswers, one: _Exchange) -> SettledAnswers:
    said = one.question.lower()
    texts = tuple(one.options[place].lower() for place in one.chosen)
    if "expand" in said:
        return so_far._replace(expand=_named_points(texts))
    if "contract" in said:
        return so_far._replace(contract=_named_points(texts))
    if "masks" in said:
        # The masks are the images of the question, in the order of the options.
        place = one.chosen[0]
        return so_far._replace(mask=one.shows[place]) if place < len(one.shows) else so_far
    if {text.lower() for text in one.options} != {"yes", "no"}:
        return so_far
    yes = texts[0] == "yes"
    return so_far._replace(needs_revision=yes) if "revision" in said else so_far._replace(has_lesion=yes)


def _named_points(texts: Sequence[str]) -> frozenset[str]:
    return frozenset(text for text in texts if not says_none(text))


def _read_exchanges(messages: Sequence[Message]) -> Iterator[_Exchange]:
    """Questions with their answers in the conversation, and with the answers of later hints."""
    shown: dict[str, tuple[str, ...]] = {}
    for place, message in enumerate(messages):
        if message.role == "assistant":
            continue
        text, facts = split_facts(message.text)
        text, hints = split_hints(text)
        for task, options in facts:
            yield _exchange_of_fact(task, options, messages[:place])
        for question, answer in hints:
            yield _parse_exchange(question, answer, shown.get(_join_lines(question), ()))
        shown[_join_lines(text)] = message.shows
        if place + 1 < len(messages):
            yield _parse_exchange(text, messages[place + 1].text, message.shows)


def _exchange_of_fact(task: str, right: tuple[str, ...], before: Sequence[Message]) -> _Exchange:
    """A fact that was stated, as the question and the answer that it stands for."""
    if task == "revision":
        asked = next((one for one in reversed(before) if len(one.shows) > 1), None)
        shows = () if asked is None else asked.shows
        place = int(re.sub(r"\D", "", right[0]) or 0) - 1
        return _Exchange(
            "masks", tuple(right[0] for _ in shows), (place,) if 0 <= place < len(shows) else (), shows
        )
    if task in OPERATIONS:
        verb = "expand" if task == "expansion" else "contract"
        return _Exchange(verb, right or ("None",), tuple(range(max(1, len(right)))), ())
    said = "revision" if task == "contour evaluation" else ""
    return _Exchange(said, ("Yes", "No"), (int(right[0] == "No"),), ())


def _join_lines(question: str) -> str:
    return " ".join(question.split())


def _parse_exchange(text: str, answer: str, shows: tuple[str, ...]) -> _Exchange:
    question, _, listed = text.partition("Options:")
    options = tuple(found[2] for found in _OPTION.finditer(listed))
    step = Step(
        id="",
        stage=1,
        task="",
        format="choice",
        question=text,
        multiple=True,
        options=tuple(Option(id=str(place), text=option) for place, option in enumerate(options)),
    )
    chosen = parse(step, answer).options if options and answer != NO_ANSWER else ()
    return _Exchange(question, options, tuple(int(place) for place in chosen), shows)
