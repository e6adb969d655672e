"""Parse the options that a reply gives as its answer."""

import re
from functools import lru_cache
from typing import Final

from carina.runs.parse.choices import ARTICLES, Choices, is_word, split_tokens
from carina.runs.parse.clauses import find_topic
from carina.runs.parse.expression import Expression, read_expression
from carina.runs.parse.failure import LENGTH_STOPS, classify_failure, is_unfinished
from carina.runs.parse.labels import (
    SHORTEST_CONTRADICTION,
    find_label_in_text,
    find_sentence_label,
    has_contradiction,
)
from carina.runs.parse.languages import translate
from carina.runs.parse.markers import SHORTEST_REVISION, find_marked_answers, find_revision, may_revise
from carina.runs.parse.natural import find_named_option
from carina.runs.parse.normalise import VisibleReply, normalise_text
from carina.runs.parse.sentences import find_in_sentences
from carina.runs.parse.structured import NO_VALUE, decode_json, find_answer_value
from carina.runs.records import ParsedAnswer

_LONGEST: Final = 4000
"""Characters of a line in which an answer is looked for."""
_NUMBER_SIGN: Final = re.compile(r"\b(?:no\.?|nr\.?|num\.?|n°)\s?#?(\d{1,2})\b(?![.,]\d)")
_NO_NUMBER: Final = re.compile(r"\b[Nn][Oo]\b[.*_]{0,3}\s?(\d{1,2})[\s.)*_]{0,8}$")
_NAMED: Final = ("option", "choice", "mask", "number", "point", "the ", "region", "statement")
"""Beginnings of a sentence that names options: a number alone may number the sentence."""
_NUMBER_ENDS: Final = frozenset("0123456789.*_")
_LINES: Final = 64
"""Most items of a list of options."""
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
_OUT_OF_RANGE: Final = Expression("out_of_range", frozenset(), is_open=False)
_AMBIGUOUS: Final = Expression("ambiguous", frozenset(), is_open=False)


def parse_choice(options: Choices, reply: VisibleReply, stop: str) -> ParsedAnswer:
    """The options that a reply chooses, or why there are none."""
    text = reply.text
    found = _find_expression(text, options, cut=is_unfinished(reply, stop))
    if found is None:
        words = normalise_text(text)
        failure = classify_failure(words, reply, stop)
        if failure.status != "no_answer" or decode_json(text) is not NO_VALUE:
            return failure
        translated = translate(words)
        if translated:
            found = _find_translated(translated, options)
            failure = failure if found is not None else classify_failure(translated, reply, stop)
        else:
            found = _find_in_prose(words, options)
        if found is None:
            return failure
    elif (
        options.labels
        and found.status == "ok"
        and (len(text) >= SHORTEST_CONTRADICTION or text[-1] in _NUMBER_ENDS)
        and _contradicts_itself(text, found, options)
    ):
        found = _AMBIGUOUS
    if found.is_open and stop in LENGTH_STOPS:
        return ParsedAnswer(status="truncated")
    return answer_from_expression(found, options)


@lru_cache(maxsize=1 << 12)
def answer_from_expression(found: Expression, options: Choices) -> ParsedAnswer:
    """An expression as a parsed answer, with the ids of its options."""
    if found.status != "ok":
        return ParsedAnswer(status=found.status)
    ids = options.ids
    return ParsedAnswer(status="ok", options=tuple([ids[n] for n in sorted(found.places)]))


def _find_in_prose(words: str, options: Choices) -> Expression | None:
    """The expression in sentences: a conclusion, a judgement, or a statement that means yes or no."""
    if not options.labels:
        has_sign = "no" in words or "nr" in words or "num" in words or "n°" in words
        numbered = _NUMBER_SIGN.sub(r"number \1", words) if has_sign else words
        found = _find_in_text(numbered, options, cut=False) if numbered != words else None
        return found or _read_first_line(numbered, options) or find_in_sentences(numbered, options)
    found = _read_first_line(words, options) or find_in_sentences(words, options)
    if found is not None:
        return found
    label = find_label_in_text(words) or find_sentence_label(
        words, find_topic(options.question), on_topic=True
    )
    if label == "both":
        return _AMBIGUOUS
    return None if label not in options.labels else _answer_label(options.labels[label])


def _read_first_line(words: str, options: Choices) -> Expression | None:
    """The expression that stands alone on the first line or in the first sentence, before an explanation in words."""
    line, _, rest = words.partition("\n")
    if rest and not _NUMBERED.match(rest.lstrip()):
        found = read_whole_line(line, options)
        if found is not None:
            return found
    if not words.startswith(_NAMED):
        return None
    sentences = [read_whole_line(part, options) for part in SENTENCE.split(words[:_LONGEST]) if part.strip()]
    read = {item for item in sentences if item is not None}
    return sentences[0] if len(read) == 1 else None


