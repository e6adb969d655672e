"""Accuracy by what a case or a question is about."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from carina.report.analyse.figures import Figure, estimate, weighted
from carina.report.analyse.outcomes import Outcomes
from carina.report.read import Run

MOST_LABELS: Final = 24


@dataclass(frozen=True)
class Dimension:
    """One way to divide cases or steps."""

    title: str
    labels: tuple[str, ...]
    """In the order in which they are shown."""
    of: pl.DataFrame
    """`part`, one of the labels, by `case`, or by `case` and `step`."""
    note: str = ""


def of_rows(found: Sequence[Outcomes]) -> list[Dimension]:
    """The divisions that the rows themselves give: target, path, format."""
    columns = ("case", "step", "target", "path", "format")
    steps = pl.concat([run.closed.select(columns) for run in found]).unique(["case", "step"])
    made = []
    for title, by in (("Target", ["case"]), ("Path", ["case"]), ("Format", ["case", "step"])):
        named = steps.select(*by, part=title.lower()).drop_nulls().unique().sort(by)
        often = named.group_by("part").len().sort(["len", "part"], descending=[True, False])["part"]
        labels = sorted(often.head(MOST_LABELS))
        note = f"the {MOST_LABELS} most frequent of {len(often)}" if len(often) > MOST_LABELS else ""
        if len(labels) > 1:
            made.append(Dimension(title, tuple(labels), named, note))
    return made


def bands(
    title: str, values: pl.DataFrame, unit: str, *, scale: float = 1.0, note: str = ""
) -> Dimension | None:
    """Cases (`case`, `value`) in three bands of equal number; None where the values do not differ enough."""
    known = values.drop_nulls()
    cuts = [known["value"].quantile(share, "nearest") for share in (1 / 3, 2 / 3)]
    low, high = cuts
    if low is None or high is None or not known["value"].min() < low < high:  # type: ignore[operator]
        return None
    said = [f"{cut * scale:.3g}{unit}" for cut in (low, high)]
    labels = (f"below {said[0]}", f"{said[0]} to {said[1]}", f"{said[1]} or more")
    label = (
        pl.when(pl.col("value") < low)
        .then(pl.lit(labels[0]))
        .when(pl.col("value") < high)
        .then(pl.lit(labels[1]))
        .otherwise(pl.lit(labels[2]))
    )
    return Dimension(title, labels, known.select("case", part=label), note)


def broken_down(run: Run, found: Outcomes, dimension: Dimension) -> list[Figure]:
    """Accuracy over the closed steps of each label, and for percept the share of cases that are right throughout."""
    by = [name for name in ("case", "step") if name in dimension.of.columns]
    steps = found.closed.join(dimension.of, on=by)
    level = f"by {dimension.title.lower()}"
    made = [
        estimate(
            run, weighted(steps.filter(pl.col("part") == label)), level=level, name=label, metric="accuracy"
        )
        for label in dimension.labels
    ]
    if found.protocol == "percept" and by == ["case"]:
        cases = found.cases.join(dimension.of, on=by)
        made += [
            estimate(
                run,
                weighted(cases.filter(pl.col("part") == label)),
                level=level,
                name=label,
                metric="case success",
            )
            for label in dimension.labels
        ]
    return made
