"""The Arrow form of a record, derived from its class so that the two can never drift apart.

Nested records become nested Parquet columns, which polars and DuckDB query directly; nothing is stored as
JSON text. Knows rows and schemas, not files.
"""

import datetime
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import msgspec
import pyarrow as pa
from msgspec import inspect

Row = dict[str, Any]
LIST: Final = ".list.element"
"""Part of a Parquet path that stands between a list and its elements."""

_PLAIN: Final = {
    inspect.StrType: pa.string(),
    inspect.LiteralType: pa.string(),
    inspect.IntType: pa.int64(),
    inspect.FloatType: pa.float64(),
    inspect.BoolType: pa.bool_(),
    inspect.DateType: pa.date32(),
    inspect.BytesType: pa.binary(),
}


def _is_list(arrow: Any) -> bool:  # noqa: ANN401
    return bool(pa.types.is_list(arrow) or pa.types.is_large_list(arrow))


def _is_text(arrow: Any) -> bool:  # noqa: ANN401
    return bool(
        pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow)
    )


def without_none(info: inspect.Type) -> tuple[inspect.Type, bool]:
    """The type inside an Optional, and whether it was one."""
    if not isinstance(info, inspect.UnionType):
        return info, False
    rest = [member for member in info.types if not isinstance(member, inspect.NoneType)]
    if len(rest) != 1:
        raise TypeError(f"a column holds one type or None, not {info}")
    return rest[0], len(rest) < len(info.types)


def item_type(info: inspect.Type) -> inspect.Type | None:
    """The type of a tuple's items, or None for what is not a tuple."""
    if isinstance(info, inspect.VarTupleType):
        return info.item_type
    if isinstance(info, inspect.TupleType):
        # Parquet has no list of fixed length; the records check the length when they are read back.
        return info.item_types[0]
    return None


def struct_type(record: type[msgspec.Struct]) -> inspect.StructType:
    """The fields of a record, as msgspec describes them."""
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)  # noqa: S101 - tells the type checker what msgspec cannot
    return info


def arrow_field(name: str, info: inspect.Type) -> Any:  # noqa: ANN401 - pyarrow has no types
    """The Arrow field for one attribute of a record."""
    inner, nullable = without_none(info)
    item = item_type(inner)
    if isinstance(inner, inspect.StructType):
        arrow = pa.struct([arrow_field(field.encode_name, field.type) for field in inner.fields])
    elif item is not None:
        arrow = pa.list_(arrow_field("element", item))
    elif type(inner) in _PLAIN:
        arrow = _PLAIN[type(inner)]
    else:
        raise TypeError(f"no Arrow type is known for {name!r}: {inner}")
    return pa.field(name, arrow, nullable=nullable)


def arrow_schema(record: type[msgspec.Struct]) -> Any:  # noqa: ANN401
    """The columns of a table of these records."""
    return pa.schema([arrow_field(field.encode_name, field.type) for field in struct_type(record).fields])


def leaves(fields: Iterable[Any], prefix: str = "") -> Iterator[str]:
    """Parquet paths of all leaf columns: `images.list.element.key`."""
    for field in fields:
        path, arrow = f"{prefix}{field.name}", field.type
        while _is_list(arrow):
            path, arrow = f"{path}{LIST}", arrow.value_type
        if pa.types.is_struct(arrow):
            yield from leaves(arrow, f"{path}.")
        else:
            yield path


def optional_fields(info: inspect.StructType, prefix: str = "") -> Iterator[str]:
    """Fields with a default, those of nested records by their path: `anatomy`, `report.sentences`."""
    for field in info.fields:
        path = f"{prefix}{field.encode_name}"
        if not field.required:
            yield path
        inner: inspect.Type | None = field.type
        while inner is not None:
            held = without_none(inner)[0]
            if isinstance(held, inspect.StructType):
                yield from optional_fields(held, f"{path}.")
            inner = item_type(held)


def field_of(leaf: str) -> str:
    """The path of the field that a leaf column holds: `findings.measures.name`."""
    return leaf.replace(LIST, "")


def within(path: str, fields: Collection[str]) -> bool:
    """Whether a path is one of these fields or inside one of them."""
    return any(path == name or path.startswith(f"{name}.") for name in fields)


def to_row(record: msgspec.Struct) -> Row:
    """One record as plain values, as Arrow takes them."""
    row: Row = msgspec.to_builtins(record, builtin_types=(datetime.date, bytes))
    return row


def tally(structs: Any, *fields: str) -> Counter[tuple[Any, ...]]:  # noqa: ANN401
    """Count how often each combination of values occurs in an array of structs.

    Args:
        structs: A struct array of pyarrow.
        *fields: Names of the fields whose values are counted.

    Returns:
        Number of times by the values, in the order of `fields`.

    Example:
        >>> findings = pa.array([{"name": "edema", "side": "left"}, {"name": "edema", "side": "right"}])
        >>> tally(findings, "name")
        Counter({('edema',): 2})
    """
    table = pa.table([structs.field(name) for name in fields], names=fields)
    counted = table.group_by(fields, use_threads=False).aggregate([([], "count_all")])
    *values, times = (column.to_pylist() for column in counted.itercolumns())
    return Counter(dict(zip(zip(*values, strict=True), times, strict=True)))


def explain(error: msgspec.ValidationError, record: type[msgspec.Struct]) -> str:
    """The message of a failed validation, with the allowed values where they are few."""
    message = str(error)
    path = re.search(r"`\$\.?(.*)`$", message)
    info: inspect.Type | None = struct_type(record)
    for name, _ in re.findall(r"(\w+)|(\[[^]]*\])", path.group(1)) if path else ():
        if info is None:
            break
        info = without_none(info)[0]
        if not name:
            info = item_type(info)
        elif isinstance(info, inspect.StructType):
            info = next((field.type for field in info.fields if field.encode_name == name), None)
    inner = info and without_none(info)[0]
    if isinstance(inner, inspect.LiteralType):
        return f"{message}; expected one of {', '.join(map(str, inner.values))}"
    return message


def differences(
    expected: Any,  # noqa: ANN401
    found: Any,  # noqa: ANN401
    *,
    tolerate_unknown: bool = False,
    tolerate_missing: bool = False,
) -> list[str]:
    """The differences between the schema of a file and the expected one.

    Nullability and the widths of lists and strings may differ: the records check the values anyway.
    """
    tolerated = {"unknown": tolerate_unknown, "missing": tolerate_missing}
    return [wrong for kind, wrong in _compare(expected, found, "") if not tolerated.get(kind)]


def _compare(expected: Any, found: Any, prefix: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401
    """Kind and sentence of each difference."""
    theirs = {field.name: field.type for field in found}
    ours = {field.name: field.type for field in expected}
    yield from (("unknown", f"unknown column {prefix}{name}") for name in theirs if name not in ours)
    for name, wanted in ours.items():
        path = f"{prefix}{name}"
        if name not in theirs:
            yield "missing", f"missing column {path}"
            continue
        given = theirs[name]
        while _is_list(wanted) and _is_list(given):
            path, wanted, given = f"{path}[]", wanted.value_type, given.value_type  # noqa: PLW2901
        if pa.types.is_struct(wanted) and pa.types.is_struct(given):
            yield from _compare(wanted, given, f"{path}.")
        elif not (wanted == given or (_is_text(wanted) and _is_text(given))):
            yield "type", f"column {path} holds {given}, expected {wanted}"
