"""The results of a run: `steps.parquet` with one row per step, written when a run is closed, and `open_run`."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from carina.cases import Benchmark, Case
from carina.cases.protocol import stage_title
from carina.runs.claim import identify_run, read_info, write_info
from carina.runs.info import end_call
from carina.runs.log import Answered, read_log
from carina.runs.records import Policy, Prompts, RunCounts, RunInfo, StepRow, StepsTableInfo
from carina.runs.score.learned import TextScorer, text_metrics
from carina.runs.steps_table import SCHEMA, STEPS_FILE, StepsTable, run_columns
from carina.runs.walk import Walk, resume_walk
from carina.store.arguments import check_arguments
from carina.store.files import replacing
from carina.store.frames import describe_table
from carina.store.results import Location, Result, as_path
from carina.store.tables import to_table

_COUNTED: Final = ("case", "state", "status", "seconds", "input_tokens", "output_tokens", "images")
_INTERRUPTED: Final = (
    "was interrupted or is still running; call `carina run` again with the same options to finish it"
)
_BLOCK: Final = 4096
"""Rows that are written at a time, so that memory does not grow with the run."""


class Failure(NamedTuple):
    """A case that failed with an error, which is neither a right nor a wrong answer."""

    case: str
    reason: str


class Run(Result):
    """One run: a model's answers to a benchmark under one history policy.

    Example:
        >>> answers = open_run("runs/reader")
        >>> answers.scores().select("stage", "n").rows()
        [(1, 18), (2, 11), (3, 15), (4, 38)]
        >>> answers.to_frame().filter(pl.col("correct") == 0).height
        19
    """

    def __init__(
        self,
        path: Path,
        info: RunInfo,
        *,
        counts: RunCounts | None = None,
        failures: tuple[Failure, ...] | None = None,
    ) -> None:
        self._path = path
        self.table: Final = StepsTable(path.absolute() / STEPS_FILE, info)
        """The table on disk, wherever the working directory is later: for some of its columns or cases."""
        self._counts = counts
        self._failures = failures
        self.info: Final = info

    @property
    def path(self) -> Path:
        """Directory of the run."""
        return self._path

    @cached_property
    def _steps(self) -> pl.DataFrame:
        return self.table.read(list(SCHEMA))

    def to_frame(self) -> pl.DataFrame:
        """One row per step, in the order of the benchmark: `model`, `history`, `blind`, then the columns of `StepRow`.

        Raises:
            CarinaError: The run is not finished, or its table is damaged, belongs to another run, or holds a value that
                no step could have; the message names the file, the row and the column.
        """
        return self._steps

    @property
    def notices(self) -> tuple[str, ...]:
        """Sentences about what the table lacks, or could not be compared with; none for a finished run.

        A run whose last call was interrupted still has the table of the call before.
        """
        return (*find_interruption(self.info), *find_unchecked(self.info))

    def rows(self, cases: Collection[str] | None = None) -> list[StepRow]:
        """The steps as records, of all cases or of some."""
        return self.table.read_rows(self._columns("case")["case"].unique() if cases is None else cases)

    def _columns(self, *names: str) -> pl.DataFrame:
        """Some columns; from memory, where the whole table was read before."""
        return self._steps.select(names) if "_steps" in self.__dict__ else self.table.read(names)

    def scores(self) -> pl.DataFrame:
        """Mean results by protocol and stage.

        Returns:
            Columns `protocol`, `stage`, `title`, `n` (answered steps), `judged` (those of them that are right or wrong;
            answers in free text have a score alone), `accuracy` (share of judged steps that are right; null where none
            is judged), `score` (mean over all answered steps), `chance` (what a random choice reaches) and `unparsed`
            (share of answered steps whose reply could not be read, or was a refusal; they count as wrong).
        """
        columns = ("protocol", "stage", "state", "status", "correct", "score", "chance")
        answered = self._columns(*columns).filter(pl.col("state") == "answered")
        scores = (
            answered.group_by("protocol", "stage")
            .agg(
                pl.len().alias("n"),
                pl.col("correct").count().alias("judged"),
                pl.col("correct").cast(pl.Float64).mean().alias("accuracy"),
                pl.col("score").mean(),
                pl.col("chance").mean(),
                (pl.col("status") != "ok").mean().alias("unparsed"),
            )
            .sort("protocol", "stage")
        )
        titles = [
            stage_title(protocol, stage) for protocol, stage in scores.select("protocol", "stage").rows()
        ]
        return scores.insert_column(2, pl.Series("title", titles, pl.String))

    def summary(self) -> pl.DataFrame:
        """Scores by stage with intervals, beside chance and a blind baseline: the numbers of a report.

        The blind baseline is looked for in the directories beside the run: a run of the same model on the same cases
        with `blind=True`, else one of `builtin/majority`. Where there is none, it is the best constant answer to each
        kind of question.

        Returns:
            One row per measure: `protocol`, `level` ("stage", "macro", "micro", "case", or "words" for free text),
            `name` (number of the stage), `title`, `metric`, `value`, `low` and `high` (95% interval over patients),
            `n`, `chance`, `blind`, and `blind_source` (what the blind baseline is).

        Raises:
            CarinaError: The run is not finished, or its benchmark is not where it was.
        """
        from carina.runs.analysis.stage_scores import summarise_run  # noqa: PLC0415 - it reads runs itself

        return summarise_run(self._path).to_frame()

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Cases that failed with an error; the same call of `run` asks them again."""
        if self._failures is None:
            failed = self._columns("case", "error").drop_nulls("error")
            self._failures = tuple(Failure(case, reason) for case, reason in failed.rows())
        return self._failures

    @property
    def counts(self) -> RunCounts:
        """How many cases and steps there are, by state and status; time and tokens in total."""
        if self._counts is None:
            self._counts = _count(self._columns(*_COUNTED), self.info)
        return self._counts

    def _repr_html_(self) -> str:
        shown = super()._repr_html_()
        with pl.Config(tbl_cols=-1):
            return shown + self.scores()._repr_html_() if self.table.exists() else shown

    def _summary(self) -> Mapping[str, object]:
        summary: dict[str, object] = {"model": self.info.model, "history": self.info.policy.history}
        if self.info.blind:
            summary["blind"] = True
        if self.table.exists():
            counts = self.counts
            summary |= {"cases": counts.cases, "answered": f"{counts.answered} of {counts.steps} steps"}
        return summary


