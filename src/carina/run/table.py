"""`steps.parquet`: one row a step, written in blocks so that memory does not grow with the run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Self

import pyarrow.parquet as pq

from carina.run.records import StepRow
from carina.store.columns import arrow_schema
from carina.store.tables import to_table

_BLOCK: Final = 4096


class StepTable:
    """Writes the rows of a run."""

    def __init__(self, path: Path) -> None:
        self._writer: Any = pq.ParquetWriter(path, arrow_schema(StepRow), compression="zstd")
        self._rows: list[StepRow] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._writer.close()

    def add(self, rows: Sequence[StepRow]) -> None:
        """Rows of one case, in order."""
        self._rows += rows
        if len(self._rows) >= _BLOCK:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(to_table(StepRow, self._rows))
            self._rows = []