def _is_revised(words: str, found: Expression, options: Choices) -> bool:
    """Whether another answer follows after "wait" or "actually"."""
    tail = find_revision(words)
    revised = read_whole_line(_first_sentence(tail), options) if tail else None
    return revised is not None and revised.places != found.places


def _answer_label(place: int) -> Expression:
    return Expression("ok", frozenset((place,)), is_open=False)


def _find_translated(words: str, options: Choices) -> Expression | None:
    """The expression in a reply that was translated."""
    found = _find_in_text(words, options, cut=False) or _find_in_prose(words, options)
    if (
        found is not None
        and found.status == "ok"
        and options.labels
        and _contradicts_itself(words, found, options)
    ):
        return _AMBIGUOUS
    return found


def _contradicts_itself(text: str, found: Expression, options: Choices) -> bool:
    """Whether a reply to a question with the options yes and no says the opposite of its option.

    "No. 2" is option 2 as well as the option no, so it counts only where these are the same.
    """
    if text[-1] in _NUMBER_ENDS:
        numbered = _NO_NUMBER.search(text, max(0, len(text) - _SHORT))
        if numbered is not None and found.places != {int(numbered[1]) - 1}:
            return True
    (place,) = found.places
    return has_contradiction(options.question, text, options.label_at[place])


def _find_expression(text: str, options: Choices, *, cut: bool) -> Expression | None:
    """The expression in a reply, in JSON or in words."""
    if text[:1] in ("{", "[") or "```" in text:
        value = decode_json(text)
        if value is not NO_VALUE:
            found = _read_json(value, options)
            if found is not None or isinstance(value, dict):
                return found
    words = normalise_text(text)
    found = _find_in_text(words, options, cut=cut)
    start = words.rfind("answer")
    if (
        found is not None
        and 0 <= start <= len(words) - SHORTEST_REVISION
        and may_revise(words[start:])
        and _is_revised(words, found, options)
    ):
        return _AMBIGUOUS
    return found


def _find_in_text(words: str, options: Choices, *, cut: bool) -> Expression | None:
    """The expression in a normalised text.

    It is looked for after the last marker, then as the whole, the end or the beginning of the text, then in other
    words than those of the options.
    """
    last: str | None = None
    for tail in find_marked_answers(words):
        found = (
            _read_after_marker_cached(tail, options)
            if len(tail) <= _SHORT
            else read_after_marker(tail, options)
        )
        if found is not None:
            return found
        last = tail if last is None else last
    found = _find_without_marker(words, options, cut=cut)
    if found is not None or cut:
        return found
    number = find_named_option(words if last is None else _first_sentence(last), options)
    return None if number is None else Expression("ok", frozenset((number,)), is_open=False)


def _find_without_marker(words: str, options: Choices, *, cut: bool) -> Expression | None:
    closing, whole = _read_closing(words, options, cut=cut)
    if whole:
        return closing
    opening = _read_opening(words, options)
    if closing is not None and opening is not None and closing.places != opening.places:
        return _AMBIGUOUS if opening.status == closing.status == "ok" else closing
    return closing or opening


# ---- after a marker -------------------------------------------------------------------------------------------------


def read_after_marker(tail: str, options: Choices) -> Expression | None:
    """The expression that follows a marker: on its line, or as a list on the lines after it."""
    line, _, rest = tail.partition("\n")
    if _is_blank(line):
        listed, first = _read_list(rest, options)
        if listed:
            return _combine_lines(listed, options)
        return _read_line(first, options) if first and not _NUMBERED.match(first) else None
    found = _OUT_OF_RANGE if _MINUS.match(line) else _read_line(line, options)
    if found is None or not rest:
        return found
    if not (found.is_open or _BULLET.match(line.lstrip(" :")) or read_whole_line(line, options)):
        return found
    if not found.is_open:
        # Lines that follow at once are a list; after an empty line something else begins.
        rest = rest.partition("\n\n")[0]
    more, _ = _read_list(rest, options)
    return _combine_lines([found, *more], options)


_read_after_marker_cached = lru_cache(maxsize=1 << 14)(read_after_marker)
"""Cached: replies differ in the text before the answer, but the short text after a marker often repeats."""


def _read_line(line: str, options: Choices) -> Expression | None:
    return read_expression(split_tokens(line[:_LONGEST]), options, strict=False)


def _is_blank(line: str) -> bool:
    """Whether a line has no words but "is" and the like after its marker."""
    return len(line) < 24 and not any(is_word(word) and word not in _NO_WORDS for word in split_tokens(line))


def _read_list(text: str, options: Choices) -> tuple[list[Expression], str]:
    """The expressions in the first lines of a text, and its first line that is not empty."""
    found: list[Expression] = []
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
        item = read_whole_line(line, options)
        if item is None:
            break
        found.append(item)
    return found, first


def read_whole_line(line: str, options: Choices) -> Expression | None:
    return read_expression(split_tokens(line), options, strict=True) if len(line) <= _LONGEST else None


