"""Converts records to Arrow columns, a whole column at a time, and checks every value.

The conversion of a record class is derived once; it goes through all records field by field, so that the work for each
value is done in C. Reading back is done by msgspec.
"""

import datetime
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import inspect

from carina.store.columns import arrow_field, item_type, struct_type, without_none

Fill = Callable[[Sequence[Any]], Any]
"""Converts Python values to an Arrow array."""

_NONE: Final = type(None)
_PLAIN: Final[dict[type[inspect.Type], tuple[str, frozenset[type]]]] = {
    inspect.StrType: ("text", frozenset({str})),
    inspect.IntType: ("a whole number", frozenset({int})),
    # An int is stored as a float, as msgspec reads it; Arrow refuses one that no float equals.
    inspect.FloatType: ("a number", frozenset({float, int})),
    inspect.BoolType: ("true or false", frozenset({bool})),
    inspect.DateType: ("a date", frozenset({datetime.date})),
    inspect.BytesType: ("bytes", frozenset({bytes})),
}
_SAMPLE: Final = 64
"""Number of objects that are examined to see whether a column repeats them."""
_LISTS: Final = frozenset({tuple, list})
_LONGEST: Final = 60
"""Characters of a wrong value that a message shows."""


class Misfit(Exception):  # noqa: N818 - the writer turns it into an error that names the row
    """A value that its column cannot hold."""


def to_table(record: type[msgspec.Struct], records: Sequence[msgspec.Struct]) -> Any:  # noqa: ANN401 - pyarrow has no types
    """A table of the records with exactly the columns of `arrow_schema(record)`.

    Types are taken literally (a bool is no int, a str no tuple); `Misfit` says which column a wrong value is for.
    """
    return pa.Table.from_struct_array(_walk(record)(records))


@lru_cache
def _walk(record: type[msgspec.Struct]) -> Fill:
    return _structs("", struct_type(record), nullable=False)


def _fill(path: str, info: inspect.Type) -> Fill:
    """Converts the values of one field to a column."""
    inner, nullable = without_none(info)
    item = item_type(inner)
    if isinstance(inner, inspect.StructType):
        return _structs(f"{path}.", inner, nullable=nullable)
    if item is not None:
        return _lists(path, inner, item, nullable=nullable)
    if isinstance(inner, inspect.LiteralType):
        return _words(path, inner, nullable=nullable)
    # A type that msgspec holds to a range or pattern is none of these: nothing here would check it.
    if type(inner) in _PLAIN and inner == type(inner)():
        return _plain(path, inner, nullable=nullable)
    raise TypeError(f"no check is known for {path!r}: {inner}")


def _plain(path: str, info: inspect.Type, *, nullable: bool) -> Fill:
    words, types = _PLAIN[type(info)]
    arrow = arrow_field(path, info).type
    allowed = types | {_NONE} if nullable else types

    def fill(values: Sequence[Any]) -> Any:  # noqa: ANN401
        if nullable and _all(values, None):
            return pa.nulls(len(values), arrow)
        if not _types(values) <= allowed:
            _none_of(path, words, (value for value in values if type(value) not in allowed))
        return _array(path, values, arrow)

    return fill


def _words(path: str, info: inspect.LiteralType, *, nullable: bool) -> Fill:
    allowed: frozenset[Any] = frozenset(info.values) | ({None} if nullable else frozenset())
    arrow = arrow_field(path, info).type

    def fill(values: Sequence[Any]) -> Any:  # noqa: ANN401
        try:
            is_unknown = not allowed.issuperset(values)
        except TypeError:  # unhashable
            is_unknown = True
        if is_unknown:
            wrong = (value for value in values if not isinstance(value, str | None) or value not in allowed)
            _none_of(path, f"one of {', '.join(map(str, info.values))}", wrong)
        return _array(path, values, arrow)

    return fill


def _all(values: Sequence[Any], same: object) -> bool:
    """Whether all values are this object; quick where they are, and where the first is not."""
    try:
        return bool(values) and values[0] is same and values.count(same) == len(values)
    except ValueError:  # an array, which does not compare as values do
        return False


def _types(values: Sequence[Any]) -> set[type]:
    """The types of the values; in most columns there is one, and counting it takes half the time of making a set."""
    types = list(map(type, values))
    return set(types[:1] if types and types.count(types[0]) == len(types) else types)


def _array(path: str, values: Sequence[Any], arrow: Any) -> Any:  # noqa: ANN401
    try:
        array = pa.array(values, arrow)
    except (pa.ArrowException, OverflowError, UnicodeError) as error:
        raise Misfit(f"a value of {path} does not fit its column: {error}") from error
    if isinstance(array, pa.ChunkedArray):
        raise Misfit(f"{path} holds more text than fits a part: write smaller parts")
    return array


