"""Study sets on disk: how the store keeps them, and the functions that write them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Final

import msgspec

from carina import store
from carina.store import Kind, SetBuild, Writer
from carina.store.errors import StudySetError
from carina.studies.faults import faults
from carina.studies.layout import LAYOUT
from carina.studies.model import Study

_VERSION: Final = (1, 6)
"""1.1: `Study.order` may be null; `Image` has `rescale` and `window`. 1.2: `Study.assessed`; `label` of findings and
devices; `automatic` of annotations and anatomy. 1.3: `instruction` of annotations; `drawn` of anatomy; `readers` and
`disputed` of `Assessed`; `stated_by` of findings. 1.4: `quality` of anatomy. 1.5: `comparisons` and `points` of
findings and devices; `is_excerpt` of reports. 1.6: `by_program` of `Assessed`."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a study set."""

    studies: int
    patients: int
    images: int
    findings: dict[str, dict[str, int]]
    """Finding records by name and certainty; a study with two nodules counts twice."""


class Manifest(store.Manifest, frozen=True, kw_only=True):
    """The manifest of a study set, `studies.json`."""

    counts: Counts


class Provenance(store.Provenance, frozen=True, kw_only=True):
    """What a study set is made from, as the command that writes it states."""

    stamp: ClassVar[str] = ".".join(map(str, _VERSION))


def _count(batches: Iterable[Any]) -> Counts:
    studies = images = 0
    patients = store.Distinct()
    findings: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for batch in batches:
        studies += batch.num_rows
        patients.add(batch.column("patient").to_pylist())
        images += len(batch.column("images").flatten())
        recorded = batch.column("findings").flatten()
        for (name, certainty), times in store.tally(recorded, "name", "certainty").items():
            findings[name][certainty] += times
    return Counts(
        studies=studies,
        patients=len(patients),
        images=images,
        findings={name: dict(sorted(by.items())) for name, by in sorted(findings.items())},
    )


STUDIES: Final = Kind(
    layout=LAYOUT,
    noun="study",
    record=Study,
    version=_VERSION,
    error=StudySetError,
    manifest=Manifest,
    faults=faults,
    counted=(
        "id",
        "patient",
        "images.list.element.key",
        "findings.list.element.name",
        "findings.list.element.certainty",
    ),
    count=_count,
    row_group=128,  # a study holds some 60 KB of regions; smaller groups take as long to decode
    row_group_bytes=8_000_000,
    statistics=("id", "patient", "source", "date", "split"),
    unrepeated=(".counts",),
)

_WRITER: Final = Writer(STUDIES)
# What each of them takes and does: `carina.store.Writer`.
write_part = _WRITER.write_part
"""Writes one part, whole or not at all."""
finished_part = _WRITER.finished_part
"""A part that an earlier call finished, if it is whole."""
complete_part = _WRITER.complete_part
"""A part that an earlier call finished, else the part written now."""
write_studies = _WRITER.write
"""Writes a whole study set from one stream of studies."""


def create_studies(
    directory: Path,
    provenance: Provenance,
    *,
    replace: bool = False,
    beside: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> AbstractContextManager[SetBuild[Study, Manifest]]:
    """Claim and lock a directory for a study set that is written part by part; see `carina.store.Writer.create`.

    Args:
        directory: Directory to write to.
        provenance: How the set is made.
        replace: Whether a set that is already there is replaced.
        beside: Names of files and folders that are written beside the parts.
        notes: Names of files and folders that are needed only until the set is complete.

    Returns:
        A context manager for the set, whose `close` writes the manifest.

    Raises:
        StudySetError: The directory holds something else.

    Example:
        >>> from carina import open_studies
        >>> with create_studies(Path("copy"), Provenance(command="copy", image_root="../studies")) as build:
        ...     part = build.write_part(0, open_studies("studies"))
        ...     build.close([part]).counts.studies
        40
    """
    return _WRITER.create(directory, provenance, replace=replace, beside=beside, notes=notes)
