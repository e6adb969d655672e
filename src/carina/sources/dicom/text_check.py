"""Looks for names, numbers, ages and dates of persons in the text of a report.

The check is meant to refuse too much rather than too little: a text in which anything is found is dropped as a whole.
It knows the names in the headers of the study, and patterns; it cannot find a name that is in no header and has no
title before it.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from carina.sources.dicom.attributes import Attributes, Tag

_PERSONS: Final = (
    Tag.PATIENT_NAME,
    Tag.OTHER_NAMES,
    Tag.BIRTH_NAME,
    Tag.MOTHERS_BIRTH_NAME,
    Tag.REFERRING_PHYSICIAN,
    Tag.PERFORMING_PHYSICIAN,
    Tag.READING_PHYSICIAN,
    Tag.REQUESTING_PHYSICIAN,
    Tag.OPERATORS,
)
_PLACES: Final = (
    Tag.INSTITUTION,
    Tag.INSTITUTION_ADDRESS,
    Tag.STATION,
    Tag.PATIENT_ADDRESS,
    Tag.PATIENT_PHONE,
)
_IDS: Final = (Tag.PATIENT_ID, Tag.OTHER_IDS, Tag.ACCESSION_NUMBER, Tag.STUDY_ID)
_SHORTEST_WORD: Final = 3
"""Letters or digits of a word of a place or an id. Shorter words of names count, too."""
_COMMON: Final = frozenset(
    ("and", "the", "for", "hospital", "clinic", "general", "street", "room", "chest", "radiology")
)
"""Words of institutions and addresses that identify nobody."""
_ORDINARY: Final = frozenset(
    ("a", "i", "al", "am", "an", "as", "at", "be", "by", "da", "de", "di", "do", "du", "el", "en", "es", "et", "go",
     "he", "if", "im", "in", "is", "it", "la", "le", "lo", "me", "my", "no", "of", "on", "or", "so", "to", "um", "up",
     "us", "we", "zu")
)  # fmt: skip
"""Words that are no name where they are written in lower case, or begin a sentence."""
_UNITS: Final = frozenset(("ap", "cc", "cm", "hu", "kg", "mg", "ml", "mm", "ng", "pa", "rt", "lt"))
"""Units and other short forms that are no name where they are written in lower case."""
_MONTHS: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?|januar|februar|m[äa]rz|mai|juni|juli|okt(?:ober)?|dez(?:ember)?)"
)
_ORDINALS: Final = (
    r"(?:(?:twenty|thirty)[\s-]?)?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth"
    r"|(?:thir|four|fif|six|seven|eigh|nine)teenth|twentieth|thirtieth)"
)
_OLD: Final = r"(?<![\d.,])(?:9\d|1[0-4]\d)(?![\d.,]\d|\d)"
"""A number that can be an age of 90 or over."""
_YEARS: Final = (
    r"(?:y(?:ea)?rs?\b|y\b|y\.?\s?o\b|y/o\b|jahr|j\b|j[äa]hrig|ans\b|a[ñn]os|anni\b|woman|man\b|lady|gentleman|female"
    r"|male|f\b|m\b|w\b)"
)
_OLD_WORDS: Final = (
    r"(?:ninet(?:y|ies|ieth)|nonagenarian|[a-z]{0,9}centenarian|[a-zäöüß]{0,20}neunzig[a-zäöüß]{0,20}|noventa|novanta"
    r"|quatre[\s-]vingt[\s-](?:dix|onze|douze|treize|quatorze|quinze|seize))"
)
_NUMBERS: Final = (
    r"(?:mrn|pid|ids?|acc(?:ession)?|identifier|(?:medical\s+|hospital\s+)?record|chart|file|folder|ref)"
)
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b\d{1,4}\s?[./-]\s?\d{1,2}\s?[./-]\s?\d{1,4}\b",  # 10.3.2020, 2020-03-10
        r"\b\d{1,2}/\d{1,4}\b",  # 3/10, 03/2020
        # 10 March, 3rd of May, 3-Oct, 03Oct2020
        rf"(?<!\d)\d{{1,2}}(?:st|nd|rd|th|\.)?[\s._,/-]*(?:of\s+)?{_MONTHS}(?![^\W\d_])",
        # March 10, March 2020, Oct. 3rd, Oct-3
        rf"(?<![^\W\d_]){_MONTHS}[\s._,/-]*(?:the\s+)?\d",
        rf"\b{_ORDINALS}\s+of\s+{_MONTHS}\b",  # third of May
        rf"\b{_MONTHS}\.?,?\s+(?:the\s+)?{_ORDINALS}\b",  # October the third
        r"\b(?:january|february|april|june|july|august|september|october|november|december)\b",
        r"\b(?:in|of|since|from|until|till|last|this|early|mid|late)[\s-]+(?:march|may)\b",
        r"(?<!\d)(?:18|19|20)\d{2}(?!\d)",  # a year
        r"\b\d{1,2}[:h]\d{2}\b",  # a time
        # A number of a patient, a date, a telephone; not 1500 ml.
        r"(?<![\d.,])\d{4,}(?!\d|\.\d|\s?(?:ml|cc|cm|mm|g|hu)\b)",
        r"\d{5,}",
        r"\+?\d[\d ()/-]{6,}\d",  # a telephone
        # A short number, wherever it is called one: MRN 4711, ID A-4711, record number: 12, #7, No. 5
        rf"(?<![^\W_]){_NUMBERS}(?![^\W\d_])[\W_]{{0,4}}(?:(?:no|nr|number|num|id|is|was)\b[\W_]{{0,4}})?"
        r"(?:[a-z]{1,4}[\W_]{0,2})?\d",
        r"(?<![^\W_])(?:no|nos|nr|number|num)(?![^\W\d_])[\W_]{0,4}\d",
        r"(?<![^\W_])(?:no|nr)[.:]\s*[a-z]{1,4}[\W_]{0,2}\d",
        r"#\s*[a-z]{0,4}-?\d",
        r"\b(?:room|bed|ward|zimmer|bett)\s+\d",
        # An age of 90 or over: 93-year-old, 93 F, F/93, aged 93, in her 90s
        rf"{_OLD}[\s/-]*(?:old\s+)?{_YEARS}",
        rf"\b[fmw][/-]?{_OLD}",
        rf"\b(?:age[ds]?|alter)\b[\s:=/>≥-]*(?:(?:of|is|was|over|above|at\s+least|about)\s+)*{_OLD}",
        r"\b(?:9\d|1[0-4]\d)['\u2019]?s\b",
        rf"(?<![^\W_]){_OLD_WORDS}(?![^\W_])",
        r"\bage[ds]?\b[^.;]{0,20}\bhundred",
        r"\bhundred\b[^.;]{0,20}(?:\byears?\b|\byrs?\b|[\s-]year)",
        r"\S@\S",
        r"https?://",
        r"(?<![^\W_])(?:dr|prof|mr|mrs|ms|herrn?|frau|sr|sra|mme)(?![^\W_])\.?[\s_]+\S",
        r"\b(?:doctor|professor|nurse|miss|mister|doktor)\s+(?-i:[A-Z])",
    )
)
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_LETTERS_AND_DIGITS: Final = re.compile(r"[^\W_]+")
_DIGITS: Final = re.compile(r"\d+")
_ENDS_SENTENCE: Final = (".", "!", "?", ":", ";", "-", "\n", "\r")
_WIDEST_GAP: Final = 20
"""Spaces between sentences that are looked at."""


@dataclass(frozen=True)
class IdentifyingWords:
    """Words of the names, ids and addresses of objects, without accents and in lower case."""

    names: frozenset[str] = frozenset()
    """Every part of the name of a person, however short."""
    others: frozenset[str] = frozenset()
    """Words of places and ids, and the digits of ids without leading zeros."""

    def __or__(self, other: "IdentifyingWords") -> "IdentifyingWords":
        return IdentifyingWords(self.names | other.names, self.others | other.others)


def list_identifying_words(attributes: Attributes, persons: Iterable[str] = ()) -> IdentifyingWords:
    """Words of the names, ids and addresses of an object.

    Args:
        attributes: The attributes of the object.
        persons: Names of more persons.
    """
    names = {
        word
        for text in (*(attributes.decoded(tag) for tag in _PERSONS), *persons)
        for word in _LETTERS.findall(_fold(text))
    }
    others = {
        word
        for tag in _PLACES
        for word in _LETTERS_AND_DIGITS.findall(_fold(attributes.decoded(tag)))
        if len(word) >= _SHORTEST_WORD and word not in _COMMON
    }
    for tag in _IDS:
        others |= _list_parts_of_id(_fold(attributes.decoded(tag)))
    return IdentifyingWords(frozenset(names), frozenset(others))


def is_identifying(text: str, words: IdentifyingWords) -> bool:
    """Whether a text holds one of the words, or something that looks like a date, a time, an age of 90 or over, a
    number or a title."""
    plain = unicodedata.normalize("NFC", text)
    if any(pattern.search(plain) for pattern in _PATTERNS):
        return True
    folded = _fold(plain)
    tokens = {*_LETTERS.findall(folded), *_LETTERS_AND_DIGITS.findall(folded)}
    tokens |= {number.lstrip("0") for number in _DIGITS.findall(folded)}
    if not words.others.isdisjoint(tokens):
        return True
    long, short = set[str](), set[str]()
    for name in words.names:
        if _has_no_case(name):
            if (
                name in folded
            ):  # in scripts without case, such as Chinese, words may follow each other without a space
                return True
        elif len(name) < _SHORTEST_WORD:
            short.add(name)
        else:
            long.add(name)
    return not long.isdisjoint(tokens) or _has_short_name(plain, short)


def _has_short_name(text: str, names: set[str]) -> bool:
    """Whether names of one or two letters are among the words of a text.

    One that is also an ordinary word, such as An or No, counts where it has a capital and does not begin a sentence.
    """
    if not names:
        return False
    plain = _drop_accents(text)
    for match in _LETTERS.finditer(plain):
        word = match[0].lower()
        if word not in names or (len(word) == 1 and _touches_digit(plain, match)):
            continue
        is_capitalised = match[0][0].isupper()
        if word in _ORDINARY:
            is_name = is_capitalised and not _begins_sentence(plain, match)
        else:
            is_name = is_capitalised or (len(word) > 1 and word not in _UNITS)
        if is_name:
            return True
    return False


def _touches_digit(text: str, match: re.Match[str]) -> bool:
    """Whether a letter belongs to a code such as T8."""
    return any(
        sign.isdigit()
        for sign in (text[match.end() : match.end() + 1], text[match.start() - 1 : match.start()])
    )


def _begins_sentence(text: str, match: re.Match[str]) -> bool:
    """Whether a word begins a sentence, and no word with a capital comes next; a code such as T8 may."""
    after = text[match.end() : match.end() + _WIDEST_GAP]
    before = text[max(0, match.start() - _WIDEST_GAP) : match.start()].rstrip(" \t")
    following = after.lstrip()
    is_name_after = following[:1].isupper() and following[1:2].isalpha()
    return (
        after[:1].isspace() and not is_name_after and (before.endswith(_ENDS_SENTENCE) or match.start() == 0)
    )


def _list_parts_of_id(text: str) -> set[str]:
    """An id as a whole, its parts, and its digits without leading zeros."""
    parts = {*_LETTERS_AND_DIGITS.findall(text), "".join(_LETTERS_AND_DIGITS.findall(text))}
    parts = {part for part in parts if not part.isalpha() or part not in _COMMON}
    parts |= {number.lstrip("0") for number in _DIGITS.findall(text)}
    return {part for part in parts if len(part) >= _SHORTEST_WORD}


def _fold(text: str) -> str:
    return _drop_accents(text).lower()


def _drop_accents(text: str) -> str:
    parts = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", "".join(sign for sign in parts if not unicodedata.combining(sign)))


def _has_no_case(word: str) -> bool:
    return word.lower() == word.upper()
