"""The human ceiling: how readers do on the cases that models are asked about, against each other or against the truth.

What a reader drew is scored against what the other readers drew, by the rule of the benchmark, as the maps and boxes of
models are scored against the truth; a reader whom the source compares with its truth is scored against that
(`carina.cases.reader_scores`). A case counts once, with the mean of its readers.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from statistics import fmean
from typing import Final

import numpy as np
import polars as pl

from carina.cases import Benchmark
from carina.cases.building import read_build_report
from carina.cases.reader_scores import ReaderFacts
from carina.ground import GroundBuildReport
from carina.ground.build_report import PresenceAgreement
from carina.ground.facts import GroundCaseFacts
from carina.percept.facts import PerceptCaseFacts
from carina.runs.analysis.estimates import REPLICATES, SEED, Estimate
from carina.stats import Interval, ratio_intervals
from carina.store.errors import CarinaError

READERS: Final = "readers"
"""Stands for the readers where tables name a run, a model or a source of maps."""
METRICS: Final = {
    "presence": "agrees with most of the other readers on presence",
    "boxes": "mean IoU of the best pairs of boxes",
    "localised": "right localisations: the mean IoU of the best pairs of boxes is 0.5 or more",
    "iou": "IoU",
    "dice": "Dice",
    "pointing": "share of what the reader drew that lies in what the others drew",
    "auroc": "pixel AUROC",
    "points": "share of the reader's most salient points that lie in the truth",
}
"""Scores of a reader against the others, by field of `ReaderFacts`."""


@dataclass(frozen=True, eq=False)
class HumanCeiling:
    """Scores of readers on the cases of a benchmark."""

    scores: pl.DataFrame
    """`case`, `patient`, `finding`, `readers` and the columns of `METRICS`; one row a case that has scores."""
    presence: tuple[PresenceAgreement, ...] = ()
    """Agreement on presence over all images, also those that are not asked about."""

    def intervals(self, finding: str = "") -> dict[str, Interval]:
        """Means of all metrics, of one finding or of all cases, with intervals over patients."""
        rows = self.scores.filter(pl.col("finding") == finding) if finding else self.scores
        table = rows.select(list(METRICS)).to_numpy().astype(np.float64)
        means = ratio_intervals(table, rows["patient"].to_list(), replicates=REPLICATES, seed=SEED)
        return {metric: one for metric, one in zip(METRICS, means, strict=True) if one.n}

    @property
    def findings(self) -> list[str]:
        """Findings that several readers have looked at, sorted by name."""
        return sorted(self.scores["finding"].unique())

    @property
    def estimates(self) -> list[Estimate]:
        """Means as rows of tables: of all cases, then by finding, with alpha of presence."""
        rows = [
            _estimate(finding, METRICS[metric], interval)
            for finding in ("", *self.findings)
            for metric, interval in self.intervals(finding).items()
        ]
        for one in self.presence:
            alpha = Interval(one.alpha, one.low, one.high, one.images, one.patients)
            rows.append(_estimate(one.target, ALPHA, alpha))
        return rows


_FACTS: Final[Mapping[str, type[GroundCaseFacts] | type[PerceptCaseFacts]]] = {
    "ground": GroundCaseFacts,
    "percept": PerceptCaseFacts,
}
"""By protocol, the facts that hold how readers do."""
ALPHA: Final = "Krippendorff's alpha of presence, over all images that several readers looked at"


def _estimate(name: str, metric: str, interval: Interval) -> Estimate:
    return Estimate(
        run=READERS,
        model=READERS,
        history="",
        level=READERS,
        name=name,
        metric=metric,
        value=interval.value,
        low=interval.low,
        high=interval.high,
        n=interval.n,
    )


def find_human_ceiling(bench: Benchmark, cases: Collection[str]) -> HumanCeiling | None:
    """The scores of readers on some cases of a benchmark; None where no case has several, or one for comparison."""
    facts = _FACTS.get(str(bench.manifest.options.get("protocol")))
    if facts is None:
        return None
    rows = []
    for case in bench.without("regions", "views").pick(sorted(cases)):
        readers = facts.of(case).readers
        if readers:
            rows.append(
                {
                    "case": case.id,
                    "patient": case.patient or case.id,
                    "finding": case.target or "",
                    "readers": len(readers),
                    **{metric: _mean(list(readers.values()), metric) for metric in METRICS},
                }
            )
    if not rows:
        return None
    schema = {"case": pl.String, "patient": pl.String, "finding": pl.String, "readers": pl.Int64}
    scores = pl.DataFrame(rows, schema={**schema, **dict.fromkeys(METRICS, pl.Float64)}).sort("case")
    return HumanCeiling(scores, _read_presence(bench, set(scores["finding"])))


def _mean(readers: list[ReaderFacts], metric: str) -> float | None:
    known = [value for one in readers if (value := getattr(one, metric)) is not None]
    return fmean(known) if known else None


def _read_presence(bench: Benchmark, findings: set[str]) -> tuple[PresenceAgreement, ...]:
    try:
        report = read_build_report(bench)
    except CarinaError:
        return ()  # the benchmark was copied without its report
    # Only ground measures it.
    presence = report.presence if isinstance(report, GroundBuildReport) else ()
    return tuple(one for one in presence if one.target in findings)


if {one.name for one in fields(ReaderFacts)} != METRICS.keys():
    raise TypeError("METRICS must name every field of ReaderFacts")
