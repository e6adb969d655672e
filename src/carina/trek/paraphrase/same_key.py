"""Whether a reworded question has the same key: strict lexical checks that reject a question in case of doubt.

The words that determine the key are a closed list (`en.yaml`): besides the values of slots, these are numbers,
negations and exclusions, doubt, time, places, grades, names of findings and devices, and instructions for the form of
the answer. Each must occur in the new question as it did in the old one; no word of the key may be added.
"""

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Final

from carina.cases import Step
from carina.cases.facts import stored_name
from carina.trek.facts import TrekStepFacts
from carina.trek.paraphrase.cues import load_cue_lists
from carina.trek.paraphrase.families import family_of, load_families, mask_slots

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
"""Words of at most this many letters matter only where they are cues."""


def find_rejection(step: Step, old: str, new: str) -> str | None:
    """Why the question proper `old` of a step may not be reworded as `new`; None where it may."""
    if new.casefold() == old.casefold():
        return "unchanged"
    if _is_malformed(new):
        return "form"
    return next((reason for reason, breaks in _CHECKS if breaks(step, old, new)), None)


def _is_malformed(text: str) -> bool:
    if _MARKUP.search(text) or _PREAMBLE.search(text) or not _END.search(text):
        return True
    return any(one == two and one.isalpha() for one, two in pairwise(_split_words(text)))


def _is_length_wrong(_: Step, old: str, new: str) -> bool:
    before, after = len(old.split()), len(new.split())
    return before > 2 * after or after > before + min(15, max(8, before // 2))


def _is_slot_lost(step: Step, old: str, new: str) -> bool:
    values = {slot.value for slot in step.slots if slot.value.strip()}
    return any(_contains_phrase(value, old) and not _contains_phrase(value, new) for value in values)


def _is_number_changed(_: Step, old: str, new: str) -> bool:
    return _count_numbers(old) != _count_numbers(new)


def _is_negation_changed(_: Step, old: str, new: str) -> bool:
    return _count_negations(old) != _count_negations(new)


def _is_option_named(step: Step, old: str, new: str) -> bool:
    texts = [option.text for option in step.options if option.text.strip()]
    return any(_contains_phrase(text, old) != _contains_phrase(text, new) for text in texts)


def _is_term_changed(_: Step, old: str, new: str) -> bool:
    return load_cue_lists().terms.within(old) != load_cue_lists().terms.within(new)


def _is_sense_changed(_: Step, old: str, new: str) -> bool:
    return any(bool(cues.times(old)) != bool(cues.times(new)) for cues in load_cue_lists().senses.values())


def _is_constraint_changed(_: Step, old: str, new: str) -> bool:
    return load_cue_lists().form.within(old) != load_cue_lists().form.within(new)


def _is_leading(_: Step, old: str, new: str) -> bool:
    return not load_cue_lists().leading.within(new) <= load_cue_lists().leading.within(old)


def _is_key_revealed(step: Step, old: str, new: str) -> bool:
    """Whether the new question contains a word of the key that the old one did not."""
    key = step.key
    texts = [key.text or "", *(section.text for section in key.sections)]
    texts += [option.text for option in step.options if option.id in key.options]
    texts += [fact.text or "" for fact in step.facts if fact.name not in _NOT_KEYS]
    gold = {stem for text in texts for stem in _find_stems(text)} - _find_stems(old)
    return bool(gold & _find_stems(new))


def _is_other_question(step: Step, old: str, new: str) -> bool:
    """Whether the new question is of another family, or only one of the two asks for yes or no."""
    if _is_polar(old) != _is_polar(new):
        return True
    family = family_of(step.template or "")
    slots = {slot.name: slot.value for slot in step.slots}
    return family not in load_families() or load_families().nearest(mask_slots(new, slots)) != family


_CHECKS: Final[tuple[tuple[str, Callable[[Step, str, str], bool]], ...]] = (
    ("length", _is_length_wrong),
    ("slot lost", _is_slot_lost),
    ("number", _is_number_changed),
    ("negation", _is_negation_changed),
    ("option", _is_option_named),
    ("term", _is_term_changed),
    ("sense", _is_sense_changed),
    ("constraint", _is_constraint_changed),
    ("leading", _is_leading),
    ("key revealed", _is_key_revealed),
    ("another question", _is_other_question),
)


def _is_polar(text: str) -> bool:
    """Whether the last sentence asks for yes or no."""
    cues = load_cue_lists()
    last = _SENTENCE_BREAK.split(text)[-1]
    if cues.open.times(last) or cues.commands.begin(last):
        return False
    return bool(cues.whether.times(last)) or (
        last.rstrip("\"'”’)").endswith("?") and cues.polar.times(last) > 0
    )


def _split_words(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]


def _count_numbers(text: str) -> Counter[str]:
    """Digits, numbers in words, and blanks to fill in."""
    return Counter(
        word for word in _split_words(text) if not word[0].isalpha() or word in load_cue_lists().numbers
    )


def _count_negations(text: str) -> int:
    return load_cue_lists().negations.times(text) + len(_CONTRACTED.findall(text))


def _find_stems(text: str) -> set[str]:
    """Beginnings of the words that carry meaning."""
    return {
        word[:_STEM]
        for word in _split_words(text)
        if len(word) > _SHORT and word not in load_cue_lists().ordinary
    }


def _contains_phrase(phrase: str, text: str) -> bool:
    """Whether a text contains a phrase, as whole words."""
    return re.search(rf"(?<!\w){re.escape(phrase.strip())}(?!\w)", text, re.IGNORECASE) is not None
