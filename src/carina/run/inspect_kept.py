"""The answers of an Inspect task, kept as `carina run` keeps them. Imported by inspect-ai alone."""

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
from carina.errors import CarinaError
from carina.files import alone_in
from carina.models.served import Reply, Sampling
from carina.run.calls import begun
from carina.run.claim import claimed, write_info
from carina.run.commits import Commits
from carina.run.examine import RunOptions, close_run, run_info
from carina.run.log import Answered, StepLog, log_path, read_log
from carina.run.records import RunInfo, StepRow
from carina.run.wavefront import entry

_LOGGER: Final = logging.getLogger(__name__)


class KeptRun:
    """A run directory that a task writes: opened with its first sample, closed when the task has ended."""

    def __init__(self, out: Path, bench: Benchmark, options: RunOptions, ids: Sequence[str]) -> None:
        self.out = out
        self._bench = bench
        self._options = options
        self._ids = tuple(ids)
        self._stack = ExitStack()
        self._opening = asyncio.Lock()
        self._answered: Answered | None = None
        self._about: RunInfo
        self._commits: Commits

    async def answered(self, model: str, base_url: str | None) -> Answered:
        """What earlier calls have brought to disk."""
        async with self._opening:
            if self._answered is None:
                # What applies is known only while a sample runs.
                given = active_generate_config()
                sampling = Sampling(
                    temperature=given.temperature,
                    max_tokens=given.max_tokens or Sampling().max_tokens,
                    seed=given.seed,
                )
                self._answered = self._open(model, base_url, sampling)
                _OPEN.append(self)
            return self._answered

    async def keep(self, row: StepRow, reply: Reply) -> None:
        """Return when an answer is on disk."""
        await self._commits.commit(entry(row, reply))

    async def close(self) -> None:
        """Write the table of all steps."""
        await self._commits.close()
        close_run(self._bench, self.out, self._about, self._ids)
        self._stack.close()
        self._answered = None

    def _open(self, model: str, base_url: str | None, sampling: Sampling) -> Answered:
        about = run_info(self._bench, model, self.out, replace(self._options, sampling=sampling))
        if len(self._ids) < self._bench.manifest.counts.cases:
            about = msgspec.structs.replace(about, cases=self._ids)
        self.out.mkdir(parents=True, exist_ok=True)
        if not self._stack.enter_context(alone_in(self.out)):
            raise CarinaError(f"{self.out}: another process is writing this run")
        # A task is of one protocol; a run without a choice is of all.
        whole = open_benchmark(self._bench.directory, verify=False)
        about = claimed(self.out, about, whole.ids, _LOGGER.warning)
        self._about = begun(about, model, base_url)
        write_info(self.out, self._about)
        found = read_log(self.out)
        self._commits = Commits(self._stack.enter_context(StepLog(log_path(self.out))))
        return found


_OPEN: Final[list[KeptRun]] = []
"""Runs of tasks that have not ended."""


class _AtTheEnd(Hooks):  # type: ignore[misc, unused-ignore]
    def enabled(self) -> bool:
        return bool(_OPEN)

    async def on_task_end(self, data: Any) -> None:  # noqa: ANN401
        named = data.log.eval.task_args.get("out")
        for kept in [run for run in _OPEN if named is not None and run.out == Path(named)]:
            _OPEN.remove(kept)
            await kept.close()


hooks(name="carina_run", description="Closes the run directory of a Carina task.")(_AtTheEnd)
