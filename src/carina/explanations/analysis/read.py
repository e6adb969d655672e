"""Reading runs of `carina explain`: maps, their scores and checks, refused where they do not belong together."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import polars as pl

from carina.explanations.checks import CHECKS, ROWS, CheckResult, Checks
from carina.explanations.layout import LAYOUT as MAPS
from carina.explanations.maps import Manifest, Maps, open_maps
from carina.explanations.scoring import (
    MODEL,
    SCORES,
    SCORING,
    SUMMARY,
    Scoring,
    check_finite,
    read_map_table,
    read_scoring,
)
from carina.runs.analysis.read import read_distinct
from carina.store import what_is
from carina.store.documents import read_json
from carina.store.errors import CarinaError
from carina.store.frames import check_table, read_frame

UNTRAINED: Final = "builtin/untrained"
"""Model with random weights."""
ORACLE: Final = "control/oracle"
_CONTROL: Final = "control/"
_SCORED: Final = ("source", "case", "finding", "patient", "share")
_SUMMARISED: Final = (
    "source", "variant", "level", "group", "average", "value", "low", "high", "n", "patients", "replicates",
)  # fmt: skip
"""Columns that the tables have whatever the profile."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MapsRun:
    """One run of `carina explain`: model, method, maps and their scores."""

    id: str
    path: Path
    maps: Maps
    scoring: Scoring
    scores: pl.DataFrame
    """A row for each map and source, a column for each variant."""
    summary: pl.DataFrame
    """Means with intervals."""
    checked: CheckResult | None = None
    """Whether its maps depend on image, text and weights, where `--check` was given."""
    label: str = ""
    """Name that the caller gave it; empty where it is named after its model and method."""
    suffix: str = ""
    """Distinguishes it from another run of the same name."""

    @property
    def manifest(self) -> Manifest:
        return self.maps.manifest

    @property
    def model(self) -> str:
        return self.scoring.model

    @property
    def method(self) -> str:
        return self.scoring.method

    @property
    def title(self) -> str:
        """The label, or model and method; a control has one method, which its name says."""
        own = self.model if self.is_control else f"{self.model} · {self.method}"
        name = self.label or own
        return f"{name} ({self.suffix})" if self.suffix else name

    @property
    def is_control(self) -> bool:
        return self.model.startswith(_CONTROL)

    @property
    def is_baseline(self) -> bool:
        """Whether it has learnt nothing: a control, or random weights."""
        return self.is_control or self.model == UNTRAINED

    @property
    def is_oracle(self) -> bool:
        return self.model == ORACLE

    @property
    def benchmark(self) -> str:
        """Fingerprint of the benchmark."""
        return str(self.manifest.options.get("benchmark", ""))

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Sentences about what was not compared with a checksum."""
        if self.manifest.options.get("verify_images") is False:
            return (
                "its images were not compared with the checksums that the cases state (--no-verify-images)",
            )
        return ()

    @property
    def settings(self) -> dict[str, Any]:
        settings = self.manifest.options.get("settings")
        return settings if isinstance(settings, dict) else {}

    @property
    def pretraining(self) -> str | None:
        """Kind of data that the model was trained on, where it declares one."""
        tag = self.settings.get("pretraining")
        return tag if isinstance(tag, str) else None

    @cached_property
    def known_variants(self) -> frozenset[str]:
        """Variants of metrics of which its own maps have a value."""
        own = self.summary.filter((pl.col("source") == MODEL) & pl.col("value").is_not_null())
        return frozenset(own["variant"].to_list())

    @cached_property
    def probes(self) -> tuple[frozenset[str], frozenset[str]]:
        """Probes with a scored map, and probes with a score of the finding."""
        return frozenset(self.own["case"]), frozenset(self.recognition_scores["case"])

    @cached_property
    def own(self) -> pl.DataFrame:
        """Scores of the model's maps, one row a case."""
        return self.scores_of(MODEL)

    def scores_of(self, source: str) -> pl.DataFrame:
        """Scores of one source (the model, or a control) on positive probes, in order of cases."""
        # Some profiles score maps of negative probes too; those count in the summary alone.
        return self.scores.filter((pl.col("source") == source) & (pl.col("share") > 0)).sort("case")

    @cached_property
    def recognition_scores(self) -> pl.DataFrame:
        """The model's scores of findings: `case`, `patient`, `finding`, `present`, `score`, `against`.

        `against` says whether the score of negative prompts was subtracted. Without the split and the patients that
        thresholds were tuned on; no rows for maps without a model.
        """
        table = self.maps.table(["id", "patient", "split", "target", "present", "score", "against"]).collect()
        kept = table.filter(pl.col("score").is_not_null())
        if self.scoring.tuned_on is not None:
            tuned = pl.col("split").eq_missing(pl.lit(self.scoring.tuned_on))
            tuning_patients = table.filter(tuned)["patient"].drop_nulls().unique().to_list()
            kept = kept.filter(~tuned & ~pl.col("patient").is_in(tuning_patients).fill_null(value=False))
        return kept.select(
            case="id",
            patient=pl.col("patient").fill_null(pl.col("id")),
            finding="target",
            present="present",
            score=pl.col("score") - pl.col("against").fill_null(0.0),
            against=pl.col("against").is_not_null(),
        ).sort("case")


