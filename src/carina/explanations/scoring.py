"""Score the maps of a run, and those of the controls on the same frames and grids.

`scores.parquet` has one row for each map and source, `summary.parquet` means with intervals, and `scoring.json` the
settings: profile, definitions of the variants, split and thresholds, with recognition and sensitivity to the threshold.
"""

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np
import polars as pl

from carina.cases import Benchmark, Case, open_benchmark
from carina.explanations.controls import (
    CONTROLS,
    LUNGS,
    MEAN_REGION,
    MeanRegions,
    collect_mean_regions,
    control_map,
)
from carina.explanations.explainer import Probe
from carina.explanations.maps import LocalisationMap, Maps, open_maps
from carina.explanations.probe import read_probe_case
from carina.explanations.recognition import Recognition, recognition
from carina.ground import PRESENT
from carina.ground.facts import GroundCaseFacts
from carina.maps.pointing import Box
from carina.maps.profiles import find_variants
from carina.maps.rules import GridName, SelectedOn, SelectedThreshold
from carina.maps.score import Scorer
from carina.maps.summary import Cell, Row
from carina.maps.tuning import Thresholds
from carina.models.frame import Frame, Map
from carina.store.counts import format_count
from carina.store.documents import read_json
from carina.store.errors import CarinaError
from carina.store.files import sha256, write_bytes
from carina.store.frames import read_frame
from carina.store.workers import in_order
from carina.studies import Region
from carina.version import __version__

MODEL: Final = "model"
OWN: Final = "carina"
"""The default profile."""
SCORES: Final = "scores.parquet"
SUMMARY: Final = "summary.parquet"
SCORING: Final = "scoring.json"
GRID: Final[GridName] = "minmax256"
"""Thresholds of the sensitivity curves."""
REPLICATES: Final = 1000
"""Bootstrap replicates for an interval; a run has thousands of intervals."""
SCORED_SIDE: Final = 1024
"""Pixels of the longer side to which larger images are reduced before maps are scored by Carina's own profile. A map
has some 200 to 5,000 cells, so nothing is resolved beyond it; `benchmarks/explain_scoring.py` prints the difference."""
VERSION: Final = 3
"""Raised when the same maps and options give other scores."""
_THOUSAND: Final = 1000.0
"""Width and height of an image in the coordinates of the boxes of probes."""
_STEPS: Final = 5
"""Every fifth threshold of a sensitivity curve is stored."""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Mean IoU by threshold on the map scaled from 0 to 1."""

    source: str
    finding: str
    """Name of the finding; empty for all findings together."""
    thresholds: tuple[float, ...]
    values: tuple[float | None, ...]


_Count = Annotated[int, msgspec.Meta(ge=0)]


class Scoring(msgspec.Struct, frozen=True, kw_only=True):
    """Content of `scoring.json`: settings and results of the scoring of a run."""

    maps: str
    """Fingerprint of the maps."""
    model: str
    method: str
    profile: str
    variants: dict[str, str]
    """Definition of each metric variant, which is a column of `scores.parquet`."""
    tuned_on: str | None
    """Split on which thresholds were tuned; its maps are not scored."""
    thresholds: dict[str, Thresholds]
    """Tuned thresholds by source."""
    recognition: tuple[Recognition, ...]
    sensitivity: tuple[Curve, ...]
    scored: _Count
    """Number of scored maps of present findings."""
    tuned: _Count = 0
    """Number of maps of present findings on which thresholds were tuned."""
    shared: _Count = 0
    """Number of maps of other splits that are not scored because thresholds were tuned on the same patients."""
    blank: _Count = 0
    """Number of scored maps without a finite number."""
    parts: tuple[str, ...]
    """SHA-256 of the parts of the maps."""
    made_of: str
    """Digest of everything that decides the scores."""
    notes: tuple[str, ...] = ()
    """What to know about the controls, in sentences."""
    tables: dict[str, str]
    """SHA-256 of `scores.parquet` and `summary.parquet`."""


@dataclass(frozen=True)
class _Truth:
    """Regions of a probe that its map is compared with."""

    target: str
    patient: str | None
    region: Region | None
    """None where the finding is absent."""
    boxes: tuple[Box, ...]
    """Boxes of the finding."""
    lungs: Region | None
    size: tuple[int, int]
    """Height and width of the image in whose pixels the map is scored."""


def _choose_controls(
    bench: Benchmark, maps: Maps, controls: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The controls without the lungs where no image has them, which would be another uniform map; and what to know."""
    is_model = str(maps.manifest.options["model"]) == f"control/{LUNGS}"
    if LUNGS not in controls and not is_model:
        return tuple(controls), ()
    present = {record.id for record in maps if record.present}
    known = sum(case.id in present and GroundCaseFacts.of(case).region(LUNGS) is not None for case in bench)
    if known == len(present):
        return tuple(controls), ()
    if not known and not is_model:
        note = f"control/{LUNGS} is left out: no lungs in this set"
        return tuple(name for name in controls if name != LUNGS), (note,)
    number = format_count(len(present) - known, "map")
    return tuple(controls), (
        f"control/{LUNGS}: uniform on {number} of {len(present)}, without lungs in this set",
    )


