"""From a study set to a ground benchmark on disk: screen, choose, and write probes part by part."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Final, Literal

import msgspec

from carina.cases import Case, Manifest, write_manifest, write_part
from carina.cases.building import building, finished, provenance_of, write_report, write_skipped
from carina.errors import CarinaError
from carina.ground.probes.choose import Chosen, Screened, choose, screen
from carina.ground.probes.options import GroundOptions
from carina.ground.probes.probe import Probe, probe_case
from carina.ground.probes.truth import truth_of
from carina.studies import Studies, Study, open_studies
from carina.studies.lookalikes import looks_like
from carina.workers import in_order

PROTOCOL_VERSION: Final = 2
"""Raised when the same studies, seed and options give other probes."""
PART_SIZE: Final = 512
_NOT_NEEDED: Final = ("devices", "relations", "recommendations")
_NOT_SCREENED: Final = ("anatomy",)
_UNNAMED: Final = (*_NOT_NEEDED, *_NOT_SCREENED, "report", "findings.annotations", "findings.measures")
"""What is not needed to know what studies name."""
UNFIT: Final = "its regions are empty or do not fit the image"
OnError = Literal["skip", "stop"]


class TargetReport(msgspec.Struct, frozen=True, kw_only=True):
    """One finding: how often it is asked for, and why not more often."""

    target: str
    present: int
    absent: int
    left_out: dict[str, int]
    """Studies that have it, by the reason why they are not asked about."""
    no_controls: dict[str, int]
    """Studies that state its absence, by the reason why they are no controls."""


class BuildReport(msgspec.Struct, frozen=True, kw_only=True):
    """`build.json`: how a benchmark came to hold what it holds."""

    studies: int
    targets: tuple[TargetReport, ...]


@dataclass(frozen=True)
class Built:
    manifest: Manifest
    report: BuildReport


@dataclass(frozen=True)
class _Task:
    """Some of the probes, of neighbouring studies."""

    studies: str
    chosen: tuple[Chosen, ...]
    options: GroundOptions
    on_error: OnError


def build_ground(
    studies: Studies,
    directory: Path,
    options: GroundOptions,
    *,
    workers: int = 1,
    on_error: OnError = "skip",
    progress: Callable[[int], object] = lambda _done: None,
) -> Built:
    """Write a benchmark of probes. The bytes do not depend on the workers; `progress` is told of probes made."""
    provenance = provenance_of(
        studies,
        directory,
        command=f"carina build ground {studies.directory.resolve().name} --seed {options.seed}",
        seed=options.seed,
        options={"protocol": "ground", "version": PROTOCOL_VERSION, **asdict(options)},
    )
    _check_targets(studies, options)
    with building(studies, directory, provenance):
        there = finished(directory, provenance.fingerprint, BuildReport)
        if there is not None:
            progress(there[0].counts.cases)
            return Built(*there)
        found = screen(_placed(studies, options), options)
        chosen = choose(found, options)
        tasks = (
            _Task(
                str(studies.directory.resolve()), tuple(chosen[start : start + PART_SIZE]), options, on_error
            )
            for start in range(0, len(chosen), PART_SIZE)
        )
        cases: list[Case] = []
        for made, unfit in in_order(_cases, tasks, workers=workers):
            cases += made
            found.skipped += unfit
            progress(len(made))
        # By id, so that the order of rows says nothing of what is there.
        cases.sort(key=lambda case: case.id)
        parts = [
            write_part(directory, index, cases[start : start + PART_SIZE], fingerprint=provenance.fingerprint)
            for index, start in enumerate(range(0, len(cases), PART_SIZE))
        ]
        manifest = write_manifest(directory, provenance, parts)
        report = _report(found, manifest)
        write_report(directory, report)
        write_skipped(directory, ("study", "target", "reason"), sorted(found.skipped))
        return Built(manifest, report)


def _check_targets(studies: Studies, options: GroundOptions) -> None:
    """Refuse a finding that no study names, before anything is written."""
    if not options.targets:
        return
    known = {finding.name for study in studies.without(*_UNNAMED) for finding in study.findings}
    for target in options.targets:
        if target not in known:
            raise CarinaError(
                f"target {target!r}: no study of {studies.directory} names it; they name "
                f"{', '.join(sorted(known)) or 'nothing'}"
            )


def _placed(studies: Studies, options: GroundOptions) -> Iterator[tuple[int, Study]]:
    """Studies with their places in the set, and nothing read that screening does not need."""
    dropped = _NOT_SCREENED if options.ask == "phrase" else (*_NOT_SCREENED, "report")
    for place, study in enumerate(studies.without(*_NOT_NEEDED, *dropped)):
        if options.split is None or study.split == options.split:
            yield place, study


def _cases(task: _Task) -> tuple[list[Case], list[tuple[str, str, str]]]:
    """Probes as cases, and those that could not be made, with the reason."""
    made: list[Case] = []
    unfit: list[tuple[str, str, str]] = []
    by_place = {place: list(group) for place, group in groupby(task.chosen, key=lambda probe: probe.place)}
    for place, study in zip(sorted(by_place), _opened(task.studies).at(by_place), strict=True):
        for chosen in by_place[place]:
            try:
                made.append(probe_case(_probe(study, chosen, task.options), task.options))
            except CarinaError as error:
                if task.on_error == "stop":
                    raise CarinaError(f"study {study.id}, {chosen.target}: {error}") from error
                unfit.append((study.id, chosen.target, UNFIT))
    return made, unfit


def _probe(study: Study, chosen: Chosen, options: GroundOptions) -> Probe:
    image = study.image(chosen.image)
    findings = [f for f in study.findings if f.name == chosen.target and f.certainty == "present"]
    truth = truth_of(findings, image, options.fusion) if chosen.present else None
    if chosen.present and truth is None:
        raise CarinaError(f"{image.key}: no pixel is left of its regions ({options.fusion})")
    alike = looks_like(chosen.target)
    there = {f.name for f in study.findings if f.name in alike and f.certainty != "absent"}
    return Probe(
        study=study,
        image=image,
        target=chosen.target,
        truth=truth,
        phrase=chosen.phrase,
        alike=tuple(sorted(there)),
        yes_first=chosen.yes_first,
    )


@lru_cache(maxsize=1)
def _opened(directory: str) -> Studies:
    """Each process opens the set once; the command that began the work has verified it."""
    return open_studies(directory, verify=False).without(*_NOT_NEEDED, "report")


def _report(found: Screened, manifest: Manifest) -> BuildReport:
    left_out = Counter((target, reason) for _, target, reason in found.skipped)
    names = sorted({*found.present, *(target for target, _ in left_out)})
    built = manifest.counts.cells
    return BuildReport(
        studies=found.studies,
        targets=tuple(
            TargetReport(
                target=name,
                present=built.get(f"{name}/present", 0),
                absent=built.get(f"{name}/absent", 0),
                left_out=_of(left_out, name),
                no_controls=_of(found.not_absent, name),
            )
            for name in names
        ),
    )


def _of(counted: Counter[tuple[str, str]], target: str) -> dict[str, int]:
    return {reason: number for (name, reason), number in sorted(counted.items()) if name == target}
