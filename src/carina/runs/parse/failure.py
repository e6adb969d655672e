"""Why a reply has no answer."""

from typing import Final

from carina.runs.parse.normalise import Spoken
from carina.runs.parse.refusal import refuses
from carina.runs.records import Parsed

CUT: Final = frozenset(("max_tokens", "length", "model_length"))
"""Reasons to stop that mean: by length."""
_FILTERED: Final = frozenset(("content_filter", "refusal", "safety"))


def is_cut(said: Spoken, stop: str) -> bool:
    """Whether a reply ended before it was finished."""
    return said.cut or stop in CUT


def failed(words: str, said: Spoken, stop: str) -> Parsed:
    """The class of a reply in whose plain words no answer was found."""
    if is_cut(said, stop) or (said.thought and not said.text):
        return Parsed(status="truncated")
    return Parsed(status="refusal" if stop in _FILTERED or refuses(words) else "no_answer")
