"""Build a percept benchmark: find candidates, analyse and select lesions, make cases, write parts."""

import os
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path as FilePath
from typing import Final, Literal, get_args

import msgspec

from carina import models
from carina.cases import (
    Benchmark,
    Case,
    Manifest,
    Provenance,
    write_part,
)
from carina.cases.building import (
    check_choice,
    count_conflicts,
    ensure_open,
    open_build,
    open_built,
    open_in_worker,
    provenance_of,
    read_finished,
    write_conflicts,
    write_report,
    write_skipped,
)
from carina.models import ModelIdentity, Segmenter, identify_model
from carina.percept.analysis import analyse_lesion, subject_of
from carina.percept.assemble import make_lesion_case, make_lesion_free_case
from carina.percept.attribute_steps import asked_attributes, location_step_name
from carina.percept.balance import FeatureBalance
from carina.percept.build_report import CellReport, PerceptBuildReport
from carina.percept.candidates import Candidate, Candidates, find_candidates
from carina.percept.deformers import DeformerSource, SegmenterDeformers, warp_deformer
from carina.percept.facts import PerceptCaseFacts
from carina.percept.journal import FILE as JOURNAL
from carina.percept.journal import Journal
from carina.percept.lesions import LESIONS
from carina.percept.readers import add_readers
from carina.percept.records import LesionAnalysis, Outcome, Skipped
from carina.percept.rules import Rules
from carina.percept.select import (
    analyses_needed,
    assign_key_positions,
    assign_paths,
    assign_region_counts,
    choose_lesions,
    choose_masks,
)
from carina.percept.steps import LESION_PATHS, PATHS, Path
from carina.percept.truth import FusedMasks, SegmenterTruth, TruthSource, grey_reader, masks_as_drawn
from carina.reports.trust import DEFAULT_TRUST, TRUST, Evidence, OnConflict, check_trust, split_trust
from carina.store import PartInfo
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.errors import CarinaError
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, as_path
from carina.store.workers import in_order
from carina.studies import Studies
from carina.studies.assessment import is_stated_by_program
from carina.studies.readers import FusionRule
from carina.studies.vocabulary import Split

PROTOCOL_VERSION: Final = 7
"""Raised when the same studies, seed and rules give other cases."""
PART_SIZE: Final = 256
_NOT_NEEDED: Final = ("report", "devices", "relations", "recommendations")
_NOT_SCREENED: Final = ("anatomy", "devices", "relations", "recommendations")
Readers = Literal["first", "union", "consensus", "intersection"]
"""What becomes of the masks of several readers: the first reader's by name, where all agree; or one mask by a rule."""


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """Options of `build_percept`, checked."""

    seed: int = 0
    per_cell: int = 100
    targets: tuple[str, ...] = tuple(LESIONS)
    split: str | None = None
    rules: Rules = field(default_factory=Rules)
    segmenter: str | None = None
    """Name of the model that draws the masks (`sam:PATH`); None for the study set's own masks."""
    deformer: str | None = None
    """Name of the model that deforms them; None for the signed-distance warp."""
    readers: Readers = "first"
    at_least: int | None = None
    """Readers who must agree, for consensus; None for more than half."""
    on_conflict: OnConflict = "skip"
    trust: tuple[Evidence, ...] = TRUST
    """What counts more where the report contradicts what is recorded, if that is asked about."""

    def __post_init__(self) -> None:
        for target in self.targets:
            if target not in LESIONS:
                raise CarinaError(f"target {target!r}: unknown lesion; choose from {', '.join(LESIONS)}")
        if len(set(self.targets)) < len(self.targets):
            raise CarinaError(f"targets {', '.join(self.targets)}: a lesion is named twice; name each once")
        check_choice("split", self.split, get_args(Split))
        check_choice("on_conflict", self.on_conflict, get_args(OnConflict))
        check_trust(self.trust)
        check_choice("readers", self.readers, get_args(Readers))
        FusionRule(fusion=self.readers, at_least=self.at_least)
        if self.segmenter is not None and self.readers != "first":
            raise CarinaError(
                f"readers {self.readers!r}: a segmenter draws the masks; leave one of the two out"
            )

    @property
    def rule(self) -> FusionRule | None:
        """How masks of several readers become one; None for the first reader's, where the readers agree."""
        return None if self.readers == "first" else FusionRule(fusion=self.readers, at_least=self.at_least)


