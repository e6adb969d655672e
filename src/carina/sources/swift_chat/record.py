"""Fields of a record with their types checked, and the defects of records that are used all the same.

In the published layout an empty text, an empty list and null mean the same: the field is missing.
"""

from typing import Any, Final, Literal

from carina.sources._record import RecordError, describe

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
"""What can be wrong in a record that is used all the same; most of it occurs in the published sample."""

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
"""What is done about each, in the order of listing."""


class Fields:
    """One JSON object of a record: typed access by field, full names in messages, and a list of the fields read."""

    def __init__(self, values: object, name: str = "") -> None:
        if not isinstance(values, dict):
            raise RecordError(name or "record", f"expected an object, found {describe(values)}")
        self._values: dict[str, Any] = values
        self._name = name
        self._known: set[str] = set()

    def full_name(self, field: str) -> str:
        return f"{self._name}.{field}" if self._name else field

    def unknown(self) -> list[str]:
        """Fields that hold something and were never read."""
        return [
            name for name, value in self._values.items() if name not in self._known and value not in _NOTHING
        ]

    def has(self, field: str) -> bool:
        """Whether the field exists, whatever it holds."""
        self._known.add(field)
        return field in self._values

    def flags(self, part: str) -> list[str]:
        """Fields whose names contain this and that are true."""
        found = [name for name in self._values if part in name]
        self._known.update(found)
        return [name for name in found if self._values[name]]

    def text(self, field: str) -> str | None:
        """A text, or None where there is none."""
        value = self._value(field)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._wrong(field, "text", value)
        return value

    def value(self, field: str) -> object:
        """Whatever the field holds; None where it holds nothing."""
        return self._value(field)

    def name(self, field: str) -> str | None:
        """A text or a number that names something."""
        value = self._value(field)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if value is not None and not isinstance(value, str):
            raise self._wrong(field, "a name", value)
        return value.strip() or None if value else None

    def required(self, field: str) -> str:
        """A text or a number that must be there, as text."""
        value = self.name(field)
        if value is None:
            raise RecordError(self.full_name(field), "is missing", kind="empty")
        return value

    def boolean(self, field: str) -> bool | None:
        value = self._value(field)
        return None if value is None else bool(value) and value not in ("False", "false", "no", "No", "0")

    def integer(self, field: str) -> int | None:
        """A whole number, also one that is written as text or as a list of one."""
        value = self._value(field)
        if isinstance(value, list) and len(value) == 1:
            (value,) = value
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise self._wrong(field, "a whole number", value)
        return value

    def texts(self, field: str) -> list[str]:
        """A list of texts; one text is a list of one."""
        value = self._value(field)
        if value is None:
            return []
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise self._wrong(field, "a list of texts", value)
        return found

    def boxes(self, field: str) -> list[tuple[float, float, float, float]]:
        """Lists of four numbers; one of them is a list of one."""
        value = self._value(field)
        if value is None:
            return []
        found = [value] if isinstance(value, list) and len(value) == 4 and _is_number(value[0]) else value
        if not isinstance(found, list) or not all(
            isinstance(box, list) and len(box) == 4 and all(map(_is_number, box)) for box in found
        ):
            raise self._wrong(field, "boxes of four numbers", value)
        return [(float(a), float(b), float(c), float(d)) for a, b, c, d in found]

    def inner(self, field: str) -> "Fields":
        """The object that the field holds; an empty one where it holds nothing."""
        return Fields(self._value(field) or {}, self.full_name(field))

    def objects(self, field: str) -> list["Fields"]:
        value = self._value(field)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(field, "a list of objects", value)
        return [Fields(item, f"{self.full_name(field)}[{place}]") for place, item in enumerate(value)]

    def _value(self, field: str) -> Any:  # noqa: ANN401 - JSON
        self._known.add(field)
        value = self._values.get(field)
        return None if value in _NOTHING else value

    def _wrong(self, field: str, expected: str, found: object) -> RecordError:
        return RecordError(self.full_name(field), f"expected {expected}, found {describe(found)}")


_NOTHING: Final[tuple[object, ...]] = (None, "", [], {})


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
