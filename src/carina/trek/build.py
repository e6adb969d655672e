"""Building a trek benchmark: a survey of the studies, then conversations part by part, anywhere.

A part is a pure function of the studies, the survey and the options, so parts are shared between processes or machines,
and an interrupted build goes on with the parts that are missing.
"""

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

import msgspec
import numpy as np

from carina.cases import (
    Case,
    Manifest,
    Provenance,
    claim,
    finished_part,
    finished_set,
    open_benchmark,
    write_manifest,
    write_part,
)
from carina.errors import BenchmarkError, CarinaError
from carina.files import alone_in, write_bytes
from carina.store import PartInfo
from carina.studies import Studies, Study, open_studies
from carina.trek.conversation import conversation
from carina.trek.language import language
from carina.trek.neighbours import Neighbours, neighbours
from carina.trek.options import TrekOptions
from carina.trek.reports import with_report_truth
from carina.trek.subject import Subject, subject_of
from carina.trek.survey import Survey, survey
from carina.workers import Engine, in_order

PROTOCOL_VERSION: Final = 1
"""Raised when the same studies, seed and options give other conversations."""
PART_SIZE: Final = 1024
SKIPPED: Final = "skipped.csv"
REPORT: Final = "build.json"
_SURVEYED: Final = 4096
_BLOCK: Final = 64
_NOT_NEEDED: Final = (
    "report.sentences.states",
    "findings.annotations.conspicuity",
    "findings.annotations.threshold",
    "devices.tips",
    "devices.measures",
)
_NOT_SURVEYED: Final = ("anatomy", "findings.annotations", "devices.annotations", "findings.evidence")
OnError = Literal["skip", "stop"]


class BuildReport(msgspec.Struct, frozen=True, kw_only=True):
    """`build.json`: how a benchmark came to hold what it holds."""

    studies: int
    conversations: int
    questions: int
    surveyed: int
    """Studies from which the balance of questions was worked out."""
    with_reference: int
    with_later: int
    skipped: dict[str, int]
    """Studies without a conversation, by reason."""


@dataclass(frozen=True)
class Built:
    manifest: Manifest
    report: BuildReport


def build_trek(
    studies: Studies,
    directory: Path,
    options: TrekOptions,
    *,
    workers: int = 1,
    engine: Engine = "local",
    address: str | None = None,
    on_error: OnError = "skip",
    progress: Callable[[int], object] = lambda _done: None,
) -> Built:
    """Write a benchmark of conversations; an interrupted call is taken up where it was.

    The bytes depend neither on the workers nor on the engine. On a cluster, studies and benchmark must lie on a file
    system that all machines share. `progress` is told of conversations that are ready.
    """
    if directory.resolve().is_relative_to(studies.directory.resolve()):
        raise CarinaError(f"{directory}: lies in the study set; choose a directory beside it")
    provenance = _provenance(studies, directory, options)
    claim(directory, provenance)
    with alone_in(directory) as alone:
        if not alone:
            raise BenchmarkError(f"{directory}: another process is writing here")
        there = _complete(directory, provenance.fingerprint)
        if there is not None:
            progress(there.report.conversations)
            return there
        linked = neighbours(studies, options.split)
        surveyed = survey(
            _sample(studies, len(linked.chosen), linked),
            language(options.language),
            choices=options.quotas.choices,
            most_images=options.most_images,
        )
        job = _Job(
            studies=str(studies.directory.resolve()),
            out=str(directory.resolve()),
            fingerprint=provenance.fingerprint,
            survey=surveyed,
            options=options,
            on_error=on_error,
        )
        parts: list[PartInfo] = []
        for part in in_order(
            _write, _tasks(job, linked), workers=workers, ahead=2, engine=engine, address=address
        ):
            parts.append(part)
            progress(part.rows)
        manifest = write_manifest(directory, provenance, parts)
        report = _report(studies, directory, linked, manifest, surveyed.studies)
        return Built(manifest, report)


def _complete(directory: Path, fingerprint: str) -> Built | None:
    """What an earlier call has finished, if nothing of it was damaged since; else it is built anew."""
    manifest = finished_set(directory)
    if manifest is None:
        return None
    parts = [finished_part(directory, n, fingerprint=fingerprint) for n in range(len(manifest.parts))]
    if tuple(parts) != manifest.parts:
        return None
    try:
        report = msgspec.json.decode((directory / REPORT).read_bytes(), type=BuildReport)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
    return Built(manifest, report)


def _provenance(studies: Studies, directory: Path, options: TrekOptions) -> Provenance:
    manifest = studies.manifest
    return Provenance(
        command=f"carina build trek {studies.directory.resolve().name} --seed {options.seed}",
        seed=options.seed,
        options={
            "protocol": "trek",
            "version": PROTOCOL_VERSION,
            **{name: value for name, value in asdict(options).items() if name != "seed"},
            "wording": language(options.language).wording.sha256,
            "studies": [part.sha256 for part in manifest.parts],
        },
        sources=manifest.sources,
        image_root=os.path.relpath((studies.directory / manifest.image_root).resolve(), directory.resolve()),
    )


