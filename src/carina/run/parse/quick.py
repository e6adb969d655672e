"""Answers that a few words of a reply give, whatever its other words are: the same as `parse_fully` finds, sooner.

Most replies end with "Answer:" and what follows it. `parse_fully` looks there first, and where it finds an answer
nothing else counts. So where nothing before the marker can change what it announces, only what stands after it is read
here, once for the same options. A remark after the answer ("Answer: 2 (as far as one can see)", "Yes, the base is
opaque.") is left out where its first word means nothing in an answer and nothing in it can be a marker: then no later
word of it is ever looked at. Everything else is left to `parse_fully`.
"""

import re
from functools import lru_cache
from typing import Final

from carina.run.parse.choice import SENTENCE, chosen, marked_choice, opening_choice, strict_choice
from carina.run.parse.choices import Choices, word_set
from carina.run.parse.expression import KNOWN
from carina.run.parse.labels import labelled, marked_label
from carina.run.parse.markers import after_markers, may_mark
from carina.run.records import Parsed

_END: Final = 256
"""Characters at the end of a reply that are looked at."""
_NEAR: Final = 32
"""Characters before a marker that may matter to it."""
_BRIEF: Final = 8
"""Characters without which an answer has no remark."""
_SHORT: Final = 80
"""Characters of an answer that is worth remembering."""

_PLAIN: Final = re.compile(r"[\x02-\x0c\x0e-#%-;=-\[\]^a-}\x7f]*")
"""Characters that `plain` leaves alone, and stars: ASCII without returns, dollars, tags, backslashes, code, lines."""
_LINE: Final = re.compile(r"[\x0e-#%-)+-;=-\[\]^a-}]*")
"""Those of them that a line may have, without stars."""
_FRESH: Final = frozenset(".:;,!?\"'()[]#>=-\n0123456789bcdfhijkmpqsuvwxz")
"""Characters with which no word ends that denies a marker, nor one that may stand between such a word and a marker."""
_BETWEEN: Final = ("final ", "correct ", "the ", "my ")
"""Words that often stand before "answer", from the last to the first; a word that denies it may stand before them."""

_HEADS: Final = ("answer:", "answers:", "answer is ")
"""Markers that no later word makes longer."""
_HEAD: Final = len("answer:")
_REMARK: Final = re.compile(r"[.,;(\n](?:(?<=\.) \(|(?<=\n)\n| )?(?:the )?([a-z]+)(?![a-z0-9'])")
"""The beginning of what may be a remark, up to its first word: a bracket, a sentence, a clause, a line."""
_BRACKETED: Final = re.compile(r"[^()\[\]{}\n]*\)[.!]?")
"""A remark in brackets, after its first word, with which a reply ends."""
_OPENS: Final = re.compile(r"\(?(?:the )?([a-z]+)(?![a-z0-9'])|$")
"""How a sentence opens: with a word, in brackets or not, or not at all."""
_BULLET: Final = re.compile(r"[a-z]+[\s:]*[-+]\s")
"""A marker before the first item of a list, whose next items may stand on the lines of a remark."""
_SIGNS: Final = frozenset(".!?;()[]{}")

_LABEL: Final = re.compile(r"answers?(?::| is) (?:yes|no|uncertain)")
_JOINED: Final = word_set("or and")


def quick_choice(text: str, options: Choices) -> Parsed | None:
    """The options that a few words of what a reply says choose; None where only all of it can tell."""
    words = last_words(text)
    if words is None:
        return _unmarked(text, options)
    remark = _remark(words, options.words)
    if remark is None:
        return _marked(words, options)[0] if len(words) <= _SHORT else None
    if not _is_idle(words, remark):
        return None
    found, free = _marked(words[: remark.start()].rstrip(), options)
    return found if free else None


def quick_label(text: str) -> Parsed | None:
    """The label that a few words of what a reply says give; None where only all of it can tell."""
    words = last_words(text)
    if words is None:
        return None
    remark = _remark(words, _JOINED)
    if remark is None:
        return _label(words) if len(words) <= _SHORT else None
    core = words[: remark.start()].rstrip()
    return _label(core) if _LABEL.fullmatch(core) and _is_idle(words, remark) else None