@check_arguments
def build_percept(
    studies: Studies | Location,
    out: Location,
    *,
    per_cell: PositiveInt = 100,
    seed: int = 0,
    targets: Sequence[str] | None = None,
    split: str | None = None,
    segmenter: str | None = None,
    deformer: str | None = None,
    readers: Readers = "first",
    at_least: PositiveInt | None = None,
    on_conflict: OnConflict = "skip",
    trust: str = DEFAULT_TRUST,
    rules: Rules | None = None,
    workers: PositiveInt | None = None,
    progress: Progress = no_progress,
) -> Benchmark:
    """Build a benchmark of sequential examinations of lesions from a study set.

    The files depend only on the studies and the options, not on the number of workers. An interrupted call resumes
    when it is repeated. `Benchmark.build_report` says how many cases each lesion has on each path, and why not more.

    Args:
        studies: Study set with masks of lesions and of both lungs.
        out: Directory to write the benchmark to.
        per_cell: Number of cases per cell; a cell is one lesion on one path.
        seed: Seed for all random choices.
        targets: Lesions to ask about, by the names of `LESIONS` or as studies call them ("effusion" or
            "pleural effusion"); all by default.
        split: Use only studies of this split: "train", "val" or "test".
        segmenter: Model that draws the masks, such as "sam:weights"; the studies' own masks by default.
        deformer: Model that deforms the masks; a signed-distance warp by default.
        readers: What becomes of the masks of several readers: "first" (the first reader by name, where all overlap by
            0.7 or more), "union" (what any reader marked), "consensus" (what more than half of the readers marked, or
            `at_least` of them) or "intersection".
        at_least: Readers who must agree, with "consensus"; more than half by default.
        on_conflict: Whether a lesion is asked about ("ask") or not ("skip") where the report of the study contradicts
            what is recorded; `conflicts.csv` lists all conflicts.
        trust: What counts where it is asked about, the most trusted first, with commas between.
        rules: Limits of the protocol, as a `carina.percept.Rules`; the defaults if None.
        workers: Number of processes; None for one per core.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The benchmark, opened.

    Raises:
        CarinaError: An option is wrong, or the directory holds another benchmark.
        carina.cases.NoCasesError: No study can be asked about; `skipped.csv` and the build report give the reasons.

    Example:
        >>> from carina.percept import build_percept
        >>> bench = build_percept("studies", "percept", per_cell=1, targets=["edema"], workers=1)
        >>> [(cell.path, cell.built) for cell in bench.build_report.cells]
        [('LF', 1), ('RF', 0), ('RR', 1)]
    """
    short_names = {lesion.finding: lesion.name for lesion in LESIONS.values()}
    options = BuildOptions(
        seed=seed,
        per_cell=per_cell,
        targets=tuple(LESIONS if targets is None else (short_names.get(name, name) for name in targets)),
        split=split,
        rules=rules or Rules(),
        segmenter=segmenter,
        deformer=deformer,
        readers=readers,
        at_least=at_least,
        on_conflict=on_conflict,
        trust=split_trust(trust),
    )
    directory = as_path(out)
    _build(
        ensure_open(studies), directory, options, workers=workers or os.cpu_count() or 1, progress=progress
    )
    return open_built(directory)


def _build(
    studies: Studies,
    directory: FilePath,
    options: BuildOptions,
    *,
    workers: int,
    progress: Progress,
) -> None:
    provenance = _provenance(studies, directory, options)
    with open_build(studies, directory, provenance, notes=(JOURNAL,)) as build:
        if read_finished(build, PerceptBuildReport) is not None:
            return
        chosen = studies if options.split is None else studies.where(split=options.split)
        narrowed = chosen.without(*_NOT_NEEDED)
        found = find_candidates(
            chosen.without(*_NOT_SCREENED),
            options.targets,
            seed=options.seed,
            on_conflict=options.on_conflict,
            trust=options.trust,
        )
        total = sum(len(found.present[target]) for target in options.targets)
        with (
            Journal(directory, provenance.fingerprint) as journal,
            progress("Lesions", total) as advance,
        ):
            analyses = _analyse_candidates(
                narrowed, found, options, journal, workers=workers, progress=advance
            )
            report, parts = _assemble(
                narrowed, found, analyses, options, directory=directory, fingerprint=provenance.fingerprint
            )

        def write_beside(_manifest: Manifest) -> None:
            write_report(directory, report)
            _write_skipped(directory, [*found.skipped, *analyses.skipped])
            write_conflicts(directory, found.conflicts)

        build.close(parts, write_beside)