@check_arguments
def open_run(location: Location) -> Run:
    """Open the run in a directory.

    Args:
        location: Directory that `carina run` has written.

    Returns:
        The run, with its steps as a table.

    Raises:
        CarinaError: The directory holds no run, or one of a newer version of Carina.

    Example:
        >>> open_run("runs/reader")
        Run('runs/reader', model='builtin/reader', history='own', cases=18, answered='82 of 82 steps')
    """
    path = as_path(location)
    return Run(path, read_info(path))


def count_missing_cases(info: RunInfo) -> int:
    """Number of selected cases that the table lacks, because the call that was to add them has not ended."""
    wanted = (
        info.case_count if info.case_count is not None else None if info.cases is None else len(info.cases)
    )
    return 0 if wanted is None or info.table is None else max(0, wanted - info.table.cases)


def describe_missing_cases(missing: int, cases: int) -> str:
    """A sentence about cases that a run selected and its table lacks."""
    return f"{missing} of its {cases} cases are missing, because its last call {_INTERRUPTED}"


def find_interruption(info: RunInfo) -> Iterator[str]:
    """A sentence where the last call did not end."""
    missing = count_missing_cases(info)
    if missing and info.table is not None:
        yield describe_missing_cases(missing, info.table.cases + missing)
    elif info.calls and info.ended is None:
        yield f"answers may be missing, because its last call, of {info.calls[-1].started}, {_INTERRUPTED}"


def find_unchecked(info: RunInfo) -> Iterator[str]:
    """Sentences about what could not be compared with a checksum."""
    if info.table is None:
        yield "run.json states no checksum of the table, so a change of the table cannot be noticed"
    if any(call.verify_images is False for call in info.calls):
        yield "its images were not compared with the checksums that the cases state (--no-verify-images)"


def _count(steps: pl.DataFrame, info: RunInfo) -> RunCounts:
    """The counts of a run from its table."""
    cases = steps.group_by("case").agg((pl.col("state") != "incomplete").all().alias("complete"))
    # A case without steps has no row, and is complete; a case that an interrupted call did not write is not.
    written = len(cases) if info.table is None else info.table.cases
    states = Counter(steps["state"].to_list())
    statuses = Counter(steps.filter(pl.col("state") == "answered")["status"].drop_nulls().to_list())
    return RunCounts(
        cases=written + count_missing_cases(info),
        complete=int(cases["complete"].sum()) + written - len(cases),
        steps=len(steps),
        answered=states["answered"],
        incomplete=states["incomplete"],
        not_reached=states["not_reached"],
        statuses=dict(sorted(statuses.items())),
        seconds=round(float(steps["seconds"].sum()), 3),
        input_tokens=int(steps["input_tokens"].sum()),
        output_tokens=int(steps["output_tokens"].sum()),
        image_sends=int(steps["images"].sum()),
    )


