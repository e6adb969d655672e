"""Answers to choose from: which options a reply names, if it names them as its answer."""

import re
from functools import lru_cache
from typing import Final

from carina.runs.parse.choices import ARTICLES, Choices, is_word, tokens
from carina.runs.parse.expression import Read, read
from carina.runs.parse.failure import CUT, failed, is_cut
from carina.runs.parse.markers import last_answers
from carina.runs.parse.natural import natural
from carina.runs.parse.normalise import Spoken, plain
from carina.runs.parse.structured import NOTHING, answer_in, decoded
from carina.runs.records import Parsed

_LONGEST: Final = 4000
"""Characters of a line in which an answer is looked for; nobody lists options at greater length."""
_LINES: Final = 64
"""Items that a list of options may have."""
_SHORT: Final = 80
_OPENING: Final = 300
_NUMBERED: Final = re.compile(r"\s*[(\[]?\w{1,2}[.):]\s")
_BULLET: Final = re.compile(r"\s*[-+]\s")
_MINUS: Final = re.compile(r"\s*(?:is|are|:|=)+\s+-\d")
_NEGATIVE: Final = re.compile(r"-\d+")
SENTENCE: Final = re.compile(r"[.!?;\n][\s\"')\]]*")
_OFFERED: Final = re.compile(r"(?:options|choices)(?: (?:are|were))?\s*:?$")
_NO_WORDS: Final = frozenset(("is", "are", "=", ">", "option", "options", "choice", "s"))
_SIGNS_AFTER: Final = " \t\n:=-\x01\"'(["
_OUT: Final = Read("out_of_range", frozenset(), open=False)
_UNCLEAR: Final = Read("ambiguous", frozenset(), open=False)


def parse_choice(options: Choices, said: Spoken, stop: str) -> Parsed:
    """The options that a reply chooses, or why none can be told."""
    text = said.text
    found = _found(text, options, cut=is_cut(said, stop))
    if found is None:
        return failed(plain(text), said, stop)
    if found.open and stop in CUT:
        return Parsed(status="truncated")
    return chosen(found, options)


@lru_cache(maxsize=1 << 12)
def chosen(found: Read, options: Choices) -> Parsed:
    """What was read, by the ids of the options."""
    if found.status != "ok":
        return Parsed(status=found.status)
    ids = options.ids
    return Parsed(status="ok", options=tuple([ids[n] for n in sorted(found.chosen)]))


def _found(text: str, options: Choices, *, cut: bool) -> Read | None:
    """What a reply says, as JSON or in words."""
    if text[:1] in ("{", "[") or "```" in text:
        value = decoded(text)
        if value is not NOTHING:
            found = _structured(value, options)
            if found is not None or isinstance(value, dict):
                return found
    return _answer(plain(text), options, cut=cut)


def _answer(words: str, options: Choices, *, cut: bool) -> Read | None:
    """The answer in a plain text: after the last marker, or as the whole, the end or the opening of the reply; failing
    that, in natural words."""
    last: str | None = None
    for tail in last_answers(words):
        found = _marked_again(tail, options) if len(tail) <= _SHORT else marked_choice(tail, options)
        if found is not None:
            return found
        last = tail if last is None else last
    found = _without_marker(words, options, cut=cut)
    if found is not None or cut:
        return found
    number = natural(words if last is None else _first_sentence(last), options)
    return None if number is None else Read("ok", frozenset((number,)), open=False)


def _without_marker(words: str, options: Choices, *, cut: bool) -> Read | None:
    closing, whole = _closing(words, options, cut=cut)
    if whole:
        return closing
    opening = _opening(words, options)
    if closing is not None and opening is not None and closing.chosen != opening.chosen:
        return _UNCLEAR if opening.status == closing.status == "ok" else closing
    return closing or opening


# ---- after a marker -------------------------------------------------------------------------------------------------


def marked_choice(tail: str, options: Choices) -> Read | None:
    """The expression that follows a marker: on its line, or as a list on the lines after it."""
    line, _, rest = tail.partition("\n")
    if _is_blank(line):
        listed, first = _list(rest, options)
        if listed:
            return _together(listed, options)
        return _line(first, options) if first and not _NUMBERED.match(first) else None
    found = _OUT if _MINUS.match(line) else _line(line, options)
    if found is None or not rest:
        return found
    if not (found.open or _BULLET.match(line.lstrip(" :")) or strict_choice(line, options)):
        return found
    if not found.open:
        # Lines that follow at once are a list; after an empty line something else begins.
        rest = rest.partition("\n\n")[0]
    more, _ = _list(rest, options)
    return _together([found, *more], options)


_marked_again = lru_cache(maxsize=1 << 14)(marked_choice)
"""What comes before an answer differs from reply to reply; the answer hardly does."""


def _line(line: str, options: Choices) -> Read | None:
    return read(tokens(line[:_LONGEST]), options, strict=False)


def _is_blank(line: str) -> bool:
    """Whether a line says nothing but "is:" after its marker."""
    return len(line) < 24 and not any(is_word(word) and word not in _NO_WORDS for word in tokens(line))


