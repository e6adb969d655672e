"""Can the maps of a run be trusted? Faithfulness and sanity checks (`faithfulness`, `sanity`) of some of its probes.

`checks.parquet` has a row for each probe, `checks.json` what decides the figures, and their means with intervals.
Imports no torch of its own.
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
from carina.errors import CarinaError
from carina.files import write_bytes
from carina.ground.explain.chat import HF
from carina.ground.explain.controls import control, priors
from carina.ground.explain.explainer import Asked
from carina.ground.explain.faithfulness import FaithfulnessOptions, faithfulness
from carina.ground.explain.maps import LocalisationMap, Maps
from carina.ground.explain.named import BUILTIN, CONTROL
from carina.ground.explain.probe import asked, grey
from carina.ground.explain.sanity import Agreement, Order, compare, randomised
from carina.ground.explain.scoring import write_table
from carina.models.clip.folder import checkpoints
from carina.models.clip.interface import PromptPair
from carina.models.extra import require
from carina.models.frame import Map
from carina.stats import Interval, mean_interval

if TYPE_CHECKING:
    from carina.ground.explain.clip import ClipExplainer

ROWS: Final = "checks.parquet"
CHECKS: Final = "checks.json"
CASCADED: Final = 4
"""Passes that a map may cost for weights to be shuffled part by part; otherwise all at once."""
_BATCH: Final = 16
_ALIKE: Final = {
    "pearson": "Pearson's correlation",
    "spearman": "Spearman's correlation",
    "ssim": "structural similarity",
}
Floats = NDArray[np.float64]


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """A column of `checks.parquet`, over all rows that have it."""

    name: str
    definition: str
    mean: Interval
    """Patients are drawn for its bounds."""


class Checks(msgspec.Struct, frozen=True, kw_only=True):
    """`checks.json`, field by field."""

    maps: str
    """Fingerprint of the maps."""
    model: str
    method: str
    probes: int
    present: int
    """Probes whose finding is there."""
    seed: int
    """Of random maps and shuffled weights."""
    options: dict[str, Any]
    """Of deletion and insertion (`FaithfulnessOptions`)."""
    shuffled: Order | None
    """How weights were; None where the model does not show its image tower."""
    figures: tuple[Figure, ...]


@dataclass(frozen=True, eq=False)
class Checked:
    """What checks found."""

    checks: Checks
    rows: pl.DataFrame


@dataclass(frozen=True)
class _Column:
    """A number of each probe."""

    definition: str
    values: Floats
    patients: Sequence[str]
    """Whose image the number is of."""


@dataclass(frozen=True)
class _Subject:
    """A probe and what its model gets to see."""

    kept: LocalisationMap
    prompts: PromptPair
    pixels: NDArray[np.float32]
    random: Map


def require_weights(model: str) -> None:
    """Refuse a model whose scores of changed pictures, other texts and shuffled weights cannot be asked for."""
    if model.startswith((CONTROL, BUILTIN, HF)):
        raise CarinaError(
            f"{model}: cannot be checked; checks need a CLIP-style model with weights, such as biomedclip:PATH"
        )
    kind, _, path = model.partition(":")
    if several := checkpoints(Path(path))[1:]:
        raise CarinaError(f"{model}: checks are of one checkpoint; name one, such as {kind}:{several[0]}")


def check_maps(
    bench: Benchmark,
    maps: Maps,
    explainer: "ClipExplainer",
    number: int,
    *,
    options: FaithfulnessOptions | None = None,
    seed: int = 0,
    progress: Callable[[int], object] = lambda _done: None,
) -> Checked:
    """Check so many maps of a run, made by this explainer from this benchmark. `progress` is told of each."""
    options = options or FaithfulnessOptions(seed=seed)
    every = list(maps)
    chosen = chosen_maps(every, number)
    other = _others(every)
    cases = bench.pick({one.id for one in (*chosen, *other.values())})
    questions = {case.id: asked(case, grey(bench, case)) for case in cases}
    subjects = [_subject(explainer, one, questions[one.id], seed) for one in chosen]
    against = [explainer.prompts(questions[other[one.target].id]) for one in chosen if one.target in other]
    own = [one.patient or one.id for one in chosen]
    pairs = _absent(every, chosen)
    shuffling, shuffles = _shuffles(explainer, subjects, seed)
    columns = {
        **_faithful(explainer, subjects, options, own, progress),
        **_swaps(explainer, subjects, against, own),
        **_pairs(chosen, pairs, own),
        **{
            f"weights.{stage}.{name}": _Column(f"{text} with the map {what}", values, own)
            for stage, what, agreement in shuffles
            for name, text, values in _parts(agreement)
        },
    }
    rows = pl.DataFrame(
        {
            "case": [one.id for one in chosen],
            "finding": [one.target for one in chosen],
            "patient": [one.patient for one in chosen],
            "present": [one.present for one in chosen],
            "other": [other[one.target].target if one.target in other else None for one in chosen],
            "absent": [None if one is None else one.id for one in pairs],
            **{name: column.values for name, column in columns.items()},
        },
        schema_overrides={"patient": pl.String, "other": pl.String, "absent": pl.String},
    ).fill_nan(None)
    checks = Checks(
        maps=maps.manifest.fingerprint,
        model=explainer.name,
        method=explainer.method,
        probes=len(chosen),
        present=sum(one.present for one in chosen),
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
    return Checked(checks, rows)


def write_checks(directory: Path, checked: Checked) -> None:
    """Beside the maps."""
    write_table(directory / ROWS, checked.rows)
    said = msgspec.json.encode(checked.checks)
    write_bytes(directory / CHECKS, msgspec.json.format(said, indent=1) + b"\n")


def chosen_maps(maps: Iterable[LocalisationMap], number: int) -> list[LocalisationMap]:
    """Of findings that are there before those that are not, of each finding in turn, in order of ids."""
    turns: dict[tuple[bool, str], int] = {}
    ranked = []
    for one in sorted(maps, key=lambda one: one.id):
        turn = turns[one.present, one.target] = turns.get((one.present, one.target), -1) + 1
        ranked.append((not one.present, turn, one.target, one))
    return [one for *_, one in sorted(ranked, key=lambda row: row[:3])[:number]]


# ---- what is compared -----------------------------------------------------------------------------------------------


def _others(maps: Sequence[LocalisationMap]) -> dict[str, LocalisationMap]:
    """By finding the first map of the next one in order of names; nothing where there is one finding alone."""
    first: dict[str, LocalisationMap] = {}
    for one in sorted(maps, key=lambda one: one.id):
        first.setdefault(one.target, one)
    names = sorted(first)
    if len(names) < 2:
        return {}
    return {name: first[after] for name, after in zip(names, names[1:] + names[:1], strict=True)}


def _absent(
    maps: Sequence[LocalisationMap], chosen: Sequence[LocalisationMap]
) -> list[LocalisationMap | None]:
    """For each chosen map of a finding that is there one of the same finding where it is not, each used once."""
    left: dict[str, list[LocalisationMap]] = {}
    for one in sorted(maps, key=lambda one: one.id, reverse=True):
        if not one.present:
            left.setdefault(one.target, []).append(one)
    return [left[one.target].pop() if one.present and left.get(one.target) else None for one in chosen]


def _subject(explainer: "ClipExplainer", kept: LocalisationMap, question: Asked, seed: int) -> _Subject:
    shape = (kept.rows, kept.columns)
    return _Subject(
        kept,
        explainer.prompts(question),
        explainer.model.prepare(question.image),
        control("random", question, kept.frame, shape, known=priors(()), seed=seed),
    )


def _made(
    explainer: "ClipExplainer", subjects: Sequence[_Subject], prompts: Sequence[PromptPair]
) -> NDArray[np.float32]:
    """Maps (n, rows, columns) of pictures, each asked with its own prompts."""
    (torch,) = require("torch")
    places: dict[PromptPair, list[int]] = {}
    for place, pair in enumerate(prompts):
        places.setdefault(pair, []).append(place)
    made = np.empty((len(subjects), *subjects[0].random.shape), np.float32)
    for pair, of_pair in places.items():
        for start in range(0, len(of_pair), _BATCH):
            some = of_pair[start : start + _BATCH]
            pixels = torch.from_numpy(np.stack([subjects[place].pixels for place in some]))
            made[some] = explainer.by.maps(explainer.model, pixels, pair, explainer.options).numpy()
    return made


# ---- checks ---------------------------------------------------------------------------------------------------------


def _faithful(
    explainer: "ClipExplainer",
    subjects: Sequence[_Subject],
    options: FaithfulnessOptions,
    patients: Sequence[str],
    progress: Callable[[int], object],
) -> dict[str, _Column]:
    """Deletion and insertion by the map and, of the same picture, by a random one."""
    (torch,) = require("torch")
    areas = np.empty((len(subjects), 4))
    for row, one in zip(areas, subjects, strict=True):
        pixels = torch.from_numpy(np.stack([one.pixels] * 2))
        maps = np.stack([one.kept.values, one.random])
        found = faithfulness(explainer.model, pixels, one.prompts, maps, options)
        row[:] = *found.deletion_area, *found.insertion_area
        progress(1)
    text = "area under the score while cells are {}, the highest of {} first"
    names = ("deletion", "deletion.random", "insertion", "insertion.random")
    said = (
        text.format(done, whose)
        for done in ("deleted", "inserted")
        for whose in ("the map", "a random map of the same shape")
    )
    return {
        name: _Column(what, values, patients) for name, what, values in zip(names, said, areas.T, strict=True)
    }


def _swaps(
    explainer: "ClipExplainer",
    subjects: Sequence[_Subject],
    against: Sequence[PromptPair],
    patients: Sequence[str],
) -> dict[str, _Column]:
    kept = np.stack([one.kept.values for one in subjects])
    other = _made(explainer, subjects, against) if against else np.full_like(kept, np.nan)
    return {
        f"swap.{name}": _Column(f"{text} with the map of another finding on the same image", values, patients)
        for name, text, values in _parts(compare(kept, other))
    }


def _pairs(
    chosen: Sequence[LocalisationMap], absent: Sequence[LocalisationMap | None], patients: Sequence[str]
) -> dict[str, _Column]:
    """Height and spread of maps where the finding is and, as many, where it is not."""
    theirs = [
        own if one is None else one.patient or one.id for own, one in zip(patients, absent, strict=True)
    ]
    paired = [one if other is not None else None for one, other in zip(chosen, absent, strict=True)]
    sides = (("present", "is", paired, patients), ("absent", "is not", absent, theirs))
    measures: tuple[tuple[str, str, Callable[[Floats], float]], ...] = (
        ("peak", "highest value", lambda values: float(values.max())),
        ("spread", "standard deviation over cells", lambda values: float(values.std())),
    )
    return {
        f"{name}.{side}": _Column(
            f"{text} of the map where the finding {there} there",
            np.array([_known(one, measure) for one in maps]),
            whose,
        )
        for name, text, measure in measures
        for side, there, maps, whose in sides
    }


def _known(one: LocalisationMap | None, measure: Callable[[Floats], float]) -> float:
    if one is None:
        return float("nan")
    values = one.values.astype(np.float64)
    finite = values[np.isfinite(values)]
    return measure(finite) if finite.size else float("nan")


def _shuffles(
    explainer: "ClipExplainer", subjects: Sequence[_Subject], seed: int
) -> tuple[Order | None, list[tuple[str, str, Agreement]]]:
    """Stages with what was shuffled, in words; all pictures at once, since to shuffle takes longer than a map."""
    model = explainer.model
    if model.tower is None:
        return None, []
    cost = explainer.by.cost(explainer.options, model.grid)
    order: Order = "cascading" if cost.forwards + cost.backwards <= CASCADED else "whole"
    prompts = [one.prompts for one in subjects]
    *first, last = randomised(model, lambda: _made(explainer, subjects, prompts), order=order, seed=seed)
    # The last step of a cascade has shuffled everything.
    found = [("whole", "of the image tower with all weights shuffled", last.agreement)]
    return order, found + [
        (one.stage, f"of the image tower shuffled from its output to {one.stage}", one.agreement)
        for one in first
    ]


def _parts(agreement: Agreement) -> list[tuple[str, str, Floats]]:
    values: Mapping[str, Floats] = vars(agreement)
    return [(name, text, values[name]) for name, text in _ALIKE.items()]
