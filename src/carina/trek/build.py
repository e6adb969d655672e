"""Build a trek benchmark: survey the studies, then make conversations part by part.

A part is a pure function of the studies, the survey and the options, so parts can be made by several processes or
machines, and an interrupted build resumes with the parts that are missing.
"""

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Final, get_args

import msgspec
import numpy as np
import pyarrow.compute as pc

from carina.cases import Benchmark, Manifest, Provenance, complete_part
from carina.cases.build_report import BuildReport
from carina.cases.building import (
    check_choice,
    count_conflicts,
    ensure_open,
    open_build,
    open_built,
    provenance_of,
    read_finished,
    write_conflicts,
    write_report,
    write_skipped,
)
from carina.cases.facts import stored_name
from carina.cases.store import CASES
from carina.reports.conflicts import Conflict
from carina.reports.trust import DEFAULT_TRUST, OnConflict, split_trust
from carina.store import OpenSet, PartInfo
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.errors import CarinaError
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, as_path
from carina.store.workers import Engine, Pool, pool
from carina.studies import Studies
from carina.studies.assessment import NOT_LOOKED_FOR
from carina.trek.build_report import TrekBuildReport
from carina.trek.facts import TrekCaseFacts
from carina.trek.language import load_language
from carina.trek.neighbours import Neighbours, find_neighbours
from carina.trek.options import PART_SIZE, BoxUnit, Quotas, TrekOptions
from carina.trek.paraphrase import ParaphraseCounts
from carina.trek.part import (
    Job,
    OnError,
    Task,
    combine_for,
    explain_without_case,
    make_cases,
    part_tasks,
    reason_to_skip,
    survey_set,
    write_conversations,
)
from carina.trek.served_models import (
    BuildModel,
    choose_model,
    extract_findings,
    open_answer_cache,
    reword_questions,
)
from carina.trek.turn import DEVICES_UNKNOWN, FINDINGS_UNKNOWN

PROTOCOL_VERSION: Final = 10
"""Raised when the same studies, seed and options give other conversations."""
_NOT_COMPARED: Final = ("images.quality", "anatomy", "relations", "recommendations")
"""Fields of a study in which no conflict is found."""
_NOT_ASKED: Final = stored_name(TrekCaseFacts, "not_asked")


@check_arguments
def build_trek(
    studies: Studies | Location,
    out: Location,
    *,
    seed: int = 0,
    split: str | None = None,
    shuffled: float = 0.0,
    frame: BoxUnit = "percent",
    most_images: int = 2,
    indication: float = 0.25,
    extractor: str = "rules",
    paraphrase: str | None = None,
    language: str = "en",
    on_conflict: OnConflict = "skip",
    trust: str = DEFAULT_TRUST,
    quotas: Quotas | None = None,
    part_size: int = PART_SIZE,
    accept_terms: bool = False,
    engine: Engine = "local",
    address: str | None = None,
    on_error: OnError = "skip",
    workers: PositiveInt | None = None,
    progress: Progress = no_progress,
) -> Benchmark:
    """Build a benchmark of conversations that follow a radiologist's reading in eight stages.

    The files depend only on the studies and the options, neither on the number of workers nor on the engine. An
    interrupted call resumes when it is repeated. On a Ray cluster, studies and benchmark must lie on a file system that
    all machines share. `Benchmark.build_report` says how many conversations there are, and why not more.

    Args:
        studies: Study set; each study gets the stages that its truth supports.
        out: Directory to write the benchmark to.
        seed: Seed for all random choices.
        split: Use only studies of this split: "train", "val" or "test".
        shuffled: Share of conversations whose questions are in random order, 0 to 1.
        frame: Units of boxes: "pixel", "percent" or "thousand" (0 to 1000).
        most_images: Largest number of images of a study to show.
        indication: Share of conversations that state why the patient was examined (the indication), 0 to 1.
        extractor: How findings are read where a study has only report text: "rules", or "model:NAME".
        paraphrase: Model that rewords questions, as "model:NAME"; a question whose answer might change keeps its
            wording.
        language: Language of the wording.
        on_conflict: Whether a finding is asked about ("ask") or not ("skip") where the report of the study contradicts
            what is recorded; `conflicts.csv` lists all conflicts.
        trust: What counts where it is asked about, the most trusted first, with commas between.
        quotas: How many questions of each kind are asked, on average, as a `carina.trek.Quotas`.
        part_size: Conversations in one part of the benchmark.
        accept_terms: Confirm that the terms of restricted sources allow sending their reports to the provider of the
            model that reads them or rewords questions.
        engine: Where the processes run: "local" (on this machine) or "ray" (on a Ray cluster).
        address: Address of a running Ray cluster, HOST:PORT, with engine "ray".
        on_error: "skip" or "stop" at a study whose records contradict each other.
        workers: Number of processes; None for one per core.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The benchmark, opened.

    Raises:
        CarinaError: An option is wrong, or the directory holds another benchmark.
        carina.cases.NoCasesError: No study can be asked about; `skipped.csv` gives the reasons.

    Example:
        >>> from carina.trek import build_trek
        >>> bench = build_trek("studies", "trek", split="test", workers=1)
        >>> bench.build_report.conversations
        10
    """
    options = TrekOptions(
        seed=seed,
        split=split,
        shuffled=shuffled,
        frame=frame,
        most_images=most_images,
        indication=indication,
        extractor=extractor,
        paraphrase=paraphrase,
        language=language,
        on_conflict=on_conflict,
        trust=split_trust(trust),
        quotas=quotas or Quotas(),
        part_size=part_size,
    )
    if address is not None and engine != "ray":
        raise CarinaError(f"address {address!r}: this is for a Ray cluster; choose the engine 'ray', too")
    check_choice("engine", engine, get_args(Engine))
    check_choice("on_error", on_error, get_args(OnError))
    directory = as_path(out)
    opened = ensure_open(studies)
    with progress("Conversations", opened.manifest.counts.studies) as advance:
        _build(
            opened,
            directory,
            options,
            workers=workers or os.cpu_count() or 1,
            engine=engine,
            address=address,
            on_error=on_error,
            accept_terms=accept_terms,
            progress=advance,
        )
    return open_built(directory, explain_remedy=_explain_remedy)


