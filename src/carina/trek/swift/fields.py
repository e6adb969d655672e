"""Fields of a record, read with their types checked: what is wrong is told by the field's full name.

An empty text, an empty list and null say the same in the published layout: not there.
"""

from typing import Any

from carina.trek.swift.faults import RecordError, told


class Fields:
    """One JSON object of a record, which knows its name and remembers what was asked of it."""

    def __init__(self, values: object, name: str = "") -> None:
        if not isinstance(values, dict):
            raise RecordError(name or "record", f"expected an object, found {shown(values)}")
        self._values: dict[str, Any] = values
        self._name = name
        self._known: set[str] = set()

    def called(self, field: str) -> str:
        return f"{self._name}.{field}" if self._name else field

    def unknown(self) -> list[str]:
        """Fields that hold something and that nobody asked for."""
        return [
            name for name, value in self._values.items() if name not in self._known and value not in _NOTHING
        ]

    def has(self, field: str) -> bool:
        """Whether the field is there, whatever it holds."""
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

    def name(self, field: str) -> str | None:
        """A text or a number that names something."""
        value = self._value(field)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if value is not None and not isinstance(value, str):
            raise self._wrong(field, "a name", value)
        return value.strip() or None if value else None

    def truth(self, field: str) -> bool | None:
        value = self._value(field)
        return None if value is None else bool(value) and value not in ("False", "false", "no", "No", "0")

    def whole(self, field: str) -> int | None:
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
        return Fields(self._value(field) or {}, self.called(field))

    def objects(self, field: str) -> list["Fields"]:
        value = self._value(field)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self._wrong(field, "a list of objects", value)
        return [Fields(item, f"{self.called(field)}[{place}]") for place, item in enumerate(value)]

    def _value(self, field: str) -> Any:  # noqa: ANN401 - JSON
        self._known.add(field)
        value = self._values.get(field)
        return None if value in _NOTHING else value

    def _wrong(self, field: str, expected: str, found: object) -> RecordError:
        return RecordError(self.called(field), f"expected {expected}, found {shown(found)}")


_NOTHING: tuple[object, ...] = (None, "", [], {})


def shown(value: object) -> str:
    """What a value is, shortly."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return "an object" if isinstance(value, dict) else told(repr(value), longest=60)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
