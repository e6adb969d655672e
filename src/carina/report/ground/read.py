"""Reading explain runs: maps, their scores and what decided them, checked before anything is made of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec
import polars as pl
from polars.exceptions import PolarsError

from carina.errors import CarinaError
from carina.files import sha256
from carina.ground.explain.checks import CHECKS, ROWS, Checked, Checks
from carina.ground.explain.maps import Manifest, Maps, open_maps
from carina.ground.explain.scoring import MODEL, SCORES, SUMMARY, Scoring, read_scoring
from carina.report.naming import read_apart
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
    checked: Checked | None = None
    """Whether its maps depend on image, text and weights, where that was asked."""
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
    def told(self) -> frozenset[str]:
        """Variants that its own maps have a figure of."""
        own = self.summary.filter((pl.col("source") == MODEL) & pl.col("value").is_not_null())
        return frozenset(own["variant"].to_list())

    @cached_property
    def probes(self) -> tuple[frozenset[str], frozenset[str]]:
        """Probes that its figures rest on: those whose maps are scored, and those with a score of the finding."""
        return frozenset(self.own["case"]), frozenset(self.recognised["case"])

    @cached_property
    def own(self) -> pl.DataFrame:
        """Scores of the model's maps, a row a case."""
        return self.of(MODEL)

    def of(self, source: str) -> pl.DataFrame:
        """Scores of one source on findings that are there, in order of cases."""
        # Some profiles score maps of absent findings too; those are in the summary's figures alone.
        return self.scores.filter((pl.col("source") == source) & (pl.col("share") > 0)).sort("case")

    @cached_property
    def recognised(self) -> pl.DataFrame:
        """How sure the model is of findings: `case`, `patient`, `finding`, `present`, `score`, `against`.

        `against` tells whether the score is less that of negative prompts. Neither of the split nor of the patients
        that thresholds were tuned on; no rows for maps without a model.
        """
        told = self.maps.table(["id", "patient", "split", "target", "present", "score", "against"]).collect()
        kept = told.filter(pl.col("score").is_not_null())
        if self.scoring.tuned_on is not None:
            tuned = pl.col("split").eq_missing(pl.lit(self.scoring.tuned_on))
            seen = told.filter(tuned)["patient"].drop_nulls().unique().to_list()
            kept = kept.filter(~tuned & ~pl.col("patient").is_in(seen).fill_null(value=False))
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
    parts = tuple(part.sha256 for part in maps.manifest.parts)
    tables = {name: sha256(path / name) for name in (SCORES, SUMMARY)}
    if (scoring.parts, scoring.tables) != (parts, tables):
        raise CarinaError(f"{path}: scored before its maps or tables were changed; run carina explain again")
    if not scoring.scored:
        # Tables without a row have no columns either.
        scores, summary = pl.DataFrame(schema=_SCORED), pl.DataFrame(schema=_SUMMED)
    wanted = [name for name in scoring.variants if scoring.scored and not _pooled(name)]
    _require(path / SCORES, scores, (*_SCORED, *wanted))
    _require(path / SUMMARY, summary, _SUMMED)
    return MapsRun(
        id=path.resolve().name,
        path=path,
        maps=maps,
        scoring=scoring,
        scores=scores,
        summary=summary,
        checked=_checked(path, maps.manifest.fingerprint),
    )


def read_maps_runs(paths: Sequence[Path]) -> list[MapsRun]:
    """Several explain runs, each of which may be given once."""
    return read_apart(paths, read_maps_run, _asked)


def _asked(run: MapsRun) -> tuple[str, ...]:
    """Runs that would read the same in a table."""
    return run.benchmark, run.scoring.profile, run.model, run.method


def _pooled(variant: str) -> bool:
    """Over the pixels of all images together: no row has it."""
    return variant.endswith(".pooled")


def _checked(directory: Path, fingerprint: str) -> Checked | None:
    """What `carina explain --check` found, where it was asked."""
    path = directory / CHECKS
    try:
        checks = msgspec.json.decode(path.read_bytes(), type=Checks)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise CarinaError(f"{path}: not the checks of maps: {error}") from error
    if checks.maps != fingerprint:
        raise CarinaError(f"{path}: its checks are of other maps; run carina explain --check again")
    rows = _table(directory / ROWS, "check the maps again with carina explain --check")
    _require(directory / ROWS, rows, ("case", "patient"))
    return Checked(checks, rows)


def _require(path: Path, table: pl.DataFrame, columns: Iterable[str]) -> None:
    lacking = [column for column in columns if column not in table.columns]
    if lacking:
        raise CarinaError(f"{path}: no column {lacking[0]!r}, expected what carina explain writes")


def _table(path: Path, remedy: str = "score the maps with carina explain") -> pl.DataFrame:
    try:
        return pl.read_parquet(path)
    except FileNotFoundError:
        raise CarinaError(f"{path}: missing; {remedy}") from None
    except (OSError, PolarsError) as error:
        raise CarinaError(f"{path}: not a Parquet file: {error}") from error