def is_maps(path: Path) -> bool:
    """Whether a directory holds a run of `carina explain`."""
    return path.is_dir() and what_is(path) == MAPS.holds


def read_maps_run(path: Path) -> MapsRun:
    """Read the run of `carina explain` in a directory.

    Raises:
        CarinaError: Something of it is missing, or maps, scores and checks do not belong together.
    """
    maps = open_maps(path)
    scoring = read_scoring(path)
    if scoring.maps != maps.manifest.fingerprint:
        raise CarinaError(
            f"{path / SCORES}: belongs to other maps than {MAPS.file}; run carina explain again"
        )
    stated = (maps.manifest.options.get("model"), maps.manifest.options.get("method"))
    if (scoring.model, scoring.method) != stated:
        raise CarinaError(
            f"{path / SCORING}: is about {scoring.model}, {scoring.method}, but {MAPS.file} about {stated[0]}, "
            f"{stated[1]}; run carina explain again"
        )
    stated_maps, present = scoring.scored + scoring.tuned + scoring.shared, maps.manifest.counts.present
    if stated_maps > present or scoring.blank > present:
        raise CarinaError(
            f"{path / SCORING}: counts more maps of present findings than the {present} of {MAPS.file}; run carina "
            "explain again"
        )
    if not scoring.scored:
        raise CarinaError(
            f"{path}: none of its maps is of a present finding, so there are no scores to report; run carina explain "
            "with more probes"
        )
    scores, summary = (read_map_table(path, name, scoring) for name in (SCORES, SUMMARY))
    if scoring.parts != tuple(part.sha256 for part in maps.manifest.parts):
        raise CarinaError(f"{path}: maps or tables were changed after scoring; run carina explain again")
    _require(path / SCORES, scores, (*_SCORED, *(name for name in scoring.variants if not _is_pooled(name))))
    _require(path / SUMMARY, summary, _SUMMARISED)
    return MapsRun(
        id=path.resolve().name,
        path=path,
        maps=maps,
        scoring=scoring,
        scores=scores,
        summary=summary,
        checked=_read_checks(path, maps.manifest.fingerprint),
    )


def read_maps_runs(paths: Sequence[Path], labels: Mapping[Path, str] | None = None) -> list[MapsRun]:
    """Read several runs of `carina explain`; each may be given once. `labels` are names for some of them."""
    known = labels or {}
    return read_distinct(
        paths,
        lambda path: replace(read_maps_run(path), label=known.get(path, "")),
        lambda run: (run.benchmark, run.scoring.profile, run.title),
    )


def _is_pooled(variant: str) -> bool:
    """Whether a variant pools the pixels of all images, so that no single map has a score."""
    return variant.endswith(".pooled")


def _read_checks(directory: Path, fingerprint: str) -> CheckResult | None:
    """The results of `carina explain --check`, where there are any."""
    path = directory / CHECKS
    if not os.path.lexists(path):
        return None
    checks = read_json(
        path, Checks, what="the checks of a run of maps, as carina explain --check writes them"
    )
    if checks.maps != fingerprint:
        raise CarinaError(f"{path}: belongs to other maps than {MAPS.file}; run carina explain --check again")
    remedy = "check the maps again with carina explain --check"
    rows = read_frame(directory / ROWS, remedy)
    _require(directory / ROWS, rows, ("case", "patient"))
    if checks.table is not None:
        check_table(directory / ROWS, checks.table, stated_in=CHECKS, remedy=remedy)
    check_finite(directory / ROWS, rows)
    return CheckResult(checks, rows)


def _require(path: Path, table: pl.DataFrame, columns: Iterable[str]) -> None:
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise CarinaError(f"{path}: no column {missing[0]!r}; run carina explain again")
