"""Checks a table against the records that its rows stand for, column by column.

For writers of millions of rows, which never create a record of each.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow.compute as pc
from msgspec import inspect

from carina.store.columns import item_type, struct_type, without_none


def table_faults(table: Any, record: type[msgspec.Struct]) -> Iterator[str]:  # noqa: ANN401 - pyarrow has no types
    """What is wrong in a table, each with the name of the column; nothing where every row is a valid record.

    The table must have the columns of the record.
    """
    for field in struct_type(record).fields:
        name = field.encode_name
        yield from _faults(name, field.type, table.column(name).combine_chunks())


def _faults(path: str, info: inspect.Type, values: Any) -> Iterator[str]:  # noqa: ANN401
    inner, nullable = without_none(info)
    if values.null_count:
        if not nullable:
            yield f"column {path}: {values.null_count} values are null"
        values = values.drop_null()
    item = item_type(inner)
    if isinstance(inner, inspect.StructType):
        for field, column in zip(inner.fields, values.flatten(), strict=True):
            yield from _faults(f"{path}.{field.encode_name}", field.type, column)
    elif item is not None:
        if isinstance(inner, inspect.TupleType):
            yield from _lengths(path, len(inner.item_types), values)
        yield from _faults(f"{path}[]", item, values.flatten())
    elif isinstance(inner, inspect.LiteralType):
        unknown = sorted(set(pc.unique(values).to_pylist()) - set(inner.values))
        if unknown:
            yield f"column {path} holds {unknown[0]!r}, expected one of {', '.join(map(str, inner.values))}"


def _lengths(path: str, wanted: int, values: Any) -> Iterator[str]:  # noqa: ANN401
    lengths = set(pc.unique(pc.list_value_length(values)).to_pylist()) - {wanted}
    if lengths:
        yield f"column {path} holds {min(lengths)} values, expected {wanted}"
