"""What building a benchmark from studies has in common, whatever the protocol."""

import csv
import io
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from carina.cases.store import Manifest, Provenance, claim, whole_set
from carina.errors import BenchmarkError, CarinaError
from carina.files import alone_in, write_bytes
from carina.studies import Studies

REPORT: Final = "build.json"
SKIPPED: Final = "skipped.csv"

Report = TypeVar("Report", bound=msgspec.Struct)


def provenance_of(
    studies: Studies, directory: Path, *, command: str, seed: int, options: Mapping[str, Any]
) -> Provenance:
    """How a benchmark is made of a study set: by a command, from these very studies."""
    manifest = studies.manifest
    return Provenance(
        command=command,
        seed=seed,
        options={**options, "studies": [part.sha256 for part in manifest.parts]},
        sources=manifest.sources,
        image_root=os.path.relpath((studies.directory / manifest.image_root).resolve(), directory.resolve()),
    )


@contextmanager
def building(studies: Studies, directory: Path, provenance: Provenance) -> Iterator[None]:
    """The directory, claimed for this benchmark and for this process alone."""
    if directory.resolve().is_relative_to(studies.directory.resolve()):
        raise CarinaError(f"{directory}: lies in the study set; choose a directory beside it")
    claim(directory, provenance)
    with alone_in(directory) as alone:
        if not alone:
            raise BenchmarkError(f"{directory}: another process is writing here")
        yield


def finished(directory: Path, fingerprint: str, kind: type[Report]) -> tuple[Manifest, Report] | None:
    """What an earlier call has finished, if nothing of it was damaged since; else it is built anew."""
    manifest = whole_set(directory, fingerprint=fingerprint)
    if manifest is None:
        return None
    try:
        return manifest, msgspec.json.decode((directory / REPORT).read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def write_report(directory: Path, report: msgspec.Struct) -> None:
    """`build.json`: how a benchmark came to hold what it holds."""
    write_bytes(directory / REPORT, msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")


def write_skipped(directory: Path, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    """`skipped.csv`: what was left out, and why."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    write_bytes(directory / SKIPPED, text.getvalue().encode())
