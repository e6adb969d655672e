"""How a text is split into words for RadGraph: as its networks were trained, each edition in its own way."""

import re
from typing import Final

_MARKS: Final = re.compile(r"[/,:.!?()]|[^\s/,:.!?()]+")
"""First edition: these marks stand alone, and nothing else is split but at spaces."""
_RUNS: Final = re.compile(r"\w+|[^\w\s]+")
"""XL edition: runs of letters and digits, runs of all other signs."""
_ESCAPED: Final = re.compile(r"\\n|\\f|\\u2122")
_SPLIT: Final = (").", "%.", ".'", "%,", "%)")
"""Signs that its texts have apart though they follow each other."""
_FIRST: Final = frozenset({"radgraph", "None"})
"""What the first edition calls its data; `None` in the files of PhysioNet."""


def split_words(text: str, edition: str) -> list[str]:
    """The words and marks of a text."""
    if edition in _FIRST:
        return _MARKS.findall(text)
    spaced = " ".join(_RUNS.findall(_ESCAPED.sub(" ", text).replace('\\"', "``")))
    for both in _SPLIT:
        spaced = spaced.replace(both, " ".join(both))
    return spaced.split()


def as_read(word: str) -> str:
    """A word as the encoder sees it."""
    return word[1:] if word in ("/.", "/?") else word
