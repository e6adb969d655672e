"""Several runs in one call: every model on every benchmark under every history, resumed as a whole.

`run_all` takes Python values, `run_experiment` a YAML file with the same content.
"""

import inspect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, Final, cast

import polars as pl

from carina.cases import open_benchmark
from carina.models import ModelName, parse_model_name
from carina.models.function import BatchedFunction, ChatFunction, name_function
from carina.runs.analysis.stage_scores import ScoreSummary, summarise_run
from carina.runs.claim import RUN_FILE
from carina.runs.evaluate import Notify, run
from carina.runs.options import HistoryName, select_cases
from carina.runs.results import Run
from carina.store.arguments import check_arguments
from carina.store.documents import read_yaml
from carina.store.errors import CarinaError
from carina.store.names import safe_name
from carina.store.progress import Advance, Progress, no_progress
from carina.store.results import Location, Result, as_path, image_directory

Model = str | ChatFunction | BatchedFunction
_GIVEN_OTHERWISE: Final = ("bench", "model", "out", "label", "history", "progress", "notify")
"""Arguments of `run` that are no options of an experiment."""
OPTIONS: Final = tuple(name for name in inspect.signature(run).parameters if name not in _GIVEN_OTHERWISE)
"""Options of `run` that an experiment may set, for all models or for one."""
_MODEL_KEYS: Final = ("model", "name")
_FILE_KEYS: Final = ("benchmarks", "models", "histories", "options", "out")


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One model on one benchmark under one history."""

    bench: Location
    model: Model
    label: str | None
    history: HistoryName
    options: Mapping[str, Any]
    path: Path
    """Directory of the run."""


@dataclass(frozen=True, eq=False, repr=False)
class RunSet(Result):
    """The runs of one experiment; a sequence of the runs that were made.

    Example:
        >>> runs = run_all("bench", ["builtin/reader", "builtin/majority"], "runs-of-two")
        >>> [one.info.model for one in runs]
        ['builtin/reader', 'builtin/majority']
        >>> runs.errors
        {}
    """

    directory: Path
    runs: tuple[Run, ...]
    errors: Mapping[Path, str] = field(default_factory=dict)
    """Runs that could not be made, by their directories, with the reason."""

    @property
    def path(self) -> Path:
        """Directory that holds the runs."""
        return self.directory

    @cached_property
    def summaries(self) -> dict[Path, ScoreSummary]:
        """The scores of each run, by its directory."""
        return {one.path: summarise_run(one.path) for one in self.runs}

    def to_frame(self) -> pl.DataFrame:
        """One row per run and measure: `run`, `model`, `history`, then the columns of `Run.summary`."""
        frames = [
            self.summaries[one.path]
            .to_frame()
            .select(
                pl.lit(one.path.name).alias("run"),
                pl.lit(one.info.model).alias("model"),
                pl.lit(one.info.policy.history).alias("history"),
                pl.all(),
            )
            for one in self.runs
        ]
        return pl.concat(frames) if frames else pl.DataFrame()

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __getitem__(self, place: int) -> Run:
        return self.runs[place]

    def _summary(self) -> Mapping[str, object]:
        summary: dict[str, object] = {"runs": len(self.runs)}
        return summary | ({"errors": len(self.errors)} if self.errors else {})


@check_arguments
def run_all(
    benchmarks: "Location | Sequence[Location]",
    models: "Model | Mapping[str, Any] | Sequence[Model | Mapping[str, Any]]",
    out: Location,
    *,
    histories: HistoryName | Sequence[HistoryName] = "own",
    options: Mapping[str, Any] | None = None,
    progress: Progress = no_progress,
    notify: Notify | None = None,
) -> RunSet:
    """Evaluate every model on every benchmark under every history, and keep each run in a directory of its own.

    Repeat the call to resume: finished runs are skipped, others go on where they stopped. A run that fails does not
    stop the others; its reason is in `errors`.

    Args:
        benchmarks: Benchmarks to ask.
        models: Models: names or functions as `run` takes them, or dictionaries with the key `model`, options of `run`
            for this model alone, and `name`, which stands for the model in the name of the directory.
        out: Directory that will hold the runs, as BENCHMARK-MODEL-HISTORY, with `-blind` behind the model of a blind
            run.
        histories: History policies, as `run` takes them.
        options: Options of `run` by name, for all models.
        progress: Progress display, such as `carina.progress_bar`; none by default.
        notify: Called with a sentence about something unexpected; for example `print`.

    Returns:
        The runs in order of benchmarks, models and histories, with `.errors` and the scores of all as `.to_frame()`.

    Raises:
        CarinaError: An option or a model is unknown, two runs would have the same directory, or `out` is a run.

    Example:
        >>> runs = run_all("bench", "builtin/anchored", "two", histories=["own", "gold"], options={"limit": 3})
        >>> [one.path.name for one in runs]
        ['bench-builtin-anchored-own', 'bench-builtin-anchored-gold']
    """
    directory = as_path(out)
    if (directory / RUN_FILE).exists():
        raise CarinaError(f"{directory}: is a run; give a directory that can hold several runs")
    planned = plan_runs(
        _as_list(benchmarks),
        _as_list(models),
        directory,
        cast("list[str]", _as_list(histories)),
        options or {},
    )
    made: list[Run] = []
    errors: dict[Path, str] = {}
    # The size of a benchmark that cannot be opened is not known; its runs fail with the reason.
    with progress("Cases", sum(map(_count_cases, planned))) as advance:
        for one in planned:
            try:
                made.append(_make_run(one, advance, notify))
            except Exception as error:
                errors[one.path] = str(error) if isinstance(error, CarinaError) else repr(error)
    return RunSet(directory, tuple(made), errors)


@check_arguments
def run_experiment(
    file: Location,
    out: Location | None = None,
    *,
    progress: Progress = no_progress,
    notify: Notify | None = None,
) -> RunSet:
    """Make the runs that a YAML file describes; see `run_all`.

    Args:
        file: File with the keys `benchmarks`, `models`, `histories`, `options` and `out`, as the arguments of
            `run_all` are called. Paths are relative to the working directory; `system_prompt` is that of a file.
        out: Directory that will hold the runs; None for the one that the file names.
        progress: Progress display, such as `carina.progress_bar`; none by default.
        notify: Called with a sentence about something unexpected; for example `print`.

    Returns:
        The runs, as of `run_all`.

    Raises:
        CarinaError: The file is no YAML, lacks a key or has an unknown one, or as by `run_all`.

    Example:
        >>> _ = Path("two.yaml").write_text("benchmarks: bench\\nmodels: [builtin/reader]\\nout: from-file")
        >>> run_experiment("two.yaml")
        RunSet('from-file', runs=1)
    """
    path = as_path(file)
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise CarinaError(
            f"{path}: expected keys such as benchmarks and models, found {type(content).__name__}"
        )
    _check_keys(content, _FILE_KEYS, str(path))
    for key in ("benchmarks", "models"):
        if not content.get(key):
            raise CarinaError(f"{path}: {key} is missing; name at least one")
    where = out if out is not None else content.get("out")
    if where is None:
        raise CarinaError(f"{path}: out is missing; name the directory for the runs there, or with -o")
    try:
        return run_all(
            content["benchmarks"],
            _name_prompt_files(content["models"]),
            where,
            histories=content.get("histories", "own"),
            options=_name_prompt_files(content.get("options")),
            progress=progress,
            notify=notify,
        )
    except CarinaError as error:
        raise CarinaError(f"{path}: {error}") from error


def is_experiment_file(path: Path) -> bool:
    """Whether a path is that of a YAML file rather than of a benchmark.

    Example:
        >>> is_experiment_file(Path("experiment.yaml")), is_experiment_file(Path("bench"))
        (True, False)
    """
    return path.suffix.lower() in (".yaml", ".yml") and not path.is_dir()


def _name_prompt_files(entry: Any) -> Any:  # noqa: ANN401 - what the file holds
    """Options with the file of a system prompt as a path, as the command line takes it."""
    if isinstance(entry, list):
        return [_name_prompt_files(one) for one in entry]
    if not isinstance(entry, dict) or not isinstance(entry.get("system_prompt"), str):
        return entry
    return {**entry, "system_prompt": Path(entry["system_prompt"])}


# ---- planning -------------------------------------------------------------------------------------------------------


def plan_runs(
    benchmarks: Sequence[Location],
    models: Sequence[Model | Mapping[str, Any]],
    directory: Path,
    histories: Sequence[str],
    options: Mapping[str, Any],
) -> list[PlannedRun]:
    """The runs in order of benchmarks, models and histories; nothing is asked yet.

    Raises:
        CarinaError: As `run_all` states.
    """
    _check_keys(options, OPTIONS, "options")
    planned = [
        _plan_run(bench, entry, directory, cast("HistoryName", history), options)
        for bench in benchmarks
        for entry in models
        for history in histories
    ]
    repeated = [path for path, number in Counter(one.path for one in planned).items() if number > 1]
    if repeated:
        raise CarinaError(
            f"two runs would have the directory {repeated[0]}; give models with different options a `name`, and "
            "benchmarks of one name an `out` of their own"
        )
    return planned


def _plan_run(
    bench: Location,
    entry: Model | Mapping[str, Any],
    directory: Path,
    history: HistoryName,
    options: Mapping[str, Any],
) -> PlannedRun:
    own: Mapping[str, Any] = entry if isinstance(entry, Mapping) else {"model": entry}
    where = f"models: {own.get('model', 'an entry')}"
    _check_keys(own, (*_MODEL_KEYS, *OPTIONS), where)
    if "model" not in own:
        raise CarinaError(f"models: an entry with the keys {', '.join(map(str, own))} lacks the key model")
    model, name = own["model"], own.get("name")
    label = name if callable(model) else None
    parsed = _parse_model(model, label)
    merged = {**options, **{key: value for key, value in own.items() if key not in _MODEL_KEYS}}
    shown = f"{name or parsed.name}{'-blind' if merged.get('blind') else ''}"
    words = f"{as_path(bench).resolve().name}-{shown}-{history}"
    # Readable without a hash: models are told apart by the runs themselves, which refuse another model.
    path = directory / safe_name(words.replace("/", "-").replace(":", "-"))
    return PlannedRun(bench=bench, model=model, label=label, history=history, options=merged, path=path)


def _parse_model(model: Model, label: str | None) -> ModelName:
    return name_function(model, label, needs="chat") or parse_model_name(str(model), needs="chat")


def _check_keys(given: object, known: Sequence[str], where: str) -> None:
    if not isinstance(given, Mapping):
        raise CarinaError(f"{where}: expected keys with values, found {given!r}")
    for key in given:
        if key not in known:
            close = get_close_matches(str(key), known, n=1, cutoff=0.0)
            raise CarinaError(
                f"{where}: unknown key {key!r}; did you mean {close[0]!r}? Known: {', '.join(known)}"
            )


def _as_list(given: Any) -> list[Any]:  # noqa: ANN401 - one thing or several
    return list(given) if isinstance(given, Sequence) and not isinstance(given, str) else [given]


def _count_cases(one: PlannedRun) -> int:
    """Number of cases that a run selects; 0 where the benchmark cannot be opened."""
    chosen = {name: one.options.get(name) for name in ("limit", "sample_per_stratum", "split")}
    try:
        bench = open_benchmark(as_path(one.bench), image_directory(one.bench, None), verify=False)
        selected = select_cases(bench, seed=one.options.get("seed", 0), **chosen)
        return len(bench) if selected is None else len(selected)
    except (CarinaError, TypeError):
        return 0


# ---- running --------------------------------------------------------------------------------------------------------


def _make_run(one: PlannedRun, advance: Advance, notify: Notify | None) -> Run:
    return run(
        one.bench,
        one.model,
        one.path,
        label=one.label,
        history=one.history,
        progress=_within(advance),
        notify=notify,
        **one.options,
    )


def _within(advance: Advance) -> Progress:
    """A display that adds to one that is open already."""

    @contextmanager
    def display(title: str, total: int | None) -> Iterator[Advance]:
        del total
        # The first request to a server is no case.
        yield advance if title == "Cases" else (lambda *_arguments, **_keywords: None)

    return display
