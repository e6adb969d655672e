"""What building a benchmark from studies has in common, whatever the protocol, and the report beside a benchmark."""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar, overload

import msgspec

from carina.cases.benchmark import Benchmark, open_benchmark
from carina.cases.build_report import BuildReport
from carina.cases.model import Case
from carina.cases.protocol import PROTOCOLS
from carina.cases.store import Manifest, Provenance, create_benchmark
from carina.store import SetBuild
from carina.store.errors import BenchmarkError, CarinaError
from carina.store.files import write_bytes
from carina.store.results import Location, as_path
from carina.studies import Studies, open_studies

REPORT: Final = "build.json"
SKIPPED: Final = "skipped.csv"

ReportKind = TypeVar("ReportKind", bound=BuildReport)


def provenance_of(
    studies: Studies, directory: Path, *, command: str, seed: int, options: Mapping[str, Any]
) -> Provenance:
    """What a benchmark of these studies is made from; the studies are identified by their checksums."""
    manifest = studies.manifest
    return Provenance(
        command=command,
        seed=seed,
        options={**options, "studies": [part.sha256 for part in manifest.parts]},
        sources=manifest.sources,
        image_root=os.path.relpath((studies.directory / manifest.image_root).resolve(), directory.resolve()),
    )


@contextmanager
def building(studies: Studies, directory: Path, provenance: Provenance) -> Iterator[SetBuild[Case, Manifest]]:
    """Claim and lock a directory for a benchmark of these studies."""
    if directory.resolve().is_relative_to(studies.directory.resolve()):
        raise CarinaError(f"{directory}: lies in the study set; choose a directory outside of it")
    with create_benchmark(directory, provenance) as build:
        yield build


def finished(build: SetBuild[Case, Manifest], kind: type[ReportKind]) -> tuple[Manifest, ReportKind] | None:
    """Manifest and report of a benchmark that an earlier call finished, if nothing of it was damaged since."""
    manifest = build.finished()
    if manifest is None:
        return None
    try:
        return manifest, msgspec.json.decode((build.directory / REPORT).read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.DecodeError):
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
    try:
        return msgspec.json.decode(file.read_bytes(), type=kind or PROTOCOLS[protocol].build_report)
    except msgspec.DecodeError as error:
        raise BenchmarkError(
            f"{file}: {error}. Run the same `carina build` again to write it anew"
        ) from error


def opened_studies(studies: Studies | Location) -> Studies:
    """The study set of a caller, opened if it is given by its path."""
    return studies if isinstance(studies, Studies) else open_studies(as_path(studies))


def write_report(directory: Path, report: BuildReport) -> None:
    """Write `build.json`, the report of how a benchmark was built."""
    write_bytes(directory / REPORT, msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def write_skipped(directory: Path, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """Write `skipped.csv`, the studies that were left out, with the reasons."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_bytes(directory / SKIPPED, text.getvalue().encode())
