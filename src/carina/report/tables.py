"""The figures as tables: one CSV a subject, and all of them in one Parquet file."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow.parquet as pq

from carina.files import replacing, write_bytes
from carina.report.analyse.chexpercept import CSV_NAMES, summary
from carina.report.analyse.figures import Contrast, Figure
from carina.report.analysis import Analysis
from carina.store.tables import to_table

PARQUET: Final = "tables.parquet"
FOLDER: Final = "tables"
CHEXPERCEPT: Final = "chexpercept.csv"


def write_tables(analyses: Sequence[Analysis], out: Path) -> list[Path]:
    """`tables/*.csv` and `tables.parquet` (long form, differences included); paths of what was written.

    `tables/chexpercept.csv` tells percept's figures again, in the layout of CheXpercept, and is not in the long form.
    """
    figures: dict[str, list[Figure]] = {}
    for told in analyses:
        for name, items in told.figures.items():
            figures.setdefault(name, []).extend(items)
    contrasts = {
        "comparison": [item for told in analyses for item in told.contrasts],
        "histories": [item for told in analyses for pair in told.histories for item in pair.differences],
        "against-blind": [item for told in analyses for pair in told.blind for item in pair.differences],
    }
    written = []
    for name, rows in figures.items():
        written.append(_csv(out / FOLDER / f"{name}.csv", Figure.__struct_fields__, rows))
    for name, differences in contrasts.items():
        written.append(_csv(out / FOLDER / f"{name}.csv", Contrast.__struct_fields__, differences))
    percept = [told.exam for told in analyses if told.exam.protocol == "percept"]
    if percept:
        paths = [row for exam in percept for run in exam.runs for row in summary(run, exam.outcomes[run.id])]
        written.append(_csv(out / FOLDER / CHEXPERCEPT, CSV_NAMES, paths))
    runs = {run.id: (run.model, run.history) for told in analyses for run in told.exam.runs}
    every = [item for items in figures.values() for item in items]
    every += [_long(item, name, runs) for name, items in contrasts.items() for item in items]
    path = out / PARQUET
    with replacing(path) as temporary:
        pq.write_table(to_table(Figure, every), temporary, compression="zstd")
    return [*written, path]


def _long(item: Contrast, table: str, runs: Mapping[str, tuple[str, str]]) -> Figure:
    """A difference as a figure of its first run; its name says which other run it is to."""
    model, history = runs[item.one]
    about = f"{item.level} {item.name}".strip()
    return Figure(
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


def _csv(path: Path, names: Sequence[str], rows: Sequence[msgspec.Struct]) -> Path:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_plain(value) for value in msgspec.structs.astuple(row)] for row in rows)
    write_bytes(path, text.getvalue().encode())
    return path


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a record holds
    """Blank where there is nothing; figures to 12 digits, beyond which lies rounding."""
    if value is None:
        return ""
    return f"{value:.12g}" if isinstance(value, float) else value
