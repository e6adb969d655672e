"""Replies in Chinese, Spanish, German and French, whose words are replaced by English ones before they are read.

Only the words of answers are replaced: labels, negations, numbers, markers, sides, colours, regions, frequent findings.
They are in one file for each language: its words, separated by `|`, then `=` and the English words that replace them.
"""

import re
import unicodedata
from functools import lru_cache
from importlib import resources
from typing import Final, NamedTuple

from carina.runs.parse.choices import word_set

_LONGEST: Final = 4000
"""Characters that are translated, half of them from either end."""
_CHINESE: Final = re.compile(r"[\u4e00-\u9fff]")

_EUROPEAN: Final = ("spanish", "german", "french")
_ENGLISH: Final = word_set(
    "the is are of there this and not with it that to on from has been i as in at which for be or"
)
_CERTAINLY_ENGLISH: Final = frozenset(("the", "is", "are", "there", "this", "of", "and", "it"))
_ALIKE: Final = word_set(
    "a an am as at be in on so me son die man was war plus point points option options image images region orange no "
    "non normal edema pneumothorax consolidation fracture nodule zone visible present medical superior inferior "
    "lateral media condensation violet violette opacity second also all fin sin est of probable region angle car ni la "
    "le de en y e o u si ne des ou pas vert mid lob still her den"
)
"""Words that are also English or occur in several languages: they do not show which language a reply is in."""
_WORD: Final = re.compile(r"[^\W\d_]+")
_ELISION: Final = re.compile(r"\b(?:[ldscjmt]|qu)'(?=[^\W\d_])")
_NEGATION: Final = re.compile(r"\bn'(?=[^\W\d_])")
_NOTHING_ELSE: Final = re.compile(
    r"\b(?:keine[rs]?|ningun[oa]|aucune?|kein|nada|nichts|rien)(?=[\s.!\"')\]]*(?:$|\n))"
)
_CHINESE_IS: Final = re.compile(r"(?:^|(?<=[\s,.:;!?\"'(\x01]))(?:是|有)(?=[\s,.;!?\"')]|$)")
_CHINESE_NONE: Final = re.compile(r"(?:^|(?<=[\s:\x01]))(?:没有|无)(?=[\s.!\"')]*$)")
_CHINESE_NO: Final = re.compile(r"(?:^|(?<=[\s:.;\x01]))(?:没有|无|不是|不)(?=\s?[,.;!])")
_CHINESE_QUESTION: Final = re.compile(r"吗(?=[\s?.!]*$)")
_MARKS: Final = re.compile(r"[\u0300-\u036f]+")


class _Language(NamedTuple):
    words: dict[str, str]
    pattern: re.Pattern[str]
    hints: frozenset[str]
    """Words that show that a reply is in this language."""


@lru_cache
def _read_language(name: str) -> _Language:
    """The words of a language from its file, without accents, each with the English words that replace it."""
    text = resources.files(__package__).joinpath(f"{name}.txt").read_text(encoding="utf-8")
    words: dict[str, str] = {}
    for line in text.splitlines():
        foreign, _, english = line.partition("=")
        words.update(dict.fromkeys((word.strip() for word in foreign.split("|")), english.strip()))
    longest_first = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    # Chinese is written without spaces.
    pattern = re.compile(longest_first if name == "chinese" else rf"\b(?:{longest_first})\b")
    hints = frozenset(part for word in words for part in _WORD.findall(word)) - _ALIKE
    return _Language(words, pattern, hints)


@lru_cache
def _all_hints() -> frozenset[str]:
    return frozenset().union(*(_read_language(name).hints for name in _EUROPEAN))


def translate(words: str) -> str:
    """The words of a normalised reply in English; an empty string for one that is not in another known language."""
    words = _shorten(words)
    is_ascii = words.isascii()
    if not is_ascii and _CHINESE.search(words):
        return _translate_chinese(words)
    if is_ascii and not _CERTAINLY_ENGLISH.isdisjoint(words.split()):
        return ""
    found = _WORD.findall(words)
    if is_ascii and len(found) != 1 and _all_hints().isdisjoint(found):
        return ""
    text = _ELISION.sub("", _NEGATION.sub("ne ", _remove_accents(words)))
    language = _find_language(_WORD.findall(text))
    if language is None:
        return ""
    text = _NOTHING_ELSE.sub("none", text)
    return language.pattern.sub(lambda found: language.words[found[0]], text)


def _shorten(words: str) -> str:
    if len(words) <= _LONGEST:
        return words
    # The dots separate the two parts, so that no answer is read across the cut.
    return f"{words[: _LONGEST // 2]}...\n...\n...{words[-_LONGEST // 2 :]}"


def _translate_chinese(words: str) -> str:
    words = _CHINESE_QUESTION.sub("?", words)
    words = _CHINESE_IS.sub(" yes ", words)
    words = _CHINESE_NO.sub(" no ", _CHINESE_NONE.sub(" none ", words))
    chinese = _read_language("chinese")
    translated = chinese.pattern.sub(lambda found: f" {chinese.words[found[0]]} ", words)
    return re.sub(r"[ \t]+", " ", translated).strip()


def _remove_accents(words: str) -> str:
    if words.isascii():
        return words
    words = words.replace("œ", "oe").replace("ß", "ss")
    return _MARKS.sub("", unicodedata.normalize("NFD", words))


def _find_language(found: list[str]) -> _Language | None:
    """The language with the most words in a reply, if these are more than the English ones and a third of all."""
    if not found:
        return None
    languages = [_read_language(name) for name in _EUROPEAN]
    if len(found) == 1:
        return next((one for one in languages if found[0] in one.words), None)
    english = sum(word in _ENGLISH for word in found)
    number, language = max(
        ((sum(word in one.hints for word in found), one) for one in languages), key=lambda pair: pair[0]
    )
    shared = sum(word in language.words for word in found)
    return language if number > english and 3 * max(number, shared) >= len(found) else None
