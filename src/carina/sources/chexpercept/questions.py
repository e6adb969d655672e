"""The questions of a record: fields with their types checked, and texts, options, answer and index compared.

Text, options, answer and index of a question must agree. Options get ids by what they say, so that a question scores
the same whatever the order of its options; options in other words get ids by place.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from carina.sources._record import RecordError, describe
from carina.sources.chexpercept import layout


class Fields:
    """One JSON object of a record: its fields with their types checked, by their full names in messages."""

    def __init__(self, values: object, name: str = "") -> None:
        if not isinstance(values, Mapping):
            raise RecordError(name or "record", f"expected an object, found {describe(values)}", kind="type")
        self._values: Mapping[str, Any] = values
        self._name = name

    def full_name(self, field: str) -> str:
        """The full name of a field: "contour_qa.initial_context"."""
        return f"{self._name}.{field}" if self._name else field

    def has(self, field: str) -> bool:
        """Whether the field is there and is not null."""
        return self._values.get(field) is not None

    def is_null(self, field: str) -> bool:
        """Whether the field is there and is null: a question that is not asked."""
        return field in self._values and self._values[field] is None

    def fields(self, field: str) -> "Fields":
        """The object that the field holds."""
        return Fields(self._value(field), self.full_name(field))

    def text(self, field: str) -> str:
        value = self._value(field)
        if not isinstance(value, str):
            raise self._wrong(field, "text", value)
        if not value.strip():
            raise RecordError(self.full_name(field), "is empty", kind="missing")
        return value

    def boolean(self, field: str) -> bool:
        value = self._value(field)
        if not isinstance(value, bool):
            raise self._wrong(field, "true or false", value)
        return value

    def integer(self, field: str) -> int:
        value = self._value(field)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(field, "a whole number", value)
        return value

    def integers(self, field: str) -> tuple[int, ...]:
        values = self._list(field)
        if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            raise self._wrong(field, "a list of whole numbers", values)
        return tuple(values)

    def texts(self, field: str) -> tuple[str, ...]:
        values = self._list(field)
        if not all(isinstance(value, str) for value in values):
            raise self._wrong(field, "a list of texts", values)
        return tuple(values)

    def objects(self, field: str) -> tuple["Fields", ...]:
        return tuple(
            Fields(value, f"{self.full_name(field)}[{place}]")
            for place, value in enumerate(self._list(field))
        )

    def point(self, field: str) -> tuple[float, float] | None:
        """Two numbers, or None where the field is null."""
        if field in self._values and self._values[field] is None:
            return None
        values = self._list(field)
        if len(values) != 2 or not all(
            isinstance(value, int | float) and not isinstance(value, bool) for value in values
        ):
            raise self._wrong(field, "a point [x, y]", values)
        return float(values[0]), float(values[1])

    def _list(self, field: str) -> list[Any]:
        value = self._value(field)
        if not isinstance(value, list):
            raise self._wrong(field, "a list", value)
        return value

    def _value(self, field: str) -> object:
        if field not in self._values:
            raise RecordError(self.full_name(field), "is missing", kind="missing")
        return self._values[field]

    def _wrong(self, field: str, expected: str, found: object) -> RecordError:
        return RecordError(
            self.full_name(field), f"expected {expected}, found {describe(found)}", kind="type"
        )


# ---- questions ------------------------------------------------------------------------------------------------------

_LIST: Final = re.compile(r"^[^\S\n]*options:", re.IGNORECASE | re.MULTILINE)
_ITEM: Final = re.compile(r"\s*\(([0-9]{1,4})\)\s*(.*?)\s*")


@dataclass(frozen=True)
class Question:
    """A question with its options and the numbers of those that are right."""

    text: str
    options: tuple[str, ...]
    right: tuple[int, ...]
    """From 1, ascending."""


def read_single_choice(block: Fields, texts: Sequence[str]) -> Question:
    """A question with one right option."""
    question = _read_question(block, texts, (block.integer("answer_index"),))
    (number,) = question.right
    answer = block.text("answer")
    if _normalise(answer) != _normalise(texts[number - 1]):
        raise RecordError(
            block.full_name("answer"),
            f"is {describe(answer)}, but answer_index {number} is {describe(texts[number - 1])}",
            kind="answer",
        )
    return question


def read_multiple_choice(block: Fields, texts: Sequence[str], *, none: int) -> Question:
    """A question with any number of right options; `none` is the number of the one that excludes the others."""
    question = _read_question(block, texts, block.integers("answer_index"))
    answer = block.text("answer")
    expected = [texts[number - 1] for number in question.right]
    # In the order of the options or of the index, or in any other where no text holds a comma of its own.
    given = [texts[number - 1] for number in block.integers("answer_index")]
    if _normalise(answer) not in (_normalise(", ".join(expected)), _normalise(", ".join(given))) and sorted(
        _normalise(part) for part in answer.split(",")
    ) != sorted(_normalise(text) for text in expected):
        raise RecordError(
            block.full_name("answer"),
            f"is {describe(answer)}, but answer_index {list(question.right)} is {describe(', '.join(expected))}",
            kind="answer",
        )
    if none in question.right and len(question.right) > 1:
        raise RecordError(
            block.full_name("answer_index"),
            f"holds {none}, {describe(texts[none - 1])}, together with others: {list(question.right)}",
            kind="answer",
        )
    return question


def _read_question(block: Fields, texts: Sequence[str], right: tuple[int, ...]) -> Question:
    question = block.text("question")
    if len(texts) < 2:
        raise RecordError(
            block.full_name("answer_options"), f"expected two or more, found {len(texts)}", kind="options"
        )
    _compare_options(block, question, texts)
    name = block.full_name("answer_index")
    if not right:
        raise RecordError(name, "is empty", kind="answer")
    if len(set(right)) < len(right):
        raise RecordError(name, f"names an option twice: {describe(list(right))}", kind="answer")
    for number in right:
        if not 1 <= number <= len(texts):
            raise RecordError(
                name,
                f"is {describe(number)}, expected 1 to {len(texts)}, the number of answer_options",
                kind="answer",
            )
    return Question(question, tuple(texts), tuple(sorted(right)))


def _compare_options(block: Fields, question: str, texts: Sequence[str]) -> None:
    """Check that the list at the end of the question equals the options."""
    starts = list(_LIST.finditer(question))
    if not starts:
        raise RecordError(
            block.full_name("question"), 'has no line "Options:" before its options', kind="options"
        )
    listed = question[starts[-1].end() :]
    if _normalise(listed) == _normalise(" ".join(f"({n}) {text}" for n, text in enumerate(texts, start=1))):
        return
    found = _list_items(listed)
    for number, text in enumerate(texts, start=1):
        if number > len(found) or _normalise(found[number - 1]) != _normalise(text):
            listed_text = describe(found[number - 1]) if number <= len(found) else "nothing"
            raise RecordError(
                block.full_name("question"),
                f"lists {listed_text} as option {number}, but answer_options has {describe(text)}",
                kind="options",
            )
    if len(found) > len(texts):
        raise RecordError(
            block.full_name("question"),
            f"lists {len(found)} options, but answer_options has {len(texts)}",
            kind="options",
        )


def _list_items(listed: str) -> list[str]:
    """Texts of the lines "(1) ...", "(2) ..." as long as they are numbered in order."""
    found: list[str] = []
    for line in listed.splitlines():
        item = _ITEM.fullmatch(line)
        if item and int(item[1]) == len(found) + 1:
            found.append(item[2])
    return found


def _normalise(text: str) -> str:
    return " ".join(text.split())


# ---- ids of options -------------------------------------------------------------------------------------------------


def yes_no_ids(texts: Sequence[str]) -> tuple[str, ...] | None:
    """Ids of "Yes" and "No" in the order of the texts; None for anything else."""
    ids = tuple(text.strip().lower() for text in texts)
    return ids if sorted(ids) == ["no", "yes"] else None


def attribute_ids(block: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Ids of the options of one of the attribute questions."""
    ids = tuple(_ID_MAKERS[block](" ".join(text.lower().split())) for text in texts)
    if all(ids) and len(set(ids)) == len(ids):
        return ids
    return tuple(f"o{number}" for number in range(1, len(texts) + 1))


def _zone_count_id(text: str) -> str:
    found = re.fullmatch(r"(\d) zones?( or more)?", text)
    return f"{found[1]}{'+' if found[2] else ''}" if found else ""


def _region_id(text: str) -> str:
    return "none" if text.startswith("none") else text


def _share_id(text: str) -> str:
    third, two_thirds = "1/3" in text, "2/3" in text
    return {(True, False): "low", (True, True): "mid", (False, True): "high"}.get((third, two_thirds), "")


def _side_id(text: str) -> str:
    if "similar" in text:
        return "similar"
    if re.search(r"\b(only|one)\b", text):
        return "one"
    # The larger side is named first: "larger in the left lung", "the left is larger than the right".
    side = re.search(r"\b(left|right)\b", text)
    return side[1] if side and "larger" in text else ""


_ID_MAKERS: dict[str, Callable[[str], str]] = {
    layout.DISTRIBUTION: _zone_count_id,
    layout.LOCATION: _region_id,
    layout.SEVERITY: _share_id,
    layout.COMPARISON: _side_id,
}
