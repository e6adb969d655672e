"""Limits on what a Parquet file unpacks to, compared with its footer before anything of it is read.

A file of some kilobytes can stand for gigabytes. The limits are some ten times what the largest honest data reaches.
A value that a dictionary holds once and rows repeat is not visible in the footer: `carina.store.parts` reads such
columns a few rows at a time and counts what they hold.
"""

from collections.abc import Iterator
from typing import Any, Final

MAX_COLUMN_BYTES: Final = 200_000_000
"""Unpacked bytes of a column in one row group of a set: 100 times those of the sets that Carina writes."""
MAX_TABLE_COLUMN_BYTES: Final = 600_000_000
"""Unpacked bytes of a column in one row group of a table: 4096 answers of some 140 KB each."""
MAX_RATIO: Final = 1_000
"""Times that a file may be larger when unpacked; text and masks of Carina unpack to some 10 times their size."""
MIN_SUSPICIOUS_BYTES: Final = 64_000_000
"""Unpacked bytes below which the ratio does not matter."""
_GROUP_COLUMNS: Final = 2
"""Columns at their limit that a row group may hold."""


def find_oversize(
    footer: Any,  # noqa: ANN401 - pyarrow has no types
    size: int,
    *,
    max_column_bytes: int,
) -> str | None:
    """What is too large in a Parquet file, in words; None for a file that can be read.

    Args:
        footer: The `pyarrow.parquet.FileMetaData` of the file.
        size: Bytes of the file.
        max_column_bytes: Unpacked bytes that a column may have in one row group. The whole row group may have twice as
            many.
    """
    total = 0
    for group in range(footer.num_row_groups):
        about = footer.row_group(group)
        columns = [about.column(index) for index in range(about.num_columns)]
        for column in columns:
            unpacked = column.total_uncompressed_size
            if not 0 <= unpacked <= max_column_bytes:
                return (
                    f"column {column.path_in_schema} of row group {group} unpacks to {unpacked:,} bytes, more than "
                    f"the limit of {max_column_bytes:,}"
                )
        unpacked = max(about.total_byte_size, sum(column.total_uncompressed_size for column in columns))
        limit = _GROUP_COLUMNS * max_column_bytes
        if not 0 <= about.total_byte_size <= unpacked <= limit:
            return f"row group {group} unpacks to {unpacked:,} bytes, more than the limit of {limit:,}"
        total += unpacked
    if total > max(MIN_SUSPICIOUS_BYTES, MAX_RATIO * size):
        return f"{size:,} bytes unpack to {total:,}, more than {MAX_RATIO:,} times as many"
    return None


def rows_at_a_time(footer: Any, groups: list[int], most: int) -> int:  # noqa: ANN401 - pyarrow has no types
    """Rows to read at a time, so that values that a dictionary holds once and rows repeat stay within the limit."""
    largest = max((need for group in groups for need in _bytes_per_row(footer.row_group(group))), default=0)
    return max(1, min(most, _GROUP_COLUMNS * MAX_COLUMN_BYTES // max(1, largest)))


def _bytes_per_row(about: Any) -> Iterator[int]:  # noqa: ANN401 - pyarrow has no types
    """Bytes that a row of each column with a dictionary can take: each of its values may be the whole dictionary."""
    for index in range(about.num_columns):
        column = about.column(index)
        if column.has_dictionary_page and column.physical_type == "BYTE_ARRAY":
            yield column.total_uncompressed_size * -(-column.num_values // max(1, about.num_rows))
