"""The parsing rules of the published CheXpercept code, for runs that are compared with its results.

Closed reasoning is taken out and boxed numbers are unwrapped; then the first of these that finds a number decides: the
last "Answer:" that figures follow directly, "final answer", a bare number, "answer is", a last line of figures, every
number anywhere. A single choice takes the first number.

Every pattern takes time proportional to the length of a reply, and lists are taken whole or not at all (`*+`), without
a record of their items: a list of a million numbers needs no more memory than its text.
"""

import re
from collections import deque
from typing import Final

from carina.cases import Step
from carina.runs.records import ParsedAnswer

_THINK: Final = re.compile(r"<(/?)think>")
_UNUSED: Final = re.compile(r"<unused\d{1,6}>")
_BOXED: Final = re.compile(r"\\boxed\{([\d,\s]{1,200})\}")
_ANSWER: Final = re.compile(r"[Aa]nswer:[ \t\n]{0,100}\(?(\d{1,9}\)?(?:,[ \t]{0,100}\(?\d{1,9}\)?)*+)")
_FINAL: Final = re.compile(r"final answer\D{0,40}(\d{1,9}(?:,\s{0,8}\d{1,9})*+)", re.IGNORECASE)
_BARE: Final = re.compile(r"\s*\(?\d{1,9}\)?(?:\s{0,8},\s{0,8}\(?\d{1,9}\)?)*+\.?\s*")
_IS: Final = re.compile(r"answer(?:s)? (?:is|are):? {0,8}\(?(\d{1,9}(?:,\s{0,8}\d{1,9})*+)", re.IGNORECASE)
_FIGURES: Final = re.compile(r"(?<!\d)\d{1,9}(?!\d)")
_LIST: Final = re.compile(r"[\d,\s]+")


def parse_chexpercept(step: Step, text: str) -> ParsedAnswer:
    """The answer that the published code would read; a number that no option has is `out_of_range`."""
    text = _BOXED.sub(r"\1", _UNUSED.sub("", _remove_closed_reasoning(text))).strip()
    chosen: set[int] = set()
    for figures in _FIGURES.finditer(text, *_find_answer_span(text)):
        number = int(figures[0])
        if not 1 <= number <= len(step.options):
            return ParsedAnswer(status="out_of_range")
        chosen.add(number)
        if not step.multiple:
            break
    if not chosen:
        return ParsedAnswer(status="no_answer")
    ids = (option.id for place, option in enumerate(step.options, start=1) if place in chosen)
    return ParsedAnswer(status="ok", options=tuple(ids))


def _remove_closed_reasoning(text: str) -> str:
    """The text without closed reasoning blocks. A block that is never closed stays, as in the original."""
    kept: list[str] = []
    at, opened = 0, -1
    for tag in _THINK.finditer(text):
        if not tag[1] and opened < 0:
            opened = tag.start()
        elif tag[1] and opened >= 0:
            kept.append(text[at:opened])
            at, opened = tag.end(), -1
    return "".join(kept) + text[at:]


def _find_answer_span(text: str) -> tuple[int, int]:
    """Start and end of the part of the reply whose numbers are the answer."""
    for pattern in (_ANSWER, _FINAL):
        last = deque(pattern.finditer(text), maxlen=1)
        if last:
            return last[0].span(1)
    if _BARE.fullmatch(text):
        return 0, len(text)
    found = _IS.search(text)
    if found is not None:
        return found.span(1)
    line = text.rfind("\n") + 1
    return (line if _LIST.fullmatch(text, line) else 0), len(text)
