"""What the tables of explain runs have in common: heads of runs and measures, and the controls."""

from typing import Final

from carina.report.ground.analysis import GroundAnalysis
from carina.report.ground.read import MapsRun
from carina.report.page.cells import Head

CONTROLS: Final = {
    "control/uniform": "the same everywhere",
    "control/random": "noise",
    "control/centre": "the middle of the image",
    "control/lungs": "the lungs",
    "control/mean-region": "where the finding lies in other patients",
    "control/oracle": "the truth, on the grid of the map",
}
"""What each of them shows."""
OVER_FINDINGS: Final = "mean over findings"


def run_head(run: MapsRun) -> Head:
    kind = "control" if run.control else "random weights" if run.baseline else ""
    return Head(text=run.title, note=kind, mark=run.id)


def columns(told: GroundAnalysis, *, note: str = "") -> tuple[Head, ...]:
    return tuple(
        Head(
            text=one.title,
            note="; ".join(part for part in (one.note, note) if part),
            title=f"{one.variant}: {one.definition}",
        )
        for one in told.probing.measures
    )


def fullest(told: GroundAnalysis) -> MapsRun | None:
    """The run with the most scored maps that has controls beside it."""
    beside = [run for run in told.probing.runs if controls_of(run)]
    return max(beside, key=lambda run: run.scoring.scored, default=None)


def controls_of(run: MapsRun) -> list[str]:
    """Sources of the controls that were scored beside a run."""
    held = set(run.summary["source"].unique())
    return [source for source in CONTROLS if source in held]