def _build(
    studies: Studies,
    directory: Path,
    options: TrekOptions,
    *,
    workers: int,
    engine: Engine,
    address: str | None,
    on_error: OnError,
    accept_terms: bool,
    progress: Callable[[int], object],
) -> None:
    reader, rewriter = (
        None if given in (None, "rules") else choose_model(given, option, studies, accept_terms=accept_terms)
        for given, option in ((options.extractor, "--extractor"), (options.paraphrase, "--paraphrase"))
    )
    provenance = _provenance(studies, directory, options)
    with open_build(studies, directory, provenance) as build:
        earlier = read_finished(build, TrekBuildReport)
        if earlier is not None:
            progress(earlier[1].conversations)
            return
        by_model: dict[str, int] | None = None
        if reader is not None:
            studies, read = extract_findings(studies, directory, reader)
            by_model = {"by the model": read.by_model, **read.by_rules, **read.dropped}
        counts = ParaphraseCounts() if rewriter is not None else None
        with _open_pool(studies, options, workers=workers, engine=engine, address=address) as shared:
            # While the workers start, this process finds neighbours in time.
            shared.begin(write_conversations)
            linked = find_neighbours(studies, options.split)
            surveyed = survey_set(studies, linked, options, shared)
            job = Job(
                studies=str(studies.directory.resolve()),
                out=str(directory.resolve()),
                fingerprint=provenance.fingerprint,
                survey=surveyed,
                options=options,
                on_error=on_error,
            )
            parts = _write_parts(job, linked, rewriter, counts, shared)

            def write_beside(manifest: Manifest) -> None:
                report = _write_skipped(studies, job, linked, manifest)
                if by_model is not None or counts is not None:
                    report = msgspec.structs.replace(
                        report,
                        read_by_model=by_model,
                        reworded=None if counts is None else {"reworded": counts.reworded, **counts.refused},
                    )
                write_report(directory, report)

            # Progress advances with each part, while others are being made.
            build.close(_count_progress(parts, progress), write_beside)


