"""Do maps depend on the image, the text and the weights? What `carina explain --check` found, against random maps."""

from dataclasses import dataclass
from typing import Final

import msgspec
import polars as pl

from carina.report.analyse.figures import Contrast, corrected
from carina.report.ground.analyse.compare import difference
from carina.report.ground.figures import Figure, of_run
from carina.report.ground.measures import Measure
from carina.report.ground.read import MapsRun

LEVEL: Final = "check"
RANDOM: Final = "random map"
FOLLOWED: Final = ("deletion", "insertion")
"""Each has a column of its own name and one of a random map of the same shape, probe by probe."""


@dataclass(frozen=True)
class RunChecks:
    run: MapsRun
    probes: int
    figures: tuple[Figure, ...]
    """Means over probes, in the order of the checks."""
    differences: tuple[Contrast, ...]
    """The map less a random one, paired on probes; p after Holm's correction over both."""


def run_checks(run: MapsRun) -> RunChecks | None:
    """None where a run was not checked."""
    if run.checked is None:
        return None
    made = [_less_random(run, run.checked.rows, name) for name in FOLLOWED]
    return RunChecks(
        run,
        run.checked.checks.probes,
        tuple(
            of_run(run, level=LEVEL, name="", metric=one.name, found=one.mean)
            for one in run.checked.checks.figures
        ),
        tuple(corrected([item for item in made if item is not None])),
    )


def _less_random(run: MapsRun, rows: pl.DataFrame, name: str) -> Contrast | None:
    beside = f"{name}.random"
    if name not in rows.columns or beside not in rows.columns:
        return None
    known = rows.with_columns(patient=pl.col("patient").fill_null(pl.col("case")))
    found = difference(
        (run.id, known.select("case", "patient", name)),
        (RANDOM, known.select("case", pl.col(beside).alias(name))),
        Measure(name.capitalize(), "", name),
    )
    return None if found is None else msgspec.structs.replace(found, level=LEVEL)
