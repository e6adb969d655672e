"""Build a ground benchmark: find candidates, select probes, write them part by part."""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby, islice
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec
import numpy as np

from carina.cases import Benchmark, Case, Manifest
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
from carina.cases.reader_scores import add_presence
from carina.ground.build_report import GroundBuildReport, PresenceAgreement, TargetReport
from carina.ground.options import Ask, GroundOptions, Readers
from carina.ground.probe import Probe, make_case
from carina.ground.selection import ProbeCandidates, SelectedProbe, find_candidates, image_at, select_probes
from carina.ground.truth import truth_of
from carina.reports.combine import combine_with_report
from carina.reports.trust import DEFAULT_TRUST, TRUST, OnConflict, split_trust
from carina.stats import krippendorff_alpha
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.disk_sort import sort_on_disk
from carina.store.errors import CarinaError
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, as_path
from carina.store.workers import in_order
from carina.studies import Studies, Study
from carina.studies.lookalikes import look_alike
from carina.studies.readers import BOX_OVERLAP, presence_votes, silent_readers
from carina.studies.rejected_regions import list_studies_with_rejected_regions
from carina.studies.terms import CONFIRMED, find_term, is_known_name, nearest_term
from carina.studies.vocabulary import SHORT_NAMES

PROTOCOL_VERSION: Final = 6
"""Raised when the same studies, seed and options give other probes."""
PART_SIZE: Final = 512
UNSORTED: Final = ".unsorted"
"""Folder of an unfinished benchmark: cases that are not sorted yet."""
_DECODER: Final = msgspec.msgpack.Decoder(Case)
_NOT_NEEDED: Final = ("devices", "relations", "recommendations")
_NOT_SCREENED: Final = ("anatomy",)
UNFIT: Final = "its regions do not fit the image or the way in which readers are joined"
NOTHING_LEFT: Final = "no pixel is left of the regions of its readers"
OnError = Literal["skip", "stop"]
_REPLICATES: Final = 1000
"""Bootstrap replicates for the interval of an agreement."""


class NothingLeftError(CarinaError):
    """The rule for several readers leaves nothing of their regions."""


@dataclass(frozen=True)
class _Task:
    """Probes of neighbouring studies, which one worker builds."""

    studies: str
    chosen: tuple[SelectedProbe, ...]
    options: GroundOptions
    on_error: OnError


@check_arguments
def build_ground(
    studies: Studies | Location,
    out: Location,
    *,
    per_target: PositiveInt | None = None,
    absent: float = 1.0,
    targets: Sequence[str] | None = None,
    ask: Ask = "finding",
    readers: Readers = "union",
    at_least: PositiveInt | None = None,
    box_overlap: float = BOX_OVERLAP,
    lateral: bool = False,
    on_conflict: OnConflict = "skip",
    trust: str = DEFAULT_TRUST,
    seed: int = 0,
    split: str | None = None,
    on_error: OnError = "skip",
    workers: PositiveInt | None = None,
    progress: Progress = no_progress,
) -> Benchmark:
    """Build a benchmark of positive and negative probes: is a finding present, and where?

    The files depend only on the studies and the options, not on the number of workers. `Benchmark.build_report` says
    how many probes each finding has, and why not more.

    Args:
        studies: Study set with regions that experts drew: masks, polygons or boxes.
        out: Directory to write the benchmark to.
        per_target: Largest number of positive probes for each finding; all by default.
        absent: Number of negative probes per positive probe, 0 to 10.
        targets: Findings to ask about, as studies call them or by a synonym of the vocabulary ("Pleural_Effusion",
            "effusion"). By default all that are drawn.
        ask: "finding" asks for a finding by its name, "phrase" for what a sentence of the report says of it.
        readers: What becomes of the regions of several readers: "union" (what any reader marked), "consensus" (what
            more than half of the readers marked, or `at_least` of them), "intersection", "weighted-boxes" (boxes that
            overlap, averaged), "first" (the first reader by name), or "each" (a probe for each reader).
        at_least: Readers who must agree, with "consensus" and "weighted-boxes"; more than half by default.
        box_overlap: Least overlap (IoU) of boxes that "weighted-boxes" takes for the same thing.
        lateral: Whether lateral views are asked about too.
        on_conflict: Whether a finding is asked about ("ask") or not ("skip") where the report of the study contradicts
            what is recorded; `conflicts.csv` lists all conflicts.
        trust: What counts where it is asked about, the most trusted first, with commas between.
        seed: Seed for all random choices.
        split: Use only studies of this split: "train", "val" or "test".
        on_error: "skip" or "stop" at a study whose regions do not fit its images.
        workers: Number of processes; None for one per core.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The benchmark, opened.

    Raises:
        CarinaError: An option is wrong, no study names a target, or the directory holds another benchmark.
        carina.cases.NoCasesError: No study has a region that can be asked about; `skipped.csv` gives the reasons.

    Example:
        >>> from carina.ground import build_ground
        >>> bench = build_ground("studies", "effusions", targets=["pleural effusion"], workers=1)
        >>> [(item.target, item.present) for item in bench.build_report.targets]
        [('pleural effusion', 4)]
    """
    options = GroundOptions(
        seed=seed,
        per_target=per_target,
        absent=absent,
        targets=tuple(targets or ()),
        split=split,
        readers=readers,
        at_least=at_least,
        box_overlap=box_overlap,
        ask=ask,
        lateral=lateral,
        on_conflict=on_conflict,
        trust=split_trust(trust),
    )
    check_choice("on_error", on_error, get_args(OnError))
    directory = as_path(out)
    with progress("Probes", None) as advance:
        _build(
            ensure_open(studies),
            directory,
            options,
            workers=workers or os.cpu_count() or 1,
            on_error=on_error,
            progress=advance,
        )
    return open_built(directory, asked="has a region that can be asked about")


