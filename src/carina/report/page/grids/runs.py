"""Tables about the runs themselves: how answers were read, what they cost."""

from collections.abc import Sequence

from carina.report.analysis import Analysis
from carina.report.page.cells import Cell, Grid, Head, Row, number, share
from carina.report.page.grids.common import history_group, lookup, run_head
from carina.report.words import STATUSES


def reading(told: Analysis) -> Grid:
    """Answers by class; classes that no run has are told in a sentence."""
    found = lookup(told.reading)
    asked = [
        *(("status", status, "answers", title) for status, title in STATUSES.items()),
        ("state", "not_reached", "steps", "steps not reached"),
        ("state", "incomplete", "steps", "steps incomplete"),
    ]
    present = {(item.level, item.name) for item in told.reading if item.value}
    columns = [column for column in asked if column[:2] in present or column[:2] == ("status", "ok")]
    absent = [column[3] for column in asked if column not in columns]
    heads = [Head(text=title) for *_, title in columns]
    obeyed = any(item.level == "form" and item.value is not None for item in told.reading)
    if obeyed:
        heads.append(Head(text="kept to the form", note="percent, where one was demanded"))
    rows = []
    for run in told.exam.runs:
        cells = [number(found.get((run.id, *key[:3])), of=True) for key in columns]
        if obeyed:
            cells.append(share(found.get((run.id, "form", "obeyed", "share of answers"))))
        rows.append(Row(head=run_head(run), cells=tuple(cells), group=history_group(run, told)))
    none = f" None in any run: {', '.join(absent)}." if absent else ""
    return Grid(
        title="How answers were read",
        corner="Model",
        columns=tuple(heads),
        rows=tuple(rows),
        note=f"Number of answers by class, and percent of all. All but those read count as wrong; incomplete steps "
        f"count as neither.{none}",
    )


def cost(told: Analysis) -> Grid:
    """Columns of which nothing is known are left out."""
    found = lookup(told.cost)
    asked = (
        ("input tokens", "sum", 0, Head(text="input tokens", note="sum")),
        ("output tokens", "sum", 0, Head(text="output tokens", note="sum")),
        ("dollars", "at list price", 4, Head(text="US dollars", note="at list price")),
        ("image sends", "sum", 0, Head(text="image sends", note="sum")),
        ("seconds", "sum", 1, Head(text="time, seconds", note="sum")),
        ("seconds", "median of a step", 2, Head(text="time, seconds", note="median of a step")),
    )
    known = {(item.name, item.metric) for item in told.cost if item.value is not None}
    columns = [column for column in asked if column[:2] in known]

    def cells(run: str) -> Sequence[Cell]:
        return [
            number(found.get((run, "cost", name, metric)), digits=digits)
            for name, metric, digits, _ in columns
        ]

    return Grid(
        title="Cost and time",
        corner="Model",
        columns=tuple(head for *_, head in columns),
        rows=tuple(
            Row(head=run_head(run), cells=tuple(cells(run.id)), group=history_group(run, told))
            for run in told.exam.runs
        ),
        note="Of answered steps. A picture counts as sent with every question of the conversation that it is in. "
        "Tokens, and dollars at list prices without discounts, are shown where they are known.",
    )
