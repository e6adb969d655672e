"""Reading explain runs: maps, their scores and what decided them, checked before anything is made of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import polars as pl
from polars.exceptions import PolarsError

from carina.errors import CarinaError
from carina.ground.explain.maps import Manifest, Maps, open_maps
from carina.ground.explain.scoring import MODEL, SCORES, SUMMARY, Scoring, read_scoring
from carina.store import MAPS, what_is

UNTRAINED: Final = "builtin/untrained"
"""Shows what a method makes of random weights."""
ORACLE: Final = "control/oracle"
_CONTROL: Final = "control/"
_SCORED: Final = dict.fromkeys(("source", "case", "finding", "patient"), pl.String) | {"share": pl.Float64}
_SUMMED: Final = (
    dict.fromkeys(("source", "variant", "level", "group", "average"), pl.String)
    | dict.fromkeys(("value", "low", "high"), pl.Float64)
    | dict.fromkeys(("n", "patients", "replicates"), pl.Int64)
)
"""Columns that both tables have, whatever the profile."""


@dataclass(frozen=True, kw_only=True, eq=False)
class MapsRun:
    """One explain run: who was asked how, every score, and the maps."""

    id: str
    path: Path
    maps: Maps
    scoring: Scoring
    scores: pl.DataFrame
    """A row for each map and source, a column for each variant."""
    summary: pl.DataFrame
    """Figures with intervals."""
    named: str = ""
    """What tells it from another run of the same model and method."""

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
        """Model and method; a control has one method, which its name tells."""
        name = self.model if self.control else f"{self.model} · {self.method}"
        return f"{name} ({self.named})" if self.named else name

    @property
    def control(self) -> bool:
        return self.model.startswith(_CONTROL)

    @property
    def baseline(self) -> bool:
        """Whether it has learnt nothing."""
        return self.control or self.model == UNTRAINED

    @property
    def oracle(self) -> bool:
        return self.model == ORACLE

    @property
    def benchmark(self) -> str:
        """Fingerprint of the benchmark that was explained."""
        return str(self.manifest.options.get("benchmark", ""))

    @property
    def settings(self) -> dict[str, Any]:
        found = self.manifest.options.get("settings")
        return found if isinstance(found, dict) else {}

    @property
    def pretraining(self) -> str | None:
        """What the model was trained on, where it says so."""
        told = self.settings.get("pretraining")
        return told if isinstance(told, str) else None

    @cached_property
    def own(self) -> pl.DataFrame:
        """Scores of the model's maps, a row a case."""
        return self.of(MODEL)

    def of(self, source: str) -> pl.DataFrame:
        """Scores of one source, in order of cases."""
        return self.scores.filter(pl.col("source") == source).sort("case")

    @cached_property
    def recognised(self) -> pl.DataFrame:
        """How sure the model is of findings: `case`, `patient`, `finding`, `present`, `score`, `against`.

        `against` tells whether the score is less that of negative prompts. Of the scored splits alone; no rows for maps
        without a model.
        """
        told = self.maps.table(["id", "patient", "split", "target", "present", "score", "against"]).collect()
        kept = told.filter(pl.col("score").is_not_null())
        if self.scoring.tuned_on is not None:
            kept = kept.filter(pl.col("split").ne_missing(pl.lit(self.scoring.tuned_on)))
        return kept.select(
            case="id",
            patient=pl.col("patient").fill_null(pl.col("id")),
            finding="target",
            present="present",
            score=pl.col("score") - pl.col("against").fill_null(0.0),
            against=pl.col("against").is_not_null(),
        ).sort("case")


def is_maps(path: Path) -> bool:
    """Whether a directory holds an explain run."""
    return path.is_dir() and what_is(path) == MAPS.holds


def read_maps_run(path: Path) -> MapsRun:
    """The explain run in a directory; `CarinaError` says what of it is missing or not as it should be."""
    maps = open_maps(path)
    scoring = read_scoring(path)
    if scoring.maps != maps.manifest.fingerprint:
        raise CarinaError(
            f"{path}: its scores are of other maps; expected those that carina explain wrote last"
        )
    scores, summary = _table(path / SCORES), _table(path / SUMMARY)
    if not scoring.scored:
        # Tables without a row have no columns either.
        scores, summary = pl.DataFrame(schema=_SCORED), pl.DataFrame(schema=_SUMMED)
    wanted = [name for name in scoring.variants if scoring.scored and not _pooled(name)]
    for name, table, columns in ((SCORES, scores, (*_SCORED, *wanted)), (SUMMARY, summary, _SUMMED)):
        lacking = [column for column in columns if column not in table.columns]
        if lacking:
            raise CarinaError(f"{path / name}: no column {lacking[0]!r}, expected what carina explain writes")
    return MapsRun(
        id=path.resolve().name, path=path, maps=maps, scoring=scoring, scores=scores, summary=summary
    )


def read_maps_runs(paths: Sequence[Path]) -> list[MapsRun]:
    """Several explain runs, each of which may be given once."""
    places = [path.resolve() for path in paths]
    for path, place in zip(paths, places, strict=True):
        if places.count(place) > 1:
            raise CarinaError(f"{path}: is given more than once, expected each run once")
    runs = [read_maps_run(path) for path in paths]
    ids = Counter(run.id for run in runs)
    told = [
        replace(run, id=run.id if ids[run.id] == 1 else f"{place.parent.name}/{run.id}")
        for run, place in zip(runs, places, strict=True)
    ]
    again = [name for name, count in Counter(run.id for run in told).items() if count > 1]
    if again:
        raise CarinaError(f"{len(paths)} runs: several are {again[0]!r}; expected folders of different names")
    alike = Counter(_asked(run) for run in told)
    return [replace(run, named=run.id if alike[_asked(run)] > 1 else "") for run in told]


def _asked(run: MapsRun) -> tuple[str, ...]:
    """Runs that would read the same in a table."""
    return run.benchmark, run.scoring.profile, run.model, run.method


def _pooled(variant: str) -> bool:
    """Over the pixels of all images together: no row has it."""
    return variant.endswith(".pooled")


def _table(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except FileNotFoundError:
        raise CarinaError(f"{path}: missing; score the maps with carina explain") from None
    except (OSError, PolarsError) as error:
        raise CarinaError(f"{path}: not a Parquet file: {error}") from error
