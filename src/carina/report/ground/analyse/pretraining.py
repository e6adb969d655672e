"""What models were trained on, and whether it shows: runs grouped by the tag that they carry."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import polars as pl

from carina.report.analyse.figures import Contrast, corrected
from carina.report.ground.analyse.compare import difference
from carina.report.ground.figures import Figure, estimated
from carina.report.ground.measures import Measure
from carina.report.ground.read import MapsRun
from carina.stats import ratio_intervals

REPLICATES: Final = 1000
ORDER: Final = ("chest x-ray", "biomedical", "general", "unknown")


@dataclass(frozen=True, eq=False)
class Group:
    """Runs of one tag, as one: every probe that all runs with a tag have, with the mean of the group's runs."""

    tag: str
    runs: tuple[MapsRun, ...]
    scores: pl.DataFrame


@dataclass(frozen=True)
class Pretraining:
    groups: tuple[Group, ...]
    figures: tuple[Figure, ...]
    differences: tuple[Contrast, ...]
    """Between groups, paired on the same probes; p after Holm's correction over the pairs of a measure."""


def pretraining(runs: Sequence[MapsRun], told: Sequence[Measure]) -> Pretraining | None:
    """None where fewer than two tags are told."""
    tagged = [run for run in runs if run.pretraining is not None]
    tags = sorted({run.pretraining for run in tagged if run.pretraining}, key=_place)
    columns = [one.variant for one in told if all(one.variant in run.own.columns for run in tagged)]
    if len(tags) < 2 or not columns:
        return None
    shared = set.intersection(*(set(run.own["case"]) for run in tagged))
    groups = []
    for tag in tags:
        own = tuple(run for run in tagged if run.pretraining == tag)
        rows = pl.concat([run.own.select("case", "patient", *columns) for run in own])
        scores = (
            rows.filter(pl.col("case").is_in(sorted(shared)))
            .group_by("case")
            .agg(pl.col("patient").first(), *(pl.col(name).mean() for name in columns))
            .sort("case")
        )
        groups.append(Group(tag, own, scores))
    if groups[0].scores.is_empty():
        return None
    differences: list[Contrast] = []
    for measure in told:
        pairs = [
            difference((one.tag, one.scores), (other.tag, other.scores), measure)
            for one, other in combinations(groups, 2)
        ]
        differences += corrected([item for item in pairs if item is not None])
    figures = [item for group in groups for item in _figures(group, columns)]
    return Pretraining(tuple(groups), tuple(figures), tuple(differences))


def _place(tag: str) -> tuple[int, str]:
    return (ORDER.index(tag) if tag in ORDER else len(ORDER), tag)


def _figures(group: Group, columns: Sequence[str]) -> list[Figure]:
    means = ratio_intervals(
        group.scores.select(columns).to_numpy(), group.scores["patient"].to_list(), replicates=REPLICATES
    )
    return [
        estimated(
            one,
            run=group.tag,
            model=", ".join(dict.fromkeys(run.model for run in group.runs)),
            method="",
            level="pretraining",
            name=group.tag,
            metric=variant,
            average="micro",
        )
        for variant, one in zip(columns, means, strict=True)
    ]
