"""From a study set to a percept benchmark on disk: screen, examine, select, assemble, write."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Final, get_args

import msgspec

from carina.cases import (
    Case,
    Manifest,
    Provenance,
    write_manifest,
    write_part,
)
from carina.cases.building import building, finished, provenance_of, write_report, write_skipped
from carina.errors import CarinaError
from carina.models import ModelIdentity, Segmenter, identify_segmenter, open_segmenter
from carina.percept.assemble import lesion_case, lesion_free
from carina.percept.attribute_steps import location_step
from carina.percept.deformers import DeformerSource, warped
from carina.percept.examine import examine, subject_of
from carina.percept.examined import Examined, Outcome, Skipped
from carina.percept.grey import grey_of
from carina.percept.journal import Journal
from carina.percept.lesions import LESIONS
from carina.percept.rules import Rules
from carina.percept.sam_deform import SamDeformers
from carina.percept.screen import Candidate, Screened, screen
from carina.percept.segmented import Segmented
from carina.percept.select import choose, on_paths, places_due, right_regions, wanted_examined, with_masks
from carina.percept.steps import PATHS
from carina.percept.truth import TruthSource, drawn_masks
from carina.store import PartInfo
from carina.studies import Studies, open_studies
from carina.studies.vocabulary import Split
from carina.workers import in_order

PROTOCOL_VERSION: Final = 2
"""Raised when the same studies, seed and rules give other cases."""
PART_SIZE: Final = 256
_NOT_NEEDED: Final = ("report", "devices", "relations", "recommendations")


class CellReport(msgspec.Struct, frozen=True, kw_only=True):
    """One cell: what was wanted, what there is, and why there is not more."""

    target: str
    path: str
    wanted: int
    built: int
    candidates: int
    """Studies that state what the cell needs."""
    reasons: dict[str, int]
    """Of candidates that were looked at and could not be used; the two paths of a lesion share theirs."""


class BuildReport(msgspec.Struct, frozen=True, kw_only=True):
    """`build.json`: how a benchmark came to hold what it holds."""

    studies: int
    cells: tuple[CellReport, ...]

    @property
    def unfilled(self) -> tuple[CellReport, ...]:
        return tuple(cell for cell in self.cells if cell.built < cell.wanted)


@dataclass(frozen=True)
class Built:
    manifest: Manifest
    report: BuildReport


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """What decides the cases, beside the studies."""

    seed: int = 0
    per_cell: int = 100
    targets: tuple[str, ...] = tuple(LESIONS)
    split: str | None = None
    rules: Rules = field(default_factory=Rules)
    segmenter: str | None = None
    """Name of the model that draws the masks (`carina.models.open_segmenter`); None for the study set's own masks."""
    deformer: str | None = None
    """Name of the model that deforms them; None for the signed-distance warp."""

    def __post_init__(self) -> None:
        for target in self.targets:
            if target not in LESIONS:
                raise CarinaError(f"unknown lesion {target!r}; the protocol has {', '.join(LESIONS)}")
        if len(set(self.targets)) < len(self.targets):
            raise CarinaError(f"a lesion is named twice: {', '.join(self.targets)}")
        if self.split is not None and self.split not in get_args(Split):
            raise CarinaError(f"unknown split {self.split!r}; expected one of {', '.join(get_args(Split))}")


def build_percept(
    studies: Studies,
    directory: FilePath,
    options: BuildOptions,
    *,
    workers: int = 1,
    progress: Callable[[int], object] = lambda _done: None,
) -> Built:
    """Write a benchmark; an interrupted call is taken up where it was. The bytes do not depend on the workers.

    `progress` is told of every lesion that is ready for its two paths.
    """
    provenance = _provenance(studies, directory, options)
    with building(studies, directory, provenance):
        there = finished(directory, provenance.fingerprint, BuildReport)
        if there is not None:
            return Built(*there)
        narrowed = studies.without(*_NOT_NEEDED)
        if options.split is not None:
            narrowed = narrowed.where(split=options.split)
        found = screen(narrowed.without("anatomy"), options.targets, seed=options.seed)
        with Journal(directory, provenance.fingerprint) as journal:
            ready = _examined(narrowed, found, options, journal, workers=workers, progress=progress)
            report, parts = _assemble(
                narrowed, found, ready, options, directory=directory, fingerprint=provenance.fingerprint
            )
            write_report(directory, report)
            _write_skipped(directory, [*found.skipped, *ready.skipped])
            manifest = write_manifest(directory, provenance, parts)
            journal.remove()
        return Built(manifest, report)


