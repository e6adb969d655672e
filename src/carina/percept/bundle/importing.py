"""From a published bundle to a benchmark on disk."""

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final, Literal

from carina.cases import Case, Manifest, Provenance, write_benchmark
from carina.errors import ImageError
from carina.files import sha256, write_bytes
from carina.percept.bundle import layout
from carina.percept.bundle.faults import BundleError
from carina.percept.bundle.patients import read_patients
from carina.percept.bundle.reading import Skipped, Survey, read_bundle, survey
from carina.percept.bundle.source import SOURCE

IMAGES: Final = "images"
"""Folder of copied pictures in the benchmark."""
SKIPPED: Final = "skipped.csv"


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """How a bundle is read."""

    patients: Path | None = None
    """Table of patients; without it, cases are of nobody known."""
    limit: int | None = None
    """So many cases at most."""
    on_error: Literal["skip", "stop"] = "skip"
    copy_images: bool = False


@dataclass(kw_only=True)
class Imported:
    """What came of it."""

    records: int
    """Those in the file."""
    manifest: Manifest | None = None
    """None where no record could be used."""
    cells: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Cases by lesion and path."""
    without_patient: int = 0
    skipped: list[Skipped] = field(default_factory=list)


def import_bundle(
    bundle: Path,
    out: Path,
    options: ImportOptions,
    *,
    found: Survey | None = None,
    workers: int = 1,
    progress: Callable[[int], None] = lambda _done: None,
) -> Imported:
    """Write the benchmark of a bundle to `out`; nothing is written where no record can be used.

    `found` is the survey of the bundle, where it was made before.
    With `on_error="stop"` the first record that is wrong raises `BundleError`.
    """
    if out.resolve().is_relative_to(bundle.resolve()):
        raise BundleError(f"{out}: lies in the bundle itself, which is not changed; name another directory")
    found = found or survey(bundle)
    result = Imported(records=found.records)
    cases = _cases(bundle, found, options, result, workers=workers, progress=progress)
    first = next(cases, None)
    if first is None:
        return result
    provenance = _provenance(bundle, out, options)
    stream: Iterator[Case] = chain([first], cases)
    if options.copy_images:
        stream = _copied(stream, bundle, out / IMAGES)
    result.manifest = write_benchmark(out, stream, provenance)
    write_bytes(out / SKIPPED, _table(result.skipped))
    return result


def _cases(
    bundle: Path,
    found: Survey,
    options: ImportOptions,
    result: Imported,
    *,
    workers: int,
    progress: Callable[[int], None],
) -> Iterator[Case]:
    """The cases that can be used, counted as they pass."""
    patients = read_patients(options.patients) if options.patients else None
    left = options.limit
    for item in read_bundle(bundle, found, patients=patients, workers=workers):
        progress(1)
        if isinstance(item, Skipped):
            if options.on_error == "stop":
                raise BundleError(item.message)
            result.skipped.append(item)
            continue
        result.cells[item.target or "", item.path or ""] += 1
        result.without_patient += item.patient is None
        yield item
        if left is not None:
            left -= 1
            if left == 0:
                return


def _copied(cases: Iterator[Case], bundle: Path, images: Path) -> Iterator[Case]:
    """The same cases; their pictures lie below `images` by the time each is handed on."""
    for case in cases:
        for image in case.images:
            target = images / image.key
            if not (target.is_file() and sha256(target) == image.sha256):
                write_bytes(target, (bundle / image.key).read_bytes())
                if sha256(target) != image.sha256:
                    raise ImageError(f"{bundle / image.key}: changed while it was read")
        yield case


def _provenance(bundle: Path, out: Path, options: ImportOptions) -> Provenance:
    # Relative, so that a folder that holds both can be moved.
    root = (
        IMAGES if options.copy_images else Path(os.path.relpath(bundle.resolve(), out.resolve())).as_posix()
    )
    keys = bundle / layout.KEYS
    return Provenance(
        command=f"carina import {layout.NAME}",
        options={
            "records": sha256(bundle / layout.RECORDS),
            "keys": sha256(keys) if keys.is_file() else None,
            "patients": sha256(options.patients) if options.patients else None,
            "limit": options.limit,
        },
        sources=(SOURCE.info(),),
        image_root=root,
    )


def _table(skipped: list[Skipped]) -> bytes:
    """As every builder writes it: study, target, stage, reason, detail."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("study", "target", "stage", "reason", "detail"))
    for item in skipped:
        writer.writerow((item.study, item.target, item.field.partition("[")[0], item.reason, item.message))
    return text.getvalue().encode("utf-8", "replace")
