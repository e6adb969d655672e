"""The scores of one run by stage, beside chance and a blind baseline: the same numbers as in the tables of a report."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import polars as pl

from carina.runs.analysis.counts import UNPARSED, count_parsing
from carina.runs.analysis.estimates import Estimate
from carina.runs.analysis.measures import free_text_measures, headline_measures
from carina.runs.analysis.read import BLIND_MODELS, ComparedRun, model_name, read_runs
from carina.runs.analysis.run_groups import RunGroup, group_runs
from carina.runs.claim import RUN_FILE, read_info
from carina.runs.records import RunInfo
from carina.runs.results import count_missing_cases
from carina.store.errors import CarinaError
from carina.store.tables import to_table

MAJORITY: Final = BLIND_MODELS[0]
"""The blind baseline of models without a blind run of their own."""


class StageScore(msgspec.Struct, frozen=True, kw_only=True):
    """One measure of a run: a stage, several stages together, or whole cases."""

    protocol: str
    level: str
    """Subject, as in the tables of a report: "stage", "macro", "micro", "case", "words" (free text)."""
    name: str
    """Number of the stage; empty for several together."""
    title: str
    metric: str
    value: float | None
    low: float | None
    high: float | None
    n: int
    chance: float | None
    """What a random choice among the admissible answers reaches."""
    blind: float | None
    """What the blind baseline reaches."""


class BlindBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """Where the blind baseline of a summary comes from."""

    run: Path | None
    """Directory of the run of a model that saw no image; None for the best constant answer to each kind of question."""
    model: str
    """Name of this model, or "best constant answer"."""

    @property
    def sentence(self) -> str:
        """What the baseline is and where it was looked for."""
        if self.run is None:
            return (
                "blind: the best constant answer to each kind of question; no blind run of these cases lies beside "
                "this run"
            )
        return f"blind: {self.model} in {self.run}"


@dataclass(frozen=True)
class ScoreSummary:
    """What `carina run` prints at its end."""

    scores: tuple[StageScore, ...]
    baseline: BlindBaseline
    answers: int
    """Number of answers."""
    not_read: float | None
    """Share of the answers that could not be read; None where there are none."""

    def to_frame(self) -> pl.DataFrame:
        """One row per measure; `blind_source` names the blind baseline."""
        frame = pl.from_arrow(to_table(StageScore, self.scores))
        assert isinstance(frame, pl.DataFrame)  # noqa: S101 - for the type checker, which does not know Arrow
        return frame.with_columns(blind_source=pl.lit(self.baseline.model))


def summarise_run(path: Path, images: Path | None = None) -> ScoreSummary:
    """The scores of a run by stage.

    Args:
        path: Directory of the run.
        images: Folder of the images, where it is not the one that the benchmark names.

    Raises:
        CarinaError: The run is not finished, or its benchmark is not where the run says.
    """
    blind_path = find_blind_run(path)
    try:
        runs = read_runs([path] if blind_path is None else [path, blind_path])
    except CarinaError:
        # A neighbour that cannot be read keeps nobody from the scores of this run.
        blind_path, runs = None, read_runs([path])
    groups = group_runs(runs, images=images)
    parsing = [item for group in groups for item in _parsing(group, _own(group, path))]
    answers = sum(item.n for item in parsing)
    return ScoreSummary(
        scores=tuple(
            score
            for group in groups
            for score in _score_group(
                group, _own(group, path), None if blind_path is None else _blind(group, path)
            )
        ),
        baseline=BlindBaseline(
            run=blind_path,
            model="best constant answer" if blind_path is None else model_name(read_info(blind_path)),
        ),
        answers=answers,
        not_read=sum((item.value or 0.0) * item.n for item in parsing) / answers if answers else None,
    )


def _own(group: RunGroup, path: Path) -> ComparedRun:
    return next(run for run in group.runs if run.path == path)


def _blind(group: RunGroup, path: Path) -> ComparedRun | None:
    return next((run for run in group.runs if run.path != path), None)


def _parsing(group: RunGroup, run: ComparedRun) -> Iterator[Estimate]:
    """The share of answers that could not be read."""
    return (item for item in count_parsing(run, group.outcomes[run.id]) if item.name == UNPARSED)


def _score_group(group: RunGroup, run: ComparedRun, blind: ComparedRun | None) -> Iterator[StageScore]:
    outcomes = list(group.outcomes.values())
    measures = [*headline_measures(group.protocol, outcomes), *free_text_measures(group.protocol, outcomes)]
    for measure in measures:
        found = measure.estimate(run, group.outcomes[run.id])
        yield StageScore(
            protocol=group.protocol,
            level=measure.level,
            name=measure.name,
            title=measure.title,
            metric=measure.metric,
            value=found.value,
            low=found.low,
            high=found.high,
            n=found.n,
            chance=found.chance,
            blind=found.constant
            if blind is None
            else measure.estimate(blind, group.outcomes[blind.id]).value,
        )


def find_blind_run(path: Path) -> Path | None:
    """The run of a blind baseline on the same cases, among the directories beside a run.

    A run of the same model without images comes first, then one of `builtin/majority`; of several the one with the
    same history, and then the one that was asked most alike, and then the first by name.
    """
    own = read_info(path)
    found: list[tuple[tuple[bool, ...], Path]] = []
    for file in sorted(path.resolve().parent.glob(f"*/{RUN_FILE}")):
        other = _read_finished(file.parent)
        if other is None or file.parent == path.resolve() or not _same_cases(own, other):
            continue
        is_same_model = other.blind > own.blind and (other.model, other.weights) == (own.model, own.weights)
        if is_same_model or other.model == MAJORITY != own.model:
            unlike = (
                other.prompts != own.prompts or other.system != own.system,
                other.policy != own.policy,
                (other.request, other.sampling, other.max_side) != (own.request, own.sampling, own.max_side),
            )
            found.append(
                ((not is_same_model, other.policy.history != own.policy.history, *unlike), file.parent)
            )
    if not found:
        return None
    parent = path.resolve().parent
    return (path.parent if path.parent.resolve() == parent else parent) / min(found)[1].name


def _same_cases(one: RunInfo, other: RunInfo) -> bool:
    return (one.fingerprint, one.cases) == (other.fingerprint, other.cases)


def _read_finished(path: Path) -> RunInfo | None:
    """The description of a finished run; None for anything else, which is not what the user asks about."""
    try:
        info = read_info(path)
    except (CarinaError, OSError):
        return None
    return info if info.table is not None and not count_missing_cases(info) else None
