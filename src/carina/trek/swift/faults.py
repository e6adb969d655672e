"""What can be wrong: with a file, with one of its records, and with parts of a record that is used all the same."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, Literal

import msgspec

from carina.errors import BenchmarkError

_LONGEST: Final = 300
"""Characters of a sentence about values that others wrote."""


def told(text: str, *, longest: int = 80) -> str:
    """A text of unknown origin as messages tell it: one line without control codes, and not for ever."""
    shown = "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text[: longest + 1])
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."


class SwiftError(BenchmarkError):
    """A file of conversations that cannot be read at all."""


class RecordError(SwiftError):
    """One record that cannot be used; the others may be."""

    def __init__(self, field: str, sentence: str) -> None:
        super().__init__(f"{told(field)}: {told(sentence, longest=_LONGEST)}")
        self.field = told(field)


Defect = Literal[
    "unfilled slot",
    "doubled word",
    "boxs",
    "explaination",
    "multi-choice-N",
    "wrong number in multi-choice-N",
    "type name against content",
    "yes/no without its word",
    "answer not among options",
    "equal options",
    "box outside the frame",
    "corners exchanged",
    "unreadable box",
    "texts differ",
    "image count differs",
    "shuffled order",
    "turn after the report",
    "label of another stage",
    "unknown label",
    "stage 5 without reference",
    "reference without stage 5",
    "stage 6 without link",
    "study numbers against time",
    "limit not obeyed",
    "absolute path",
    "image absent",
    "size unknown",
    "second case of a study",
    "unmapped field",
]
"""What the published sample is known to have, and its like."""

REMEDIES: Final[dict[Defect, str]] = {
    "unfilled slot": "`{name}` is written [name]",
    "doubled word": "kept",
    "boxs": "kept",
    "explaination": "kept",
    "multi-choice-N": "format and number of right options are taken from the content",
    "wrong number in multi-choice-N": "the options themselves count",
    "type name against content": "the content decides",
    "yes/no without its word": "becomes an open question",
    "answer not among options": "becomes an open question",
    "equal options": "becomes an open question",
    "box outside the frame": "cut at the frame",
    "corners exchanged": "put in order",
    "unreadable box": "becomes an open question",
    "texts differ": "`content` counts, not `messages`",
    "image count differs": "placeholders count, not `image_input_count`",
    "shuffled order": "kept, and the case says so",
    "turn after the report": "kept",
    "label of another stage": "the number of the stage counts",
    "unknown label": "kept as the task",
    "stage 5 without reference": "kept",
    "reference without stage 5": "kept",
    "stage 6 without link": "kept; the later study is unknown",
    "study numbers against time": "numbers are never taken for time",
    "limit not obeyed": "the limit is left out",
    "absolute path": "becomes a relative key",
    "image absent": "its size is unknown",
    "size unknown": "0 x 0",
    "second case of a study": "its id gets a number",
    "unmapped field": "left out",
}
"""What is done about each."""


class Tally(msgspec.Struct, kw_only=True):
    """How often a defect was met."""

    times: int = 0
    records: int = 0
    first: int = 0
    """Number of the first record that has it."""


class Defects:
    """Counts of defects over a file."""

    def __init__(self) -> None:
        self._tallies: dict[Defect, Tally] = {}
        self.fields: Counter[str] = Counter()
        """Names of fields that nothing was made of."""

    def add(self, number: int, found: Counter[Defect], fields: Iterable[str] = ()) -> None:
        """Those of one record."""
        self.fields.update(fields)
        for defect, times in found.items():
            tally = self._tallies.setdefault(defect, Tally(first=number))
            tally.times += times
            tally.records += 1

    def __iter__(self) -> Iterator[tuple[Defect, Tally]]:
        """Those that were met, in the order in which they are listed."""
        return ((defect, self._tallies[defect]) for defect in REMEDIES if defect in self._tallies)
