"""`steps.parquet`: one row a step, written in blocks so that memory does not grow with the run."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Self

import pyarrow as pa
import pyarrow.parquet as pq

from carina.run.records import RunInfo, StepRow
from carina.store.tables import to_table

_BLOCK: Final = 4096


class StepTable:
    """Writes the rows of a run, each block as `finished` gives it back, behind what all of them have in common."""

    def __init__(
        self,
        path: Path,
        info: RunInfo,
        finished: Callable[[Sequence[StepRow]], Sequence[StepRow]] = lambda rows: rows,
    ) -> None:
        self._common = {"model": info.model, "history": info.policy.history, "blind": info.blind}
        self._writer: Any = pq.ParquetWriter(
            path, self._with_common(to_table(StepRow, [])).schema, compression="zstd"
        )
        self._finished = finished
        self._rows: list[StepRow] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed is None:
            self._flush()
        self._writer.close()

    def add(self, rows: Sequence[StepRow]) -> None:
        """Rows of one case, in order."""
        self._rows += rows
        if len(self._rows) >= _BLOCK:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._with_common(to_table(StepRow, self._finished(self._rows))))
            self._rows = []

    def _with_common(self, table: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
        """Tables of several runs can be put one below the other and told apart."""
        for place, (name, value) in enumerate(self._common.items()):
            column = pa.repeat(pa.scalar(value), len(table))
            table = table.add_column(place, pa.field(name, column.type, nullable=False), column)
        return table
