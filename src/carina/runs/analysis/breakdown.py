"""Accuracy by what a case or a question is about."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import polars as pl

from carina.cases.protocol import CASE_SUCCESS, find_protocol
from carina.runs.analysis.estimates import Estimate, estimate_share, weight_groups
from carina.runs.analysis.outcomes import Outcomes
from carina.runs.analysis.read import ComparedRun

MOST_LABELS: Final = 24
ACCURACY: Final = "accuracy"
SUCCESS: Final = "case success"
"""Metrics of a breakdown."""


class DimensionTitle(StrEnum):
    """Titles of the dimensions of runs, by which tables find them."""

    TARGET = "Target"
    PATH = "Path"
    FORMAT = "Format"
    SEVERITY = "Severity"
    LESION_SIZE = "Lesion size"
    CONSPICUITY = "Conspicuity"
    CONTOUR = "Contour shown"
    AGREEMENT = "Agreement"
    PIECES = "Pieces"
    SIDE = "Side"
    EDITS = "Edits"
    ORDER = "Order"
    VIEW = "View"
    FINDING = "Finding"


@dataclass(frozen=True)
class Dimension:
    """One way to divide cases or steps."""

    title: DimensionTitle
    labels: tuple[str, ...]
    """In the order of the table."""
    members: pl.DataFrame
    """`part`, one of the labels, by `case`, or by `case` and `step`."""
    note: str = ""


def row_dimensions(runs: Sequence[Outcomes]) -> list[Dimension]:
    """The divisions that the rows of the runs give: target, path, format."""
    columns = ("case", "step", "target", "path", "format")
    steps = pl.concat([outcomes.closed.select(columns) for outcomes in runs]).unique(["case", "step"])
    dimensions = []
    for title, by in (
        (DimensionTitle.TARGET, ["case"]),
        (DimensionTitle.PATH, ["case"]),
        (DimensionTitle.FORMAT, ["case", "step"]),
    ):
        members = steps.select(*by, part=title.lower()).drop_nulls().unique().sort(by)
        frequent = members.group_by("part").len().sort(["len", "part"], descending=[True, False])["part"]
        labels = sorted(frequent.head(MOST_LABELS))
        note = f"the {MOST_LABELS} most frequent of {len(frequent)}" if len(frequent) > MOST_LABELS else ""
        if len(labels) > 1:
            dimensions.append(Dimension(title, tuple(labels), members, note))
    return dimensions


def divide_into_thirds(
    title: DimensionTitle, values: pl.DataFrame, unit: str, *, scale: float = 1.0, note: str = ""
) -> Dimension | None:
    """Cases (`case`, `value`) in three bands of equal number; None where the values do not differ enough."""
    known = values.drop_nulls()
    low, high = (known["value"].quantile(share, "nearest") for share in (1 / 3, 2 / 3))
    if low is None or high is None or not known["value"].min() < low < high:  # type: ignore[operator]
        return None
    limits = [f"{limit * scale:.3g}{unit}" for limit in (low, high)]
    labels = (f"below {limits[0]}", f"{limits[0]} to {limits[1]}", f"{limits[1]} or more")
    label = (
        pl.when(pl.col("value") < low)
        .then(pl.lit(labels[0]))
        .when(pl.col("value") < high)
        .then(pl.lit(labels[1]))
        .otherwise(pl.lit(labels[2]))
    )
    return Dimension(title, labels, known.select("case", part=label), note)


def breakdown_metrics(protocol: str, dimension: Dimension) -> list[str]:
    """Accuracy; for a protocol with case success in its headline also that, where the dimension divides cases."""
    has_success = CASE_SUCCESS in find_protocol(protocol).headline and "step" not in dimension.members.columns
    return [ACCURACY, SUCCESS] if has_success else [ACCURACY]


def break_down(run: ComparedRun, outcomes: Outcomes, dimension: Dimension) -> list[Estimate]:
    """Accuracy over the closed steps of each label, and the share of cases without an error where it is measured."""
    by = [name for name in ("case", "step") if name in dimension.members.columns]
    units = {ACCURACY: outcomes.closed, SUCCESS: outcomes.cases}
    tables = {
        metric: units[metric].select(*by, "unit", "cluster", "value", "chance").join(dimension.members, on=by)
        for metric in breakdown_metrics(outcomes.protocol, dimension)
    }
    return [
        estimate_share(
            run,
            weight_groups(table.filter(pl.col("part") == label)),
            level=f"by {dimension.title.lower()}",
            name=label,
            metric=metric,
        )
        for metric, table in tables.items()
        for label in dimension.labels
    ]
