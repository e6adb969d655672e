"""One part of a benchmark: some studies, read with their neighbours in time, and the conversations about them.

A pure function of the studies, the survey and the options, so that a part can be made anywhere.
"""

import gc
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

import numpy as np

from carina.cases import Case, complete_part
from carina.cases.building import open_in_worker
from carina.reports.combine import CombinedStudy, combine_with_report
from carina.store import PartInfo
from carina.store.errors import CarinaError
from carina.store.workers import Pool
from carina.studies import Studies, Study
from carina.studies.faults import image_faults
from carina.trek.conversation import make_conversation
from carina.trek.facts import FOR_BALANCE, NotAskedFact, TrekCaseFacts
from carina.trek.language import Language, load_language
from carina.trek.neighbours import NONE, Neighbours
from carina.trek.options import TrekOptions
from carina.trek.structures import Structures, read_structures
from carina.trek.subject import Subject, subject_of
from carina.trek.survey import Survey, SurveyCounts, count_studies, survey_from_counts

OnError = Literal["skip", "stop"]
BROKEN: Final = "its records contradict each other"
NOTHING_KNOWN: Final = "no question about it has a known answer"
_CONTRADICTION_ERRORS: Final = (LookupError, ValueError, TypeError, CarinaError)
_MOST_SURVEYED: Final = 4096
_BLOCK: Final = 64
"""Studies of a large set that are surveyed at most, in blocks of neighbouring studies."""
_COUNTED_AT_ONCE: Final = 512
"""Studies that a worker counts in one task."""
_NOT_NEEDED: Final = (
    "later",
    "images.spacing_mm",
    "images.quality.rotation_degrees",
    "images.quality.posterior_ribs",
    "findings.location.parts",
    "findings.annotations.conspicuity",
    "findings.annotations.threshold",
    "findings.comparisons",
    "findings.points",
    "devices.side",
    "devices.tips",
    "devices.measures",
    "devices.annotations.conspicuity",
    "devices.annotations.threshold",
    "devices.comparisons",
    "devices.points",
)
_NOT_SURVEYED: Final = (
    "indication",
    "images.quality",
    "images.spacing_mm",
    "images.sha256",
    "findings.measures",
    "findings.annotations",
    "findings.comparisons",
    "findings.points",
    "findings.evidence",
    "devices.measures",
    "devices.tips",
    "devices.annotations",
    "devices.comparisons",
    "devices.points",
    "devices.evidence",
    "anatomy",
    "relations",
    "recommendations",
)


def combine_for(study: Study, options: TrekOptions) -> CombinedStudy:
    """A study with what its report states, and what contradicts what."""
    return combine_with_report(study, on_conflict=options.on_conflict, trust=options.trust)