def _open_pool(
    studies: Studies, options: TrekOptions, *, workers: int, engine: Engine, address: str | None
) -> AbstractContextManager[Pool]:
    """Workers, at most one for each part; a single one where a model rewords, because this process calls the model."""
    if options.paraphrase is not None:
        return pool(workers=1)
    most = -(-len(studies) // options.part_size)
    return pool(workers=workers if engine == "ray" else min(workers, most), engine=engine, address=address)


def _count_progress(parts: Iterable[PartInfo], progress: Callable[[int], object]) -> Iterator[PartInfo]:
    for part in parts:
        progress(part.rows)
        yield part


def _write_parts(
    job: Job, linked: Neighbours, rewriter: BuildModel | None, counts: ParaphraseCounts | None, shared: Pool
) -> Iterator[PartInfo]:
    """Write the parts in order: by the workers, or by this process where a model rewords the questions."""
    todo = part_tasks(job, linked)
    if rewriter is None or counts is None:
        yield from shared.in_order(write_conversations, todo, ahead=2)
        return
    directory = Path(job.out)
    with open_answer_cache(directory) as cache:
        for task in todo:
            cases = reword_questions(
                make_cases(task), rewriter, counts=counts, cache=cache, seed=job.options.seed
            )
            yield complete_part(directory, task.index, partial(list, cases), fingerprint=job.fingerprint)


def _provenance(studies: Studies, directory: Path, options: TrekOptions) -> Provenance:
    return provenance_of(
        studies,
        directory,
        command=f"carina build trek {studies.directory.resolve().name} --seed {options.seed}",
        seed=options.seed,
        options={
            "protocol": "trek",
            "version": PROTOCOL_VERSION,
            **{name: value for name, value in asdict(options).items() if name != "seed"},
            "wording": load_language(options.language).wording.sha256,
        },
    )


# ---- report ---------------------------------------------------------------------------------------------------------


def _write_skipped(studies: Studies, job: Job, linked: Neighbours, manifest: Manifest) -> TrekBuildReport:
    """Write the list of skipped studies and return the report.

    Both are found by comparing studies with cases, so that a resumed build has the same ones.
    """
    directory = Path(job.out)
    cases = Benchmark(OpenSet(CASES, directory, verify=False, manifest=manifest))
    made = cases.columns("study", "reference_study", "later_study")
    missing: list[tuple[str, str]] = []
    undone = pc.invert(pc.is_in(studies.columns("id").column(0), made.column("study").combine_chunks()))
    absent = np.intersect1d(linked.chosen, pc.indices_nonzero(undone).to_numpy().astype(np.int64)).tolist()
    not_asked = _count_not_asked(cases)
    for place, study in zip(absent, studies.at(absent), strict=True) if absent else ():
        reason = reason_to_skip(combine_for(study, job.options).study)
        if reason is None:
            alone = Task(job, 0, (place,), (int(linked.before[place]),), (int(linked.after[place]),))
            without = explain_without_case(alone)
            reason = without.reason
            not_asked.update({(one.task, one.reason): int(one.number) for one in without.not_asked})
        missing.append((study.id, reason))
    conflicts = list(_find_conflicts(studies, linked, job.options))
    write_conflicts(directory, conflicts)
    report = TrekBuildReport(
        studies=len(linked.chosen),
        conflicts=count_conflicts(conflicts),
        conversations=manifest.counts.cases,
        questions=manifest.counts.steps,
        surveyed=job.survey.studies,
        with_reference=made.num_rows - made.column("reference_study").null_count,
        with_later=made.num_rows - made.column("later_study").null_count,
        skipped=dict(sorted(Counter(reason for _, reason in missing).items())),
        images_of_unknown_view=_count_images_not_shown(
            studies, linked, set(made.column("study").to_pylist())
        ),
        not_asked=_group_by_task(not_asked),
        priors_in_other_splits=linked.priors_in_other_splits,
    )
    write_skipped(directory, ("study", "reason"), sorted(missing))
    return report


def _count_images_not_shown(studies: Studies, linked: Neighbours, asked: Collection[str]) -> int:
    """Images of unknown view that the conversations about their studies do not show."""
    count = 0
    places = linked.chosen.tolist()
    for batch in studies.batches_at(places, "id", "images") if places else ():
        for study, images in zip(batch.column("id").to_pylist(), batch.column("images"), strict=True):
            views = [image["view"].as_py() for image in images]
            if study in asked:
                unknown = views.count("unknown")
                # Without any known view, the first image is shown.
                count += unknown - (unknown == len(views))
    return count


def _find_conflicts(studies: Studies, linked: Neighbours, options: TrekOptions) -> Iterator[Conflict]:
    """All conflicts of the studies that are asked about; found again, so that a resumed build has the same ones."""
    places = linked.chosen.tolist()
    for study in studies.without(*_NOT_COMPARED).at(places) if places else ():
        scopes = {study.assessed.findings, study.assessed.devices}
        # Where nothing is recorded, the report has nothing to contradict.
        if study.findings or study.devices or scopes != {"unknown"}:
            yield from combine_for(study, options).conflicts


def _count_not_asked(cases: Benchmark) -> Counter[tuple[str, str]]:
    """By task and reason, how many questions the conversations leave out."""
    counts: Counter[tuple[str, str]] = Counter()
    for part in cases.by_part():
        rows = pc.list_flatten(part.columns("facts").column("facts"))
        rows = pc.filter(rows, pc.equal(pc.struct_field(rows, "name"), _NOT_ASKED))
        for row in rows.to_pylist():
            counts[row["about"], row["text"]] += int(row["value"])
    return counts


def _group_by_task(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    by_task: dict[str, dict[str, int]] = {}
    for (task, reason), number in sorted(counts.items()):
        by_task.setdefault(task, {})[reason] = number
    return by_task


def _explain_remedy(report: BuildReport) -> str:
    """What to do where no study can be asked about, because nothing is known to be absent; "" for other reasons."""
    assert isinstance(report, TrekBuildReport)  # noqa: S101 - it was just written
    unknown = {NOT_LOOKED_FOR, FINDINGS_UNKNOWN, DEVICES_UNKNOWN}
    if not any(unknown & reasons.keys() for reasons in report.not_asked.values()):
        return ""
    return (
        "Little is known to be absent: state at import what was looked for, by --looked-for where the source has it, "
        "or add reports or labels of what is absent"
    )
