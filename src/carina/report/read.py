"""Reading runs: `run.json` and `steps.parquet`, checked before anything is made of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec
import polars as pl
import pyarrow.parquet as pq

from carina.errors import CarinaError
from carina.report.naming import read_apart
from carina.report.words import TEXT_SCORES, is_baseline, is_oracle, model_name
from carina.run.records import RunInfo, StepRow
from carina.store import MAPS
from carina.store.tables import to_table

INFO: Final = "run.json"
STEPS: Final = "steps.parquet"
_FILES: Final = (INFO, MAPS.file)
"""By which runs of questions and explain runs are known."""
_SCHEMA: Final = pl.from_arrow(to_table(StepRow, [])).schema  # type: ignore[union-attr] # a table is a frame


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """One finished run: who was asked how, and every step of every case."""

    id: str
    """Its own, or where several runs of a report share one, with the folder that it lies in."""
    path: Path
    info: RunInfo
    steps: pl.DataFrame
    """Columns of `StepRow`, sorted by case and number."""
    named: str = ""
    """What tells it from another run of the same model and history on the same benchmark."""

    @property
    def model(self) -> str:
        name = model_name(self.info)
        return f"{name} ({self.named})" if self.named else name

    @property
    def history(self) -> str:
        return self.info.policy.history

    @property
    def baseline(self) -> bool:
        return is_baseline(self.info)

    @property
    def oracle(self) -> bool:
        return is_oracle(self.info)

    @property
    def benchmark(self) -> Path:
        """Where the benchmark lay when it was run."""
        return (self.path / self.info.benchmark).resolve()

    def cases(self, protocol: str) -> set[str]:
        """Ids of its cases of one protocol."""
        return set(self.steps.filter(pl.col("protocol") == protocol)["case"].unique())

    def rows(self, cases: Iterable[str]) -> list[StepRow]:
        """The steps of some cases, as records."""
        wanted: Any = self.steps.filter(pl.col("case").is_in(list(cases))).to_dicts()
        return msgspec.convert(wanted, list[StepRow])


def read_run(path: Path) -> Run:
    """The run in a directory; `CarinaError` says what of it is missing or not as it should be."""
    if not path.is_dir():
        raise CarinaError(
            f"{path}: no such directory, expected a run as `carina run` or `carina explain` writes it"
        )
    info = _info(path / INFO)
    return Run(id=info.id, path=path, info=info, steps=_steps(path / STEPS))


def read_runs(paths: Sequence[Path]) -> list[Run]:
    """Several runs, each of which may be given once."""
    if not paths:
        raise CarinaError(
            "no runs given, expected at least one directory that `carina run` or `carina explain` has written"
        )
    return read_apart(paths, read_run, _asked)


def _asked(run: Run) -> tuple[str, ...]:
    """Runs that would read the same in a table."""
    return run.info.fingerprint, run.model, run.history


def runs_in(paths: Sequence[Path]) -> list[Path]:
    """Runs as they are given; a directory that holds runs stands for all of them."""
    found: list[Path] = []
    for path in paths:
        held = [each.parent for file in _FILES for each in path.glob(f"*/{file}")] if path.is_dir() else []
        itself = any((path / file).exists() for file in _FILES)
        found += sorted(held) if held and not itself else [path]
    return found


def _info(path: Path) -> RunInfo:
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunInfo)
    except FileNotFoundError as error:
        raise CarinaError(
            f"{path.parent}: no {path.name} and no {MAPS.file}, expected a run as `carina run` or `carina explain` "
            "writes it"
        ) from error
    except OSError as error:
        raise CarinaError(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise CarinaError(f"{path}: not what a run is described by: {error}") from error


def _steps(path: Path) -> pl.DataFrame:
    if not path.is_file():
        raise CarinaError(
            f"{path.parent}: no {path.name}, which is made when a run ends; the same `carina run` goes on with it"
        )
    try:
        table = pq.read_table(path)
    except (OSError, ValueError) as error:
        raise CarinaError(f"{path}: not a Parquet file: {error}") from error
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)  # noqa: S101 - tells the type checker what Arrow cannot
    for name, wanted in _SCHEMA.items():
        if name not in frame.columns and name in (*TEXT_SCORES, "seen_sha256"):
            # Runs from before there were such columns have none.
            frame = frame.with_columns(pl.lit(None, wanted).alias(name))
        if name not in frame.columns:
            raise CarinaError(f"{path}: no column {name!r}, expected those of a step")
        found = frame.schema[name]
        if found != wanted:
            raise CarinaError(f"{path}: column {name!r} holds {found}, expected {wanted}")
    again = frame.filter(frame.select("case", "number").is_duplicated())
    if not again.is_empty():
        case, number = again.select("case", "number").row(0)
        raise CarinaError(f"{path}: case {case!r} has step number {number} more than once")
    return frame.select(*_SCHEMA).sort("case", "number")
