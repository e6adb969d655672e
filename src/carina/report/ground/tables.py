"""The figures as tables: one CSV a subject, and all figures in one Parquet file."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow.parquet as pq

from carina.files import replacing, write_bytes
from carina.report.analyse.figures import Contrast
from carina.report.ground.analysis import GroundAnalysis
from carina.report.ground.figures import Figure
from carina.store.tables import to_table

PARQUET: Final = "ground.parquet"
FOLDER: Final = "tables"


def write_tables(analyses: Sequence[GroundAnalysis], out: Path) -> list[Path]:
    """`tables/ground-*.csv`, and `ground.parquet` with every figure of every variant; paths of what was written."""
    figures: dict[str, list[Figure]] = {}
    contrasts: dict[str, list[Contrast]] = {}
    for told in analyses:
        for name, items in told.tables.items():
            figures.setdefault(name, []).extend(items)
        for name, differences in told.differences.items():
            contrasts.setdefault(name, []).extend(differences)
    written = [
        *(_csv(out / FOLDER / f"ground-{name}.csv", Figure, rows) for name, rows in figures.items() if rows),
        *(
            _csv(out / FOLDER / f"ground-{name}.csv", Contrast, rows)
            for name, rows in contrasts.items()
            if rows
        ),
    ]
    path = out / PARQUET
    with replacing(path) as temporary:
        every = [item for told in analyses for item in (*told.figures, *told.others)]
        pq.write_table(to_table(Figure, every), temporary, compression="zstd")
    return [*written, path]


def _csv(path: Path, kind: type[msgspec.Struct], rows: Sequence[msgspec.Struct]) -> Path:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(kind.__struct_fields__)
    writer.writerows([_plain(value) for value in msgspec.structs.astuple(row)] for row in rows)
    write_bytes(path, text.getvalue().encode())
    return path


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a record holds
    """Blank where there is nothing; figures to 12 digits, beyond which lies rounding."""
    if value is None:
        return ""
    return f"{value:.12g}" if isinstance(value, float) else value