def score_map_run(
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
    """Score the maps of a run and of the controls, and write the results into the directory of the run.

    Maps of present findings are compared with the truth; maps of absent findings only where the profile scores them.
    Results of an earlier call with the same settings are not computed again.

    Args:
        bench: Benchmark of the probes.
        maps: Maps of the run.
        profile_name: Scoring profile.
        tune_on: Split on which thresholds are tuned, for the model and for each control; its maps and other maps of its
            patients are not scored.
        controls: Names of the controls.
        seed: Seed of the controls and of the bootstrap.
        replicates: Bootstrap replicates for an interval.
        workers: Number of processes, among which model and controls are divided.
        progress: Called with the number of sources that are done.

    Raises:
        CarinaError: The maps belong to another benchmark, or the split has no present finding.
    """
    _check_benchmark(bench, maps)
    if tune_on is not None:
        _check_split(tune_on, [(record.split, record.present) for record in maps], maps.directory)
    used, notes = _choose_controls(bench, maps, controls)
    if len(used) < len(controls):
        progress(len(controls) - len(used))
    sources = (MODEL, *(f"control/{name}" for name in used))
    # Checksums of the maps themselves: a map whose image could not be read before may exist by now.
    checksums = tuple(part.sha256 for part in maps.manifest.parts)
    decisive = (__version__, VERSION, checksums, profile_name, tune_on, sources, seed, replicates)
    made_of = hashlib.sha256(msgspec.json.encode(decisive)).hexdigest()
    finished = _read_finished(maps.directory, made_of)
    if finished is not None:
        progress(len(sources))
        return finished
    tuning, rest = _divide_maps(list(maps), tune_on)
    if not any(record.present for record in rest):
        raise CarinaError(
            f"{maps.directory}: none of the {len(rest)} maps to score is of a present finding; explain more "
            "probes, with a larger limit, or tune thresholds on another split"
        )
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
    scored: dict[str, _SourceScores] = {}
    for source, result in zip(sources, in_order(_score_source, tasks, workers=workers), strict=True):
        scored[source] = result
        progress(1)
    of_model = scored[MODEL]
    scored_ids = {record.id for record in rest}
    # scoring.json is written last: where it exists, the tables exist too.
    (maps.directory / SCORING).unlink(missing_ok=True)
    write_table(maps.directory / SCORES, _score_table({name: result.rows for name, result in scored.items()}))
    write_table(
        maps.directory / SUMMARY, _summary_table({name: result.cells for name, result in scored.items()})
    )
    scoring = Scoring(
        maps=maps.manifest.fingerprint,
        model=str(maps.manifest.options["model"]),
        method=str(maps.manifest.options["method"]),
        profile=profile_name,
        variants=of_model.variants,
        tuned_on=tune_on,
        thresholds={source: result.thresholds for source, result in scored.items() if result.thresholds},
        recognition=tuple(recognition(rest, tuning, seed=seed)),
        sensitivity=tuple(curve for result in scored.values() for curve in result.curves),
        scored=of_model.scored,
        tuned=sum(record.present for record in tuning),
        shared=sum(
            record.present and record.split != tune_on and record.id not in scored_ids for record in maps
        ),
        blank=sum(record.present and not np.isfinite(record.values).any() for record in rest),
        parts=checksums,
        made_of=made_of,
        tables=_checksums(maps.directory),
        notes=notes,
    )
    write_bytes(maps.directory / SCORING, msgspec.json.format(msgspec.json.encode(scoring), indent=1) + b"\n")
    return scoring


def _checksums(directory: Path) -> dict[str, str]:
    return {name: sha256(directory / name) for name in (SCORES, SUMMARY)}


def _read_finished(directory: Path, made_of: str) -> Scoring | None:
    """The scoring of an earlier call with the same settings, if its files are complete."""
    try:
        scoring = read_scoring(directory)
        return scoring if scoring.made_of == made_of and scoring.tables == _checksums(directory) else None
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
class _SourceScores:
    variants: dict[str, str]
    scored: int
    thresholds: Thresholds | None
    rows: list[Row]
    cells: list[Cell]
    curves: list[Curve]


def _score_source(task: _Task) -> _SourceScores:
    bench, maps = open_benchmark(task.bench, verify=False), open_maps(task.maps, verify=False)
    longest = SCORED_SIDE if task.profile == OWN else None
    truths = {case.id: _truth(case, longest) for case in bench.where(protocol="ground")}
    mean_regions = collect_mean_regions(
        (truth.target, truth.patient or name, truth.region)
        for name, truth in truths.items()
        if truth.region is not None
        and task.source == f"control/{MEAN_REGION}"  # the only one that needs them
    )
    absent = scores_absent(task.profile)
    tuning, rest = (
        [record for record in records if record.present or absent]
        for records in _divide_maps(list(maps), task.tune_on)
    )
    thresholds = cutoffs = None
    tuner = Scorer(task.profile, split=task.tune_on or "")
    if tuning and _selects_thresholds(task.profile, "tuned"):
        _add(tuner, task.source, tuning, truths, mean_regions=mean_regions, seed=task.seed)
        thresholds = tuner.tune()
        if task.source == MODEL and absent and all(record.recognised is not None for record in tuning + rest):
            cutoffs = tuner.tune_cutoffs()
    scorer = Scorer(task.profile, split="scored", tuned=thresholds, cutoffs=cutoffs)
    _add(scorer, task.source, rest, truths, mean_regions=mean_regions, seed=task.seed)
    return _SourceScores(
        {variant.name: variant.definition for variant in scorer.variants},
        sum(record.present for record in rest),
        thresholds,
        scorer.rows(),
        scorer.summary(replicates=task.replicates, seed=task.seed),
        list(_curves(task.source, scorer))
        if _selects_thresholds(task.profile, "oracle_set", grid=GRID)
        else [],
    )


def scores_absent(profile_name: str) -> bool:
    """Whether a profile scores maps of absent findings too: some published ones do, the profile "carina" does not."""
    return profile_name != OWN and any(
        variant.aggregation == "pooled"
        or variant.metric == "image_specificity"
        or variant.counts_without_truth
        for variant in find_variants(profile_name)
    )


def _divide_maps(
    maps: Sequence[LocalisationMap], tune_on: str | None
) -> tuple[list[LocalisationMap], list[LocalisationMap]]:
    """Maps on which thresholds are tuned, and maps that are scored; no patient is in both."""
    if tune_on is None:
        return [], list(maps)
    tuning = [record for record in maps if record.split == tune_on]
    tuning_patients = {record.patient for record in tuning if record.patient is not None}
    return tuning, [
        record for record in maps if record.split != tune_on and record.patient not in tuning_patients
    ]


def _selects_thresholds(profile_name: str, selected_on: SelectedOn, grid: GridName | None = None) -> bool:
    """Whether a profile has variants whose threshold is selected there, from this grid if one is given."""
    rules = (variant.rule for variant in find_variants(profile_name))
    return any(
        isinstance(rule, SelectedThreshold) and rule.selected_on == selected_on and grid in (None, rule.grid)
        for rule in rules
    )


def check_tuning(bench: Benchmark, tune_on: str) -> None:
    """Check, before maps are made, that a split has a present finding to tune on."""
    rows = bench.where(protocol="ground").table(["split", "path"]).collect().rows()
    _check_split(tune_on, [(split, path == PRESENT) for split, path in rows], bench.directory)


def _check_split(tune_on: str, probes: Sequence[tuple[str | None, bool]], where: Path) -> None:
    if (tune_on, True) not in probes:
        splits = sorted({split for split, _ in probes if split is not None})
        raise CarinaError(
            f"{where}: split {tune_on!r} has no present finding to tune thresholds on; the splits are "
            f"{', '.join(splits) or 'not named'}"
        )


def _check_benchmark(bench: Benchmark, maps: Maps) -> None:
    fingerprint = maps.manifest.options.get("benchmark")
    if fingerprint != bench.manifest.fingerprint:
        raise CarinaError(
            f"{maps.directory}: expected maps of the benchmark {bench.directory}, found maps of another; "
            "pass the benchmark that they were made from"
        )


def _truth(case: Case, longest: int | None) -> _Truth:
    """The truth of a case, in pixels of its image, or of the image reduced to a longer side of `longest`."""
    probe = read_probe_case(case)
    if probe.truth is None and case.path == PRESENT:
        raise CarinaError(f"case {case.id}: {probe.target} is present, but has no region")
    (image,) = case.images
    full = (image.height, image.width)
    truth = _Truth(probe.target, case.patient, probe.truth, _boxes(case), probe.lungs, full)
    return truth if longest is None or max(full) <= longest else _reduce_truth(truth, longest)


def _reduce_truth(truth: _Truth, longest: int) -> _Truth:
    """The truth in pixels of a smaller image; as it is where a region would lose all its pixels."""
    scale = longest / max(truth.size)
    height, width = (max(1, round(side * scale)) for side in truth.size)
    region = None if truth.region is None else truth.region.resize(height, width)
    if region is not None and region.is_empty:
        return truth
    lungs = None if truth.lungs is None else truth.lungs.resize(height, width)
    across, down = width / truth.size[1], height / truth.size[0]
    boxes = tuple((x * across, y * down, w * across, h * down) for x, y, w, h in truth.boxes)
    return replace(truth, region=region, lungs=lungs, boxes=boxes, size=(height, width))


def _boxes(case: Case) -> tuple[Box, ...]:
    """The boxes that chat models are asked for, in whole pixels of the image."""
    (image,) = case.images
    sides = (image.width, image.height) * 2
    boxes = []
    for box in (box for step in case.steps for box in step.key.boxes):
        left, top, right, bottom = (
            round(at * side / _THOUSAND) for at, side in zip(box.xyxy, sides, strict=True)
        )
        boxes.append((float(left), float(top), float(right - left), float(bottom - top)))
    return tuple(boxes)


def _add(
    scorer: Scorer,
    source: str,
    maps: Sequence[LocalisationMap],
    truths: Mapping[str, _Truth],
    *,
    mean_regions: MeanRegions,
    seed: int,
) -> None:
    for record in maps:
        truth = truths[record.id]
        height, width = truth.size
        frame = replace(record.frame, height=height, width=width)
        scorer.add(
            record.id,
            record.target,
            _values(source, record, truth, frame, mean_regions=mean_regions, seed=seed),
            np.zeros(truth.size, bool) if truth.region is None else truth.region,
            frame,
            patient=record.patient,
            boxes=truth.boxes or None,
            probability=record.probability,
        )


def _values(
    source: str,
    record: LocalisationMap,
    truth: _Truth,
    frame: Frame,
    *,
    mean_regions: MeanRegions,
    seed: int,
) -> Map:
    if source == MODEL:
        return record.values
    probe = Probe(
        case=record.id,
        patient=truth.patient,
        target=truth.target,
        phrase=truth.target,
        image=np.zeros((0, 0), np.uint8),
        truth=truth.region,
        lungs=truth.lungs,
    )
    shape = (record.rows, record.columns)
    return control_map(source.partition("/")[2], probe, frame, shape, mean_regions=mean_regions, seed=seed)


def _curves(source: str, scorer: Scorer) -> Iterator[Curve]:
    for sensitivity in scorer.sensitivity(grid=GRID):
        yield Curve(
            source=source,
            finding=sensitivity.group,
            thresholds=tuple(round(float(t), 6) for t in sensitivity.thresholds[::_STEPS]),
            values=tuple(None if np.isnan(v) else float(v) for v in sensitivity.values[::_STEPS]),
        )


# ---- files ----------------------------------------------------------------------------------------------------------


def write_table(path: Path, table: pl.DataFrame) -> None:
    """Write a table as Parquet, completely or not at all."""
    content = io.BytesIO()
    table.write_parquet(content, compression="zstd")
    write_bytes(path, content.getvalue())


def _score_table(rows: Mapping[str, Sequence[Row]]) -> pl.DataFrame:
    table_rows = [
        {
            "source": source,
            "case": row.id,
            "finding": row.finding,
            "patient": row.patient,
            "share": row.share,
            **{name: None if np.isnan(value) else value for name, value in row.values.items()},
        }
        for source, source_rows in rows.items()
        for row in source_rows
    ]
    return pl.DataFrame(table_rows, infer_schema_length=None)


def _summary_table(cells: Mapping[str, Sequence[Cell]]) -> pl.DataFrame:
    table_rows = [
        {"source": source, **msgspec.structs.asdict(cell)}
        for source, source_cells in cells.items()
        for cell in source_cells
    ]
    return pl.DataFrame(table_rows, infer_schema_length=None)


def read_map_table(directory: Path, name: str, scoring: Scoring) -> pl.DataFrame:
    """Read `scores.parquet` or `summary.parquet` of a run, compared with the checksum in `scoring.json`.

    Raises:
        CarinaError: The table is missing or damaged, was changed after scoring, or holds a number that is not finite;
            the message names the file, the row and the column.
    """
    path = directory / name
    table = read_frame(path, "score the maps with carina explain")
    if scoring.tables.get(name) != sha256(path):
        raise CarinaError(f"{directory}: maps or tables were changed after scoring; run carina explain again")
    check_finite(path, table)
    return table


def check_finite(path: Path, table: pl.DataFrame) -> None:
    """Refuse a table with a number that is not finite; a value that is not known is null."""
    for column in table.select(pl.selectors.float()).iter_columns():
        strange = ~column.is_finite().fill_null(value=True)
        if strange.any():
            row = strange.arg_max() or 0
            raise CarinaError(
                f"{path}, row {row}, column {column.name!r}: expected a finite number or none, found {column[row]}; "
                "run carina explain again"
            )


def read_scoring(directory: Path) -> Scoring:
    """Read the scoring of a run.

    Raises:
        CarinaError: The file is missing or damaged, or names a profile that there is not.
    """
    path = directory / SCORING
    scoring = read_json(
        path, Scoring, what="the scoring of maps", missing="missing; score the maps with carina explain"
    )
    try:
        find_variants(scoring.profile)
    except CarinaError as error:
        raise CarinaError(f"{path}: {error} Run carina explain again.") from error
    return scoring