def _lists(path: str, info: inspect.Type, item: inspect.Type, *, nullable: bool) -> Fill:
    fill_items = _fill(f"{path}[]", item)
    arrow = arrow_field(path, info).type
    allowed = _LISTS | {_NONE} if nullable else _LISTS
    wanted = len(info.item_types) if isinstance(info, inspect.TupleType) else None

    def fill(values: Sequence[Any]) -> Any:  # noqa: ANN401
        if nullable and _all(values, None):
            return pa.nulls(len(values), arrow)
        if wanted is None and _all(values, ()):
            return _empty(arrow, 1 << len(values).bit_length()).slice(0, len(values))
        found = _types(values)
        if not found <= allowed:
            _none_of(path, "a tuple", (value for value in values if type(value) not in allowed))
        if wanted is not None:
            wrong = (value for value in values if value is not None and len(value) != wanted)
            _none_of(path, f"{wanted} values", wrong)
        absent = None
        if _NONE in found:
            absent = pa.array([value is None for value in values])
            values = [() if value is None else value for value in values]
        ends = np.zeros(len(values) + 1, np.int32)
        np.cumsum(np.fromiter(map(len, values), np.int32, len(values)), out=ends[1:])
        items = fill_items(list(chain.from_iterable(values)))
        return pa.ListArray.from_arrays(pa.array(ends), items, type=arrow, mask=absent)

    return fill


@lru_cache(maxsize=256)
def _empty(arrow: Any, number: int) -> Any:  # noqa: ANN401 - pyarrow has no types
    """An array of this number of empty lists: many columns hold nothing else, and one array serves them all."""
    starts = pa.array(np.zeros(number + 1, np.int32))
    return pa.ListArray.from_arrays(starts, pa.array([], arrow.value_type), type=arrow)


def _structs(prefix: str, info: inspect.StructType, *, nullable: bool) -> Fill:
    named = {field.name: field for field in info.fields}
    inner = [named[name] for name in info.cls.__struct_fields__]
    fills = [_fill(f"{prefix}{field.encode_name}", field.type) for field in inner]
    fields = [arrow_field(field.encode_name, field.type) for field in inner]
    arrow = pa.struct(fields)
    allowed = {info.cls, _NONE} if nullable else {info.cls}
    path = prefix.removesuffix(".")

    def fill(values: Sequence[Any]) -> Any:  # noqa: ANN401
        found = _types(values)
        if not found <= allowed:
            _none_of(path, info.cls.__name__, (value for value in values if type(value) not in allowed))
        if found == {_NONE}:
            return pa.array(values, arrow)
        absent = None
        if _NONE in found:
            absent = pa.array([value is None for value in values])
            # Arrow needs values beneath nulls too; they are never read.
            present = next(value for value in values if value is not None)
            values = [present if value is None else value for value in values]
        distinct, which = _find_shared(values, fields=len(fills))
        # All fields of all records in one list: a slice of it is a column, found with no look-up by name.
        flat = list(chain.from_iterable(map(msgspec.structs.astuple, distinct)))
        children = [column(flat[place :: len(fills)]) for place, column in enumerate(fills)]
        if which is not None:
            children = [child.take(which) for child in children]
        return pa.StructArray.from_arrays(children, fields=fields, mask=absent)

    return fill


def _find_shared(values: Sequence[Any], *, fields: int) -> tuple[Sequence[Any], Any]:
    """The distinct objects and which of them each value is, where many are the same; else the values themselves.

    A default such as `Origin()` is one object in a million records, and its fields are converted only once. Finding the
    distinct objects takes as long as converting one field of each, so it pays off sooner the more fields there are.
    """
    sample = values[:_SAMPLE]
    if fields * len(set(map(id, sample))) > (fields - 1) * len(sample):
        return values, None
    keys = list(map(id, values))
    distinct = dict(zip(keys, values, strict=True))
    places = dict(zip(distinct, range(len(distinct)), strict=True))
    which = np.fromiter(map(places.__getitem__, keys), np.int64, len(keys))
    return list(distinct.values()), pa.array(which)


def _none_of(path: str, expected: str, wrong: Iterator[Any]) -> None:
    for value in wrong:
        shown = repr(value)
        if len(shown) > _LONGEST:
            shown = f"{shown[:_LONGEST]}..."
        raise Misfit(f"{path or 'the record'} holds {shown} ({type(value).__name__}), expected {expected}")
