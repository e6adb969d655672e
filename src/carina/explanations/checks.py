"""Faithfulness and sanity checks of some maps of a run.

`checks.parquet` has one row for each probe; `checks.json` has the settings, and the means with intervals. Imports no
torch.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray

from carina.cases import Benchmark
from carina.explanations.controls import collect_mean_regions, control_map
from carina.explanations.explainer import Probe
from carina.explanations.faithfulness import FaithfulnessOptions, faithfulness
from carina.explanations.maps import LocalisationMap, Maps
from carina.explanations.probe import make_probe, read_grey_pixels
from carina.explanations.sanity import Agreement, Order, compare_maps, randomise_weights
from carina.explanations.scoring import write_table
from carina.models import ModelName, parse_model_name
from carina.models.clip.interface import PromptPair
from carina.models.clip.kinds import KINDS
from carina.models.clip.model_folder import list_checkpoints
from carina.models.extra import require
from carina.models.frame import Map
from carina.stats import Interval, mean_interval
from carina.store.documents import read_json
from carina.store.errors import CarinaError
from carina.store.files import write_bytes
from carina.store.frames import TableInfo, describe_table

if TYPE_CHECKING:
    from carina.explanations.clip import ClipExplainer

ROWS: Final = "checks.parquet"
CHECKS: Final = "checks.json"
MAX_CASCADE_PASSES: Final = 4
"""Largest number of passes per map with which weights are shuffled part by part; with more, all at once."""
_BATCH: Final = 16
_AGREEMENTS: Final = {
    "pearson": "Pearson's correlation",
    "spearman": "Spearman's correlation",
    "ssim": "structural similarity",
}
Floats = NDArray[np.float64]


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """Mean of a column of `checks.parquet`, over all rows in which it is defined."""

    name: str
    definition: str
    mean: Interval
    """Mean with a bootstrap interval over patients."""


class Checks(msgspec.Struct, frozen=True, kw_only=True):
    """Content of `checks.json`."""

    maps: str
    """Fingerprint of the maps."""
    model: str
    method: str
    probes: int
    present: int
    """Number of probes whose finding is present."""
    seed: int
    """Seed of random maps and shuffled weights."""
    options: dict[str, Any]
    """Options of deletion and insertion (`FaithfulnessOptions`)."""
    shuffled: Order | None
    """Order in which weights were shuffled; None where the layers of the image tower cannot be read."""
    figures: tuple[Figure, ...]
    table: TableInfo | None = None
    """Size and checksum of `checks.parquet`; None in checks of earlier versions."""


@dataclass(frozen=True, eq=False)
class CheckResult:
    """Result of `check_maps`."""

    checks: Checks
    rows: pl.DataFrame


@dataclass(frozen=True)
class _Column:
    """A column of `checks.parquet`."""

    definition: str
    values: Floats
    patients: Sequence[str]
    """Patient of each value."""


@dataclass(frozen=True)
class _Subject:
    """A checked map with the inputs of its model."""

    kept: LocalisationMap
    prompts: PromptPair
    pixels: NDArray[np.float32]
    random: Map


def require_weights(model: str | ModelName) -> None:
    """Check that a model has weights and is one checkpoint, which the checks need.

    Raises:
        CarinaError: The model is not a single CLIP-style checkpoint.
    """
    name = model if isinstance(model, ModelName) else parse_model_name(model, needs="maps")
    if name.kind not in KINDS:
        raise CarinaError(
            f"{model}: cannot be checked; checks need a CLIP-style model with weights, such as biomedclip:PATH"
        )
    if several := list_checkpoints(name.path)[1:]:
        raise CarinaError(
            f"{model}: expected one checkpoint for the checks; name one, such as {name.kind}:{several[0]}"
        )


def check_maps(
    bench: Benchmark,
    maps: Maps,
    explainer: "ClipExplainer",
    number: int,
    *,
    options: FaithfulnessOptions | None = None,
    seed: int = 0,
    progress: Callable[[int], object] = lambda _done: None,
) -> CheckResult:
    """Check some maps of a run.

    Args:
        bench: Benchmark of the probes.
        maps: Maps of the run.
        explainer: The explainer that made them.
        number: Number of maps to check.
        options: Options of deletion and insertion; None for the defaults.
        seed: Seed of random maps, shuffled weights and the bootstrap.
        progress: Called with the number of maps that are done.
    """
    options = options or FaithfulnessOptions(seed=seed)
    every = list(maps)
    selected = select_maps_to_check(every, number)
    other = _others(every)
    cases = bench.pick({record.id for record in (*selected, *other.values())})
    questions = {case.id: make_probe(case, read_grey_pixels(bench, case)) for case in cases}
    subjects = [_subject(explainer, record, questions[record.id], seed) for record in selected]
    against = [
        explainer.prompts(questions[other[record.target].id]) for record in selected if record.target in other
    ]
    own = [record.patient or record.id for record in selected]
    pairs = _absent(every, selected)
    shuffling, shuffles = _shuffles(explainer, subjects, seed)
    columns = {
        **_faithful(explainer, subjects, options, own, progress),
        **_swaps(explainer, subjects, against, own),
        **_pairs(selected, pairs, own),
        **{
            f"weights.{stage}.{name}": _Column(f"{text} with the map {what}", values, own)
            for stage, what, agreement in shuffles
            for name, text, values in _list_agreements(agreement)
        },
    }
    rows = pl.DataFrame(
        {
            "case": [record.id for record in selected],
            "finding": [record.target for record in selected],
            "patient": [record.patient for record in selected],
            "present": [record.present for record in selected],
            "other": [other[record.target].target if record.target in other else None for record in selected],
            "absent": [None if record is None else record.id for record in pairs],
            **{name: column.values for name, column in columns.items()},
        },
        schema_overrides={"patient": pl.String, "other": pl.String, "absent": pl.String},
    ).fill_nan(None)
    checks = Checks(
        maps=maps.manifest.fingerprint,
        model=explainer.name,
        method=explainer.method,
        probes=len(selected),
        present=sum(record.present for record in selected),
        seed=seed,
        options=asdict(options),
        shuffled=shuffling,
        figures=tuple(
            Figure(
                name=name,
                definition=column.definition,
                mean=mean_interval(column.values, column.patients, seed=seed),
            )
            for name, column in columns.items()
        ),
    )
    return CheckResult(checks, rows)


def write_checks(directory: Path, checked: CheckResult) -> None:
    """Write `checks.parquet` and `checks.json` into the directory of the maps."""
    write_table(directory / ROWS, checked.rows)
    described = describe_table(directory / ROWS, checked.rows.height)
    content = msgspec.json.encode(msgspec.structs.replace(checked.checks, table=described))
    write_bytes(directory / CHECKS, msgspec.json.format(content, indent=1) + b"\n")


def read_checks(directory: Path) -> Checks:
    """The checks of a run.

    Raises:
        CarinaError: There are none, or the file is damaged.
    """
    path = directory / CHECKS
    return read_json(
        path,
        Checks,
        what="the checks of a run",
        missing="missing; run `carina explain` with --check N to check maps",
    )


def select_maps_to_check(maps: Iterable[LocalisationMap], number: int) -> list[LocalisationMap]:
    """Select maps to check: present findings before absent ones, one of each finding in turn, in order of ids."""
    turns: dict[tuple[bool, str], int] = {}
    ranked = []
    for record in sorted(maps, key=lambda record: record.id):
        turn = turns[record.present, record.target] = turns.get((record.present, record.target), -1) + 1
        ranked.append((not record.present, turn, record.target, record))
    return [record for *_, record in sorted(ranked, key=lambda row: row[:3])[:number]]


# ---- maps and prompts -----------------------------------------------------------------------------------------------


def _others(maps: Sequence[LocalisationMap]) -> dict[str, LocalisationMap]:
    """For each finding, the first map of the next finding in order of names; empty where there is only one finding."""
    first: dict[str, LocalisationMap] = {}
    for record in sorted(maps, key=lambda record: record.id):
        first.setdefault(record.target, record)
    names = sorted(first)
    if len(names) < 2:
        return {}
    return {name: first[following] for name, following in zip(names, names[1:] + names[:1], strict=True)}


def _absent(
    maps: Sequence[LocalisationMap], selected: Sequence[LocalisationMap]
) -> list[LocalisationMap | None]:
    """For each selected map of a present finding, a map of the same finding where it is absent; each is used once."""
    unused: dict[str, list[LocalisationMap]] = {}
    for record in sorted(maps, key=lambda record: record.id, reverse=True):
        if not record.present:
            unused.setdefault(record.target, []).append(record)
    return [
        unused[record.target].pop() if record.present and unused.get(record.target) else None
        for record in selected
    ]


def _subject(explainer: "ClipExplainer", kept: LocalisationMap, question: Probe, seed: int) -> _Subject:
    shape = (kept.rows, kept.columns)
    return _Subject(
        kept,
        explainer.prompts(question),
        explainer.model.prepare(question.image),
        control_map("random", question, kept.frame, shape, mean_regions=collect_mean_regions(()), seed=seed),
    )


def _make_maps(
    explainer: "ClipExplainer", subjects: Sequence[_Subject], prompts: Sequence[PromptPair]
) -> NDArray[np.float32]:
    """Maps (n, rows, columns) of the images, each with its own prompts."""
    (torch,) = require("torch")
    indices_by_prompts: dict[PromptPair, list[int]] = {}
    for index, pair in enumerate(prompts):
        indices_by_prompts.setdefault(pair, []).append(index)
    maps = np.empty((len(subjects), *subjects[0].random.shape), np.float32)
    for pair, indices in indices_by_prompts.items():
        for start in range(0, len(indices), _BATCH):
            batch = indices[start : start + _BATCH]
            pixels = torch.from_numpy(np.stack([subjects[index].pixels for index in batch]))
            maps[batch] = explainer.explanation_method.maps(
                explainer.model, pixels, pair, explainer.options
            ).numpy()
    return maps


# ---- checks ---------------------------------------------------------------------------------------------------------


def _faithful(
    explainer: "ClipExplainer",
    subjects: Sequence[_Subject],
    options: FaithfulnessOptions,
    patients: Sequence[str],
    progress: Callable[[int], object],
) -> dict[str, _Column]:
    """Deletion and insertion by the map, and by a random map of the same image."""
    (torch,) = require("torch")
    areas = np.empty((len(subjects), 4))
    for row, subject in zip(areas, subjects, strict=True):
        pixels = torch.from_numpy(np.stack([subject.pixels] * 2))
        maps = np.stack([subject.kept.values, subject.random])
        result = faithfulness(explainer.model, pixels, subject.prompts, maps, options)
        row[:] = *result.deletion_area, *result.insertion_area
        progress(1)
    text = "area under the score while cells are {}, the highest of {} first"
    names = ("deletion", "deletion.random", "insertion", "insertion.random")
    definitions = (
        text.format(change, source)
        for change in ("deleted", "inserted")
        for source in ("the map", "a random map of the same shape")
    )
    return {
        name: _Column(definition, values, patients)
        for name, definition, values in zip(names, definitions, areas.T, strict=True)
    }


def _swaps(
    explainer: "ClipExplainer",
    subjects: Sequence[_Subject],
    against: Sequence[PromptPair],
    patients: Sequence[str],
) -> dict[str, _Column]:
    maps = np.stack([subject.kept.values for subject in subjects])
    other = _make_maps(explainer, subjects, against) if against else np.full_like(maps, np.nan)
    return {
        f"swap.{name}": _Column(f"{text} with the map of another finding on the same image", values, patients)
        for name, text, values in _list_agreements(compare_maps(maps, other))
    }


def _pairs(
    selected: Sequence[LocalisationMap], absent: Sequence[LocalisationMap | None], patients: Sequence[str]
) -> dict[str, _Column]:
    """Peak and spread of maps where the finding is present, and of as many where it is absent."""
    absent_patients = [
        patient if record is None else record.patient or record.id
        for patient, record in zip(patients, absent, strict=True)
    ]
    paired = [record if other is not None else None for record, other in zip(selected, absent, strict=True)]
    sides = (("present", paired, patients), ("absent", absent, absent_patients))
    measures: tuple[tuple[str, str, Callable[[Floats], float]], ...] = (
        ("peak", "highest value", lambda values: float(values.max())),
        ("spread", "standard deviation over cells", lambda values: float(values.std())),
    )
    return {
        f"{name}.{side}": _Column(
            f"{text} of the map where the finding is {side}",
            np.array([_measure(record, measure) for record in maps]),
            map_patients,
        )
        for name, text, measure in measures
        for side, maps, map_patients in sides
    }


def _measure(record: LocalisationMap | None, measure: Callable[[Floats], float]) -> float:
    if record is None:
        return float("nan")
    values = record.values.astype(np.float64)
    finite = values[np.isfinite(values)]
    return measure(finite) if finite.size else float("nan")


def _shuffles(
    explainer: "ClipExplainer", subjects: Sequence[_Subject], seed: int
) -> tuple[Order | None, list[tuple[str, str, Agreement]]]:
    """Stages, their descriptions and agreements; for all images at once, since shuffling takes longer than a map."""
    model = explainer.model
    if model.tower is None:
        return None, []
    cost = explainer.explanation_method.cost(explainer.options, model.grid)
    order: Order = "cascading" if cost.forwards + cost.backwards <= MAX_CASCADE_PASSES else "whole"
    prompts = [subject.prompts for subject in subjects]
    *first, last = randomise_weights(
        model, lambda: _make_maps(explainer, subjects, prompts), order=order, seed=seed
    )
    # The last step of a cascade shuffles all weights.
    stages = [("whole", "of the image tower with all weights shuffled", last.agreement)]
    return order, stages + [
        (step.stage, f"of the image tower shuffled from its output to {step.stage}", step.agreement)
        for step in first
    ]


def _list_agreements(agreement: Agreement) -> list[tuple[str, str, Floats]]:
    values: Mapping[str, Floats] = vars(agreement)
    return [(name, text, values[name]) for name, text in _AGREEMENTS.items()]
