"""ROUGE-L: the longest common subsequence of two texts' words, as F1.

Words are those of the `rouge-score` package without stemming: runs of a-z and 0-9 in lower case. The subsequence is
found with one long integer per text (Hyyrö 2004), a bit a word, so that its length costs a few machine words a step.
"""

import re
from itertools import islice
from typing import Final

MOST: Final = 2000
"""Words of a text that are compared, so that an answer of ten megabytes takes no longer than a long report."""
_SIGNS: Final = 50
"""Signs of a word with what stands between words, on average at most."""
_WORD: Final = re.compile(r"[a-z0-9]+")


def tokens(text: str) -> list[str]:
    """The words of a text, the first 2,000 of them."""
    matches = _WORD.finditer(text[: MOST * _SIGNS].lower())
    return [match.group() for match in islice(matches, MOST)]


def common(one: list[str], other: list[str]) -> int:
    """Length of the longest common subsequence."""
    if len(one) > len(other):
        one, other = other, one
    places: dict[str, int] = {}
    for place, word in enumerate(one):
        places[word] = places.get(word, 0) | 1 << place
    every = (1 << len(one)) - 1
    free = every
    for word in other:
        at = places.get(word)
        if at is not None:
            taken = free & at
            free = (free + taken | free - taken) & every
    return len(one) - free.bit_count()


def rouge_l(key: str, answer: str) -> float | None:
    """ROUGE-L F1: words that both texts have in the same order; None where the key has no words."""
    right, stated = tokens(key), tokens(answer)
    if not right:
        return None
    if not stated:
        return 0.0
    return 2 * common(right, stated) / (len(right) + len(stated))
