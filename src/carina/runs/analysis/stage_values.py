"""The value of each stage from steps in memory, as the report gives it."""

import math
from collections.abc import Sequence

import polars as pl

from carina.runs.analysis.estimates import row_shares
from carina.runs.analysis.measures import free_text_measures, headline_measures
from carina.runs.analysis.outcomes import derive_outcomes
from carina.runs.analysis.read import ANALYSIS_COLUMNS, CATEGORIES
from carina.runs.records import StepRow
from carina.store.tables import to_table

_NO_KEYS = pl.DataFrame(schema={"case": pl.String, "step": pl.String, "key": pl.String})
"""Right answers in words are needed for constant answers alone."""


def stage_values(rows: Sequence[StepRow]) -> dict[int, float]:
    """The headline value of each stage of the steps of one protocol: accuracy, or the mean score of free text.

    A stage has accuracy where any of its steps has a right answer.
    """
    if not rows:
        return {}
    steps = pl.from_arrow(to_table(StepRow, rows))
    assert isinstance(steps, pl.DataFrame)  # noqa: S101 - for the type checker, which does not know Arrow
    steps = steps.select(ANALYSIS_COLUMNS).with_columns(pl.col(CATEGORIES).cast(pl.Categorical))
    protocol = rows[0].protocol
    outcomes = derive_outcomes(steps, protocol, _NO_KEYS)
    values: dict[int, float] = {}
    for measure in (*free_text_measures(protocol, [outcomes]), *headline_measures(protocol, [outcomes])):
        units = measure.select(outcomes)
        if measure.level in ("words", "stage") and not units.is_empty():
            values[int(measure.name)] = math.fsum(units["value"].to_numpy() * row_shares(units))
    return values
