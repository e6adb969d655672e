"""Decode a reply that is JSON, or whose only fenced block is JSON, and find the answer in it."""

import re
from functools import lru_cache
from typing import Any, Final

import msgspec

_FENCE: Final = re.compile(r"```[ \t]{0,8}[A-Za-z0-9_+-]{0,16}[ \t]{0,8}\n?")
_NOT_LETTER: Final = re.compile(r"[^a-z]+")
_KEYS: Final = (
    ("finalanswer", "finalanswers", "finalchoice", "finaloption"),
    ("answer", "answers", "correctanswer", "correctanswers", "youranswer", "myanswer"),
    (
        "option",
        "options",
        "choice",
        "choices",
        "selectedoption",
        "selectedoptions",
        "selected",
        "correctoption",
        "correctoptions",
        "answerchoice",
        "selection",
    ),
    ("number", "numbers", "id", "letter", "label", "text", "value"),
)
"""Keys that hold an answer, the most certain first; those of the last row only count within an answer."""
_RANKS: Final = {name: rank for rank, name in enumerate(name for row in _KEYS for name in row)}
_NO_RANK: Final = len(_RANKS)
_OUTER: Final = _NO_RANK - len(_KEYS[-1])
_KEY: Final = 40
"""Characters of a key up to which its rank is cached."""
_LEVELS: Final = 4
_PARTS: Final = 64

NO_VALUE: Final = object()
"""There is no JSON, or no answer in it. This differs from the JSON value null."""


def decode_json(text: str) -> Any:  # noqa: ANN401
    """Decode the JSON value that a reply consists of; `NO_VALUE` where it is not JSON."""
    body = text
    if text[:1] not in ("{", "[", " ", "\n", "\t", "`") and "```" not in text:
        return NO_VALUE
    if "```" in text:
        parts = _FENCE.split(text, maxsplit=3)
        if len(parts) not in (2, 3):
            return NO_VALUE
        body = parts[1]
    body = body.strip()
    if body[:1] not in ("{", "["):
        return NO_VALUE
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError, ValueError):
        return NO_VALUE


def find_answer_value(value: object, *, inner: bool = False, level: int = 0) -> Any:  # noqa: ANN401 - JSON is anything
    """The value under a key for answers; `NO_VALUE` where there is none.

    For a list of records, the list of their answers.
    """
    if level > _LEVELS:
        return NO_VALUE
    if isinstance(value, dict):
        return _find_under_key(value, inner=inner, level=level)
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value[:_PARTS]):
        found = [find_answer_value(part, inner=inner, level=level + 1) for part in value[:_PARTS]]
        return NO_VALUE if any(part is NO_VALUE for part in found) else found
    return NO_VALUE if level else value


def _find_under_key(record: dict[str, Any], *, inner: bool, level: int) -> Any:  # noqa: ANN401
    best, surest = "", _NO_RANK if inner else _OUTER
    for key in record:
        rank = _rank_cached(key) if len(key) <= _KEY else _rank(key)
        # Of two spellings of the same key the later one counts.
        if rank < surest or (best and rank == surest):
            best, surest = key, rank
    if best:
        found = record[best]
        return find_answer_value(found, inner=True, level=level + 1) if isinstance(found, dict) else found
    if len(record) == 1 and not inner:
        (only,) = record.values()
        if isinstance(only, dict | list):
            return find_answer_value(only, level=level + 1)
    return NO_VALUE


def _rank(key: str) -> int:
    """The rank of a key in `_KEYS`, ignoring case and punctuation."""
    return _RANKS.get(_NOT_LETTER.sub("", key.lower()), _NO_RANK)


_rank_cached = lru_cache(maxsize=1024)(_rank)
