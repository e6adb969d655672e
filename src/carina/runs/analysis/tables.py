"""Estimates and differences as tables: records by name, CSV text, and one long table."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import polars as pl
import pyarrow.parquet as pq

from carina.percept.protocol import PERCEPT
from carina.runs.analysis.chexpercept import CSV_NAMES, SummaryRow, summarise_paths
from carina.runs.analysis.estimates import Difference, Estimate
from carina.runs.analysis.run_analysis import RunAnalysis
from carina.store.files import replacing
from carina.store.tables import to_table

CHEXPERCEPT: Final = "chexpercept"


@dataclass(frozen=True, eq=False)
class ReportTable:
    """Records of one kind."""

    kind: type[msgspec.Struct]
    rows: Sequence[msgspec.Struct]
    columns: Sequence[str] = ()
    """Names of the columns, where they are not those of the record."""

    @property
    def names(self) -> Sequence[str]:
        return self.columns or self.kind.__struct_fields__

    def to_frame(self) -> pl.DataFrame:
        """The records as a polars table."""
        frame = pl.from_arrow(to_table(self.kind, self.rows))
        assert isinstance(frame, pl.DataFrame)  # noqa: S101 - for the type checker, which does not know Arrow
        return frame.rename(dict(zip(self.kind.__struct_fields__, self.names, strict=True)))

    def to_csv(self) -> str:
        """The records as CSV; blank where there is no value, numbers with 12 digits."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.names)
        writer.writerows([_plain(value) for value in msgspec.structs.astuple(row)] for row in self.rows)
        return text.getvalue()

    def write_parquet(self, path: Path) -> None:
        """Write the records, whole or not at all."""
        with replacing(path) as temporary:
            pq.write_table(to_table(self.kind, self.rows), temporary, compression="zstd")


def run_tables(analyses: Sequence[RunAnalysis]) -> dict[str, ReportTable]:
    """Tables by name: estimates, differences, and the numbers of percept in the layout of CheXpercept."""
    tables: dict[str, ReportTable] = {}
    for name in dict.fromkeys(name for analysis in analyses for name in analysis.tables):
        rows = [item for analysis in analyses for item in analysis.tables.get(name, ())]
        tables[name] = ReportTable(Estimate, rows)
    for name in analyses[0].difference_tables if analyses else ():
        pairs = [item for analysis in analyses for item in analysis.difference_tables[name]]
        tables[name] = ReportTable(Difference, pairs)
    percept = [analysis.group for analysis in analyses if analysis.group.protocol == PERCEPT.name]
    if percept:
        paths = [
            row
            for group in percept
            for run in group.runs
            for row in summarise_paths(run, group.outcomes[run.id])
        ]
        tables[CHEXPERCEPT] = ReportTable(SummaryRow, paths, CSV_NAMES)
    return tables


def long_table(analyses: Sequence[RunAnalysis]) -> ReportTable:
    """All estimates in one table, differences included; without `chexpercept`, which repeats other numbers."""
    runs = {run.id: (run.model, run.history) for analysis in analyses for run in analysis.group.runs}
    tables = run_tables(analyses)
    rows = [item for table in tables.values() if table.kind is Estimate for item in table.rows]
    rows += [
        _as_estimate(item, name, runs)
        for name, table in tables.items()
        for item in table.rows
        if isinstance(item, Difference)
    ]
    return ReportTable(Estimate, rows)


def _as_estimate(item: Difference, table: str, runs: Mapping[str, tuple[str, str]]) -> Estimate:
    """A difference as an estimate of its first run, named after the other run."""
    model, history = runs[item.one]
    about = f"{item.level} {item.name}".strip()
    return Estimate(
        run=item.one,
        model=model,
        history=history,
        level=table,
        name=f"{about}, less {item.other}",
        metric=f"difference of {item.metric}",
        value=item.value,
        low=item.low,
        high=item.high,
        n=item.n,
    )


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a record holds
    """Blank for None; numbers with 12 digits, because further digits are rounding."""
    if value is None:
        return ""
    return f"{value:.12g}" if isinstance(value, float) else value
