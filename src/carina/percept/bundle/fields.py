"""Fields of a record, read with their types checked: what is wrong is told by the field's full name."""

from collections.abc import Mapping
from typing import Any

from carina.percept.bundle.faults import RecordError, told


class Fields:
    """One JSON object of a record, which knows its name."""

    def __init__(self, values: object, name: str = "") -> None:
        if not isinstance(values, Mapping):
            raise RecordError("type", name or "record", f"expected an object, found {shown(values)}")
        self._values: Mapping[str, Any] = values
        self._name = name

    def called(self, field: str) -> str:
        """The full name of a field: "contour_qa.initial_context"."""
        return f"{self._name}.{field}" if self._name else field

    def has(self, field: str) -> bool:
        """Whether the field is there and is not null."""
        return self._values.get(field) is not None

    def fields(self, field: str) -> "Fields":
        """The object that the field holds."""
        return Fields(self._value(field), self.called(field))

    def text(self, field: str) -> str:
        value = self._value(field)
        if not isinstance(value, str):
            raise self._wrong(field, "text", value)
        if not value.strip():
            raise RecordError("missing", self.called(field), "is empty")
        return value

    def truth(self, field: str) -> bool:
        value = self._value(field)
        if not isinstance(value, bool):
            raise self._wrong(field, "true or false", value)
        return value

    def whole(self, field: str) -> int:
        value = self._value(field)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(field, "a whole number", value)
        return value

    def wholes(self, field: str) -> tuple[int, ...]:
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
            Fields(value, f"{self.called(field)}[{place}]") for place, value in enumerate(self._list(field))
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
            raise RecordError("missing", self.called(field), "is not there")
        return self._values[field]

    def _wrong(self, field: str, expected: str, found: object) -> RecordError:
        return RecordError("type", self.called(field), f"expected {expected}, found {shown(found)}")


def shown(value: object) -> str:
    """What a value is, shortly: records can be large."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "an object"
    return told(repr(value), longest=60)
