"""Replies in JSON: the whole of it, or its only fenced block."""

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
"""Keys under which an answer is found, the surest first; the last row only within an answer."""
_RANKS: Final = {name: rank for rank, name in enumerate(name for row in _KEYS for name in row)}
_NO_RANK: Final = len(_RANKS)
_OUTER: Final = _NO_RANK - len(_KEYS[-1])
_KEY: Final = 40
"""Characters of a key that is worth remembering."""
_LEVELS: Final = 4
_PARTS: Final = 64

NOTHING: Final = object()
"""No JSON at all, which is not the JSON value null."""


def decoded(text: str) -> Any:  # noqa: ANN401
    """The JSON value that a reply consists of, or `NOTHING`."""
    body = text
    if "```" in text:
        parts = _FENCE.split(text, maxsplit=3)
        if len(parts) not in (2, 3):
            return NOTHING
        body = parts[1]
    body = body.strip()
    if body[:1] not in ("{", "["):
        return NOTHING
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError, ValueError):
        return NOTHING


def answer_in(value: object, *, inner: bool = False, level: int = 0) -> Any:  # noqa: ANN401 - JSON is anything
    """What stands under a key for answers; `NOTHING` where there is none.

    A list of records is taken for the list of their answers.
    """
    if level > _LEVELS:
        return NOTHING
    if isinstance(value, dict):
        return _under_key(value, inner=inner, level=level)
    if isinstance(value, list) and value and all(isinstance(part, dict) for part in value[:_PARTS]):
        found = [answer_in(part, inner=inner, level=level + 1) for part in value[:_PARTS]]
        return NOTHING if any(part is NOTHING for part in found) else found
    return NOTHING if level else value


def _under_key(record: dict[str, Any], *, inner: bool, level: int) -> Any:  # noqa: ANN401
    best, surest = "", _NO_RANK if inner else _OUTER
    for key in record:
        rank = _remembered(key) if len(key) <= _KEY else _rank(key)
        # Of two spellings of the same name the later one counts.
        if rank < surest or (best and rank == surest):
            best, surest = key, rank
    if best:
        found = record[best]
        return answer_in(found, inner=True, level=level + 1) if isinstance(found, dict) else found
    if len(record) == 1 and not inner:
        (only,) = record.values()
        if isinstance(only, dict | list):
            return answer_in(only, level=level + 1)
    return NOTHING


def _rank(key: str) -> int:
    """The place of a key among those of answers, whatever its spelling."""
    return _RANKS.get(_NOT_LETTER.sub("", key.lower()), _NO_RANK)


_remembered = lru_cache(maxsize=1024)(_rank)
