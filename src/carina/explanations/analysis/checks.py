"""Whether maps depend on the image, the text and the weights: results of `carina explain --check`."""

from dataclasses import dataclass
from typing import Final

import msgspec
import polars as pl

from carina.explanations.analysis.comparisons import paired_scores
from carina.explanations.analysis.estimates import MapEstimate, estimate_of_run
from carina.explanations.analysis.measures import Measure
from carina.explanations.analysis.read import MapsRun
from carina.runs.analysis.estimates import Difference, apply_holm

LEVEL: Final = "check"
RANDOM: Final = "random map"
PAIRED_CHECKS: Final = ("deletion", "insertion")
"""Checks with a column for the map and one for a random map of the same shape, for each probe."""


@dataclass(frozen=True)
class RunChecks:
    """The checks of one run."""

    run: MapsRun
    probes: int
    estimates: tuple[MapEstimate, ...]
    """Means over probes, in the order of the checks."""
    differences: tuple[Difference, ...]
    """The map minus a random map, paired on probes; p after Holm's correction over both checks."""


def summarise_checks(run: MapsRun) -> RunChecks | None:
    """The checks of a run; None where it was not checked."""
    if run.checked is None:
        return None
    differences = [_minus_random(run, run.checked.rows, name) for name in PAIRED_CHECKS]
    return RunChecks(
        run,
        run.checked.checks.probes,
        tuple(
            estimate_of_run(run, level=LEVEL, name="", metric=one.name, interval=one.mean)
            for one in run.checked.checks.figures
        ),
        tuple(apply_holm([item for item in differences if item is not None])),
    )


def _minus_random(run: MapsRun, rows: pl.DataFrame, name: str) -> Difference | None:
    random_name = f"{name}.random"
    if name not in rows.columns or random_name not in rows.columns:
        return None
    known = rows.with_columns(patient=pl.col("patient").fill_null(pl.col("case")))
    paired = paired_scores(
        (run.id, known.select("case", "patient", name)),
        (RANDOM, known.select("case", pl.col(random_name).alias(name))),
        Measure(name.capitalize(), "", name),
    )
    return None if paired is None else msgspec.structs.replace(paired, level=LEVEL)
