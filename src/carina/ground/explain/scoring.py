"""From maps to scores: the model's own and those of the controls on the same frames and grids, side by side.

`scores.parquet` has a row for each map and source, `summary.parquet` figures with intervals, `scoring.json` all that
decides them: profile, definitions of the variants, split and thresholds, recognition, sensitivity to the threshold.
"""

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import polars as pl

import carina
from carina.cases import Benchmark, Case, open_benchmark
from carina.errors import CarinaError
from carina.files import sha256, write_bytes
from carina.ground.explain.controls import CONTROLS, Priors, control, priors
from carina.ground.explain.explainer import Asked
from carina.ground.explain.maps import LocalisationMap, Maps, open_maps
from carina.ground.explain.probe import asked_of
from carina.ground.explain.recognition import Recognition, recognition
from carina.ground.probes import PRESENT
from carina.ground.score.pointing import Box
from carina.ground.score.profiles import variants_of
from carina.ground.score.rules import Chosen, GridName, Where
from carina.ground.score.score import Scorer
from carina.ground.score.summary import Cell, Row
from carina.ground.score.tuning import Thresholds
from carina.models.frame import Map
from carina.studies import Region
from carina.workers import in_order

MODEL: Final = "model"
OWN: Final = "carina"
"""The profile that is scored by where none is named."""
SCORES: Final = "scores.parquet"
SUMMARY: Final = "summary.parquet"
SCORING: Final = "scoring.json"
GRID: Final[GridName] = "minmax256"
"""Thresholds of the sensitivity curves."""
REPLICATES: Final = 1000
"""Draws of patients for an interval: there are thousands of intervals."""
VERSION: Final = 2
"""Raised when the same maps and options give other scores."""
_THOUSAND: Final = 1000.0
"""Sides of an image in the boxes of probes."""
_STEPS: Final = 5
"""Of the thresholds of a sensitivity curve, every so many are kept."""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Mean overlap (IoU) by threshold on the map scaled from 0 to 1."""

    source: str
    finding: str
    """Empty for all."""
    thresholds: tuple[float, ...]
    values: tuple[float | None, ...]


class Scoring(msgspec.Struct, frozen=True, kw_only=True):
    """`scoring.json`, field by field."""

    maps: str
    """Fingerprint of the maps."""
    model: str
    method: str
    profile: str
    variants: dict[str, str]
    """What each column of scores is, in words."""
    tuned_on: str | None
    """The split that thresholds were chosen on; its maps are not scored."""
    thresholds: dict[str, Thresholds]
    """By source."""
    recognition: tuple[Recognition, ...]
    sensitivity: tuple[Curve, ...]
    scored: int
    """Maps of findings that are there."""
    tuned: int = 0
    """Maps of findings that are there, on which thresholds were chosen."""
    shared: int = 0
    """Maps of other splits that are not scored: of patients on whose maps thresholds were chosen."""
    blank: int = 0
    """Scored maps without a single number."""
    parts: tuple[str, ...]
    """SHA-256 of the parts of the maps."""
    made_of: str
    """The same for everything that gives the same scores."""
    tables: dict[str, str]
    """SHA-256 of the files beside this one."""


@dataclass(frozen=True)
class _Truth:
    """What a map is compared with."""

    target: str
    patient: str | None
    region: Region | None
    """None where the finding is not there."""
    boxes: tuple[Box, ...]
    """Of its pieces, as they were drawn where boxes were."""
    lungs: Region | None


def score_maps(
    bench: Benchmark,
    maps: Maps,
    *,
    profile_name: str = OWN,
    tune_on: str | None = None,
    controls: Sequence[str] = CONTROLS,
    seed: int = 0,
    replicates: int = REPLICATES,
    workers: int = 1,
    progress: Callable[[int], object] = lambda _done: None,
) -> Scoring:
    """Score the maps of a run beside the controls, and write what was found into its directory.

    Maps of findings that are there are compared with the truth; those of absent ones where a profile asks for it. With
    `tune_on` the maps of that split choose the thresholds, for the model and for each control, and all other maps but
    those of the same patients are scored with them. Model and controls are shared between the workers; `progress` is
    told of each. What an earlier call has found is not worked out again.
    """
    _check_same(bench, maps)
    if tune_on is not None:
        _check_split(tune_on, [(one.split, one.present) for one in maps], maps.directory)
    sources = (MODEL, *(f"control/{name}" for name in controls))
    # The very maps, not what they are made of: one whose image could not be read may be there by now.
    held = tuple(part.sha256 for part in maps.manifest.parts)
    decisive = (carina.__version__, VERSION, held, profile_name, tune_on, sources, seed, replicates)
    made_of = hashlib.sha256(msgspec.json.encode(decisive)).hexdigest()
    there = _there(maps.directory, made_of)
    if there is not None:
        progress(len(sources))
        return there
    tasks = [
        _Task(
            str(bench.directory.resolve()),
            str(maps.directory.resolve()),
            source,
            profile_name,
            tune_on,
            seed,
            replicates,
        )
        for source in sources
    ]
    scored: dict[str, _Scored] = {}
    for source, made in zip(sources, in_order(_score, tasks, workers=workers), strict=True):
        scored[source] = made
        progress(1)
    own = scored[MODEL]
    tuning, rest = _divided(list(maps), tune_on)
    kept = {one.id for one in rest}
    # Written last: whoever finds it finds the tables too.
    (maps.directory / SCORING).unlink(missing_ok=True)
    write_table(maps.directory / SCORES, _score_table({name: made.rows for name, made in scored.items()}))
    write_table(maps.directory / SUMMARY, _summary_table({name: made.cells for name, made in scored.items()}))
    found = Scoring(
        maps=maps.manifest.fingerprint,
        model=str(maps.manifest.options["model"]),
        method=str(maps.manifest.options["method"]),
        profile=profile_name,
        variants=own.variants,
        tuned_on=tune_on,
        thresholds={source: made.thresholds for source, made in scored.items() if made.thresholds},
        recognition=tuple(recognition(rest, tuning, seed=seed)),
        sensitivity=tuple(curve for made in scored.values() for curve in made.curves),
        scored=own.scored,
        tuned=sum(one.present for one in tuning),
        shared=sum(one.present and one.split != tune_on and one.id not in kept for one in maps),
        blank=sum(one.present and not np.isfinite(one.values).any() for one in rest),
        parts=held,
        made_of=made_of,
        tables=_sums(maps.directory),
    )
    write_bytes(maps.directory / SCORING, msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return found


def _sums(directory: Path) -> dict[str, str]:
    return {name: sha256(directory / name) for name in (SCORES, SUMMARY)}


def _there(directory: Path, made_of: str) -> Scoring | None:
    """What an earlier call has found, if nothing of it was damaged since."""
    try:
        found = read_scoring(directory)
        return found if found.made_of == made_of and found.tables == _sums(directory) else None
    except (CarinaError, OSError):
        return None


# ---- one source -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Task:
    bench: str
    maps: str
    source: str
    profile: str
    tune_on: str | None
    seed: int
    replicates: int


@dataclass(frozen=True)
class _Scored:
    variants: dict[str, str]
    scored: int
    thresholds: Thresholds | None
    rows: list[Row]
    cells: list[Cell]
    curves: list[Curve]


def _score(task: _Task) -> _Scored:
    bench, maps = open_benchmark(task.bench, verify=False), open_maps(task.maps, verify=False)
    truths = {case.id: _truth(case) for case in bench.where(protocol="ground")}
    known = priors(
        (truth.target, truth.patient or name, truth.region)
        for name, truth in truths.items()
        if truth.region is not None
    )
    absent = scores_absent(task.profile)
    tuning, rest = (
        [one for one in some if one.present or absent] for some in _divided(list(maps), task.tune_on)
    )
    thresholds = cutoffs = None
    tuner = Scorer(task.profile, split=task.tune_on or "")
    if tuning and _chooses(task.profile, "tuned"):
        _add(tuner, task.source, tuning, truths, known=known, seed=task.seed)
        thresholds = tuner.tune()
        if task.source == MODEL and absent and all(one.recognised is not None for one in tuning + rest):
            cutoffs = tuner.tune_cutoffs()
    scorer = Scorer(task.profile, split="scored", tuned=thresholds, cutoffs=cutoffs)
    _add(scorer, task.source, rest, truths, known=known, seed=task.seed)
    return _Scored(
        {variant.name: variant.definition for variant in scorer.variants},
        sum(one.present for one in rest),
        thresholds,
        scorer.rows(),
        scorer.summary(replicates=task.replicates, seed=task.seed),
        list(_curves(task.source, scorer)) if _chooses(task.profile, "oracle_set", grid=GRID) else [],
    )


def scores_absent(profile_name: str) -> bool:
    """Whether maps of findings that are not there are scored too, as some published protocols do.

    Carina's own figures are of findings that are there; maps of others stand beside them, unscored.
    """
    return profile_name != OWN and any(
        variant.aggregation == "pooled"
        or variant.metric == "image_specificity"
        or variant.counts_without_truth
        for variant in variants_of(profile_name)
    )


def _divided(
    maps: Sequence[LocalisationMap], tune_on: str | None
) -> tuple[list[LocalisationMap], list[LocalisationMap]]:
    """Those that choose thresholds, and those that are scored: never of one patient."""
    if tune_on is None:
        return [], list(maps)
    tuning = [one for one in maps if one.split == tune_on]
    seen = {one.patient for one in tuning if one.patient is not None}
    return tuning, [one for one in maps if one.split != tune_on and one.patient not in seen]


def _chooses(profile_name: str, where: Where, grid: GridName | None = None) -> bool:
    """Whether a profile has variants whose threshold is chosen there, of this grid where one is named."""
    rules = (variant.rule for variant in variants_of(profile_name))
    return any(
        isinstance(rule, Chosen) and rule.where == where and grid in (None, rule.grid) for rule in rules
    )


def check_tuning(bench: Benchmark, tune_on: str) -> None:
    """Refuse a split that has nothing to tune on, before maps are made."""
    rows = bench.where(protocol="ground").table(["split", "path"]).collect().rows()
    _check_split(tune_on, [(split, path == PRESENT) for split, path in rows], bench.directory)


def _check_split(tune_on: str, found: Sequence[tuple[str | None, bool]], where: Path) -> None:
    if (tune_on, True) not in found:
        known = sorted({split for split, _ in found if split is not None})
        raise CarinaError(
            f"{where}: no finding that is there is in split {tune_on!r} to tune thresholds on; its splits are "
            f"{', '.join(known) or 'not named'}"
        )


def _check_same(bench: Benchmark, maps: Maps) -> None:
    made_of = maps.manifest.options.get("benchmark")
    if made_of != bench.manifest.fingerprint:
        raise CarinaError(
            f"{maps.directory}: its maps are of another benchmark than {bench.directory}; "
            "expected the one that carina explain was given"
        )


def _truth(case: Case) -> _Truth:
    probed = asked_of(case)
    if probed.truth is None and case.path == PRESENT:
        raise CarinaError(f"case {case.id}: says that {probed.target} is there and has no region of it")
    return _Truth(probed.target, case.patient, probed.truth, _boxes(case), probed.lungs)


def _boxes(case: Case) -> tuple[Box, ...]:
    """What chat models are asked for, back in whole pixels of the image."""
    (image,) = case.images
    sides = (image.width, image.height) * 2
    found = []
    for box in (box for step in case.steps for box in step.key.boxes):
        left, top, right, bottom = (
            round(at * side / _THOUSAND) for at, side in zip(box.xyxy, sides, strict=True)
        )
        found.append((float(left), float(top), float(right - left), float(bottom - top)))
    return tuple(found)


def _add(
    scorer: Scorer,
    source: str,
    maps: Sequence[LocalisationMap],
    truths: Mapping[str, _Truth],
    *,
    known: Priors,
    seed: int,
) -> None:
    for one in maps:
        truth = truths[one.id]
        scorer.add(
            one.id,
            one.target,
            _values(source, one, truth, known, seed),
            np.zeros((one.frame.height, one.frame.width), bool) if truth.region is None else truth.region,
            one.frame,
            patient=one.patient,
            boxes=truth.boxes or None,
            probability=one.probability,
        )


def _values(source: str, one: LocalisationMap, truth: _Truth, known: Priors, seed: int) -> Map:
    if source == MODEL:
        return one.values
    asked = Asked(
        case=one.id,
        patient=truth.patient,
        target=truth.target,
        phrase=truth.target,
        image=np.zeros((0, 0), np.uint8),
        truth=truth.region,
        lungs=truth.lungs,
    )
    shape = (one.rows, one.columns)
    return control(source.partition("/")[2], asked, one.frame, shape, known=known, seed=seed)


def _curves(source: str, scorer: Scorer) -> Iterator[Curve]:
    for found in scorer.sensitivity(grid=GRID):
        yield Curve(
            source=source,
            finding=found.group,
            thresholds=tuple(round(float(t), 6) for t in found.thresholds[::_STEPS]),
            values=tuple(None if np.isnan(v) else float(v) for v in found.values[::_STEPS]),
        )


# ---- written --------------------------------------------------------------------------------------------------------


def write_table(path: Path, table: pl.DataFrame) -> None:
    """Whole or not at all."""
    made = io.BytesIO()
    table.write_parquet(made, compression="zstd")
    write_bytes(path, made.getvalue())


def _score_table(rows: Mapping[str, Sequence[Row]]) -> pl.DataFrame:
    made = [
        {
            "source": source,
            "case": row.id,
            "finding": row.finding,
            "patient": row.patient,
            "share": row.share,
            **{name: None if np.isnan(value) else value for name, value in row.values.items()},
        }
        for source, of_source in rows.items()
        for row in of_source
    ]
    return pl.DataFrame(made, infer_schema_length=None)


def _summary_table(cells: Mapping[str, Sequence[Cell]]) -> pl.DataFrame:
    made = [
        {"source": source, **msgspec.structs.asdict(cell)}
        for source, of_source in cells.items()
        for cell in of_source
    ]
    return pl.DataFrame(made, infer_schema_length=None)


def read_scoring(directory: Path) -> Scoring:
    """What was found of a run's maps."""
    path = directory / SCORING
    try:
        return msgspec.json.decode(path.read_bytes(), type=Scoring)
    except FileNotFoundError:
        raise CarinaError(f"{path}: missing; score the maps with carina explain") from None
    except msgspec.DecodeError as error:
        raise CarinaError(f"{path}: not the scoring of maps: {error}") from error
