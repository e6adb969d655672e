"""Where a reply says that now its answer comes."""

import re
from collections.abc import Iterator
from typing import Final

from carina.run.parse.normalise import SIGN

_MARKER: Final = re.compile(
    r"\banswers?\b(?!\s+(?:choices|options)\b)(?:\s+(?:choice|option|number|letter|key)\b)?"
    r"(?:\s+(?:to|for)\s[^\n.:?]{1,80}?(?=\s(?:is|are)\b|:))?"
    r"|\b(?:correct|best|right|final|selected|chosen|my|appropriate|accurate|likely)\s+(?:final\s+)?"
    r"(?:option|choice|selection|decision|response|mask|point|region|pick|one|statement|verdict|conclusion|label)"
    r"(?:s|\(s\))?(?:\s+(?:number|letter))?(?=\s*(?:is|are|would|should|must|[:=(\[\"-]))"
    r"|\b(?:i|we)(?:'(?:d|ll|m|ve)|\s(?:would|will|shall|must|should|can|have|had|am|do|therefore|thus|hence|finally|"
    r"then|now|also))*\s(?:select|choos|chose|pick|opt\sfor|opted\sfor|go\swith|going\swith|went\swith|settle\son)"
    r"(?:ed|e|en|ing|n)?\b"
    r"|\b(?:choice|selection|verdict|conclusion|decision|prediction|response|result|output|option|label)\s?[\"']?\s?:"
    rf"|{SIGN}",
)
_DENIED: Final = re.compile(
    r"(?:\bnot|n't|\bcannot|\bnever|\bno|\bunable\sto|\bwithout|\bwrong|\bincorrect|\bpossible)"
    r"\s(?:(?:the|an?|any|my|final|correct|definitive|possible|that)\s)*$"
)
_BEFORE: Final = 32


def last_answers(text: str) -> Iterator[str]:
    """What follows each marker, up to the next one; the last marker first.

    Most replies end with the word "answer": what comes after it is looked at before the rest is searched.
    """
    final = text.rfind("answer")
    if final > 0:
        yield from _after(text, final, len(text))
    yield from _after(text, 0, final if final > 0 else len(text))


def _after(text: str, start: int, stop: int) -> Iterator[str]:
    """What follows the markers that begin in a part of the text."""
    found: list[tuple[int, int]] = []
    seen, same_line = start, False
    for marker in _MARKER.finditer(text, start):
        at = marker.start()
        if at >= stop:
            break
        same_line = same_line and text.find("\n", seen, at) < 0
        seen = at
        # A box in an answer that is announced, or in a list of boxes, begins nothing new.
        if (text[at] == SIGN and same_line) or _DENIED.search(text, max(0, at - _BEFORE), at):
            continue
        found.append((at, marker.end()))
        same_line = True
    end = stop
    for at, after in reversed(found):
        yield text[after : max(end, after)]
        end = at
