"""Sets of records on disk: a manifest and Parquet parts, written so that nothing is ever half there.

One way for study sets, benchmarks and localisation maps; a `Kind` says what is stored. Users meet it through
`carina.studies` and `carina.cases`. Names are imported when they are first used, so that `carina.store.errors` and the
other small modules do not load pyarrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from carina.store.columns import Row, tally
    from carina.store.distinct import Distinct
    from carina.store.filters import Choice, Column
    from carina.store.kind import Kind, R
    from carina.store.layout import LAYOUTS, Layout, declare_layout, what_is
    from carina.store.manifest import M, Manifest, PartInfo, Provenance, SourceInfo
    from carina.store.view import OpenSet, Problem, View
    from carina.store.writing import PART_SIZE, SetBuild, Writer

_MODULES: Final = {
    "columns": ("Row", "tally"),
    "distinct": ("Distinct",),
    "filters": ("Choice", "Column"),
    "kind": ("Kind", "R"),
    "layout": ("LAYOUTS", "Layout", "declare_layout", "what_is"),
    "manifest": ("M", "Manifest", "PartInfo", "Provenance", "SourceInfo"),
    "view": ("OpenSet", "Problem", "View"),
    "writing": ("PART_SIZE", "SetBuild", "Writer"),
}
_MODULE_OF: Final = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "LAYOUTS",
    "PART_SIZE",
    "Choice",
    "Column",
    "Distinct",
    "Kind",
    "Layout",
    "M",
    "Manifest",
    "OpenSet",
    "PartInfo",
    "Problem",
    "Provenance",
    "R",
    "Row",
    "SetBuild",
    "SourceInfo",
    "View",
    "Writer",
    "declare_layout",
    "tally",
    "what_is",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the module holds
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
