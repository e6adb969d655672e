"""Functions that the builders of all protocols share, and the report beside a benchmark."""

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeVar, overload

import msgspec

from carina.cases.benchmark import Benchmark, NoCasesError, open_benchmark
from carina.cases.build_report import BuildReport
from carina.cases.model import Case
from carina.cases.protocol import PROTOCOLS
from carina.cases.store import Manifest, Provenance, create_benchmark
from carina.reports.conflicts import Conflict
from carina.store import SetBuild
from carina.store.counts import format_count
from carina.store.documents import read_json
from carina.store.errors import BenchmarkError, CarinaError
from carina.store.files import write_bytes
from carina.store.results import Location, as_path
from carina.studies import Studies, open_studies

REPORT: Final = "build.json"
SKIPPED: Final = "skipped.csv"
CONFLICTS: Final = "conflicts.csv"
"""Findings about which the records of a study and its report contradict each other."""

ReportKind = TypeVar("ReportKind", bound=BuildReport)


def provenance_of(
    studies: Studies, directory: Path, *, command: str, seed: int, options: Mapping[str, Any]
) -> Provenance:
    """The provenance of a benchmark of these studies, which are identified by their checksums."""
    manifest = studies.manifest
    return Provenance(
        command=command,
        seed=seed,
        options={**options, "studies": [part.sha256 for part in manifest.parts]},
        sources=manifest.sources,
        image_root=os.path.relpath((studies.directory / manifest.image_root).resolve(), directory.resolve()),
    )


@contextmanager
def open_build(
    studies: Studies, directory: Path, provenance: Provenance, *, notes: Sequence[str] = ()
) -> Iterator[SetBuild[Case, Manifest]]:
    """Claim and lock a directory for a benchmark of these studies; `notes` are removed when it is complete."""
    if directory.resolve().is_relative_to(studies.directory.resolve()):
        raise CarinaError(f"{directory}: lies in the study set; choose a directory outside of it")
    with create_benchmark(directory, provenance, beside=(REPORT, SKIPPED, CONFLICTS), notes=notes) as build:
        yield build


def read_finished(
    build: SetBuild[Case, Manifest], kind: type[ReportKind]
) -> tuple[Manifest, ReportKind] | None:
    """Manifest and report of a benchmark that an earlier call finished, if nothing of it was damaged since."""
    manifest = build.finished()
    if manifest is None or not (build.directory / SKIPPED).is_file():
        return None
    try:
        return manifest, read_json(build.directory / REPORT, kind)
    except CarinaError:
        return None


@overload
def read_build_report(benchmark: Benchmark | Location) -> BuildReport: ...


@overload
def read_build_report(benchmark: Benchmark | Location, kind: type[ReportKind]) -> ReportKind: ...


def read_build_report(benchmark: Benchmark | Location, kind: type[BuildReport] | None = None) -> BuildReport:
    """The report that `carina build` wrote beside a benchmark.

    Args:
        benchmark: The benchmark, or its directory.
        kind: The record to expect; by default the one that the protocol of the benchmark declares.

    Returns:
        `PerceptBuildReport`, `TrekBuildReport` or `GroundBuildReport`.

    Raises:
        BenchmarkError: The benchmark was not built from studies, or its report is damaged.
    """
    opened = (
        benchmark if isinstance(benchmark, Benchmark) else open_benchmark(as_path(benchmark), verify=False)
    )
    file = opened.directory / REPORT
    protocol = str(opened.manifest.options.get("protocol", ""))
    if protocol not in PROTOCOLS or not file.is_file():
        raise BenchmarkError(f"{file}: there is no build report; only `carina build` writes one")
    return read_json(
        file,
        kind or PROTOCOLS[protocol].build_report,
        what="a build report, which the same `carina build` writes anew",
        error=BenchmarkError,
    )


def ensure_open(studies: Studies | Location) -> Studies:
    """The study set of the caller; opens it where the caller gave a path.

    A build does not refuse a set with unsound studies: it leaves them out, and lists them with the reason.

    Raises:
        CarinaError: It is limited by conditions, which a build does not record.
    """
    path = as_path(studies)
    return studies if isinstance(studies, Studies) else open_studies(path)


def open_built(
    directory: Path,
    *,
    asked: str = "can be asked about",
    explain_remedy: Callable[[BuildReport], str] | None = None,
) -> Benchmark:
    """The benchmark that a build has just written.

    Args:
        directory: Where it was written.
        asked: What is true of no study where there is no case.
        explain_remedy: From the report to what can be done where there is no case, in a sentence; "" where nothing can.

    Raises:
        NoCasesError: It has no case.
    """
    bench = open_benchmark(directory, verify=False)
    if not bench.manifest.counts.cases:
        report = read_build_report(bench)
        studies = format_count(report.studies, "study", "studies")
        remedy = "" if explain_remedy is None else explain_remedy(report)
        raise NoCasesError(
            f"{directory}: none of {studies} {asked}; the reasons are in {SKIPPED} and {REPORT}"
            + (f". {remedy}" if remedy else ""),
            bench,
        )
    return bench


@lru_cache(maxsize=1)
def open_in_worker(directory: str, *dropped: str) -> Studies:
    """The study set without some fields, opened once in each process; the main process has verified it."""
    return open_studies(directory, verify=False).without(*dropped)


def check_choice(option: str, value: str | None, choices: Sequence[str]) -> None:
    """Check the value of an option; None stands for an option that is not given.

    Raises:
        CarinaError: The value is not one of the choices.
    """
    if value is not None and value not in choices:
        raise CarinaError(f"{option} {value!r}: expected one of {', '.join(choices)}")


def write_report(directory: Path, report: BuildReport) -> None:
    """Write `build.json`: how many cases were built, and why not more."""
    write_bytes(directory / REPORT, msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def write_skipped(directory: Path, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Write `skipped.csv`: the studies that were skipped, with the reasons."""
    _write_csv(directory / SKIPPED, columns, rows)


def write_conflicts(directory: Path, conflicts: Iterable[Conflict]) -> None:
    """Write `conflicts.csv`: what is recorded, what the report says instead, and the sentence that says so.

    The file is not written where there is no conflict.
    """
    rows = [
        (one.study, one.name, one.recorded, one.report, one.sentence)
        for one in sorted(conflicts, key=lambda one: (one.study, one.kind, one.name))
    ]
    if rows:
        _write_csv(directory / CONFLICTS, ("study", "finding", "recorded", "report", "sentence"), rows)
    else:
        (directory / CONFLICTS).unlink(missing_ok=True)


def count_conflicts(conflicts: Iterable[Conflict]) -> dict[str, dict[str, int]]:
    """By finding and by what contradicts what, the number of studies."""
    counts = Counter((one.name, one.summary) for one in conflicts)
    by_name: dict[str, dict[str, int]] = {}
    for (name, summary), number in sorted(counts.items()):
        by_name.setdefault(name, {})[summary] = number
    return by_name


def _write_csv(path: Path, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_bytes(path, text.getvalue().encode())