def _provenance(studies: Studies, directory: FilePath, options: BuildOptions) -> Provenance:
    rules = msgspec.to_builtins(options.rules)
    models = {
        role: None if named is None else identify_model(named, needs="segments")
        for role, named in (("segmenter", options.segmenter), ("deformer", options.deformer))
    }
    return provenance_of(
        studies,
        directory,
        command=f"carina build percept {studies.directory.resolve().name} "
        f"--per-cell {options.per_cell} --seed {options.seed}{_format_model_options(models)}",
        seed=options.seed,
        options={
            "protocol": "percept",
            "version": PROTOCOL_VERSION,
            "per_cell": options.per_cell,
            "targets": list(options.targets),
            "split": options.split,
            "rules": rules,
            "readers": options.readers,
            "at_least": options.at_least,
            "on_conflict": options.on_conflict,
            "trust": list(options.trust),
            **{role: None if model is None else asdict(model) for role, model in models.items()},
        },
    )


def _format_model_options(models: dict[str, ModelIdentity | None]) -> str:
    return "".join(f" --{role} {model.name}" for role, model in models.items() if model is not None)


# ---- analysing ----------------------------------------------------------------------------------------------------


@dataclass
class _Analyses:
    """Outcomes of the analyses, in the order in which candidates were sampled."""

    accepted: dict[str, list[LesionAnalysis]]
    skipped: list[Skipped]


class _Task(msgspec.Struct, frozen=True):
    study: str
    target: str
    directory: str
    seed: int
    rules: Rules
    segmenter: str | None
    deformer: str | None
    rule: FusionRule | None


def _analyse_candidates(
    studies: Studies,
    found: Candidates,
    options: BuildOptions,
    journal: Journal,
    *,
    workers: int,
    progress: Callable[[int], object],
) -> _Analyses:
    """Analyse the candidates of every target until there are enough usable ones, one for each patient."""
    analyses = _Analyses({target: [] for target in options.targets}, [])
    need = analyses_needed(options.per_cell)
    patients: dict[str, set[str]] = defaultdict(set)

    def is_needless(target: str, candidate: Candidate) -> bool:
        return len(analyses.accepted[target]) >= need or candidate.patient in patients[target]

    queue: deque[tuple[str, Candidate, Outcome | None]] = deque()

    def tasks() -> Iterator[_Task]:
        """Lesions that are not in the journal. Workers request tasks ahead, so a few outcomes may not be needed."""
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
                        rule=options.rule,
                    )

    def add_outcome(target: str, candidate: Candidate, outcome: Outcome) -> None:
        if is_needless(target, candidate):
            return
        if isinstance(outcome, Skipped):
            analyses.skipped.append(outcome)
            return
        patients[target].add(candidate.patient)
        analyses.accepted[target].append(outcome)

    def add_known_outcomes() -> None:
        while queue and queue[0][2] is not None:
            target, candidate, known = queue.popleft()
            if known is not None:
                add_outcome(target, candidate, known)

    done = 0
    for outcome in in_order(_analyse_one, tasks(), workers=workers):
        add_known_outcomes()
        target, candidate, _ = queue.popleft()
        journal.add(outcome)
        add_outcome(target, candidate, outcome)
        done += 1
        progress(1)  # usable or not, or it would seem to stand still
    add_known_outcomes()
    progress(sum(len(found.present[target]) for target in options.targets) - done)
    return analyses


def _analyse_one(task: _Task) -> Outcome:
    studies = open_in_worker(task.directory, *_NOT_NEEDED)
    truth_of: TruthSource = masks_as_drawn if task.rule is None else FusedMasks(task.rule)
    if task.segmenter is not None:
        truth_of = SegmenterTruth(_open_segmenter(task.segmenter), grey_reader(studies), task.rules)
    deformer_of: DeformerSource = warp_deformer
    if task.deformer is not None:
        deformer_of = SegmenterDeformers(_open_segmenter(task.deformer), grey_reader(studies))
    return analyse_lesion(
        studies[task.study],
        task.target,
        seed=task.seed,
        rules=task.rules,
        truth_of=truth_of,
        deformer_of=deformer_of,
    )


@lru_cache(maxsize=2)
def _open_segmenter(named: str) -> Segmenter:
    """Each process opens a model once."""
    segmenter: Segmenter = models.open(named, needs="segments")
    return segmenter


# ---- assembling ---------------------------------------------------------------------------------------------------


