"""What the earlier turns of an examination of a lesion say, from the conversation as it was shown: no key, no step.

Answers may have been replaced by the right ones (`gold`) or set right in words (`hint`); whoever reads the
conversation cannot tell the first and believes the second.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from carina.cases import Option, Step
from carina.cases.messages import Message
from carina.runs.parse import parse
from carina.runs.parse.choices import says_none
from carina.runs.prompts import NO_ANSWER, hints_in

_OPTION: Final = re.compile(r"\((\d+)\)\s+(.*?)\s*(?=\(\d+\)\s|$)", re.DOTALL)


class Earlier(NamedTuple):
    """What is settled; None for what was not asked, or not answered."""

    lesion: bool | None = None
    """Whether there is one."""
    revise: bool | None = None
    """Whether its contour needs a major revision."""
    expand: frozenset[str] | None = None
    """Names of the points towards which the contour must be expanded."""
    contract: frozenset[str] | None = None
    """Names of the points at which it must be contracted."""
    mask: str | None = None
    """View with the contour that is right."""


class _Exchange(NamedTuple):
    question: str
    """Without its options."""
    options: tuple[str, ...]
    chosen: tuple[int, ...]
    """Places of the chosen options, from 0."""
    shows: tuple[str, ...]


def earlier(messages: Sequence[Message]) -> Earlier:
    """What the turns before the last one have settled; of two answers to one question the later holds."""
    found = Earlier()
    for one in _exchanges(messages):
        if one.chosen:
            found = _settled(found, one)
    return found


def _settled(so_far: Earlier, one: _Exchange) -> Earlier:
    said = one.question.lower()
    texts = tuple(one.options[place].lower() for place in one.chosen)
    if "expand" in said:
        return so_far._replace(expand=_points(texts))
    if "contract" in said:
        return so_far._replace(contract=_points(texts))
    if "masks" in said:
        # The first mask is the first picture that came with the question.
        place = one.chosen[0]
        return so_far._replace(mask=one.shows[place]) if place < len(one.shows) else so_far
    if {text.lower() for text in one.options} != {"yes", "no"}:
        return so_far
    yes = texts[0] == "yes"
    return so_far._replace(revise=yes) if "revision" in said else so_far._replace(lesion=yes)


def _points(texts: Sequence[str]) -> frozenset[str]:
    return frozenset(text for text in texts if not says_none(text))


def _exchanges(messages: Sequence[Message]) -> Iterator[_Exchange]:
    """Questions with the answers that the conversation gives, and those that are told afterwards."""
    shown: dict[str, tuple[str, ...]] = {}
    for place, message in enumerate(messages):
        if message.role == "assistant":
            continue
        text, hints = hints_in(message.text)
        for question, answer in hints:
            yield _exchange(question, answer, shown.get(_plain(question), ()))
        shown[_plain(text)] = message.shows
        if place + 1 < len(messages):
            yield _exchange(text, messages[place + 1].text, message.shows)


def _plain(question: str) -> str:
    return " ".join(question.split())


def _exchange(text: str, answer: str, shows: tuple[str, ...]) -> _Exchange:
    question, _, listed = text.partition("Options:")
    options = tuple(found[2] for found in _OPTION.finditer(listed))
    asked = Step(
        id="",
        stage=1,
        task="",
        format="choice",
        question=text,
        multiple=True,
        options=tuple(Option(id=str(place), text=option) for place, option in enumerate(options)),
    )
    chosen = parse(asked, answer).options if options and answer != NO_ANSWER else ()
    return _Exchange(question, options, tuple(int(place) for place in chosen), shows)
