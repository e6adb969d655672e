"""Words that stand in the reach of a denial: "not on the left", "no meniscus", "left rather than right"."""

import re
from collections.abc import Sequence
from typing import Final

from carina.trek.reports.phrases import Word, word_set

_DENIES: Final = frozenset({"not", "no", "neither", "nor", "without", "never", "cannot", "non"})
_COMPARES: Final = {"than": "rather", "of": "instead"}
"""Second words of "rather than" and "instead of", and the first ones."""
_LIMITS: Final = frozenset({"only", "merely", "just", "simply", "doubt", "change", "changes"})
"""What makes a denial none: "not only", "no doubt"."""
_ENDS: Final = word_set(". ; : ! ? ( ) | but however whereas while although though yet and it there")
"""Where the reach of a denial ends."""
_JOINS: Final = frozenset({"or", "nor"})
_SHORT: Final = re.compile(r"n['\u2019]t\b", re.IGNORECASE)


def spelled_out(text: str) -> str:
    """ "Isn't" as two words, so that the denial shows."""
    return _SHORT.sub(" not", text)


def denied(signs: Sequence[Word]) -> list[bool]:
    """For each word, whether it is denied. A denial reaches forwards to the end of its clause."""
    reach: list[bool] = []
    on = False
    for place, (word, _, _) in enumerate(signs):
        follows = signs[place + 1].text if place + 1 < len(signs) else ""
        if word in _ENDS or (word == "," and follows not in _JOINS):
            on = False
        elif word in _DENIES:
            on = follows not in _LIMITS
        elif word in _COMPARES and place and signs[place - 1].text == _COMPARES[word]:
            on = True
        reach.append(on)
    return reach
