"""Recognise an option in a sentence of other words: "It is on the right.", "AP view", "< 1/3"."""

import re
from functools import lru_cache
from typing import Final

from carina.runs.parse.choices import ARTICLES, Choices, split_tokens, word_set
from carina.runs.parse.failure import is_refusal
from carina.runs.parse.normalise import normalise_text

_LONGEST: Final = 200
"""Most characters of a sentence that is searched."""
_SENTENCE: Final = re.compile(r"[.!?;\n](?!\d)")
_FRACTION: Final = r"(\d/\d)"
_FOLDS: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern), same)
    for pattern, same in (
        (r"\bpostero[ -]?anterior\b", "pa"),
        (r"\bantero[ -]?posterior\b", "ap"),
        (r"\bp\.a\.|\bp/a\b", "pa"),
        (r"\ba\.p\.|\ba/p\b", "ap"),
        (r"\bfrontal[ ,(-]{1,2}(pa|ap)\b", r"\1"),
        (r"\b(pa|ap) frontal\b", r"\1"),
        (r"\bside (view|projection|radiograph|image|film)", r"lateral \1"),
        (r"\b(?:1|one|a)[ -]third\b", "1/3"),
        (r"\b(?:2|two)[ -]thirds\b", "2/3"),
        (r"\b(?:1|one|a)[ -]quarter\b", "1/4"),
        (r"\b(?:3|three)[ -]quarters\b", "3/4"),
        (r"\b(?:less|fewer|smaller|lower) than\b|\bunder\b|\bbelow\b|<(?!=)", " < "),
        (r"\b(?:at least|(?:more|greater) than or equal to)\b|>=|=>|≥", " >= "),
        (r"\b(?:more|greater|larger) than\b|\bover\b|\babove\b|>(?!=)", " > "),
        (rf"{_FRACTION} or (?:more|greater|above|over|larger)\b", r" >= \1 "),
        (
            rf"(?:\bbetween |>=\s*)?{_FRACTION}\s*(?:to|-|and|through|up to|but)\s*(?:<\s*)?{_FRACTION}",
            r" from\1to\2 ",
        ),
        (rf"<\s*{_FRACTION}", r" under\1 "),
        (rf">=?\s*{_FRACTION}", r" from\1up "),
    )
)
"""Synonyms, replaced in this order: fractions first, then comparisons with them."""
_HINT: Final = re.compile(r"[a-z]+|[/<>≥]|(?<=[pa])\.")
_HINTS: Final = word_set(
    "posteroanterior postero anteroposterior antero frontal side third thirds quarter quarters than under below least "
    "over above / < > ≥ ."
)
"""Words and signs without which no pattern can match; looking for them is faster than the patterns."""
_ATOM: Final = re.compile(r"from\d/\dto\d/\d|under\d/\d|from\d/\dup")
_IDLE: Final = ARTICLES | word_set("and of in on at to is are it this that there was be with side sided s")
"""Words that do not distinguish options."""
DENIALS: Final = word_set(
    "no not none neither nor never without cannot except excluding excluded wrong incorrect false unlikely absent "
    "rather instead ruled unsure uncertain unclear or general cause causes "
    "isn't aren't doesn't don't can't wasn't hasn't couldn't won't"
)
"""Words with which a sentence may negate an option or leave it undecided."""


_REVERSING: Final = word_set(
    "less smaller fewer lesser least milder spared clear normal free healthy unaffected unremarkable uninvolved better "
    "healthier aerated previously prior resolved"
)
"""Words with which a sentence names an option because the other one is right, unless the question has them too."""


@lru_cache(maxsize=4096)
def _words_of(question: str) -> frozenset[str]:
    return frozenset(split_tokens(normalise_text(question)))


def find_named_option(words: str, options: Choices) -> int | None:
    """The only option whose distinguishing words all occur in a sentence, in any order; None if there is none.

    The distinguishing words of an option are those that not all options have. A sentence with a word of another option,
    a negation, or a number that is not part of the option names no option. Steps that allow several options are not
    parsed this way, because the end of the answer is not clear.

    Args:
        words: A normalised text.
        options: The options of the step.
    """
    sentence = _only_sentence(words)
    if not sentence or options.multiple:
        return None
    own = own_words(options.texts, options.none)
    said = comparable_words(sentence)
    if said & DENIALS:
        return None
    for number, held in enumerate(own):
        if held and held <= said and not any((other - held) & said for other in own):
            is_other = any(word[0].isdigit() for word in said) or is_refusal(words)
            return None if is_other or _is_reversed(said, options) else number
    return None


def _is_reversed(said: frozenset[str], options: Choices) -> bool:
    """Whether words of a sentence turn its meaning: "the right lung is clear" says that the other one is affected."""
    reversing = said & _REVERSING
    return bool(reversing) and not reversing <= options.words and not reversing <= _words_of(options.question)


def _only_sentence(words: str) -> str:
    """The text if it is a single sentence and not a question, else an empty string."""
    text = words.strip(" \n\"'")
    if len(text) > _LONGEST or text.endswith("?"):
        return ""
    text = text.rstrip(".! \n\"')")
    return "" if _SENTENCE.search(text) else text


def comparable_words(text: str) -> frozenset[str]:
    if not _HINTS.isdisjoint(_HINT.findall(text)):
        for pattern, same in _FOLDS:
            text = pattern.sub(same, text)
    atoms = _ATOM.findall(text)
    found = (word[:-1] if _is_plural(word) else word for word in split_tokens(_ATOM.sub(" ", text)))
    return frozenset(atoms).union(word for word in found if word[0].isalnum()) - _IDLE


def _is_plural(word: str) -> bool:
    return len(word) > 3 and word[-1] == "s" and word[-2] != "s" and word.isalpha()


@lru_cache(maxsize=4096)
def own_words(texts: tuple[str, ...], none: int | None) -> tuple[frozenset[str], ...]:
    """The words of each option that not all options share; empty where words cannot distinguish the options."""
    every = [comparable_words(text) for text in texts]
    others = [words for number, words in enumerate(every) if number != none]
    if len(others) < 2 or {"yes", "no"}.intersection(texts):
        return ()
    shared = frozenset.intersection(*others)
    return tuple(words - shared for words in every)
