"""One part of a benchmark: some studies, read with their neighbours in time, and the conversations about them.

A pure function of the studies, the survey and the options, so that a part can be made anywhere.
"""

import gc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

import numpy as np

from carina.cases import Case, finished_part, write_part
from carina.errors import CarinaError
from carina.store import PartInfo
from carina.studies import Studies, Study, open_studies
from carina.trek.conversation import conversation
from carina.trek.language import language
from carina.trek.neighbours import Neighbours
from carina.trek.options import TrekOptions
from carina.trek.reports import with_report_truth
from carina.trek.structures import Structures, structures
from carina.trek.subject import Subject, subject_of
from carina.trek.survey import Survey, survey

OnError = Literal["skip", "stop"]
BROKEN: Final = "its records contradict each other"
_CONTRADICTION: Final = (LookupError, ValueError, TypeError, CarinaError)
_SURVEYED: Final = 4096
_BLOCK: Final = 64
_NOT_NEEDED: Final = (
    "report.sentences.states",
    "findings.annotations.conspicuity",
    "findings.annotations.threshold",
    "devices.tips",
    "devices.measures",
)
_NOT_SURVEYED: Final = (
    "anatomy",
    "findings.annotations",
    "devices.annotations",
    "findings.evidence",
    "report.sentences.states",
)


def survey_of(studies: Studies, linked: Neighbours, options: TrekOptions) -> Survey:
    """The survey of a set, or of an even sample of a large one."""
    places: Iterable[int] = linked.chosen.tolist()
    number = len(linked.chosen)
    if number > _SURVEYED:
        starts = np.linspace(0, number - _BLOCK, _SURVEYED // _BLOCK).astype(int)
        places = sorted({int(linked.chosen[start + step]) for start in starts for step in range(_BLOCK)})
    read = studies.without(*_NOT_SURVEYED).at(places)
    return survey(
        (with_report_truth(study) for study in read if study.images),
        language(options.language),
        choices=options.quotas.choices,
        most_images=options.most_images,
    )


@dataclass(frozen=True)
class Job:
    """What all parts share."""

    studies: str
    out: str
    fingerprint: str
    survey: Survey
    options: TrekOptions
    on_error: OnError = "skip"


@dataclass(frozen=True)
class Task:
    """One part: places of its studies in the set, and of their neighbours in time."""

    job: Job
    index: int
    places: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]


def tasks(job: Job, linked: Neighbours) -> Iterator[Task]:
    """All parts of a benchmark."""
    size = job.options.part_size
    for index, start in enumerate(range(0, len(linked.chosen), size)):
        places = linked.chosen[start : start + size]
        yield Task(
            job,
            index,
            tuple(places.tolist()),
            tuple(linked.before[places].tolist()),
            tuple(linked.after[places].tolist()),
        )


def write(task: Task) -> PartInfo:
    """Make a part and write it, unless an earlier call has."""
    job = task.job
    directory = Path(job.out)
    there = finished_part(directory, task.index, fingerprint=job.fingerprint)
    if there is not None:
        return there
    # A part is thousands of small records without cycles: looking for cycles would take a third of the time.
    gc.disable()
    try:
        return write_part(directory, task.index, list(cases_of(task)), fingerprint=job.fingerprint)
    finally:
        gc.enable()


def cases_of(task: Task) -> Iterator[Case]:
    """The conversations of a part; a study that can't have one is left out."""
    job = task.job
    words = language(job.options.language)
    subjects: dict[int, Subject] = {}
    for place, stored, drawn in read_studies(task):
        try:
            study = with_report_truth(stored)
            if unfit(study) is None:
                subjects[place] = subject_of(
                    study,
                    words,
                    known=job.survey.by_source.get(study.source, ()),
                    most_images=job.options.most_images,
                    structures=drawn,
                )
        except _CONTRADICTION as error:
            _tell(stored.id, error, job.on_error)
    for place, before, after in zip(task.places, task.before, task.after, strict=True):
        subject = subjects.get(place)
        if subject is None:
            continue
        try:
            case = conversation(
                subject,
                subjects.get(before),
                subjects.get(after),
                survey=job.survey,
                words=words,
                options=job.options,
            )
        except _CONTRADICTION as error:
            _tell(subject.study.id, error, job.on_error)
        else:
            yield case


def _tell(study: str, error: Exception, on_error: OnError) -> None:
    """What a study's records make impossible leaves out that study, or ends the build with its name."""
    if on_error == "stop":
        raise CarinaError(f"study {study}: {BROKEN}: {error}") from error


def read_studies(task: Task) -> Iterator[tuple[int, Study, Structures]]:
    """The studies of a part and their neighbours, by place; their anatomy apart."""
    wanted = sorted({place for row in (task.places, task.before, task.after) for place in row if place >= 0})
    studies = _opened(task.job.studies)
    drawn = structures(studies.columns_at(wanted, "anatomy").column("anatomy"))
    return zip(wanted, studies.without("anatomy").at(wanted), drawn, strict=True)


def unfit(study: Study) -> str | None:
    """Why there can be no conversation about a study, with what its report states; None where there can."""
    if not study.images:
        return "no image"
    return None if study.findings or study.devices else "no finding is stated, present or absent"


@lru_cache(maxsize=1)
def _opened(directory: str) -> Studies:
    """Each process opens the set once; the command that began the work has verified it."""
    return open_studies(directory, verify=False).without(*_NOT_NEEDED)
