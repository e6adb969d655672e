"""The runs of a comparison, opened by `carina.runs.open_run`, with ids and names that differ."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, TypeVar, cast

import msgspec
import polars as pl

from carina.models import Sampling
from carina.runs.claim import RUN_FILE
from carina.runs.layout import LAYOUT
from carina.runs.records import RunInfo, StepRow
from carina.runs.results import find_interruption, find_unchecked, open_run
from carina.runs.steps_table import STEPS_FILE, StepsTable
from carina.store.errors import CarinaError
from carina.store.layout import LAYOUTS, layout_of

TEXT_SCORES: Final = {
    "bertscore": "BERTScore",
    "chexbert_f1": "CheXbert F1",
    "radgraph_entity_f1": "RadGraph entity F1",
    "radgraph_f1": "RadGraph F1",
}
"""Scores of free text that a run has only where the models that compute them were installed: column and title."""
ANALYSIS_COLUMNS: Final = (
    "case", "patient", "protocol", "target", "path", "number", "step", "stage", "task", "format",
    "multiple", "state", "status", "gold_options", "gold_label", "kinds", "correct", "score", "overlap", "f1", "iou",
    "rouge", "entity_f1", "attribute_f1", "obeyed", "chance", "seconds", "input_tokens", "output_tokens", "images",
    *TEXT_SCORES,
)  # fmt: skip
"""Columns that the analysis needs of every step; the others, which hold long texts, are read for single cases."""
CATEGORIES: Final = ("protocol", "target", "path", "task", "format", "state", "status", "gold_label")
"""Columns that repeat few words: as categories they take a quarter of the memory."""
_SAMPLING_TITLES: Final = {
    "temperature": "temperature",
    "max_tokens": "longest answer",
    "seed": "seed of sampling",
}
BLIND_MODELS: Final = ("builtin/majority", "builtin/random")
"""Models that never see an image."""
BY_STAGE: Final = {"gold": "implicit", "hint": "explicit"}
"""CheXpercept's names of the policies that correct stage by stage."""
ORACLE: Final = "builtin/oracle"
"""Model that answers with the key. It tests the benchmark and the scoring, and is not compared with other models."""
_EXPECTED_RUN: Final = "expected a run that `carina run` or `carina explain` has written"


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedRun:
    """One finished run among those that are compared."""

    id: str
    """Its own id; where several runs of a report share one, with the folder that it lies in."""
    path: Path
    info: RunInfo
    table: StepsTable
    """Its steps, on disk."""
    index: pl.DataFrame
    """`case`, `protocol`, `study` and `source`: once each."""
    unfinished: tuple[str, ...] = ()
    """Sentences about what the table lacks, because a call was interrupted."""
    unchecked: tuple[str, ...] = ()
    """Sentences about what could not be compared with a checksum."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """By protocol: number of cases that were selected and have no row, because a call was interrupted."""
    label: str = ""
    """Name that the caller gave it; empty where it is named after its model."""
    suffix: str = ""
    """Distinguishes it from another run of the same name and setting on the same benchmark."""

    @property
    def model(self) -> str:
        """Name of the model, with what distinguishes this run of it where the caller gave no label."""
        name = model_name(self.info)
        return f"{name} ({self.suffix})" if self.suffix and not self.label else name

    @property
    def name(self) -> str:
        """The name that pages and charts show: the label, or the model."""
        if not self.label:
            return self.model
        return f"{self.label} ({self.suffix})" if self.suffix else self.label

    @property
    def history(self) -> str:
        """The history policy; "implicit" and "explicit" where gold and hint correct stage by stage."""
        policy = self.info.policy
        return BY_STAGE.get(policy.history, policy.history) if policy.scope == "stage" else policy.history

    @property
    def setting(self) -> str:
        """The history, and what else differs from the defaults of `carina run`."""
        policy = self.info.policy
        parser = f"profile {policy.profile}" if policy.profile != "carina" else ""
        stop = "stops at an error" if policy.on_wrong == "stop" else ""
        return ", ".join(part for part in (self.history, parser, stop) if part)

    @property
    def request(self) -> str:
        """How the model was asked, where that differs from the defaults."""
        return describe_request(self.info)

    @property
    def prompt_settings(self) -> list[str]:
        """What is particular about its prompts, in a few words each."""
        return describe_prompts(self.info)

    @property
    def is_baseline(self) -> bool:
        """Whether its answers owe nothing to the images."""
        return self.info.blind or self.info.model in BLIND_MODELS

    @property
    def is_oracle(self) -> bool:
        return self.info.model == ORACLE

    @property
    def benchmark(self) -> Path:
        """Where the benchmark was when the run began."""
        return (self.path / self.info.benchmark).resolve()

    def cases(self, protocol: str) -> set[str]:
        """Ids of its cases of one protocol."""
        return set(self.index.filter(pl.col("protocol") == protocol)["case"])

    @property
    def protocols(self) -> set[str]:
        """Protocols of its cases; none for a run without a single step."""
        return set(self.index["protocol"])

    def read_steps(self) -> pl.DataFrame:
        """`ANALYSIS_COLUMNS` of all steps, sorted by case and number; columns of a few words as categories."""
        steps = self.table.read(ANALYSIS_COLUMNS)
        # Column by column, because the whole would be held twice.
        columns = [steps.drop_in_place(name) for name in ANALYSIS_COLUMNS]
        for place, column in enumerate(columns):
            columns[place] = column.cast(pl.Categorical) if column.name in CATEGORIES else column.rechunk()
        return sort_steps(pl.DataFrame(columns))

    def rows(self, cases: Iterable[str]) -> list[StepRow]:
        """The steps of some cases as records, read from disk, in order of case and number."""
        return sorted(self.table.read_rows(list(cases)), key=lambda row: (row.case, row.number))


def sort_steps(steps: pl.DataFrame) -> pl.DataFrame:
    """Steps in order of case and number; the same table where they are in order, else sorted column by column.

    Sorting the table at once would hold it twice in memory.
    """
    case, number = steps["case"], steps["number"]
    is_after = (case > case.shift()) | ((case == case.shift()) & (number >= number.shift()))
    if is_after.all():
        return steps
    order = steps.select(pl.arg_sort_by("case", "number")).to_series()
    left = steps.clone()
    return pl.DataFrame([left.drop_in_place(name).gather(order) for name in steps.columns])


def describe_request(info: RunInfo) -> str:
    """How the model was asked, where that differs from the defaults: "temperature 0.7, structured answers".

    Example:
        >>> describe_request(open_run("runs/reader").info)
        ''
    """
    default = msgspec.to_builtins(Sampling())
    words = [
        f"{title} {'of the model' if info.sampling[name] is None else info.sampling[name]}"
        for name, title in _SAMPLING_TITLES.items()
        if name in info.sampling and info.sampling[name] != default[name]
    ]
    for name, value in info.request.items():
        if name == "structured":
            words.append("structured answers")
        else:
            shown = value if isinstance(value, str | int | float) else msgspec.json.encode(value).decode()
            words.append(f"{name.replace('_', ' ')} {shown}")
    return ", ".join(words)


def model_name(info: RunInfo) -> str:
    """The model as pages name it, with what it saw in another way than other runs: runs of one name are comparable."""
    blind = ["blind"] if info.blind and info.model not in BLIND_MODELS else []
    said = "; ".join([*blind, *describe_prompts(info)])
    return f"{info.model} ({said})" if said else info.model


def describe_prompts(info: RunInfo) -> list[str]:
    """What is particular about the prompts of a run, in a few words each; nothing for the prompts of its protocols."""
    prompts, examples = info.prompts, info.prompts.examples
    words = []
    if prompts.own_system:
        words.append(
            f"own system prompt {_digest(info.system)}" if any(info.system.values()) else "no system prompt"
        )
    if prompts.style != "plain":
        words.append(f"style {prompts.style}")
    if prompts.image_order != ("after" if info.policy.profile == "chexpercept" else "before"):
        words.append(f"images {prompts.image_order} the text")
    if prompts.image_detail != "auto":
        words.append(f"image detail {prompts.image_detail}")
    if examples is not None:
        words.append(f"{examples.per_protocol} examples {_digest([examples.fingerprint, examples.ids])}")
    return words


def _digest(content: object) -> str:
    """A few digits that differ where the content does."""
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()[:6]


def read_run(path: Path) -> ComparedRun:
    """Read the run in a directory.

    Raises:
        CarinaError: Something of the run is missing or invalid, or a newer version of Carina has written it.
    """
    if path.is_file():
        raise CarinaError(f"{path}: is a file, {_EXPECTED_RUN}; give the directory that holds it")
    if not path.is_dir():
        raise CarinaError(f"{path}: no such directory, {_EXPECTED_RUN}")
    found = layout_of(path)
    if found is not None and found not in (LAYOUT, LAYOUTS["maps"]):
        raise CarinaError(f"{path}: is a {found.title}, {_EXPECTED_RUN}")
    if not (path / RUN_FILE).exists():
        raise CarinaError(f"{path}: no {RUN_FILE} and no {LAYOUTS['maps'].file}, {_EXPECTED_RUN}")
    run = open_run(path)
    index = run.table.read(("case", "protocol", "study", "source")).unique(maintain_order=True)
    return ComparedRun(
        id=run.info.id,
        path=path,
        info=run.info,
        table=run.table,
        index=index,
        unfinished=tuple(find_interruption(run.info)),
        unchecked=tuple(find_unchecked(run.info)),
    )


def read_runs(paths: Sequence[Path], labels: Mapping[Path, str] | None = None) -> list[ComparedRun]:
    """Read several runs; each may be given once. `labels` are names for some of them."""
    if not paths:
        raise CarinaError(f"no runs given, {_EXPECTED_RUN}")
    known = labels or {}
    return read_distinct(
        paths,
        lambda path: replace(read_run(path), label=known.get(path, "")),
        lambda run: (run.info.fingerprint, run.name, run.setting),
    )


def assign_labels(paths: Sequence[Path], labels: Sequence[str]) -> dict[Path, str]:
    """The labels of runs.

    Args:
        paths: Directories of the runs, in order.
        labels: One name for each run, in their order; or RUN=NAME for some, where RUN is the directory of a run or its
            last part.

    Returns:
        The label of each run that has one.

    Raises:
        CarinaError: The number of labels is not that of the runs, a label is empty, or a run gets two.
    """
    named = [_split_label(paths, label) for label in labels]
    if any(path is None for path, _ in named):
        if len(labels) != len(paths):
            listed = ", ".join(str(path) for path in paths)
            raise CarinaError(
                f"{len(labels)} labels for {len(paths)} runs: expected one for each, in the order {listed}; or RUN=NAME"
            )
        named = list(zip(paths, labels, strict=True))
    found: dict[Path, str] = {}
    for path, label in named:
        name = " ".join(label.split())
        if not name:
            raise CarinaError(f"{path}: its label is empty, expected a name")
        if path in found:
            raise CarinaError(f"{path}: has two labels, {found[path]!r} and {name!r}")
        found[cast(Path, path)] = name
    return found


def _split_label(paths: Sequence[Path], label: str) -> tuple[Path | None, str]:
    """The run that a label of the form RUN=NAME names, and the name; no run for a label of another form."""
    for place in (place for place, letter in enumerate(label) if letter == "="):
        run = label[:place]
        by_path = [path for path in paths if path.resolve() == Path(run).resolve()]
        by_name = [path for path in paths if path.resolve().name == run]
        if len(by_path or by_name) == 1:
            return (by_path or by_name)[0], label[place + 1 :]
    return None, label


def find_runs(paths: Sequence[Path], notify: Callable[[str], object] = lambda _sentence: None) -> list[Path]:
    """Directories of runs in the order given; a directory that contains runs is replaced by them.

    Args:
        paths: Directories of runs, or of directories of runs.
        notify: Called with a sentence about each contained run that is left out because it has no answers yet.
    """
    runs: list[Path] = []
    # A run of questions or a run of maps.
    files = (RUN_FILE, LAYOUTS["maps"].file)
    for path in paths:
        is_run = any((path / file).exists() for file in files)
        held = [] if is_run else sorted(each.parent for file in files for each in path.glob(f"*/{file}"))
        begun = [run for run in held if (run / RUN_FILE).exists() and not (run / STEPS_FILE).exists()]
        for run in begun if len(begun) < len(held) else ():
            notify(f"{run}: left out, because no call of `carina run` has finished there")
            held.remove(run)
        runs += held or [path]
    return runs


class _Distinct(Protocol):
    """A run with an id, and a suffix where another run would have the same name."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def id(self) -> str: ...

    @property
    def suffix(self) -> str: ...


DistinctRun = TypeVar("DistinctRun", bound=_Distinct)


def read_distinct(
    paths: Sequence[Path], read: Callable[[Path], DistinctRun], name: Callable[[DistinctRun], tuple[str, ...]]
) -> list[DistinctRun]:
    """Read runs so that their ids differ, and give a suffix to those whose `name` is the same."""
    resolved = [path.resolve() for path in paths]
    for path, place in zip(paths, resolved, strict=True):
        if resolved.count(place) > 1:
            raise CarinaError(f"{path}: given more than once, expected each run once")
    runs = [read(path) for path in paths]
    ids = Counter(run.id for run in runs)
    # Runs of one model on two benchmarks may lie in folders of the same name.
    distinct = [
        replace(run, id=run.id if ids[run.id] == 1 else f"{place.parent.name}/{run.id}")
        for run, place in zip(runs, resolved, strict=True)
    ]
    repeated = [key for key, count in Counter(run.id for run in distinct).items() if count > 1]
    if repeated:
        raise CarinaError(
            f"{len(paths)} runs: several have the id {repeated[0]!r}, expected folders with different names"
        )
    names = Counter(name(run) for run in distinct)
    return [replace(run, suffix=run.id if names[name(run)] > 1 else "") for run in distinct]