def _provenance(studies: Studies, directory: FilePath, options: BuildOptions) -> Provenance:
    rules = msgspec.to_builtins(options.rules)
    models = {
        role: None if named is None else identify_segmenter(named)
        for role, named in (("segmenter", options.segmenter), ("deformer", options.deformer))
    }
    return provenance_of(
        studies,
        directory,
        command=f"carina build percept {studies.directory.resolve().name} "
        f"--per-cell {options.per_cell} --seed {options.seed}{_as_options(models)}",
        seed=options.seed,
        options={
            "protocol": "percept",
            "version": PROTOCOL_VERSION,
            "per_cell": options.per_cell,
            "targets": list(options.targets),
            "split": options.split,
            "rules": rules,
            **{role: None if model is None else asdict(model) for role, model in models.items()},
        },
    )


def _as_options(models: dict[str, ModelIdentity | None]) -> str:
    return "".join(f" --{role} {model.name}" for role, model in models.items() if model is not None)


# ---- examining ----------------------------------------------------------------------------------------------------


@dataclass
class _Ready:
    """What was examined, in the order in which it was drawn."""

    accepted: dict[str, list[Examined]]
    skipped: list[Skipped]


class _Task(msgspec.Struct, frozen=True):
    study: str
    target: str
    directory: str
    seed: int
    rules: Rules
    segmenter: str | None
    deformer: str | None


def _examined(
    studies: Studies,
    found: Screened,
    options: BuildOptions,
    journal: Journal,
    *,
    workers: int,
    progress: Callable[[int], object],
) -> _Ready:
    """The first studies of every target that can be asked about, one a patient, as many as are needed."""
    ready = _Ready({target: [] for target in options.targets}, [])
    need = wanted_examined(options.per_cell)
    patients: dict[str, set[str]] = defaultdict(set)

    def is_needless(target: str, candidate: Candidate) -> bool:
        return len(ready.accepted[target]) >= need or candidate.patient in patients[target]

    queue: deque[tuple[str, Candidate, Outcome | None]] = deque()

    def tasks() -> Iterator[_Task]:
        """What is not in the journal. Workers ask ahead, so some may turn out to be needless after all."""
        for target in options.targets:
            for candidate in found.present[target]:
                if is_needless(target, candidate):
                    continue
                known = journal.get(candidate.study, target)
                queue.append((target, candidate, known))
                if known is None:
                    yield _Task(
                        study=candidate.study,
                        target=target,
                        directory=str(studies.directory),
                        seed=options.seed,
                        rules=options.rules,
                        segmenter=options.segmenter,
                        deformer=options.deformer,
                    )

    def take(target: str, candidate: Candidate, outcome: Outcome) -> None:
        if is_needless(target, candidate):
            return
        if isinstance(outcome, Skipped):
            ready.skipped.append(outcome)
            return
        patients[target].add(candidate.patient)
        ready.accepted[target].append(outcome)
        progress(1)

    def take_known() -> None:
        while queue and queue[0][2] is not None:
            target, candidate, known = queue.popleft()
            if known is not None:
                take(target, candidate, known)

    for outcome in in_order(_examine_one, tasks(), workers=workers):
        take_known()
        target, candidate, _ = queue.popleft()
        journal.add(outcome)
        take(target, candidate, outcome)
    take_known()
    return ready


