"""The demo: every part of Carina on synthetic data, ending in one start page that links everything."""

import os
import webbrowser
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carina.cases import Benchmark, open_benchmark
from carina.cases.building import read_build_report
from carina.explanations.controls import CONTROLS
from carina.explanations.map_parts import MapOptions, make_maps
from carina.explanations.maps import open_maps
from carina.explanations.scoring import score_map_run
from carina.ground import build_ground
from carina.pages import Pages, write_case_pages, write_study_pages
from carina.pages.folder import write_folder_page
from carina.pages.output import lock_pages
from carina.pages.report import Report
from carina.pages.report import report as write_report
from carina.pages.start import Command
from carina.percept import build_percept
from carina.phantom import PhantomOptions, make_phantoms
from carina.runs import Policy
from carina.runs.builtin import NAMES
from carina.runs.evaluate import run_model
from carina.runs.options import RunOptions
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.progress import Advance, Progress, no_progress
from carina.store.results import Location, Result, as_path
from carina.store.workers import in_order
from carina.studies import Studies
from carina.trek import TrekBuildReport, build_trek

if TYPE_CHECKING:
    import polars as pl

STUDIES: Final = 200
SEED: Final = 251
"""With this seed all eleven findings are among the first 24 studies."""
STUDY_PAGES: Final = 24
CASE_PAGES: Final = 12
"""Pages of conversations and of probes; every percept case has a page."""
CASES_PER_CELL: Final = 2
CONVERSATIONS_PER_RUN: Final = 60
"""Conversations that each model is asked; of the other benchmarks it is asked every case."""
PROBES_PER_FINDING: Final = 5
"""Positive probes of each finding, and as many negative ones: the smallest number that is compared by finding."""
REPLICATES: Final = 300
"""Bootstrap replicates for the intervals of map scores."""
_ANCHORED: Final = "builtin/anchored"
_EXPLANATIONS: Final = (
    ("builtin/asymmetry", "asymmetry"),
    ("builtin/untrained", "similarity"),
    ("builtin/untrained", "occlusion"),
)
"""Models and methods that need no weights."""
_HARDEST_CONTROL: Final = ("mean-region",)
"""Control beside random weights: the one that is hardest to beat."""

START: Final = "index.html"


@dataclass(frozen=True, kw_only=True, repr=False)
class Demo(Result):
    """Everything that the demo wrote."""

    html: Path
    """The start page, which links everything else."""
    studies: Path
    percept: Path
    trek: Path
    ground: Path
    study_pages: Pages
    percept_pages: Pages
    trek_pages: Pages
    ground_pages: Pages
    runs: tuple[Path, ...]
    maps: tuple[Path, ...]
    report: Path
    map_report: Path | None
    counts: dict[str, int]
    """Numbers of studies, cases, conversations, probes and questions."""

    @property
    def path(self) -> Path:
        return self.html

    def open(self) -> None:
        """Open the start page in the web browser."""
        webbrowser.open(self.html.resolve().as_uri())

    def to_frame(self) -> "pl.DataFrame":
        """One row per data set, run and page: its kind and its path."""
        import polars as pl  # noqa: PLC0415 - slow to import

        rows = [
            ("start page", self.html),
            ("studies", self.studies),
            *(("benchmark", path) for path in (self.percept, self.trek, self.ground)),
            *(("run", path) for path in self.runs),
            *(("maps", path) for path in self.maps),
            ("report", self.report),
            *([("report", self.map_report)] if self.map_report else []),
        ]
        return pl.DataFrame([(kind, str(path)) for kind, path in rows], schema=["kind", "path"], orient="row")

    def _summary(self) -> dict[str, object]:
        return dict(self.counts)


@dataclass(frozen=True, kw_only=True)
class _Setup:
    """What every phase of the demo needs."""

    out: Path
    seed: int
    workers: int
    progress: Progress

    def with_title(self, phase: str) -> Progress:
        """The progress display with another title."""

        def display(title: str, total: int | None) -> AbstractContextManager[Advance]:
            del title
            return self.progress(phase, total)

        return display


