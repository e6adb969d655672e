"""The description of one kind of set: its records, its names, and how its files are laid out."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

import msgspec

from carina.store.columns import Row, arrow_schema, leaves, optional_fields, struct_type
from carina.store.errors import CarinaError
from carina.store.layout import Layout
from carina.store.manifest import M

R = TypeVar("R", bound=msgspec.Struct)
"""A record with a field `id`, which is unique in its set."""


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[R, M]):
    """One kind of set, such as study sets."""

    layout: Layout
    noun: str
    """What a record is called in messages."""
    record: type[R]
    version: tuple[int, int]
    """A change that older readers would misread raises the first number; an added optional field the second."""
    error: type[CarinaError]
    manifest: type[M]
    faults: Callable[[R], Iterable[str]]
    """Returns what is wrong inside one record, one sentence each."""
    counted: tuple[str, ...]
    """Leaf columns that `count` needs, `id` among them."""
    count: Callable[[Iterable[Any]], Any]
    """Returns the counts of the manifest, from a stream of Arrow batches of those columns."""
    row_group: int
    """Number of records that are decoded together; a look-up by id decodes as many."""
    statistics: tuple[str, ...]
    """Columns by which row groups can be skipped; statistics of the others would only slow down reading the footer."""
    unrepeated: tuple[str, ...]
    """Endings of leaf columns whose values rarely repeat, so that a Parquet dictionary would be a waste."""
    row_group_bytes: int = 0
    """Bytes up to which more records than `row_group` are decoded together, where they are small; 0 for never."""

    @property
    def schema_version(self) -> str:
        """The version as text: "1.1"."""
        return ".".join(map(str, self.version))

    @cached_property
    def schema(self) -> Any:  # noqa: ANN401 - pyarrow has no types
        """The Arrow schema of a part."""
        return arrow_schema(self.record)

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Parquet paths of all leaf columns."""
        return tuple(leaves(self.schema))

    @cached_property
    def optional(self) -> frozenset[str]:
        """Fields that need not be read, because they have defaults; nested ones too: `report.sentences`."""
        return frozenset(optional_fields(struct_type(self.record)))

    @property
    def with_dictionary(self) -> list[str]:
        """Leaf columns that are stored with a Parquet dictionary."""
        return [leaf for leaf in self.leaves if not leaf.endswith(self.unrepeated)]

    def to_record(self, row: Row) -> R:
        """One row as a record; raises `msgspec.ValidationError` where a value is not what the record allows."""
        return msgspec.convert(row, self.record)
