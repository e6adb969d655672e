"""Whether a question in other words must have the same key: lexical checks that would rather refuse than trust.

What carries the key of a question is a closed list (`en.yaml`): beside the values it was filled with, numbers,
negations and exclusions, doubt, time, places, grades, names of findings and devices, and what is said of the form of
the answer. Each must stand in the new words as far as it stood in the old ones; nothing of the key may be added.
"""

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from carina.cases import Step
from carina.cases.facts import stored_name
from carina.trek.facts import TrekStepFacts
from carina.trek.paraphrase.cues import words_of
from carina.trek.paraphrase.families import families, family_of, masked

_WORD: Final = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+(?:[.,]\d+)*%?|_{2,}")
_MARKUP: Final = re.compile(r"[{}\n\r\t*#`|<>]|^\W*[A-Z][.):]\s")
_PREAMBLE: Final = re.compile(r"^\W*(?:question|reworded|sure|here|certainly)\b[^?.!]*:", re.IGNORECASE)
_END: Final = re.compile(r"[.?!][\"'”’)]?$")
_CONTRACTED: Final = re.compile(r"n['’]t\b", re.IGNORECASE)
_SENTENCE_BREAK: Final = re.compile(r"[.?!:] +(?=\w)")
_NOT_KEYS: Final = frozenset(stored_name(TrekStepFacts, name) for name in ("targets", "truth", "negative"))
"""Facts whose words are those of the question, or ordinary ones."""
_STEM: Final = 5
_SHORT: Final = 3
"""Words of at most so many letters tell a key only where they are cues."""


def why_not(step: Step, old: str, new: str) -> str | None:
    """Why the question proper `old` of a step may not be put as `new`; None where it may."""
    if new.casefold() == old.casefold():
        return "unchanged"
    if _is_malformed(new):
        return "form"
    return next((reason for reason, breaks in _CHECKS if breaks(step, old, new)), None)


def _is_malformed(text: str) -> bool:
    if _MARKUP.search(text) or _PREAMBLE.search(text) or not _END.search(text):
        return True
    return any(one == two and one.isalpha() for one, two in pairwise(_words(text)))


def _length(_: Step, old: str, new: str) -> bool:
    before, after = len(old.split()), len(new.split())
    return before > 2 * after or after > before + min(15, max(8, before // 2))


def _slot(step: Step, old: str, new: str) -> bool:
    values = {slot.value for slot in step.slots if slot.value.strip()}
    return any(_stands(value, old) and not _stands(value, new) for value in values)


def _number(_: Step, old: str, new: str) -> bool:
    return _numbers(old) != _numbers(new)


def _negation(_: Step, old: str, new: str) -> bool:
    return _negations(old) != _negations(new)


def _option(step: Step, old: str, new: str) -> bool:
    texts = [option.text for option in step.options if option.text.strip()]
    return any(_stands(text, old) != _stands(text, new) for text in texts)


def _term(_: Step, old: str, new: str) -> bool:
    return words_of().terms.within(old) != words_of().terms.within(new)


def _sense(_: Step, old: str, new: str) -> bool:
    return any(bool(cues.times(old)) != bool(cues.times(new)) for cues in words_of().senses.values())


def _constraint(_: Step, old: str, new: str) -> bool:
    return words_of().form.within(old) != words_of().form.within(new)


def _leading(_: Step, old: str, new: str) -> bool:
    return not words_of().leading.within(new) <= words_of().leading.within(old)


def _told(step: Step, old: str, new: str) -> bool:
    """Whether a word of the key stands in the question that did not stand there."""
    key = step.key
    texts = [key.text or "", *(section.text for section in key.sections)]
    texts += [option.text for option in step.options if option.id in key.options]
    texts += [fact.text or "" for fact in step.facts if fact.name not in _NOT_KEYS]
    gold = {stem for text in texts for stem in _stems(text)} - _stems(old)
    return bool(gold & _stems(new))


def _another(step: Step, old: str, new: str) -> bool:
    """Whether something else is asked: by another family's words, or settled by yes or no where the old was not."""
    if _is_polar(old) != _is_polar(new):
        return True
    family = family_of(step.template or "")
    slots = {slot.name: slot.value for slot in step.slots}
    return family not in families() or families().nearest(masked(new, slots)) != family


_CHECKS: Final[tuple[tuple[str, Callable[[Step, str, str], bool]], ...]] = (
    ("length", _length),
    ("slot lost", _slot),
    ("number", _number),
    ("negation", _negation),
    ("option", _option),
    ("term", _term),
    ("sense", _sense),
    ("constraint", _constraint),
    ("leading", _leading),
    ("key told", _told),
    ("another question", _another),
)


def _is_polar(text: str) -> bool:
    """Whether yes or no is the answer, going by the last sentence."""
    cues = words_of()
    last = _SENTENCE_BREAK.split(text)[-1]
    if cues.open.times(last) or cues.commands.begin(last):
        return False
    return bool(cues.whether.times(last)) or (
        last.rstrip("\"'”’)").endswith("?") and cues.polar.times(last) > 0
    )


def _words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _numbers(text: str) -> Counter[str]:
    """Digits, numbers in words, and blanks to fill in."""
    return Counter(word for word in _words(text) if not word[0].isalpha() or word in words_of().numbers)


def _negations(text: str) -> int:
    return words_of().negations.times(text) + len(_CONTRACTED.findall(text))


def _stems(text: str) -> set[str]:
    """Beginnings of the words that tell something."""
    return {word[:_STEM] for word in _words(text) if len(word) > _SHORT and word not in words_of().ordinary}


def _stands(phrase: str, text: str) -> bool:
    """Whether a phrase stands in a text, as whole words."""
    return re.search(rf"(?<!\w){re.escape(phrase.strip())}(?!\w)", text, re.IGNORECASE) is not None
