"""From a file of conversations to a benchmark on disk, in the memory of a few records."""

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from carina.cases import Case, Manifest, Provenance, write_benchmark
from carina.files import sha256, write_bytes
from carina.trek.swift.case import Read, case_of
from carina.trek.swift.faults import REMEDIES, Defects, RecordError, SwiftError, told
from carina.trek.swift.scan import Raw, records
from carina.trek.swift.source import NAME, SOURCE
from carina.workers import in_order

SKIPPED: Final = "skipped.csv"
DEFECTS: Final = "defects.csv"
_ENDINGS: Final = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
_OURS: Final = "carina.json"
_BATCH: Final = 32
"""Records handed to a worker at a time."""


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """How conversations are read."""

    images: Path | None = None
    """Where image files lie; without it their sizes are unknown."""
    limit: int | None = None
    on_error: Literal["skip", "stop"] = "skip"


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """A record that cannot be used, and why."""

    file: str
    number: int
    field: str
    message: str
    """A sentence that names the file, the record and the field."""


@dataclass(kw_only=True)
class Imported:
    """What came of it."""

    records: int = 0
    cases: int = 0
    questions: int = 0
    without_patient: int = 0
    manifest: Manifest | None = None
    """None where no record could be used."""
    defects: Defects = field(default_factory=Defects)
    skipped: list[Skipped] = field(default_factory=list)
    stages: Counter[int] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)


def files_of(path: Path) -> list[Path]:
    """The file, or the files of a folder in order of name."""
    if not path.is_dir():
        if not path.exists():
            raise SwiftError(f"{path}: no such file")
        return [path]
    found = sorted(
        file
        for file in path.iterdir()
        if file.name.endswith(_ENDINGS) and file.name != _OURS and not file.name.startswith(".")
    )
    if not found:
        raise SwiftError(f"{path}: holds no file that ends with {', '.join(_ENDINGS)}")
    return found


def import_swift(
    path: Path,
    out: Path,
    options: ImportOptions,
    *,
    workers: int = 1,
    progress: Callable[[int], None] = lambda _bytes: None,
) -> Imported:
    """Write the benchmark of a file or folder of conversations to `out`; nothing where no record can be used.

    With `on_error="stop"` the first record that is wrong raises `SwiftError`. `progress` is told bytes of the files.
    """
    files = files_of(path)
    result = Imported()
    cases = _cases(files, options, result, workers=workers, progress=progress)
    first = next(cases, None)
    if first is None:
        if not result.records:
            raise SwiftError(f"{path}: holds no conversation")
        return result
    result.manifest = write_benchmark(out, chain([first], cases), _provenance(files, out, options))
    write_bytes(out / SKIPPED, _skipped_table(result.skipped))
    write_bytes(out / DEFECTS, _defects_table(result.defects))
    return result


def _cases(
    files: list[Path],
    options: ImportOptions,
    result: Imported,
    *,
    workers: int,
    progress: Callable[[int], None],
) -> Iterator[Case]:
    """The cases that can be used, counted as they pass."""
    seen: Counter[str] = Counter()
    root = options.images.resolve() if options.images is not None else None
    if root is not None and not root.is_dir():
        raise SwiftError(f"{options.images}: no such directory of images")
    for file in files:
        before = 0
        for batch in in_order(partial(_read, root), _batched(records(file)), workers=workers):
            for raw, read in batch:
                progress(raw.end - before)
                before = raw.end
                result.records += 1
                if isinstance(read, _Failure):
                    message = f"{file}: record {raw.number}: {read.sentence}"
                    if options.on_error == "stop":
                        raise SwiftError(message)
                    result.skipped.append(
                        Skipped(file=file.name, number=raw.number, field=read.field, message=message)
                    )
                    continue
                yield _counted(read, raw.number, seen, result)
                if result.cases == options.limit:
                    return


def _batched(raw: Iterable[Raw]) -> Iterator[list[Raw]]:
    stream = iter(raw)
    while batch := list(islice(stream, _BATCH)):
        yield batch


class _Failure(NamedTuple):
    field: str
    sentence: str


def _read(root: Path | None, batch: list[Raw]) -> list[tuple[Raw, Read | _Failure]]:
    found: list[tuple[Raw, Read | _Failure]] = []
    for raw in batch:
        bare = raw._replace(content=b"")
        try:
            found.append((bare, case_of(raw.content, images=root)))
        except RecordError as error:
            found.append((bare, _Failure(error.field, str(error))))
        except (ValueError, OverflowError, RecursionError) as error:
            # Such as a number of thousands of digits: one record, not the import.
            found.append((bare, _Failure("record", f"cannot be read: {str(error)[:200]}")))
    return found


def _counted(read: Read, number: int, seen: Counter[str], result: Imported) -> Case:
    case = read.case
    if case.id in seen:
        read.defects["second case of a study"] += 1
        while (name := f"{case.id}-{seen[case.id] + 1}") in seen:
            seen[case.id] += 1
        seen[case.id] += 1
        case = msgspec.structs.replace(case, id=name)
    seen[case.id] += 1
    result.cases += 1
    result.questions += len(case.steps)
    result.without_patient += case.patient is None
    result.defects.add(number, read.defects, read.unmapped)
    result.stages.update(step.stage for step in case.steps)
    result.formats.update(step.format for step in case.steps)
    return case


def _provenance(files: list[Path], out: Path, options: ImportOptions) -> Provenance:
    # Relative, so that a folder that holds both can be moved.
    root = "."
    if options.images is not None:
        root = Path(os.path.relpath(options.images.resolve(), out.resolve())).as_posix()
    return Provenance(
        command=f"carina import {NAME}",
        options={"files": {file.name: sha256(file) for file in files}, "limit": options.limit},
        sources=(SOURCE.info(),),
        image_root=root,
    )


def _skipped_table(skipped: list[Skipped]) -> bytes:
    """As every builder writes it: study, target, stage, reason, detail."""
    return _csv(
        ("study", "target", "stage", "reason", "detail"),
        (("", "", "", told(item.field), item.message) for item in skipped),
    )


def _defects_table(defects: Defects) -> bytes:
    rows = (
        (defect, str(tally.times), str(tally.records), str(tally.first), REMEDIES[defect])
        for defect, tally in defects
    )
    return _csv(("defect", "times", "records", "first record", "what was done"), rows)


def _csv(headings: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(rows)
    return text.getvalue().encode("utf-8", "replace")