def _combine_lines(found: list[Expression], options: Choices) -> Expression:
    """Combine the expressions of the lines of a list."""
    if len(found) == 1:
        return found[0]
    chosen = frozenset().union(*(item.places for item in found))
    for item in found:
        if item.status in ("out_of_range", "ambiguous"):
            return item
    if options.none in chosen and len(chosen) > 1:
        return _AMBIGUOUS
    if len(chosen) > 1 and not options.multiple:
        return Expression("too_many", chosen, is_open=False)
    return Expression("ok", chosen, is_open=found[-1].is_open)


def _first_sentence(tail: str) -> str:
    """The first sentence after a marker, without remarks that follow it."""
    text = tail[:_OPENING].lstrip(_SIGNS_AFTER)
    end = SENTENCE.search(text)
    return text if end is None else text[: end.end()]


# ---- without a marker -----------------------------------------------------------------------------------------------


def _read_closing(words: str, options: Choices, *, cut: bool) -> tuple[Expression | None, bool]:
    """The expression in the last line, or in the list at the end of a reply, and whether it is the whole reply.

    A reply that was cut off only counts if the whole of it is an expression.
    """
    found: list[Expression] = []
    end = len(words)
    while end > 0 and len(found) < _LINES:
        start = words.rfind("\n", 0, end) + 1
        line = words[start:end]
        end = start - 1
        if not line or line.isspace():
            continue
        item = read_whole_line(line, options)
        if item is None:
            if cut or (found and _OFFERED.search(line.strip())):
                return None, False
            break
        found.append(item)
    else:
        return (_combine_lines(found[::-1], options), True) if found else (None, False)
    return (_combine_lines(found[::-1], options), False) if found else (None, False)


def _read_opening(words: str, options: Choices) -> Expression | None:
    """The option whose text begins the reply; ambiguous if a later sentence begins with another option."""
    first = read_sentence_opening(words, 0, options)
    if first is None or first.status != "ok":
        return first
    for sentence in SENTENCE.finditer(words):
        later = read_sentence_opening(words, sentence.end(), options)
        if later is not None and later.places != first.places:
            return _AMBIGUOUS
    return first


def read_sentence_opening(words: str, at: int, options: Choices) -> Expression | None:
    """The option whose full text begins the sentence at a position, followed by punctuation."""
    head = words[at : at + _OPENING]
    line = head.partition("\n")[0]
    tokens = split_tokens(line)
    place = 0
    label = -1
    if len(tokens) > 2 and (tokens[0] in "([" or not is_word(tokens[1])):
        # A label before the text, as in "B. Left lung, as ...".
        place = 1 if tokens[0] in "([" else 0
        word = tokens[place]
        label = options.letters.get(word, int(word) - 1 if word.isdecimal() and len(word) < 3 else -1)
        place = place + 2 if label >= 0 and len(tokens) > place + 2 else 0
        if place and is_word(tokens[place - 1]):
            place = 0
        label = label if place else -1
    while place < len(tokens) and (tokens[place] in ARTICLES or tokens[place] in "\"'-"):
        place += 1
    if place >= len(tokens):
        return None
    full, end, _, _ = options.find_text(tokens, place)
    if (
        full < 0
        or (end < len(tokens) and is_word(tokens[end]))
        or (end < len(tokens) and tokens[end] in "/%&+")
    ):
        return None
    if end == len(tokens) and len(line) == _OPENING:
        return None
    if label >= 0 and label != full:
        return _AMBIGUOUS
    return Expression("ok", frozenset((full,)), is_open=False)


# ---- JSON -----------------------------------------------------------------------------------------------------------


def _read_json(value: object, options: Choices) -> Expression | None:
    answer = find_answer_value(value)
    if answer is NO_VALUE or answer is None:
        return None
    if isinstance(answer, list):
        found = [_read_json_value(part, options) for part in answer[:_LINES]]
        known = [part for part in found if part is not None]
        return _combine_lines(known, options) if known and len(known) == len(answer) else None
    return _read_json_value(answer, options)


def _read_json_value(value: object, options: Choices) -> Expression | None:
    """The expression in one value of a JSON answer."""
    if isinstance(value, dict | list):
        inner = find_answer_value(value, inner=True)
        return (
            None if inner is NO_VALUE or isinstance(inner, dict | list) else _read_json_value(inner, options)
        )
    if isinstance(value, bool):
        value = "yes" if value else "no"
    elif isinstance(value, float) and value.is_integer():
        value = f"{value:.0f}"
    words = str(value)[:_LONGEST]
    return _read_json_text_cached(words, options) if len(words) <= _SHORT else _read_json_text(words, options)


def _read_json_text(value: str, options: Choices) -> Expression | None:
    words = normalise_text(value)
    if _NEGATIVE.fullmatch(words):
        return _OUT_OF_RANGE
    return read_expression(split_tokens(words), options, strict=True) or _find_in_text(
        words, options, cut=False
    )


_read_json_text_cached = lru_cache(maxsize=1 << 14)(_read_json_text)
