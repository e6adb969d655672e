"""Answers in words: the text itself."""

from carina.runs.parse.failure import failed, is_cut
from carina.runs.parse.normalise import Spoken, plain, storable
from carina.runs.parse.refusal import refuses
from carina.runs.records import Parsed

_SHORT = 600
"""A refusal that an answer follows is longer than this, or has no answer."""


def parse_words(said: Spoken, stop: str) -> Parsed:
    """The text of a reply without its reasoning. A text that was cut off by length still says what it says."""
    text = said.text
    if not text:
        return failed("", said, stop)
    if said.cut and is_cut(said, stop):
        return Parsed(status="truncated", text=storable(text))
    if len(text) <= _SHORT and refuses(plain(text)):
        return Parsed(status="refusal", text=storable(text))
    return Parsed(status="ok", text=storable(text))
