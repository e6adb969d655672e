"""Compare the tables of two reports and print each difference.

Reads `tables/*.csv`, `tables.parquet` and `ground.parquet` of both directories. Rows are matched by the columns that
name them, so that their order does not matter; numbers that differ by no more than the tolerance are the same.

    python benchmarks/compare_reports.py before/report after/report

Exit code 0 where all tables hold the same numbers, 1 otherwise.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

NUMBERS = (
    "value", "estimate", "low", "high", "n", "chance", "constant", "blind_baseline", "human_ceiling", "unread", "p",
    "adjusted", "patients", "depth",
)  # fmt: skip
"""Columns that hold numbers; those of chexpercept.csv begin with "acc("."""


def read_tables(report: Path) -> dict[str, pl.DataFrame]:
    """Tables by the path of their file within the report."""
    tables = {
        path.name: pl.read_csv(path, infer_schema=False) for path in sorted(report.glob("tables/*.csv"))
    }
    tables |= {path.name: pl.read_parquet(path) for path in sorted(report.glob("*.parquet"))}
    if not tables:
        sys.exit(f"{report}: no tables/*.csv and no *.parquet, expected the directory of a report")
    return tables


def is_number(column: str) -> bool:
    return column in NUMBERS or column.startswith("acc(")


def compare_tables(before: pl.DataFrame, after: pl.DataFrame, tolerance: float) -> Iterator[str]:
    """One line for each difference."""
    if before.columns != after.columns:
        yield f"columns {before.columns} became {after.columns}"
        return
    keys = [column for column in before.columns if not is_number(column)]
    rows = [
        {row[: len(keys)]: row[len(keys) :] for row in order_columns(table, keys)}
        for table in (before, after)
    ]
    for table, counted in zip((before, after), rows, strict=True):
        if len(counted) != table.height:
            yield f"{table.height - len(counted)} rows have the names of others ({', '.join(keys)})"
    numbers = [column for column in before.columns if is_number(column)]
    for key in rows[0].keys() - rows[1].keys():
        yield f"only before: {describe(key)}"
    for key in rows[1].keys() - rows[0].keys():
        yield f"only after: {describe(key)}"
    for key in rows[0].keys() & rows[1].keys():
        for column, one, other in zip(numbers, rows[0][key], rows[1][key], strict=True):
            if not is_same(one, other, tolerance):
                yield f"{describe(key)}: {column} {one} became {other}"


def order_columns(table: pl.DataFrame, keys: list[str]) -> Iterator[tuple[object, ...]]:
    """Rows with the naming columns first."""
    return table.select(*keys, *(column for column in table.columns if column not in keys)).iter_rows()


def describe(key: tuple[object, ...]) -> str:
    return " | ".join(map(str, key))


def is_same(one: object, other: object, tolerance: float) -> bool:
    values = [None if value in (None, "") else float(str(value)) for value in (one, other)]
    if None in values:
        return values[0] == values[1]
    return abs(values[0] - values[1]) <= tolerance


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path, help="Directory of the first report.")
    parser.add_argument("after", type=Path, help="Directory of the second report.")
    parser.add_argument("--tolerance", type=float, default=1e-9, help="Largest difference of equal numbers.")
    options = parser.parse_args()
    before, after = read_tables(options.before), read_tables(options.after)
    differences = 0
    for name in sorted(before.keys() | after.keys()):
        if name not in before or name not in after:
            lines = [f"only {'after' if name in after else 'before'}"]
        else:
            lines = sorted(compare_tables(before[name], after[name], options.tolerance))
        differences += len(lines)
        for line in lines:
            print(f"{name}: {line}")
    rows = sum(table.height for table in before.values())
    print(f"{len(before)} tables with {rows:,} rows, {differences} differences")
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    main()
