"""Runs against each other, and groups of runs by what models were trained on."""

from collections.abc import Iterator

from carina.report.analyse.figures import Contrast
from carina.report.ground.analysis import GroundAnalysis
from carina.report.ground.figures import share
from carina.report.ground.page.grids.common import columns
from carina.report.page.cells import Grid, Head, Row, gap


def comparison(told: GroundAnalysis) -> Grid:
    names = {run.id: run.title for run in told.probing.runs}
    pairs = list(dict.fromkeys((item.one, item.other) for item in told.contrasts))
    found = {(item.one, item.other, item.metric): item for item in told.contrasts}
    rows = tuple(
        Row(
            head=Head(text=f"{names[one]} less {names[other]}", note=_shared(found, one, other)),
            cells=tuple(gap(found.get((one, other, measure.variant))) for measure in told.probing.measures),
        )
        for one, other in pairs
    )
    return Grid(
        title="Runs against each other",
        corner="Pair",
        columns=columns(told),
        rows=rows,
        note="Percentage points, paired on the probes that both runs have, with 95% interval over patients; p after "
        "Holm's correction over all pairs of a column. Bold with a star: below 0.05.",
    )


def _shared(found: dict[tuple[str, str, str], Contrast], one: str, other: str) -> str:
    most = max(item.n for (a, b, _), item in found.items() if (a, b) == (one, other))
    return f"{most:,} probes"


def pretrained(told: GroundAnalysis) -> Iterator[Grid]:
    """Groups by what models were trained on, and their differences."""
    found = told.pretraining
    if found is None:
        return
    known = {(one.name, one.metric): one for one in found.figures}
    yield Grid(
        title="By pretraining",
        corner="Trained on",
        columns=columns(told),
        rows=tuple(
            Row(
                head=Head(text=group.tag, note=", ".join(run.title for run in group.runs)),
                cells=tuple(share(known.get((group.tag, one.variant))) for one in told.probing.measures),
            )
            for group in found.groups
        ),
        note="Percent: means over the runs of a group, on the probes that all runs with a tag have, with 95% interval "
        "over patients. The interval tells how sure the mean of these very models is, not what other models would do.",
    )
    pairs = dict.fromkeys((item.one, item.other) for item in found.differences)
    apart = {(item.one, item.other, item.metric): item for item in found.differences}
    yield Grid(
        title="Differences by pretraining",
        corner="Pair",
        columns=columns(told),
        rows=tuple(
            Row(
                head=Head(text=f"{one} less {other}"),
                cells=tuple(
                    gap(apart.get((one, other, measure.variant))) for measure in told.probing.measures
                ),
            )
            for one, other in pairs
        ),
        note="Percentage points, paired on the same probes, with 95% interval over patients; p after Holm's correction "
        "over all pairs of a column.",
    )