def _sample(studies: Studies, number: int, linked: Neighbours) -> Iterator[Study]:
    """All studies, or blocks of them evenly over a large set."""
    places: Iterable[int] = linked.chosen.tolist()
    if number > _SURVEYED:
        starts = np.linspace(0, number - _BLOCK, _SURVEYED // _BLOCK).astype(int)
        places = sorted({int(linked.chosen[start + step]) for start in starts for step in range(_BLOCK)})
    # Report text is read only where it must be understood.
    left_out = ("report" if studies.manifest.counts.findings else "report.sentences.states",)
    for study in studies.without(*_NOT_SURVEYED, *left_out).at(places):
        yield with_report_truth(study)


# ---- parts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Job:
    """What all parts share."""

    studies: str
    out: str
    fingerprint: str
    survey: Survey
    options: TrekOptions
    on_error: OnError


@dataclass(frozen=True)
class _Task:
    job: _Job
    index: int
    places: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


def _tasks(job: _Job, linked: Neighbours) -> Iterator[_Task]:
    for index, start in enumerate(range(0, len(linked.chosen), PART_SIZE)):
        places = linked.chosen[start : start + PART_SIZE]
        yield _Task(
            job,
            index,
            tuple(places.tolist()),
            tuple(linked.before[places].tolist()),
            tuple(linked.after[places].tolist()),
        )


def _write(task: _Task) -> PartInfo:
    job = task.job
    directory = Path(job.out)
    there = finished_part(directory, task.index, fingerprint=job.fingerprint)
    if there is not None:
        return there
    return write_part(directory, task.index, list(_cases(task)), fingerprint=job.fingerprint)


def _cases(task: _Task) -> Iterator[Case]:
    job = task.job
    words = language(job.options.language)
    wanted = {place for places in (task.places, task.before, task.after) for place in places if place >= 0}
    order = sorted(wanted)
    subjects: dict[int, Subject] = {}
    for place, study in zip(order, _opened(job.studies).at(order), strict=True):
        if unfit(study) is None:
            subjects[place] = subject_of(
                with_report_truth(study),
                words,
                known=job.survey.known,
                most_images=job.options.most_images,
            )
    for place, before, after in zip(task.places, task.before, task.after, strict=True):
        if place not in subjects:
            continue
        try:
            yield conversation(
                subjects[place],
                subjects.get(before),
                subjects.get(after),
                survey=job.survey,
                words=words,
                options=job.options,
            )
        except (LookupError, ValueError, TypeError, CarinaError) as error:
            if job.on_error == "stop":
                raise CarinaError(f"study {subjects[place].study.id}: {_BROKEN}: {error}") from error


_BROKEN: Final = "its records contradict each other"


def unfit(study: Study) -> str | None:
    """Why there can be no conversation about a study; None where there can."""
    if not study.images:
        return "no image"
    known = study.findings or study.devices
    if not known and (
        study.report is None or not any(section.text.strip() for section in study.report.sections)
    ):
        return "nothing is stated about it"
    return None


@lru_cache(maxsize=1)
def _opened(directory: str) -> Studies:
    """Each process opens the set once; the command that began the work has verified it."""
    return open_studies(directory, verify=False).without(*_NOT_NEEDED)


# ---- report ---------------------------------------------------------------------------------------------------------


def _report(
    studies: Studies, directory: Path, linked: Neighbours, manifest: Manifest, surveyed: int
) -> BuildReport:
    """What was built, and why not more: found by comparing studies and cases, so that a resumption knows it too."""
    made = (
        open_benchmark(directory, verify=False).table(["study", "reference_study", "later_study"]).collect()
    )
    done = set(made["study"].to_list())
    missing: list[tuple[str, str]] = []
    ids = studies.table(["id"]).collect()["id"].to_list()
    absent = [place for place in linked.chosen.tolist() if ids[place] not in done]
    for study in studies.at(absent) if absent else ():
        missing.append((study.id, unfit(with_report_truth(study)) or _BROKEN))
    report = BuildReport(
        studies=len(linked.chosen),
        conversations=manifest.counts.cases,
        questions=manifest.counts.steps,
        surveyed=surveyed,
        with_reference=int(made["reference_study"].is_not_null().sum()),
        with_later=int(made["later_study"].is_not_null().sum()),
        skipped=dict(sorted(Counter(reason for _, reason in missing).items())),
    )
    write_bytes(directory / REPORT, msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("study", "reason"))
    writer.writerows(sorted(missing))
    write_bytes(directory / SKIPPED, text.getvalue().encode())
    return report