def _assemble(
    studies: Studies,
    found: Candidates,
    analyses: _Analyses,
    options: BuildOptions,
    *,
    directory: FilePath,
    fingerprint: str,
) -> tuple[PerceptBuildReport, list[PartInfo]]:
    """Write the cases of every target in parts; returns the build report and the parts."""
    made: list[Case] = []
    cells: list[CellReport] = []
    lesions = _select_lesions(analyses, options)
    why = Counter((skip.target, skip.reason) for skip in [*found.skipped, *analyses.skipped])
    for target in options.targets:
        cases = [
            *_make_lesion_free_cases(studies, found.absent[target], target, options),
            *(
                case
                for path in LESION_PATHS
                for case in _make_lesion_cases(lesions[target][path], path, options)
            ),
        ]
        made += cases
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
                    reasons=_count_reasons(found.not_absent if absent else why, target),
                    not_asked=_count_not_asked(case for case in cases if case.path == path),
                )
            )
    made = add_readers(made, studies, options.rule)
    # Sorted by id over all targets, whose cells may differ in size: the order of rows does not reveal the path.
    made.sort(key=lambda case: case.id)
    parts = [
        write_part(directory, number, made[start : start + PART_SIZE], fingerprint=fingerprint)
        for number, start in enumerate(range(0, len(made), PART_SIZE))
    ]
    counts = count_conflicts(found.conflicts)
    return PerceptBuildReport(studies=found.studies, cells=tuple(cells), conflicts=counts), parts


def _count_reasons(why: Counter[tuple[str, str]], target: str) -> dict[str, int]:
    return {reason: count for (named, reason), count in sorted(why.items()) if named == target}


def _count_not_asked(cases: Iterable[Case]) -> dict[str, int]:
    counts = Counter(
        f"{task}: {why.partition(':')[0]}"
        for case in cases
        for task, why in PerceptCaseFacts.of(case).not_asked.items()
    )
    return dict(sorted(counts.items()))


def _make_lesion_free_cases(
    studies: Studies, candidates: Sequence[Candidate], target: str, options: BuildOptions
) -> Iterator[Case]:
    one_a_patient = {candidate.patient: candidate for candidate in reversed(candidates)}
    chosen = sorted(one_a_patient.values())[: options.per_cell]
    for index, candidate in enumerate(chosen):
        key_position = assign_key_positions(target, "LF", index, seed=options.seed)
        study = studies[candidate.study]
        yield make_lesion_free_case(
            subject_of(study),
            target,
            seed=options.seed,
            rules=options.rules,
            key_position=key_position,
            is_stated_by_program=is_stated_by_program(study, LESIONS[target].finding),
        )


def _select_lesions(
    analyses: _Analyses, options: BuildOptions
) -> dict[str, dict[Path, list[LesionAnalysis]]]:
    """The lesions of every target and path; contours are balanced over all targets."""
    balance = FeatureBalance()
    selected = {
        target: assign_paths(
            choose_lesions(analyses.accepted[target], options.per_cell), seed=options.seed, balance=balance
        )
        for target in options.targets
    }
    revised = choose_masks(
        [lesion for paths in selected.values() for lesion in paths["RR"]], seed=options.seed
    )
    for target, paths in selected.items():
        paths["RR"] = [lesion for lesion in revised if lesion.target == target]
    return selected


def _make_lesion_cases(cell: Sequence[LesionAnalysis], path: Path, options: BuildOptions) -> Iterator[Case]:
    seed = options.seed
    regions = assign_region_counts(cell, seed=seed)
    asked: Counter[str] = Counter()
    for index, analysis in enumerate(cell):
        right = regions[index]
        steps = asked_attributes(analysis.attributes)
        turns = {step: asked[step] for step in steps}
        turns[location_step_name(right)] = asked[location_step_name(right)]
        asked.update((*steps, location_step_name(right)) if "4b" in steps else steps)
        yield make_lesion_case(
            analysis,
            path,
            right_regions=right,
            seed=seed,
            rules=options.rules,
            key_position=assign_key_positions(analysis.target, path, index, seed=seed, turns=turns),
        )


# ---- reports ------------------------------------------------------------------------------------------------------


def _write_skipped(directory: FilePath, skipped: Sequence[Skipped]) -> None:
    """List every study that has a lesion and could not be used for it."""
    order = sorted(skipped, key=lambda skip: (skip.target, skip.study))
    rows = ((skip.study, skip.target, skip.reason, skip.detail) for skip in order)
    write_skipped(directory, ("study", "target", "reason", "detail"), rows)
