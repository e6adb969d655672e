"""Writing a study set so that work can be shared, interrupted and taken up again.

A set is claimed, its parts are written in any order by any process, and the manifest closes it. Until then
there is nothing to open: a reader never mistakes half a set for a whole one.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Final

import carina
from carina.errors import StudySetError
from carina.files import write_bytes
from carina.studies.manifest import (
    FILE,
    UNFINISHED,
    Counts,
    Manifest,
    PartInfo,
    Provenance,
    read_manifest,
    save_manifest,
)
from carina.studies.model import Study
from carina.studies.parts import PartReader, part_files, write_part
from carina.studies.schema import SCHEMA_VERSION

PART_SIZE: Final = 1024
"""Studies a part, where the caller does not say: tens of megabytes, so one fits in memory many times over."""

_WAY_OUT: Final = "choose another directory, remove this one, or replace it"
_COUNTED: Final = (
    "id",
    "patient",
    "images.list.element.key",
    "findings.list.element.name",
    "findings.list.element.certainty",
)


def claim(directory: Path, provenance: Provenance, *, replace: bool = False) -> None:
    """Make `directory` ready for a set; call it before the first part is written.

    Parts of an interrupted call stay, for `finished_part` to find. A set made in another way, complete or begun,
    is refused, or given up with `replace=True`.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise StudySetError(f"{directory}: is a file, expected a directory for the study set") from None
    manifest, unfinished = directory / FILE, directory / UNFINISHED
    if replace:
        manifest.unlink(missing_ok=True)
        unfinished.unlink(missing_ok=True)
    if manifest.exists():
        there = read_manifest(directory)
        if there.fingerprint != provenance.fingerprint:
            raise StudySetError(
                f"{directory}: already holds {there.counts.studies} studies made in another way "
                f"(`{there.command}`; {_difference(there, provenance)}): {_WAY_OUT}"
            )
    elif unfinished.exists() and unfinished.read_bytes() != provenance.fingerprint.encode():
        raise StudySetError(
            f"{directory}: holds the beginning of a set made in another way: finish it with the command that began "
            f"it, {_WAY_OUT}"
        )
    else:
        write_bytes(unfinished, provenance.fingerprint.encode())


def _difference(there: Manifest, wanted: Provenance) -> str:
    """What decides the bytes and is not the same, in words."""
    pairs = {"seed": (there.seed, wanted.seed), "image root": (there.image_root, wanted.image_root)}
    for name in sorted({*there.options, *wanted.options}):
        pairs[name] = (there.options.get(name), wanted.options.get(name))
    differing = [f"{name} {theirs}, not {ours}" for name, (theirs, ours) in pairs.items() if theirs != ours]
    return "; ".join(differing) or f"Carina {there.carina}"


def write_manifest(directory: Path, provenance: Provenance, parts: Sequence[PartInfo]) -> Manifest:
    """Close a set: count what its parts hold, remove parts that do not belong to it, write the manifest.

    Studies are streamed; of each only its id and patient are remembered, to find duplicates.
    """
    counts = _count(directory, parts)
    listed = {part.file for part in parts}
    for stale in part_files(directory):
        if stale not in listed:
            (directory / stale).unlink()
    for leftover in (directory / "studies").glob(".part-*.tmp"):
        leftover.unlink()
    manifest = Manifest(
        carina=carina.__version__,
        command=provenance.command,
        seed=provenance.seed,
        options=provenance.options,
        sources=tuple(sorted(provenance.sources, key=lambda source: source.name)),
        image_root=provenance.image_root,
        fingerprint=provenance.fingerprint,
        counts=counts,
        parts=tuple(parts),
    )
    save_manifest(directory, manifest)
    (directory / UNFINISHED).unlink(missing_ok=True)
    return manifest


def write_studies(
    directory: Path,
    studies: Iterable[Study],
    provenance: Provenance,
    *,
    part_size: int = PART_SIZE,
    replace: bool = False,
) -> Manifest:
    """Write a whole set from one stream, with at most one part in memory.

    A complete set that lies there is given up only with `replace=True`: nobody can tell whether the stream still
    holds what was written before.
    """
    claim(directory, provenance, replace=replace)
    if (directory / FILE).exists():
        there = read_manifest(directory)
        raise StudySetError(f"{directory}: already holds {there.counts.studies} studies: {_WAY_OUT}")
    stream = iter(studies)
    parts: list[PartInfo] = []
    for index in count():
        chunk = list(islice(stream, part_size))
        if not chunk:
            break
        parts.append(write_part(directory, index, chunk, fingerprint=provenance.fingerprint))
    return write_manifest(directory, provenance, parts)


def _count(directory: Path, parts: Sequence[PartInfo]) -> Counts:
    places: dict[str, tuple[str, int]] = {}
    patients: set[str] = set()
    images = 0
    findings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for part in parts:
        # The sums were just taken by whoever wrote the part.
        reader = PartReader(directory, part, minor=SCHEMA_VERSION[1], verify=False)
        for row, values in reader.rows(_COUNTED):
            if values["id"] in places:
                file, earlier = places[values["id"]]
                raise StudySetError(
                    f"{reader.place(row, values['id'])}: the id is already taken by row {earlier} of {file}"
                )
            places[values["id"]] = (part.file, row)
            patients.add(values["patient"])
            images += len(values["images"])
            for finding in values["findings"]:
                findings[finding["name"]][finding["certainty"]] += 1
    return Counts(
        studies=len(places),
        patients=len(patients),
        images=images,
        findings={name: dict(sorted(by.items())) for name, by in sorted(findings.items())},
    )