def _examine_one(task: _Task) -> Outcome:
    studies = _opened(task.directory)
    truth_of: TruthSource = drawn_masks
    if task.segmenter is not None:
        truth_of = Segmented(_segmenter(task.segmenter), grey_of(studies), task.rules)
    deformer_of: DeformerSource = warped
    if task.deformer is not None:
        deformer_of = SamDeformers(_segmenter(task.deformer), grey_of(studies))
    return examine(
        studies[task.study],
        task.target,
        seed=task.seed,
        rules=task.rules,
        truth_of=truth_of,
        deformer_of=deformer_of,
    )


@lru_cache(maxsize=2)
def _segmenter(named: str) -> Segmenter:
    """Each process opens a model once."""
    return open_segmenter(named)


@lru_cache(maxsize=1)
def _opened(directory: str) -> Studies:
    """Each process opens the set once; the command that began the work has verified it."""
    return open_studies(directory, verify=False).without(*_NOT_NEEDED)


# ---- assembling ---------------------------------------------------------------------------------------------------


def _assemble(
    studies: Studies,
    found: Screened,
    ready: _Ready,
    options: BuildOptions,
    *,
    directory: FilePath,
    fingerprint: str,
) -> tuple[BuildReport, list[PartInfo]]:
    """Cases of every target, in parts; what became of every cell."""
    parts: list[PartInfo] = []
    cells: list[CellReport] = []
    why = Counter((skip.target, skip.reason) for skip in [*found.skipped, *ready.skipped])
    for target in options.targets:
        cases = [
            *_lesion_free(studies, found.absent[target], target, options),
            *_with_lesion(ready.accepted[target], target, options),
        ]
        # By id, so that the order of rows says nothing of the path.
        cases.sort(key=lambda case: case.id)
        for start in range(0, len(cases), PART_SIZE):
            part = write_part(
                directory,
                len(parts),
                cases[start : start + PART_SIZE],
                fingerprint=fingerprint,
            )
            parts.append(part)
        drawn = len(found.present[target]) + sum(skip.target == target for skip in found.skipped)
        unfit = sum(count for (named, _), count in found.not_absent.items() if named == target)
        for path in PATHS:
            absent = path == "LF"
            cells.append(
                CellReport(
                    target=target,
                    path=path,
                    wanted=options.per_cell,
                    built=sum(case.path == path for case in cases),
                    candidates=len(found.absent[target]) + unfit if absent else drawn,
                    reasons=_reasons(found.not_absent if absent else why, target),
                )
            )
    return BuildReport(studies=found.studies, cells=tuple(cells)), parts


def _reasons(why: Counter[tuple[str, str]], target: str) -> dict[str, int]:
    return {reason: count for (named, reason), count in sorted(why.items()) if named == target}


def _lesion_free(
    studies: Studies, candidates: Sequence[Candidate], target: str, options: BuildOptions
) -> Iterator[Case]:
    one_a_patient = {candidate.patient: candidate for candidate in reversed(candidates)}
    chosen = sorted(one_a_patient.values())[: options.per_cell]
    for index, candidate in enumerate(chosen):
        due = places_due(target, "LF", index, seed=options.seed)
        subject = subject_of(studies[candidate.study])
        yield lesion_free(subject, target, seed=options.seed, rules=options.rules, due=due)


def _with_lesion(accepted: Sequence[Examined], target: str, options: BuildOptions) -> Iterator[Case]:
    seed = options.seed
    for path, cell in on_paths(choose(accepted, options.per_cell), seed=seed).items():
        regions = right_regions(cell, seed=seed)
        for index, examined in enumerate(with_masks(cell)):
            right = regions[index]
            turns = {location_step(right): regions[:index].count(right)}
            yield lesion_case(
                examined,
                path,
                right_regions=right,
                seed=seed,
                rules=options.rules,
                due=places_due(target, path, index, seed=seed, turns=turns),
            )


# ---- reports ------------------------------------------------------------------------------------------------------


def _write_skipped(directory: FilePath, skipped: Sequence[Skipped]) -> None:
    """Every study that has a lesion and could not be used for it."""
    order = sorted(skipped, key=lambda skip: (skip.target, skip.study))
    rows = ((skip.study, skip.target, skip.reason, skip.detail) for skip in order)
    write_skipped(directory, ("study", "target", "reason", "detail"), rows)
