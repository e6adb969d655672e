"""Looks for names, numbers and dates of persons in the text of a report.

The check is meant to refuse too much rather than too little: a text in which anything is found is dropped as a whole.
It knows the names in the headers of the study, and patterns; it cannot find a name that is in no header and has no
title before it.
"""

import re
from collections.abc import Iterable
from typing import Final

from carina.sources.dicom.attributes import Attributes, Tag

_IDENTIFYING: Final = (
    Tag.PATIENT_NAME,
    Tag.OTHER_NAMES,
    Tag.BIRTH_NAME,
    Tag.MOTHERS_BIRTH_NAME,
    Tag.REFERRING_PHYSICIAN,
    Tag.PERFORMING_PHYSICIAN,
    Tag.READING_PHYSICIAN,
    Tag.REQUESTING_PHYSICIAN,
    Tag.OPERATORS,
    Tag.INSTITUTION,
    Tag.INSTITUTION_ADDRESS,
    Tag.STATION,
    Tag.PATIENT_ADDRESS,
    Tag.PATIENT_PHONE,
    Tag.PATIENT_ID,
    Tag.OTHER_IDS,
    Tag.ACCESSION_NUMBER,
    Tag.STUDY_ID,
)
_SHORTEST_WORD: Final = 3
_COMMON: Final = frozenset(
    ("and", "the", "for", "hospital", "clinic", "general", "street", "room", "chest", "radiology")
)
"""Words of institutions and addresses that identify nobody."""
_MONTHS: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?|januar|februar|m[äa]rz|mai|juni|juli|oktober|dezember)"
)
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b\d{1,4}\s?[./-]\s?\d{1,2}\s?[./-]\s?\d{1,4}\b",  # 10.3.2020, 2020-03-10
        r"\b\d{1,2}/\d{1,4}\b",  # 3/10, 03/2020
        rf"\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s+(?:of\s+)?{_MONTHS}\b",  # 10 March
        rf"\b{_MONTHS}\.?\s+\d{{1,4}}\b",  # March 10, March 2020
        r"\b(?:19|20)\d{2}\b",  # a year
        r"\b\d{1,2}[:h]\d{2}\b",  # a time
        r"\d{5,}",  # a number of a patient, a date, a telephone
        r"\+?\d[\d ()/-]{6,}\d",  # a telephone
        r"\S+@\S+",
        r"https?://",
        r"\b(?:dr|prof|mr|mrs|ms|herr|frau|sr|sra|mme)\b\.?\s+\S",
    )
)


def list_identifying_words(attributes: Attributes, more: Iterable[str] = ()) -> set[str]:
    """Words of the names, ids and addresses of an object, in lower case."""
    texts = [attributes.decoded(tag) for tag in _IDENTIFYING]
    return {
        word
        for text in (*texts, *more)
        for word in re.findall(r"\w+", text.lower())
        if len(word) >= _SHORTEST_WORD and word not in _COMMON
    }


def is_identifying(text: str, words: set[str]) -> bool:
    """Whether a text holds one of the words, or something that looks like a date, a time, a number or a title."""
    if any(pattern.search(text) for pattern in _PATTERNS):
        return True
    return not words.isdisjoint(re.findall(r"\w+", text.lower()))