# ---- the words that count -------------------------------------------------------------------------------------------


def last_words(text: str) -> str | None:
    """The plain words of what a reply says from its last "answer" on, if nothing before them has a say in what they
    mean."""
    end = text[-_END:].lower()
    at = end.rfind("answer")
    if at < 0 or (at < _NEAR and len(text) > _END):
        return None
    words = end[at:]
    if not _PLAIN.fullmatch(words) or text[0] in "{[" or "<" in text or "```" in text:
        return None
    if "*" in words:
        words = words.replace("*", "").rstrip()
        if words.rfind("answer") > 0:
            return None
    return words if not at or _is_fresh(end[:at], from_start=len(text) <= _END) else None


def _is_fresh(head: str, *, from_start: bool) -> bool:
    """Whether "answer" after these words, the last or all before it, is a marker, and not denied."""
    head = head.rstrip("*")
    if head[-2:-1] not in _FRESH:
        for word in _BETWEEN:
            head = head.removesuffix(word)
        head = head.rstrip("*")
    if not head:
        return from_start
    if head.endswith("\n\n"):
        head = head[:-1]
    # Of a backslash and a sign after it `plain` leaves nothing.
    return head[-1] in " \n" and head[-2:-1] in _FRESH and head[-3:-2] != "\\"


def _remark(text: str, named: frozenset[str]) -> re.Match[str] | None:
    """The beginning of the first remark whose first word names nothing, and means nothing in an answer."""
    for remark in _REMARK.finditer(text):
        word = remark[1]
        if word not in named and word not in KNOWN:
            return remark
    return None


def _is_idle(text: str, remark: re.Match[str]) -> bool:
    """Whether a remark after a marker and its answer changes nothing about them."""
    at = remark.start()
    return (
        text.startswith(_HEADS)
        and text.find("\n", 0, at) < 0
        and ("(" not in remark[0] or _BRACKETED.fullmatch(text, remark.end()) is not None)
        and not may_mark(text, at, len(text))
    )


# ---- what they say --------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 14)
def _marked(text: str, options: Choices) -> tuple[Parsed | None, bool]:
    """The answer in words that begin with a marker, and whether a remark may follow it."""
    for words in after_markers(text, 0, len(text)):
        found = marked_choice(words, options)
        if found is not None:
            # Whether a list that breaks off was cut off is for the whole reply to tell.
            free = found.whole and not may_mark(text, _HEAD, len(text)) and not _BULLET.match(text)
            return None if found.open else chosen(found, options), free
    return None, False


def _unmarked(text: str, options: Choices) -> Parsed | None:
    """The answer in one line without a marker: all of it but a remark in brackets, or the option that opens it."""
    line = text.lower()
    if not _BRIEF <= len(line) <= _END or line[0] in "{[" or not _LINE.fullmatch(line):
        return None
    remark = _remark(line, options.words)
    if remark is None or "answer" in line or may_mark(line, 0, len(line)):
        return None
    at = remark.start()
    core = line[:at].rstrip()
    if line[at] == "(":
        return _alone(core, options) if _BRACKETED.fullmatch(line, remark.end()) else None
    if not _SIGNS.isdisjoint(core):
        return None
    for end in SENTENCE.finditer(line, at):
        opens = _OPENS.match(line, end.end())
        if opens is None or (opens[1] and (opens[1] in options.words or opens[1] in KNOWN)):
            return None
    # Two signs stand for the sign and the word after it, which no option has either.
    return _opening(f"{core}{line[at]}{line[at]}", options)


@lru_cache(maxsize=1 << 14)
def _alone(line: str, options: Choices) -> Parsed | None:
    found = strict_choice(line, options)
    return None if found is None or not found.whole else chosen(found, options)


@lru_cache(maxsize=1 << 14)
def _opening(line: str, options: Choices) -> Parsed | None:
    found = opening_choice(line, 0, options)
    return None if found is None else chosen(found, options)


@lru_cache(maxsize=1 << 14)
def _label(text: str) -> Parsed | None:
    """The label in words that begin with a marker."""
    found = marked_label(after_markers(text, 0, len(text)))
    return None if found is None else labelled(found)