def survey_set(
    studies: Studies, linked: Neighbours, options: TrekOptions, pool: Pool | None = None
) -> Survey:
    """The survey of a set, or of an even sample of a large set; counted by the workers where there are several."""
    places: list[int] = linked.chosen.tolist()
    number = len(places)
    if number > _MOST_SURVEYED:
        starts = np.linspace(0, number - _BLOCK, _MOST_SURVEYED // _BLOCK).astype(int)
        places = sorted({places[start + step] for start in starts for step in range(_BLOCK)})
    samples = (
        Sample(str(studies.directory.resolve()), tuple(places[first : first + _COUNTED_AT_ONCE]), options)
        for first in range(0, len(places), _COUNTED_AT_ONCE)
    )
    counts = map(count_sample, samples) if pool is None else pool.in_order(count_sample, samples)
    return survey_from_counts(counts, choices=options.quotas.choices, uncertain=options.quotas.uncertain)


@dataclass(frozen=True)
class Sample:
    """Studies of a set to be counted together, by place."""

    studies: str
    places: tuple[int, ...]
    options: TrekOptions


def count_sample(sample: Sample) -> SurveyCounts:
    """The counts that the survey needs, for the studies of a sample."""
    read = open_in_worker(sample.studies, *_NOT_NEEDED).without(*_NOT_SURVEYED).at(sample.places)
    with _pause_garbage_collection():
        return count_studies(
            (combine_for(study, sample.options).study for study in read if study.images),
            load_language(sample.options.language),
            most_images=sample.options.most_images,
        )


@dataclass(frozen=True)
class Job:
    """What all parts of a benchmark have in common."""

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


def part_tasks(job: Job, linked: Neighbours) -> Iterator[Task]:
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


def write_conversations(task: Task) -> PartInfo:
    """Make a part and write it, unless an earlier call has written it."""
    job = task.job
    with _pause_garbage_collection():
        return complete_part(Path(job.out), task.index, lambda: make_cases(task), fingerprint=job.fingerprint)


def make_cases(task: Task) -> Iterator[Case]:
    """The conversations of a part; studies that cannot have one are skipped."""
    return (case for case in _make_every_case(task) if case.steps)


def _make_every_case(task: Task) -> Iterator[Case]:
    """The conversations of a part, also those without a question, which say what was not asked.

    Each conversation is made as soon as its studies are read, and a study is released after the last conversation that
    needs it: this keeps memory small and recent records in the cache of the processor.
    """
    job = task.job
    words = load_language(job.options.language)
    due = list(zip(task.places, task.before, task.after, strict=True))
    last_needed = {place: due_to[0] for due_to in due for place in due_to}
    subjects: dict[int, Subject | None] = {NONE: None}
    read = _read_subjects(task, words)
    for place, before, after in due:
        while not (place in subjects and before in subjects and after in subjects):
            subjects.update([next(read)])
        subject = subjects[place]
        if subject is not None:
            try:
                case = make_conversation(
                    subject,
                    subjects[before],
                    subjects[after],
                    survey=job.survey,
                    words=words,
                    options=job.options,
                )
            except _CONTRADICTION_ERRORS as error:
                _skip_or_stop(subject.study.id, error, job.on_error)
            else:
                yield case
        for needed in (place, before, after):
            if needed != NONE and last_needed[needed] == place:
                del subjects[needed]


def _read_subjects(task: Task, words: Language) -> Iterator[tuple[int, Subject | None]]:
    """The subjects of a part by place; None for a study that cannot be asked about."""
    job = task.job
    for place, stored, drawn in read_part_studies(task):
        subject = None
        try:
            combined = combine_for(stored, job.options)
            study = combined.study
            if reason_to_skip(study) is None:
                subject = subject_of(
                    study,
                    words,
                    known=job.survey.by_source.get(study.source, ()),
                    most_images=job.options.most_images,
                    structures=drawn,
                    is_report_overruled=combined.is_report_overruled,
                )
        except _CONTRADICTION_ERRORS as error:
            _skip_or_stop(stored.id, error, job.on_error)
        yield place, subject


def _skip_or_stop(study: str, error: Exception, on_error: OnError) -> None:
    """Skip a study whose records contradict each other, or raise an error that names it."""
    if on_error == "stop":
        raise CarinaError(f"study {study}: {BROKEN}: {error}") from error


def read_part_studies(task: Task) -> Iterator[tuple[int, Study, Structures]]:
    """The studies of a part by place, with their anatomy: neighbours from other parts first, then its own in order."""
    own = set(task.places)
    apart = {place for place in (*task.before, *task.after) if place != NONE and place not in own}
    studies = open_in_worker(task.job.studies, *_NOT_NEEDED)
    for places in (sorted(apart), task.places):
        drawn = (
            each
            for batch in studies.batches_at(places, "anatomy")
            for each in read_structures(batch.column(0))
        )
        yield from zip(places, studies.without("anatomy").at(places), drawn, strict=True)


def reason_to_skip(study: Study) -> str | None:
    """Why there can be no conversation about a study (with the findings of its report); None where there can be one."""
    if not study.images:
        return "no image"
    if any(fault for image in study.images for fault in image_faults(image)):
        return "unsound image"
    assessed = study.assessed
    if study.findings or study.devices or (assessed.findings, assessed.devices) != ("unknown", "unknown"):
        return None
    return "no finding is stated, present or absent"


@dataclass(frozen=True)
class NoConversation:
    """Why a study that can be asked about has no conversation."""

    reason: str
    not_asked: tuple[NotAskedFact, ...] = ()
    """Questions that its conversation would have left out."""


def explain_without_case(task: Task) -> NoConversation:
    """Why the study of a task with one study, which can be asked about, has no conversation."""
    try:
        cases = list(_make_every_case(replace(task, job=replace(task.job, on_error="stop"))))
    except CarinaError:
        return NoConversation(BROKEN)
    not_asked = tuple(fact for case in cases for fact in TrekCaseFacts.of(case).not_asked)
    counts: Counter[str] = Counter()
    for fact in not_asked:
        counts[fact.reason] += int(fact.number)
    if not counts:
        return NoConversation(NOTHING_KNOWN)
    # What was left out for balance had a known answer: that there is no question is due to the balance.
    reason = FOR_BALANCE if FOR_BALANCE in counts else counts.most_common(1)[0][0]
    return NoConversation(f"no question is left: {reason}", not_asked)


@contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Pause garbage collection: there are many small records without cycles, and a search takes a third of the time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