# ---- writing --------------------------------------------------------------------------------------------------------


def close_run(
    bench: Benchmark,
    out: Path,
    info: RunInfo,
    ids: Sequence[str],
    notify: Callable[[str], object] = lambda _sentence: None,
    *,
    prompts: Prompts | None = None,
) -> Run:
    """Write the table of all steps in the order of the benchmark, and end the call in `run.json`."""
    answered = read_log(out, identify_run(info), every_line=info.log_names_run)
    metrics = text_metrics()
    statistics = _Statistics()
    with replacing(out / STEPS_FILE) as temporary:
        with StepWriter(temporary, info, TextScorer(metrics, notify)) as writer:
            for case in bench.pick(ids):
                rows = _rows_of_case(case, info.policy, prompts, answered)
                writer.add(rows)
                statistics.add(rows)
        described = describe_table(temporary, statistics.rows)
    closed = msgspec.structs.replace(
        end_call(info) if info.calls and info.ended is None else info,
        text_models={metric.name: metric.weights for metric in metrics},
        case_count=len(ids),
        table=StepsTableInfo(cases=len(ids), **msgspec.structs.asdict(described)),
    )
    if closed != read_info(out):
        write_info(out, closed)
    return Run(out, closed, counts=statistics.counts(len(ids)), failures=tuple(statistics.failures))


class _Statistics:
    """Counts the rows of a run as they are written, so that the table need not be read again."""

    def __init__(self) -> None:
        self.failures: list[Failure] = []
        self._complete = 0
        self._states: Counter[str] = Counter()
        self._statuses: Counter[str] = Counter()
        self._sums: Counter[str] = Counter()
        self._seconds = 0.0

    def add(self, rows: Sequence[StepRow]) -> None:
        """Count the rows of one case."""
        self._complete += all(row.state != "incomplete" for row in rows)
        for row in rows:
            self._states[row.state] += 1
            if row.state == "answered" and row.status is not None:
                self._statuses[row.status] += 1
            if row.error is not None:
                self.failures.append(Failure(row.case, row.error))
            self._seconds += row.seconds or 0.0
            self._sums["input"] += row.input_tokens or 0
            self._sums["output"] += row.output_tokens or 0
            self._sums["images"] += row.images

    @property
    def rows(self) -> int:
        """Number of rows that were counted."""
        return self._states.total()

    def counts(self, cases: int) -> RunCounts:
        """The counts of all rows, of a run with this many cases."""
        return RunCounts(
            cases=cases,
            complete=self._complete,
            steps=self.rows,
            answered=self._states["answered"],
            incomplete=self._states["incomplete"],
            not_reached=self._states["not_reached"],
            statuses=dict(sorted(self._statuses.items())),
            seconds=round(self._seconds, 3),
            input_tokens=self._sums["input"],
            output_tokens=self._sums["output"],
            image_sends=self._sums["images"],
        )


def _rows_of_case(case: Case, policy: Policy, prompts: Prompts | None, answered: Answered) -> list[StepRow]:
    """All steps of a case: as they were scored when they were answered, and those that were not asked."""
    rows = {number: entry.row for number, entry in answered.get(case.id, {}).items()}
    if len(rows) == len(case.steps):
        return [rows[number] for number in range(len(case.steps))]
    walk = Walk(case, policy, prompts)
    resume_walk(walk, answered, failures=True)
    return [rows.get(row.number, row) for row in walk.rows()]


class StepWriter:
    """Writes the rows of a run block by block, each block as `finish` returns it."""

    def __init__(
        self, path: Path, info: RunInfo, finish: Callable[[Sequence[StepRow]], Sequence[StepRow]]
    ) -> None:
        self._run_columns = run_columns(info)
        self._writer: Any = pq.ParquetWriter(
            path, self._with_run_columns(to_table(StepRow, [])).schema, compression="zstd"
        )
        self._finish = finish
        self._rows: list[StepRow] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        if failed is None:
            self._flush()
        self._writer.close()

    def add(self, rows: Sequence[StepRow]) -> None:
        """Add the rows of one case, in order."""
        self._rows += rows
        if len(self._rows) >= _BLOCK:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_table(self._with_run_columns(to_table(StepRow, self._finish(self._rows))))
            self._rows = []

    def _with_run_columns(self, table: Any) -> Any:  # noqa: ANN401 - pyarrow has no types
        for place, (name, value) in enumerate(self._run_columns.items()):
            column = pa.repeat(pa.scalar(value), len(table))
            table = table.add_column(place, pa.field(name, column.type, nullable=False), column)
        return table
