"""Whether a text calls the position of a device adequate or not.

What contains a denial and means one of the two by itself is taken out first; what is left is turned round by a denial
before it ("not well placed", "no malposition"). A text that says both says neither.
"""

import re
from bisect import bisect_right
from typing import Final

from carina.run.score.denial import denied, spelled_out
from carina.trek.reports.phrases import words

_MOVE: Final = (
    r"(?:correct|reposition|re-?adjust|adjust|advanc|retract|withdraw|pull|remov|mov|chang|replac)\w*"
)
_PLACE: Final = r"(?:position|location|place|placement|positioning|site)"
_PLACED: Final = r"(?:position|plac|sit|seat|locat)ed"
_FIXED: Final = (
    (
        "adequate",
        rf"no(?: need (?:for|of|to)(?: an?| any)?| further)? {_MOVE}"
        rf"|(?:not|nothing|without)(?: \w+){{0,2}} (?:need|require|has)\w*(?: to)?(?: be)? {_MOVE}"
        rf"|{_MOVE} (?:is|are) not (?:needed|required|necessary|indicated)",
    ),
    (
        "malpositioned",
        r"where (?:it|they) should not be|not(?: \w+){0,2} where (?:it|they) should be"
        rf"|{_MOVE} (?:is|are|would be|should be)?\s?(?:needed|required|necessary|indicated|recommended|advised)"
        rf"|(?:needs?|requires?|should|must)(?: to)?(?: be)? {_MOVE}",
    ),
)
_WORDS: Final = (
    (
        "malpositioned",
        r"mal-?position\w*|misplac\w*|mis-?positioned|sub-?optimal\w*|unsatisfactor\w*|unacceptabl\w*"
        r"|inappropriate\w*|inadequate\w*|incorrect\w*|improper\w*|out of position|aberrant\w*"
        rf"|(?:bad|poor|wrong|abnormal)(?:ly)? (?:{_PLACED}|{_PLACE})|too (?:high|low|far|deep|shallow)"
        r"|(?:coiled|curled|looped)",
    ),
    (
        "adequate",
        r"satisfactor\w*|appropriate\w*|adequate\w*|acceptabl\w*|correct(?:ly)?|proper(?:ly)?|ideal(?:ly)?"
        rf"|optimal(?:ly)?|fine|well[- ]{_PLACED}"
        rf"|(?:good|standard|expected|usual|normal|unremarkable|right) {_PLACE}"
        r"|as expected|where (?:it is |they are )?expected|where (?:it|they) should be",
    ),
)
_COMPILED_FIXED: Final = tuple((state, re.compile(rf"\b(?:{pattern})\b")) for state, pattern in _FIXED)
_COMPILED: Final = tuple((state, re.compile(rf"\b(?:{pattern})\b")) for state, pattern in _WORDS)
_OTHER: Final = {"adequate": "malpositioned", "malpositioned": "adequate"}


def position_of(text: str) -> str | None:
    """`adequate` or `malpositioned`; None where a text says neither or both."""
    left = " ".join(spelled_out(text).lower().split())
    found: set[str] = set()
    for state, pattern in _COMPILED_FIXED:
        left, times = pattern.subn(" | ", left)
        if times:
            found.add(state)
    signs = words(left)
    starts, reach = [sign.start for sign in signs], denied(signs)
    for state, pattern in _COMPILED:
        for match in pattern.finditer(left):
            place = bisect_right(starts, match.start()) - 1
            found.add(_OTHER[state] if place >= 0 and reach[place] else state)
    return found.pop() if len(found) == 1 else None
