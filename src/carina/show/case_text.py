"""Questions and answers as a reader wants them: options apart from the question, marked boxes in plain words.

The words as they are sent stay in the case; nothing here is ever sent or scored.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal

from carina.cases.model import Step

_MARKUP: Final = re.compile(
    r"<\|ref\|>\s*(?P<name>.*?)\s*<\|/ref\|>|<\|box\|>\s*(?P<box>.*?)\s*<\|/box\|>", re.DOTALL
)
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")
_PAIR: Final = r"\(\s*(-?\d+(?:\.\d+)?)\s*,\s*(-?\d+(?:\.\d+)?)\s*\)"
_CORNERS: Final = re.compile(_PAIR + r"\s*,?\s*" + _PAIR)
_SIGN: Final = r"(?:[A-Za-z]|\d{1,2})"
_STYLES: Final = (rf"\({_SIGN}\)", rf"{_SIGN}\)\.", rf"{_SIGN}\.", rf"{_SIGN}\)", rf"{_SIGN}:", "")
"""Labels of options; all options of a list have the same style, the last of which is none."""
_BETWEEN: Final = r"[\s;,.]*(?:\b(?:or|and)\b\s*)?"


@dataclass(frozen=True, kw_only=True)
class Piece:
    """A stretch of an answer: words, the name of a place, or its corners."""

    text: str
    kind: Literal["words", "name", "box"] = "words"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A question without its list of options, and the label that each option has in the list."""

    stem: str
    labels: tuple[str, ...]
    """As sent, "B." or "(2)"; empty where an option has none."""


def pieces(text: str) -> tuple[Piece, ...]:
    """An answer with the marks around names and boxes read, and every other character kept."""
    found: list[Piece] = []
    done = 0
    for mark in _MARKUP.finditer(text):
        found.append(Piece(text=text[done : mark.start()]))
        name, box = mark["name"], mark["box"]
        found.append(
            Piece(text=name, kind="name") if name is not None else Piece(text=_corners(box), kind="box")
        )
        done = mark.end()
    found.append(Piece(text=text[done:]))
    return tuple(piece for piece in found if piece.text)


def plain(text: str) -> str:
    """An answer in one string, corners in brackets."""
    return "".join(f"[{piece.text}]" if piece.kind == "box" else piece.text for piece in pieces(text))


def asked(step: Step) -> Asked:
    """The question apart from its options, wherever in it they are listed; whole where no list is found."""
    if not step.options:
        return Asked(stem=step.question.strip(), labels=())
    for style in _STYLES:
        # The last such list: words like "yes or no" may stand in the question too.
        for match in reversed(list(_listing(step, style).finditer(step.question))):
            before, after = step.question[: match.start()].rstrip(), step.question[match.end() :].strip()
            if before:
                return Asked(stem=f"{before} {after}".strip(), labels=tuple(match.groups()))
    return Asked(stem=step.question.strip(), labels=("",) * len(step.options))


def corners_in(text: str) -> tuple[float, float, float, float] | None:
    """The two corners of the only box that is written out in a text; None where there is none, or several."""
    found = _CORNERS.findall(text)
    if len(found) != 1:
        return None
    x0, y0, x1, y1 = map(float, found[0])
    return x0, y0, x1, y1


def _listing(step: Step, style: str) -> re.Pattern[str]:
    """The list of a step's options in any of the ways in which lists are written; a group for each label."""
    texts = (option.text.strip().rstrip(".").split() for option in step.options)
    entries = (rf"(?<!\w)({style})\s*" + r"\s+".join(map(re.escape, words)) + r"(?!\w)" for words in texts)
    return re.compile(
        r"\s*(?:\bOptions:\s*)?[\[(]?\s*" + _BETWEEN.join(entries) + r"\s*[.;]?\s*[\])]?[.;]?",
        re.IGNORECASE,
    )


def _corners(inside: str) -> str:
    numbers = _NUMBER.findall(inside)
    if len(numbers) != 4:
        return inside
    x0, y0, x1, y1 = numbers
    return f"{x0}, {y0} to {x1}, {y1}"
