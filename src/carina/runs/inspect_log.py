"""Stores the answers of an Inspect task as `carina run` does. Imported by inspect-ai alone."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
from inspect_ai.hooks import Hooks, hooks
from inspect_ai.model._generate_config import active_generate_config

from carina.cases import Benchmark, open_benchmark
from carina.models import ModelName, Reply, RequestOptions, Sampling, parse_model_name
from carina.runs.claim import claim_run, identify_run, write_info
from carina.runs.commits import Commits
from carina.runs.in_process import log_entry
from carina.runs.info import describe_run, start_call
from carina.runs.log import Answered, StepLog, log_path, read_log
from carina.runs.options import RunOptions, write_extra_body
from carina.runs.records import RunInfo, StepRow
from carina.runs.results import close_run
from carina.store.resume import lock_directory

_LOGGER: Final = logging.getLogger(__name__)


class TaskRun:
    """The run directory of a task: opened with its first sample, closed when the task has ended."""

    def __init__(self, out: Path, bench: Benchmark, options: RunOptions, ids: Sequence[str]) -> None:
        self.out = out
        self._bench = bench
        self._options = options
        self._ids = tuple(ids)
        self._stack = ExitStack()
        self._opening = asyncio.Lock()
        self._answered: Answered | None = None
        self._info: RunInfo
        self._commits: Commits

    async def read_answers(self, model: str, base_url: str | None) -> Answered:
        """Answers of earlier calls."""
        async with self._opening:
            if self._answered is None:
                # The settings of a task are known only while a sample runs.
                config = active_generate_config()
                sampling = Sampling(
                    temperature=config.temperature,
                    max_tokens=config.max_tokens or Sampling().max_tokens,
                    seed=config.seed,
                )
                request = RequestOptions(
                    top_p=config.top_p,
                    top_k=config.top_k,
                    reasoning_effort=config.reasoning_effort,
                    reasoning_tokens=config.reasoning_tokens,
                    extra_body=None if not config.extra_body else write_extra_body(config.extra_body),
                )
                options = replace(self._options, sampling=sampling, request=request)
                self._answered = self._open(parse_model_name(model, needs="chat"), base_url, options)
                _OPEN.append(self)
            return self._answered

    async def store(self, row: StepRow, reply: Reply) -> None:
        """Store an answer; it is on disk when this returns."""
        await self._commits.commit(log_entry(row, reply))

    async def close(self) -> None:
        """Write the table of all steps."""
        await self._commits.close()
        close_run(self._bench, self.out, self._info, self._ids, prompts=self._options.prompts)
        self._stack.close()
        self._answered = None

    def _open(self, model: ModelName, base_url: str | None, options: RunOptions) -> Answered:
        info = describe_run(self._bench, model, self.out, options)
        if len(self._ids) < self._bench.manifest.counts.cases:
            info = msgspec.structs.replace(info, cases=self._ids)
        self._stack.enter_context(lock_directory(self.out))
        # A task has one protocol; a run without a selection has all.
        whole = open_benchmark(self._bench.directory, verify=False)
        info = claim_run(self.out, info, whole.ids, _LOGGER.warning)
        self._info = start_call(
            info, model, base_url, cases=len(self._ids), verify_images=self._options.verify_images
        )
        write_info(self.out, self._info)
        run = identify_run(self._info)
        answered = read_log(self.out, run, every_line=self._info.log_names_run)
        self._commits = Commits(self._stack.enter_context(StepLog(log_path(self.out), run)))
        return answered


_OPEN: Final[list[TaskRun]] = []
"""Runs of tasks that have not ended."""


class _CloseRuns(Hooks):  # type: ignore[misc, unused-ignore]
    def enabled(self) -> bool:
        return bool(_OPEN)

    async def on_task_end(self, data: Any) -> None:  # noqa: ANN401
        out = data.log.eval.task_args.get("out")
        for run in [run for run in _OPEN if out is not None and run.out == Path(out)]:
            _OPEN.remove(run)
            await run.close()


hooks(name="carina_run", description="Closes the run directory of a Carina task.")(_CloseRuns)
