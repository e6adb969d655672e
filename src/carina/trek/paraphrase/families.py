"""What a question asks for, by its words: the family of trek's own questions that it is most similar to.

This is a naive Bayes classifier over the first letters of words and pairs of words of all wording pools, with the
values of slots masked. It only separates families; other checks find a lost value, side or negation.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from carina.trek.wording import load_wording

_WORD: Final = re.compile(r"\{\w+\}|[a-z]+|____|\?", re.IGNORECASE)
_SMOOTHING: Final = 0.1
_STEM: Final = 6


def family_of(template: str) -> str:
    """The family that a template id names: "s2.presence" of "s2.presence.yes_no-sited.014".

    Findings and devices are asked for in the same words, so they share a family; only their names differ.
    """
    family = ".".join(template.split(".")[:2])
    return family.replace(".device-presence", ".presence")


class Families:
    """The questions of one language, by family."""

    def __init__(self, questions: Iterable[tuple[str, str]]) -> None:
        """From pairs of template id and text."""
        self._features: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for template, text in questions:
            self._features[family_of(template)].update(_count_features(text))
        self._totals = {family: counts.total() for family, counts in self._features.items()}
        self._kinds = len({feature for counts in self._features.values() for feature in counts})

    def __contains__(self, family: object) -> bool:
        return family in self._features

    def nearest(self, text: str) -> str:
        """The family of a question whose slots are masked."""
        features = _count_features(text)
        return max(self._features, key=lambda family: (self._likelihood(family, features), family))

    def _likelihood(self, family: str, features: Counter[str]) -> float:
        known = self._features[family]
        floor = self._totals[family] + _SMOOTHING * self._kinds
        return sum(
            times * math.log((known[feature] + _SMOOTHING) / floor) for feature, times in features.items()
        )


@lru_cache(maxsize=4)
def load_families(language: str = "en") -> Families:
    """The families of a language; loaded once in each process."""
    pools = load_wording(language).pools.values()
    return Families((template.id, template.text) for pool in pools for template in pool.questions)


def mask_slots(text: str, slots: Mapping[str, str]) -> str:
    """A question with its values replaced by the names of their slots, the longest value first."""
    for name, value in sorted(slots.items(), key=lambda slot: (-len(slot[1]), slot[0])):
        if value.strip():
            text = re.sub(
                rf"(?<!\w){re.escape(value.strip())}(?!\w)", f"{{{name}}}", text, flags=re.IGNORECASE
            )
    return text


def _count_features(text: str) -> Counter[str]:
    words = [word.casefold()[:_STEM] for word in _WORD.findall(text)]
    pairs = (f"{one} {two}" for one, two in zip(["^", *words], [*words, "$"], strict=True))
    return Counter(words) + Counter(pairs)