@dataclass(frozen=True)
class _RunPlan:
    """One model on one benchmark."""

    benchmark: Path
    model: str
    out: Path
    options: RunOptions


@check_arguments
def demo(
    out: Location = "demo",
    *,
    studies: int = STUDIES,
    seed: int = SEED,
    size: int = PhantomOptions().size,
    per_cell: int = CASES_PER_CELL,
    workers: PositiveInt | None = None,
    progress: Progress = no_progress,
) -> Demo:
    """Try every part of Carina on synthetic data.

    Makes synthetic studies and three benchmarks from them, evaluates the built-in models, and writes pages that show
    everything. Needs no network, no GPU and no data. A second call keeps what the first one wrote.

    Args:
        out: Directory to write everything to.
        studies: Number of synthetic studies.
        seed: Seed for all random choices.
        size: Side of the square images, in pixels.
        per_cell: Percept cases per cell; a cell is one lesion on one path.
        workers: Number of processes; None for one per core.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The paths of everything. `path` is the start page.

    Raises:
        CarinaError: `out` holds something else.

    Example:
        >>> tour = demo("demo", studies=2, size=64, per_cell=1, workers=1)
        >>> tour.path.name
        'index.html'
    """
    target = as_path(out)
    setup = _Setup(out=target, seed=seed, workers=workers or os.cpu_count() or 1, progress=progress)
    with lock_pages(target, "the demo", [START]):
        made = _make_demo(setup, studies=studies, size=size, per_cell=per_cell)
    _write_start_page(made)
    return made


def _make_demo(setup: _Setup, *, studies: int, size: int, per_cell: int) -> Demo:
    target, seed, progress = setup.out, setup.seed, setup.progress
    opened = make_phantoms(
        target / "studies", n=studies, seed=seed, size=size, workers=setup.workers, progress=progress
    )
    study_pages = write_study_pages(
        opened,
        target / "pages",
        limit=STUDY_PAGES,
        title="Carina demo: studies",
        progress=setup.with_title("Pages of studies"),
    )
    counts = {"studies": studies, **_build_benchmarks(setup, opened, per_cell)}
    percept_pages, trek_pages, ground_pages = (
        _write_benchmark_pages(setup, name, limit)
        for name, limit in (
            ("percept", max(1, counts["cases"])),
            ("trek", CASE_PAGES),
            ("ground", CASE_PAGES),
        )
    )
    maps = _make_maps(setup)
    runs = _run_models(setup)
    report = _write_report(setup, [*runs, *maps])
    return Demo(
        html=target / START,
        studies=target / "studies",
        percept=target / "percept",
        trek=target / "trek",
        ground=target / "ground",
        study_pages=study_pages,
        percept_pages=percept_pages,
        trek_pages=trek_pages,
        ground_pages=ground_pages,
        runs=tuple(runs),
        maps=tuple(maps),
        report=report.pages[0],
        map_report=report.map_page,
        counts=counts,
    )


def _build_benchmarks(setup: _Setup, studies: Studies, per_cell: int) -> dict[str, int]:
    """Build the three benchmarks, and count their cases and questions."""
    out, seed, workers = setup.out, setup.seed, setup.workers
    percept = build_percept(
        studies,
        out / "percept",
        seed=seed,
        per_cell=per_cell,
        workers=workers,
        progress=setup.with_title("Percept: lesions"),
    )
    trek = build_trek(
        studies, out / "trek", seed=seed, workers=workers, progress=setup.with_title("Trek: conversations")
    )
    ground = build_ground(
        studies,
        out / "ground",
        seed=seed,
        per_target=PROBES_PER_FINDING,
        workers=workers,
        progress=setup.with_title("Ground: probes"),
    )
    cases, conversations = percept.manifest.counts, read_build_report(trek, TrekBuildReport)
    return {
        "cases": cases.cases,
        "case_questions": cases.steps,
        "conversations": conversations.conversations,
        "conversation_questions": conversations.questions,
        "probes": ground.manifest.counts.cases,
    }


