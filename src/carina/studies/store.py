"""Study sets on disk: what the store must know of them, and the functions that write them."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, ClassVar, Final

import msgspec

from carina import store
from carina.errors import StudySetError
from carina.store import Kind, Writer
from carina.studies.faults import faults
from carina.studies.model import Study

_VERSION: Final = (1, 0)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How much a set holds."""

    studies: int
    patients: int
    images: int
    findings: dict[str, dict[str, int]]
    """Finding records by name and certainty; a study with two nodules counts twice."""


class Manifest(store.Manifest, frozen=True, kw_only=True):
    """`studies.json`, field by field."""

    counts: Counts


class Provenance(store.Provenance, frozen=True, kw_only=True):
    """What a set is made from, as told by the command that makes it."""

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
    layout=store.STUDIES,
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
    row_group=128,  # a study holds some 60 KB of regions; a group of a few takes as long to decode
    statistics=("id", "patient", "source", "date", "split"),
    unrepeated=(".counts",),
)

_WRITER: Final = Writer(STUDIES)
# What each of them takes and does: `carina.store.Writer`.
claim = _WRITER.claim
"""Makes a directory ready, before the first part is written."""
write_part = _WRITER.write_part
"""Writes one part, whole or not at all."""
finished_part = _WRITER.finished_part
"""A part that an earlier call finished, if it is whole."""
finished_set = _WRITER.finished_set
"""The manifest of a complete set, if there is one."""
write_manifest = _WRITER.write_manifest
"""Closes a set."""
write_studies = _WRITER.write
"""Writes a whole set from one stream."""
