"""Building a trek benchmark: a survey of the studies, then conversations part by part, anywhere.

A part is a pure function of the studies, the survey and the options, so parts are shared between processes or machines,
and an interrupted build goes on with the parts that are missing.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
import pyarrow.compute as pc

from carina.cases import Manifest, Provenance, finished_part, open_benchmark, write_manifest, write_part
from carina.cases.building import building, finished, provenance_of, write_report, write_skipped
from carina.store import PartInfo
from carina.studies import Studies
from carina.trek.language import language
from carina.trek.neighbours import Neighbours, neighbours
from carina.trek.options import TrekOptions
from carina.trek.paraphrase import ParaphraseCounts
from carina.trek.part import BROKEN, Job, OnError, cases_of, survey_of, tasks, unfit, write
from carina.trek.reports import with_report_truth
from carina.trek.served import answers, model_name, read_by_model, reworded
from carina.workers import Engine, Pool, pool

PROTOCOL_VERSION: Final = 2
"""Raised when the same studies, seed and options give other conversations."""


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
    read_by_model: dict[str, int] | None = None
    """Reports, and facts in them, by what became of them; where a model has read them."""
    reworded: dict[str, int] | None = None
    """Questions by what became of them in this call; where a model has reworded them."""


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
    reader = None if options.extractor == "rules" else model_name(options.extractor, "--extractor")
    rewriter = None if options.paraphrase is None else model_name(options.paraphrase, "--paraphrase")
    provenance = _provenance(studies, directory, options)
    with building(studies, directory, provenance):
        there = finished(directory, provenance.fingerprint, BuildReport)
        if there is not None:
            built = Built(*there)
            progress(built.report.conversations)
            return built
        by_model: dict[str, int] | None = None
        if reader is not None:
            studies, read = read_by_model(studies, directory, reader)
            by_model = {"by the model": read.by_model, **read.by_rules, **read.dropped}
        counts = ParaphraseCounts() if rewriter is not None else None
        with _pool(studies, options, workers=workers, engine=engine, address=address) as shared:
            # While they start, this process finds neighbours.
            shared.begin(write)
            linked = neighbours(studies, options.split)
            surveyed = survey_of(studies, linked, options, shared)
            job = Job(
                studies=str(studies.directory.resolve()),
                out=str(directory.resolve()),
                fingerprint=provenance.fingerprint,
                survey=surveyed,
                options=options,
                on_error=on_error,
            )
            parts = _parts(job, linked, rewriter, counts, shared)
            # Parts are counted as they come, while others are being made.
            manifest = write_manifest(directory, provenance, _each_told(parts, progress))
        report = _report(studies, directory, linked, manifest, surveyed.studies)
        if by_model is not None or counts is not None:
            report = msgspec.structs.replace(
                report,
                read_by_model=by_model,
                reworded=None if counts is None else {"reworded": counts.reworded, **counts.refused},
            )
        write_report(directory, report)
        return Built(manifest, report)


def _pool(
    studies: Studies, options: TrekOptions, *, workers: int, engine: Engine, address: str | None
) -> AbstractContextManager[Pool]:
    """Workers, as many as there are parts; one where a model rewords, which is asked from here."""
    if options.paraphrase is not None:
        return pool(workers=1)
    most = -(-len(studies) // options.part_size)
    return pool(workers=workers if engine == "ray" else min(workers, most), engine=engine, address=address)


def _each_told(parts: Iterable[PartInfo], progress: Callable[[int], object]) -> Iterator[PartInfo]:
    for part in parts:
        progress(part.rows)
        yield part


def _parts(
    job: Job, linked: Neighbours, rewriter: str | None, counts: ParaphraseCounts | None, shared: Pool
) -> Iterator[PartInfo]:
    """The parts in order: written where they are made, or here where a model rewords them on the way."""
    todo = tasks(job, linked)
    if rewriter is None or counts is None:
        yield from shared.in_order(write, todo, ahead=2)
        return
    directory = Path(job.out)
    with answers(directory) as cache:
        for task in todo:
            there = finished_part(directory, task.index, fingerprint=job.fingerprint)
            if there is None:
                cases = reworded(cases_of(task), rewriter, counts=counts, cache=cache, seed=job.options.seed)
                there = write_part(directory, task.index, list(cases), fingerprint=job.fingerprint)
            yield there


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
            "wording": language(options.language).wording.sha256,
        },
    )


# ---- report ---------------------------------------------------------------------------------------------------------


def _report(
    studies: Studies, directory: Path, linked: Neighbours, manifest: Manifest, surveyed: int
) -> BuildReport:
    """What was built, and why not more: found by comparing studies and cases, so that a resumption knows it too."""
    made = open_benchmark(directory, verify=False).columns("study", "reference_study", "later_study")
    missing: list[tuple[str, str]] = []
    undone = pc.invert(pc.is_in(studies.columns("id").column(0), made.column("study").combine_chunks()))
    absent = np.intersect1d(linked.chosen, pc.indices_nonzero(undone).to_numpy().astype(np.int64)).tolist()
    for study in studies.at(absent) if absent else ():
        missing.append((study.id, unfit(with_report_truth(study)) or BROKEN))
    report = BuildReport(
        studies=len(linked.chosen),
        conversations=manifest.counts.cases,
        questions=manifest.counts.steps,
        surveyed=surveyed,
        with_reference=made.num_rows - made.column("reference_study").null_count,
        with_later=made.num_rows - made.column("later_study").null_count,
        skipped=dict(sorted(Counter(reason for _, reason in missing).items())),
    )
    write_skipped(directory, ("study", "reason"), sorted(missing))
    return report