def _write_benchmark_pages(setup: _Setup, name: str, limit: int) -> Pages:
    return write_case_pages(
        open_benchmark(setup.out / name),
        setup.out / "pages" / name,
        limit=limit,
        title=f"Carina demo: {name}",
        progress=setup.with_title(f"Pages of {name}"),
    )


def _make_maps(setup: _Setup) -> list[Path]:
    """Localisation maps of the models that need no weights, scored beside controls."""
    out, seed, workers = setup.out, setup.seed, setup.workers
    probes = open_benchmark(out / "ground")
    maps: list[Path] = []
    with setup.progress("Localisation maps", len(_EXPLANATIONS)) as advance:
        for model, method in _EXPLANATIONS:
            directory = out / "maps" / f"{_short_name(model)}-{method}"
            score = partial(
                _score_maps, probes, directory, controls=_HARDEST_CONTROL if maps else CONTROLS, setup=setup
            )
            options = MapOptions(method=method, seed=seed)
            make_maps(probes, model, directory, options, workers=workers, score=score)
            maps.append(directory)
            advance(1)
    return maps


def _score_maps(probes: Benchmark, directory: Path, *, controls: Sequence[str], setup: _Setup) -> None:
    score_map_run(
        probes,
        open_maps(directory),
        controls=controls,
        seed=setup.seed,
        replicates=REPLICATES,
        workers=setup.workers,
    )


def _run_models(setup: _Setup) -> list[Path]:
    """Runs of the built-in models on all three benchmarks."""
    out, seed = setup.out, setup.seed
    every, some = RunOptions(seed=seed), RunOptions(seed=seed, limit=CONVERSATIONS_PER_RUN)
    gold = replace(every, policy=Policy(history="gold"))
    blind = replace(every, blind=True)
    others = [model for model in NAMES if model != _ANCHORED]
    wanted = [
        *(("percept", model, every, "") for model in NAMES),
        # Only percept has the anchored model: its own history beside the gold history shows the cost of errors.
        ("percept", _ANCHORED, gold, "-gold"),
        ("percept", "builtin/reader", blind, "-blind"),
        *(("trek", model, some, "") for model in others),
        *(("ground", model, every, "") for model in others),
    ]
    plans = [
        _RunPlan(out / name, model, out / "runs" / f"{name}-{_short_name(model)}{suffix}", options)
        for name, model, options, suffix in wanted
    ]
    runs = []
    with setup.progress("Runs", len(plans)) as advance:
        for run in in_order(_run_plan, plans, workers=setup.workers, ahead=1):
            runs.append(run)
            advance(1)
    return runs


def _run_plan(plan: _RunPlan) -> Path:
    run_model(plan.benchmark, plan.model, plan.out, plan.options)
    return plan.out


def _short_name(model: str) -> str:
    return model.rpartition("/")[2]


def _write_report(setup: _Setup, runs: Sequence[Path]) -> Report:
    return write_report(runs, setup.out / "report", progress=setup.with_title("Report"))


def _write_start_page(made: Demo) -> None:
    target = made.html.parent
    write_folder_page(
        target,
        target,
        title="Carina demo",
        lead=(
            "Does a vision-language model see what a radiologist sees, step by step, and can it show where? "
            "This demo answers on synthetic chest radiographs: studies with exact findings, three benchmarks made "
            "from them, and the answers of the built-in models. All images and patients are synthetic."
        ),
        commands=_commands(made),
    )


def _commands(made: Demo) -> list[Command]:
    out = made.html.parent.name or "demo"
    return [
        Command(
            text=f"carina show {out}/studies --limit 200 -o all-studies",
            purpose="Write the pages of all studies.",
        ),
        Command(
            text=f"carina audit {out}/percept",
            purpose="Check the benchmark for balance, leaks and shortcuts.",
        ),
        Command(
            text=f"carina run {out}/percept --model openai/gpt-4o -o runs/gpt-4o",
            purpose="Evaluate a served model; needs its API key.",
        ),
        Command(
            text=f"carina report runs/gpt-4o {out}/runs/percept-* -o my-report",
            purpose="Compare it with the built-in models.",
        ),
    ]
