"""Grounding by the kind of data that models were trained on: runs grouped by their declared tag."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import polars as pl

from carina.explanations.analysis.comparisons import paired_scores
from carina.explanations.analysis.estimates import MapEstimate, to_estimate
from carina.explanations.analysis.measures import Measure
from carina.explanations.analysis.read import MapsRun
from carina.runs.analysis.estimates import Difference, apply_holm
from carina.stats import ratio_intervals

REPLICATES: Final = 1000
ORDER: Final = ("chest x-ray", "biomedical", "general", "unknown")


@dataclass(frozen=True, eq=False)
class TagGroup:
    """Runs of one tag: every probe that all tagged runs have, with the mean of the group's runs."""

    tag: str
    runs: tuple[MapsRun, ...]
    scores: pl.DataFrame


@dataclass(frozen=True)
class Pretraining:
    """Groups of runs by tag, compared."""

    groups: tuple[TagGroup, ...]
    estimates: tuple[MapEstimate, ...]
    differences: tuple[Difference, ...]
    """Between groups, paired on the same probes; p after Holm's correction over the pairs of a measure."""


def compare_pretraining(runs: Sequence[MapsRun], measures: Sequence[Measure]) -> Pretraining | None:
    """Groups and their differences; None where fewer than two tags are declared."""
    tagged = [run for run in runs if run.pretraining is not None]
    tags = sorted({run.pretraining for run in tagged if run.pretraining}, key=_tag_order)
    columns = [one.variant for one in measures if all(one.variant in run.own.columns for run in tagged)]
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
        groups.append(TagGroup(tag, own, scores))
    if groups[0].scores.is_empty():
        return None
    differences: list[Difference] = []
    for measure in measures:
        pairs = [
            paired_scores((one.tag, one.scores), (other.tag, other.scores), measure)
            for one, other in combinations(groups, 2)
        ]
        differences += apply_holm([item for item in pairs if item is not None])
    estimates = [item for group in groups for item in _estimates(group, columns)]
    return Pretraining(tuple(groups), tuple(estimates), tuple(differences))


def _tag_order(tag: str) -> tuple[int, str]:
    return (ORDER.index(tag) if tag in ORDER else len(ORDER), tag)


def _estimates(group: TagGroup, columns: Sequence[str]) -> list[MapEstimate]:
    means = ratio_intervals(
        group.scores.select(columns).to_numpy(), group.scores["patient"].to_list(), replicates=REPLICATES
    )
    return [
        to_estimate(
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
