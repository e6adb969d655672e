"""Carina: does a vision-language model see what a radiologist sees, step by step, and can it show where?

Every command of the command line is one function here, with the same defaults:

    import carina

    studies = carina.make_phantoms("studies", n=60, seed=2)
    bench = carina.build_percept(studies, "bench", per_cell=1)
    run = carina.run(bench, "builtin/reader", "runs/reader")
    carina.report([run], "report").open()

Functions take text, a path, or an object that another function returned. They return objects with `.path`,
`.to_frame()` (polars) and `.to_pandas()`, and raise `CarinaError` for everything that a user can cause. Everything is
imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from carina.version import __version__

if TYPE_CHECKING:
    from carina.cases import Benchmark, Case, check, open_benchmark
    from carina.explanations import MapRun, explain, open_map_run
    from carina.exports import export
    from carina.ground import build_ground
    from carina.maps import compare_profiles, convert_pickles, list_metrics, score_maps
    from carina.models.clip.convert import convert_checkpoint
    from carina.models.function import Message, batched
    from carina.pages import Pages, show
    from carina.pages.report import Report, open_report, report
    from carina.pages.run_audit import audit
    from carina.percept import build_percept
    from carina.phantom import make_phantoms
    from carina.runs import Run, RunSet, estimate, open_run, run, run_all, run_experiment, show_prompt
    from carina.sources import import_cases, import_studies, list_sources
    from carina.store.errors import CarinaError
    from carina.store.progress import progress_bar
    from carina.studies import Region, Studies, Study, open_studies
    from carina.studies.terms import Term, find_term, list_terms
    from carina.tour import demo
    from carina.trek import build_trek

_HOMES: Final = {
    "Benchmark": "cases",
    "CarinaError": "store.errors",
    "Case": "cases",
    "MapRun": "explanations",
    "Message": "models.function",
    "Pages": "pages",
    "Region": "studies",
    "Report": "pages.report",
    "Run": "runs",
    "RunSet": "runs",
    "Studies": "studies",
    "Study": "studies",
    "Term": "studies.terms",
    "audit": "pages.run_audit",
    "batched": "models.function",
    "build_ground": "ground",
    "build_percept": "percept",
    "build_trek": "trek",
    "check": "cases",
    "compare_profiles": "maps",
    "convert_checkpoint": "models.clip.convert",
    "convert_pickles": "maps",
    "demo": "tour",
    "estimate": "runs",
    "explain": "explanations",
    "export": "exports",
    "find_term": "studies.terms",
    "import_cases": "sources",
    "import_studies": "sources",
    "list_metrics": "maps",
    "list_sources": "sources",
    "list_terms": "studies.terms",
    "make_phantoms": "phantom",
    "open_benchmark": "cases",
    "open_map_run": "explanations",
    "open_report": "pages.report",
    "open_run": "runs",
    "open_studies": "studies",
    "progress_bar": "store.progress",
    "report": "pages.report",
    "run": "runs",
    "run_all": "runs",
    "run_experiment": "runs",
    "score_maps": "maps",
    "show": "pages",
    "show_prompt": "runs",
}
"""Where each public name is imported from, within the package."""

__all__ = [
    "Benchmark",
    "CarinaError",
    "Case",
    "MapRun",
    "Message",
    "Pages",
    "Region",
    "Report",
    "Run",
    "RunSet",
    "Studies",
    "Study",
    "Term",
    "__version__",
    "audit",
    "batched",
    "build_ground",
    "build_percept",
    "build_trek",
    "check",
    "compare_profiles",
    "convert_checkpoint",
    "convert_pickles",
    "demo",
    "estimate",
    "explain",
    "export",
    "find_term",
    "import_cases",
    "import_studies",
    "list_metrics",
    "list_sources",
    "list_terms",
    "make_phantoms",
    "open_benchmark",
    "open_map_run",
    "open_report",
    "open_run",
    "open_studies",
    "progress_bar",
    "report",
    "run",
    "run_all",
    "run_experiment",
    "score_maps",
    "show",
    "show_prompt",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - any public name
    if name in _HOMES:
        value = getattr(import_module(f"carina.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'carina' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