def _list(text: str, options: Choices) -> tuple[list[Read], str]:
    """The lines with which a text begins that are expressions, and its first line that says anything."""
    found: list[Read] = []
    first = ""
    at, size = 0, len(text)
    while at < size and len(found) < _LINES:
        end = text.find("\n", at)
        end = size if end < 0 else end
        line = text[at:end]
        at = end + 1
        if line.isspace() or not line:
            continue
        first = first or line
        item = strict_choice(line, options)
        if item is None:
            break
        found.append(item)
    return found, first


def strict_choice(line: str, options: Choices) -> Read | None:
    return read(tokens(line), options, strict=True) if len(line) <= _LONGEST else None


def _together(found: list[Read], options: Choices) -> Read:
    """What the lines of a list say together."""
    if len(found) == 1:
        return found[0]
    chosen = frozenset().union(*(item.chosen for item in found))
    for item in found:
        if item.status in ("out_of_range", "ambiguous"):
            return item
    if options.none in chosen and len(chosen) > 1:
        return _UNCLEAR
    if len(chosen) > 1 and not options.multiple:
        return Read("too_many", chosen, open=False)
    return Read("ok", chosen, open=found[-1].open)


def _first_sentence(tail: str) -> str:
    """What a marker announces, without what is said about it afterwards."""
    text = tail[:_OPENING].lstrip(_SIGNS_AFTER)
    end = SENTENCE.search(text)
    return text if end is None else text[: end.end()]


# ---- without a marker -----------------------------------------------------------------------------------------------


def _closing(words: str, options: Choices, *, cut: bool) -> tuple[Read | None, bool]:
    """The last line, or the list with which a reply closes, and whether that is all of the reply.

    A reply that was cut off ends in the middle of something: it must be an expression as a whole.
    """
    found: list[Read] = []
    end = len(words)
    while end > 0 and len(found) < _LINES:
        start = words.rfind("\n", 0, end) + 1
        line = words[start:end]
        end = start - 1
        if not line or line.isspace():
            continue
        item = strict_choice(line, options)
        if item is None:
            if cut or (found and _OFFERED.search(line.strip())):
                return None, False
            break
        found.append(item)
    else:
        return (_together(found[::-1], options), True) if found else (None, False)
    return (_together(found[::-1], options), False) if found else (None, False)


def _opening(words: str, options: Choices) -> Read | None:
    """The option with whose text a reply opens, unless a later sentence opens with another one."""
    first = opening_choice(words, 0, options)
    if first is None or first.status != "ok":
        return first
    for sentence in SENTENCE.finditer(words):
        later = opening_choice(words, sentence.end(), options)
        if later is not None and later.chosen != first.chosen:
            return _UNCLEAR
    return first


def opening_choice(words: str, at: int, options: Choices) -> Read | None:
    """The option whose full text stands at the beginning of a sentence, with punctuation after it."""
    head = words[at : at + _OPENING]
    line = head.partition("\n")[0]
    said = tokens(line)
    place = 0
    label = -1
    if len(said) > 2 and (said[0] in "([" or not is_word(said[1])):
        # A label before the text, as in "B. Left lung, as ...".
        place = 1 if said[0] in "([" else 0
        word = said[place]
        label = options.letters.get(word, int(word) - 1 if word.isdecimal() and len(word) < 3 else -1)
        place = place + 2 if label >= 0 and len(said) > place + 2 else 0
        if place and is_word(said[place - 1]):
            place = 0
        label = label if place else -1
    while place < len(said) and (said[place] in ARTICLES or said[place] in "\"'-"):
        place += 1
    if place >= len(said):
        return None
    full, end, _, _ = options.text(said, place)
    if full < 0 or (end < len(said) and is_word(said[end])) or (end < len(said) and said[end] in "/%&+"):
        return None
    if end == len(said) and len(line) == _OPENING:
        return None
    if label >= 0 and label != full:
        return _UNCLEAR
    return Read("ok", frozenset((full,)), open=False)


# ---- JSON -----------------------------------------------------------------------------------------------------------


def _structured(value: object, options: Choices) -> Read | None:
    answer = answer_in(value)
    if answer is NOTHING or answer is None:
        return None
    if isinstance(answer, list):
        found = [_value(part, options) for part in answer[:_LINES]]
        known = [part for part in found if part is not None]
        return _together(known, options) if known and len(known) == len(answer) else None
    return _value(answer, options)


def _value(value: object, options: Choices) -> Read | None:
    """One value of a JSON answer, read like words."""
    if isinstance(value, dict | list):
        inner = answer_in(value, inner=True)
        return None if inner is NOTHING or isinstance(inner, dict | list) else _value(inner, options)
    if isinstance(value, bool):
        value = "yes" if value else "no"
    elif isinstance(value, float) and value.is_integer():
        value = f"{value:.0f}"
    words = str(value)[:_LONGEST]
    return _worded_again(words, options) if len(words) <= _SHORT else _worded(words, options)


def _worded(value: str, options: Choices) -> Read | None:
    words = plain(value)
    if _NEGATIVE.fullmatch(words):
        return _OUT
    return read(tokens(words), options, strict=True) or _answer(words, options, cut=False)


_worded_again = lru_cache(maxsize=1 << 14)(_worded)
