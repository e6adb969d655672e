"""Benchmarks on disk: how the store keeps them, and the functions that write them."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, ClassVar, Final

import msgspec

from carina import store
from carina.cases.faults import faults
from carina.cases.layout import LAYOUT
from carina.cases.model import Case
from carina.store import Kind, Writer
from carina.store.errors import BenchmarkError

_VERSION: Final = (1, 1)
"""1.1: `CaseImage` has `rescale` and `window`."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a benchmark."""

    cases: int
    steps: int
    patients: int
    """Distinct patients, as far as the cases state them."""
    images: int
    """Distinct images."""
    protocols: dict[str, int]
    """Cases by protocol."""
    cells: dict[str, int]
    """Cases by target and path, which are reported together: "edema/RR"."""
    stages: dict[str, int]
    """Steps by stage."""
    tasks: dict[str, int]
    """Steps by task."""


class Manifest(store.Manifest, frozen=True, kw_only=True):
    """The manifest of a benchmark, `bench.json`."""

    counts: Counts


class Provenance(store.Provenance, frozen=True, kw_only=True):
    """What a benchmark is made from, as the command that writes it states."""

    stamp: ClassVar[str] = f"{LAYOUT.kind} {'.'.join(map(str, _VERSION))}"


def _count(batches: Iterable[Any]) -> Counts:
    patients, images = store.Distinct(), store.Distinct()
    protocols: Counter[str] = Counter()
    cells: Counter[str] = Counter()
    steps: Counter[tuple[Any, ...]] = Counter()
    for batch in batches:
        patients.add(batch.column("patient").drop_null().to_pylist())
        images.add(batch.column("images").flatten().field("key").to_pylist())
        for names, times in store.tally(batch.to_struct_array(), "protocol", "target", "path").items():
            protocols[names[0]] += times
            cells[_cell(*names)] += times
        steps += store.tally(batch.column("steps").flatten(), "stage", "task")
    stages: Counter[str] = Counter()
    tasks: Counter[str] = Counter()
    for (stage, task), times in steps.items():
        stages[str(stage)] += times
        tasks[task] += times
    return Counts(
        cases=protocols.total(),
        steps=steps.total(),
        patients=len(patients),
        images=len(images),
        protocols=dict(sorted(protocols.items())),
        cells=dict(sorted(cells.items())),
        stages=dict(sorted(stages.items())),
        tasks=dict(sorted(tasks.items())),
    )


def _cell(protocol: str, target: str | None, path: str | None) -> str:
    # Through a case, so that the definition of a cell stands in one place.
    case = Case(id="", study="", patient=None, source="", images=(), steps=(), protocol=protocol)
    return msgspec.structs.replace(case, target=target, path=path).cell


CASES: Final = Kind(
    layout=LAYOUT,
    noun="case",
    record=Case,
    version=_VERSION,
    error=BenchmarkError,
    manifest=Manifest,
    faults=faults,
    counted=(
        "id",
        "protocol",
        "patient",
        "target",
        "path",
        "images.list.element.key",
        "steps.list.element.stage",
        "steps.list.element.task",
    ),
    count=_count,
    row_group=512,  # a conversation holds some 4 KB; one is found by id in some 20 ms
    statistics=("id", "protocol", "study", "patient", "source", "split", "target", "path"),
    unrepeated=(".counts", ".question", ".key.text", "extra"),
)

_WRITER: Final = Writer(CASES)
# What each of them takes and does: `carina.store.Writer`.
create_benchmark = _WRITER.create
"""Claims and locks a directory for a benchmark that is written part by part."""
write_part = _WRITER.write_part
"""Writes one part, whole or not at all."""
write_table_part = _WRITER.write_table_part
"""Writes one part from an Arrow table, for rows by the million."""
finished_part = _WRITER.finished_part
"""A part that an earlier call finished, if it is whole."""
complete_part = _WRITER.complete_part
"""A part that an earlier call finished, else the part written now."""
write_benchmark = _WRITER.write
"""Writes a whole benchmark from one stream of cases."""
