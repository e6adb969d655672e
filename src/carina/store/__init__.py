"""Sets of records on disk: a manifest and Parquet parts, written so that nothing is ever half there.

One way for study sets and benchmarks; a `Kind` says what is stored. Users meet it through `carina.studies` and
`carina.cases`.
"""

from carina.store.columns import Row, tally
from carina.store.distinct import Distinct
from carina.store.filters import Choice, Column
from carina.store.kind import Kind, R
from carina.store.layout import BENCHMARK, MAPS, STUDIES, Layout, what_is
from carina.store.manifest import M, Manifest, PartInfo, Provenance, SourceInfo, read_manifest
from carina.store.view import OpenSet, View
from carina.store.writing import PART_SIZE, Writer

__all__ = [
    "BENCHMARK",
    "MAPS",
    "PART_SIZE",
    "STUDIES",
    "Choice",
    "Column",
    "Distinct",
    "Kind",
    "Layout",
    "M",
    "Manifest",
    "OpenSet",
    "PartInfo",
    "Provenance",
    "R",
    "Row",
    "SourceInfo",
    "View",
    "Writer",
    "read_manifest",
    "tally",
    "what_is",
]