def _build(
    studies: Studies,
    directory: Path,
    options: GroundOptions,
    *,
    workers: int,
    on_error: OnError,
    progress: Callable[[int], object],
) -> None:
    options = _resolve_targets(studies, options)
    confirmed = studies.manifest.options.get(CONFIRMED, [])
    provenance = provenance_of(
        studies,
        directory,
        command=f"carina build ground {studies.directory.resolve().name} --seed {options.seed}",
        seed=options.seed,
        options={
            "protocol": "ground",
            "version": PROTOCOL_VERSION,
            **asdict(options),
            **({CONFIRMED: confirmed} if confirmed else {}),
        },
    )
    with open_build(studies, directory, provenance, notes=(UNSORTED,)) as build:
        earlier = read_finished(build, GroundBuildReport)
        if earlier is not None:
            progress(earlier[0].counts.cases)
            return
        found = find_candidates(
            _number_studies(studies, options),
            options,
            names=_list_present(studies),
            rejected=list_studies_with_rejected_regions(studies.directory),
        )
        chosen = select_probes(found, options)
        tasks = (
            _Task(str(studies.directory.resolve()), chosen[start : start + PART_SIZE], options, on_error)
            for start in range(0, len(chosen), PART_SIZE)
        )
        # Sorted by id, so that the order of rows does not reveal which findings are present.
        with sort_on_disk(directory / UNSORTED) as sorting:
            for made, unfit in in_order(_make_cases, tasks, workers=workers):
                sorting.add(made)
                found.skipped += unfit
                progress(len(made))
            cases = map(_DECODER.decode, sorting.read())
            parts = [
                build.write_part(index, islice(cases, PART_SIZE))
                for index in range(-(-len(sorting) // PART_SIZE))
            ]

        def write_beside(manifest: Manifest) -> None:
            write_report(directory, _make_report(found, manifest, confirmed))
            write_skipped(directory, ("study", "target", "reason"), sorted(found.skipped))
            write_conflicts(directory, found.conflicts)

        build.close(parts, write_beside)


def _list_present(studies: Studies) -> list[str]:
    """Names of the findings that any study of the set has."""
    return [name for name, times in studies.manifest.counts.findings.items() if "present" in times]


def _resolve_targets(studies: Studies, options: GroundOptions) -> GroundOptions:
    """Targets by the names that studies have for them; refuse one that no study names, before anything is written."""
    if not options.targets:
        return options
    known = studies.manifest.counts.findings.keys()
    targets = [_find_name(target, known) for target in options.targets]
    for target, name in zip(options.targets, targets, strict=True):
        if name is None:
            raise CarinaError(
                f"target {target!r}: no study of {studies.directory} names it; they name "
                f"{', '.join(sorted(known)) or 'nothing'}"
            )
    return replace(options, targets=tuple(name for name in targets if name is not None))


def _find_name(target: str, known: Collection[str]) -> str | None:
    """The name that studies have for a target: as it is, by its short name, or by a synonym of the vocabulary."""
    if target in known:
        return target
    term = find_term(target, "finding")
    for name in (SHORT_NAMES.get(target), None if term is None else term.name):
        if name in known:
            return name
    folded = {" ".join(name.casefold().split()): name for name in sorted(known)}
    return folded.get(" ".join(target.casefold().split()))


def _number_studies(studies: Studies, options: GroundOptions) -> Iterator[tuple[int, Study]]:
    """Studies of the split with their places in the set, read without the fields that screening does not need."""
    for place, study in enumerate(studies.without(*_NOT_NEEDED, *_NOT_SCREENED)):
        if options.split is None or study.split == options.split:
            yield place, study


def _make_cases(task: _Task) -> tuple[list[tuple[str, bytes]], list[tuple[str, str, str]]]:
    """The ids of the cases and the cases, encoded; and the probes that could not be made, with the reason."""
    made: list[tuple[str, bytes]] = []
    unfit: list[tuple[str, str, str]] = []
    by_place = {place: list(group) for place, group in groupby(task.chosen, key=lambda probe: probe.place)}
    options = task.options
    # Where the text counts less than the records, it adds nothing to what was drawn.
    needs_text = options.trust != TRUST
    studies = open_in_worker(task.studies, *_NOT_NEEDED, *(() if needs_text else ("report",)))
    for place, stored in zip(sorted(by_place), studies.at(by_place), strict=True):
        study = stored
        if needs_text:
            study = combine_with_report(stored, on_conflict=options.on_conflict, trust=options.trust).study
        for chosen in by_place[place]:
            try:
                case = make_case(_make_probe(study, chosen, options), options)
                made.append((case.id, msgspec.msgpack.encode(case)))
            except CarinaError as error:
                if task.on_error == "stop":
                    raise CarinaError(f"study {study.id}, {chosen.target}: {error}") from error
                reason = NOTHING_LEFT if isinstance(error, NothingLeftError) else UNFIT
                unfit.append((study.id, chosen.target, reason))
    return made, unfit


def _make_probe(study: Study, chosen: SelectedProbe, options: GroundOptions) -> Probe:
    image = image_at(study, chosen.image)
    wanted = chosen.wanted
    votes = presence_votes(study, chosen.target)
    truth = None
    if chosen.present:
        findings = [f for f in study.findings if f.name == chosen.target and f.certainty == "present"]
        if wanted.findings:
            findings = [f for f in findings if f.id in wanted.findings]
        truth = truth_of(
            findings,
            image,
            options.rule,
            looked=len(votes),
            silent=silent_readers(study, chosen.target, image.key),
            reader=wanted.reader or None,
        )
        if truth is None:
            raise NothingLeftError(f"{image.key}: {NOTHING_LEFT} ({options.readers})")
    present = {
        f.name for f in study.findings if look_alike(f.name, chosen.target) and f.certainty != "absent"
    }
    return Probe(
        study=study,
        image=image,
        target=chosen.target,
        truth=truth,
        phrase=chosen.phrase,
        reader=wanted.reader or None,
        readers=add_presence({} if truth is None else truth.readers, votes),
        alike=tuple(sorted(present)),
        yes_first=chosen.yes_first,
    )


def _make_report(found: ProbeCandidates, manifest: Manifest, confirmed: Collection[str]) -> GroundBuildReport:
    left_out = Counter((target, reason) for _, target, reason in found.skipped)
    names = sorted({*found.present, *(target for target, _ in left_out)})
    built = manifest.counts.cells
    return GroundBuildReport(
        studies=found.studies,
        conflicts=count_conflicts(found.conflicts),
        targets=tuple(
            TargetReport(
                target=name,
                present=built.get(f"{name}/present", 0),
                absent=built.get(f"{name}/absent", 0),
                left_out=_count_reasons(left_out, name),
                no_controls=_count_reasons(found.not_absent, name),
            )
            for name in names
        ),
        unknown_targets={
            name: nearest_term(name, kind="finding")
            for name in names
            if name not in confirmed
            and not is_known_name(name, "finding")
            and built.get(f"{name}/present", 0) + built.get(f"{name}/absent", 0)
        },
        presence=tuple(_measure_presence(found, name) for name in names if name in found.votes),
    )


def _measure_presence(found: ProbeCandidates, name: str) -> PresenceAgreement:
    patients, stated, readers = np.array(found.votes[name]).reshape(-1, 3).T
    denied = readers - stated
    pairs = readers * (readers - 1)
    same = stated * (stated - 1) + denied * (denied - 1)
    most = int(readers.max())
    ratings = [
        [True] * yes + [False] * no + [None] * (most - yes - no)
        for yes, no in zip(stated.tolist(), denied.tolist(), strict=True)
    ]
    alpha = krippendorff_alpha(ratings, patients.tolist(), replicates=_REPLICATES)
    return PresenceAgreement(
        target=name,
        images=len(readers),
        patients=len(np.unique(patients)),
        agreement=float(same.sum() / pairs.sum()),
        alpha=alpha.value,
        low=alpha.low,
        high=alpha.high,
    )


def _count_reasons(counted: Counter[tuple[str, str]], target: str) -> dict[str, int]:
    return {reason: number for (name, reason), number in sorted(counted.items()) if name == target}
