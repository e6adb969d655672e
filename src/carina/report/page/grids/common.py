"""What the tables of an exam have in common: runs as rows or as columns, and how both are headed."""

from collections.abc import Iterable, Mapping, Sequence

from carina.report.analyse.figures import Figure
from carina.report.analysis import Analysis
from carina.report.page.cells import Grid, Head, Row, share
from carina.report.read import Run
from carina.report.words import HISTORIES

Lookup = Mapping[tuple[str, str, str, str], Figure]
"""Figures by run, level, name and metric."""
Asked = tuple[str, str, str, Head]
"""Level, name and metric of a row or column, and its head."""


def by_run(
    told: Analysis, title: str, figures: Iterable[Figure], columns: Sequence[Asked], note: str
) -> Grid:
    """Runs as rows."""
    found = lookup(figures)
    rows = [
        Row(
            head=run_head(run),
            cells=tuple(share(found.get((run.id, *column[:3]))) for column in columns),
            group=history_group(run, told),
        )
        for run in told.exam.runs
    ]
    kept = tuple(row for row in rows if any(cell.text for cell in row.cells))
    return Grid(
        title=title, corner="Model", columns=tuple(column[3] for column in columns), rows=kept, note=note
    )


def by_label(
    told: Analysis,
    figures: Iterable[Figure],
    rows: Sequence[tuple[str, Asked]],
    *,
    title: str,
    corner: str,
    note: str,
) -> Grid:
    """Runs as columns; every row with the group that it belongs to."""
    found = lookup(figures)
    made = [
        Row(
            head=row[3],
            cells=tuple(share(found.get((run.id, *row[:3]))) for run in told.exam.runs),
            group=group,
        )
        for group, row in rows
    ]
    return Grid(
        title=title,
        corner=corner,
        columns=tuple(run_head(run, history=several_histories(told)) for run in told.exam.runs),
        rows=tuple(row for row in made if any(cell.text for cell in row.cells)),
        note=note,
    )


def lookup(figures: Iterable[Figure]) -> Lookup:
    return {(item.run, item.level, item.name, item.metric): item for item in figures}


def run_head(run: Run, *, history: bool = False) -> Head:
    """A run's mark and model; its history where nothing else tells it."""
    kind = "oracle" if run.oracle else "blind baseline" if run.baseline else ""
    note = " · ".join(part for part in (f"history {run.history}" if history else "", kind) if part)
    return Head(text=run.model, note=note, mark=run.id)


def several_histories(told: Analysis) -> bool:
    return len({run.history for run in told.exam.runs}) > 1


def history_group(run: Run, told: Analysis) -> str:
    """What stands above the runs of one history, where there are several."""
    return f"History {run.history}: {HISTORIES[run.history]}" if several_histories(told) else ""


def names(figures: Iterable[Figure]) -> list[str]:
    return list(dict.fromkeys(item.name for item in figures))
