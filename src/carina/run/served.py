"""Served models: many conversations at a time, each turn on disk before the next one is asked.

Providers, retries, rate limits and connection limits are inspect-ai's; the walk and the log are ours. With several
processes each has its own share of the cases and its own log.
"""

import asyncio
import gc
import multiprocessing
import os
import threading
import time
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Any, Final

from carina.cases import Benchmark, open_benchmark
from carina.errors import CarinaError
from carina.models.served import Reply, Said, ServedModel
from carina.run.commits import Commits
from carina.run.log import Answered, StepLog, log_path, read_log
from carina.run.pictures import CasePictures
from carina.run.records import Policy, Turn
from carina.run.resume import walks
from carina.run.tally import Tally, Told
from carina.run.terms import refuse_restricted
from carina.run.walk import Walk
from carina.run.wavefront import entry

if TYPE_CHECKING:
    from carina.run.examine import RunOptions

_GIVE_UP_AFTER: Final = 20
"""Cases in a row that fail on the way, after which the others would too."""


@dataclass(frozen=True)
class _Job:
    """What every process of a run must know."""

    model: str
    out: Path
    options: "RunOptions"


def run_served(
    bench: Benchmark,
    model: str,
    out: Path,
    options: "RunOptions",
    *,
    answered: Answered,
    left: Sequence[str],
    told: Told,
) -> None:
    """Examine a served model on the cases that are left."""
    refuse_restricted(bench, model, base_url=options.base_url, accept_terms=options.accept_terms)
    job = _Job(model, out, options)
    if options.processes > 1 and len(left) > 1:
        _share(job, bench.directory, left, told)
        return
    with StepLog(log_path(out)) as log:
        _in_a_loop(_examine(job, bench, _Todo(bench, left, answered, options.policy), log, told))


def _in_a_loop(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end; beside the loop that may be running here already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
    else:
        with ThreadPoolExecutor(max_workers=1) as beside:
            beside.submit(asyncio.run, work).result()


# ---- one process ----------------------------------------------------------------------------------------------------


async def _examine(job: _Job, bench: Benchmark, todo: "_Todo", log: StepLog, told: Told) -> None:
    options = job.options
    served = ServedModel(
        job.model,
        sampling=options.sampling,
        base_url=options.base_url,
        retries=options.retries,
        attempt_seconds=options.timeout,
        connections=options.connections,
    )
    pictures = CasePictures(bench, max_side=options.max_side, blind=options.blind)
    commits = Commits(log)
    examination = _Examination(job.model, served, pictures, commits, told)
    # What the providers' packages have loaded stays: looked through again and again it costs a tenth of a turn.
    gc.freeze()
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(options.connections):
                group.create_task(examination.work(todo))
    except BaseExceptionGroup as failed:
        # Whichever task met it first: the others were only told to stop.
        raise _first(failed) from None
    finally:
        gc.unfreeze()
        await commits.close()
        await served.close()


def _first(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    told = next(
        (error for error in failed.exceptions if isinstance(error, CarinaError)), failed.exceptions[0]
    )
    return _first(told) if isinstance(told, BaseExceptionGroup) else told


class _Todo:
    """The cases that are left, each as far as it was walked before."""

    def __init__(self, bench: Benchmark, left: Sequence[str], answered: Answered, policy: Policy) -> None:
        self._walks = walks(bench, left, answered, policy)
        self._reading = asyncio.Lock()

    async def next(self) -> Walk | None:
        # Cases are read beside the event loop, and by one thread at a time.
        async with self._reading:
            return await asyncio.to_thread(next, self._walks, None)


class _Examination:
    """Takes cases one after the other and walks each to its end."""

    def __init__(
        self,
        model: str,
        served: ServedModel,
        pictures: CasePictures,
        commits: Commits,
        told: Told,
    ) -> None:
        self._model = model
        self._served = served
        self._pictures = pictures
        self._commits = commits
        self._told = told
        self._failed = 0

    async def work(self, todo: "_Todo") -> None:
        while (walk := await todo.next()) is not None:
            await self._walk(walk)
            self._told(Tally(cases=1))

    async def _walk(self, walk: Walk) -> None:
        uris: dict[str, str] = {}
        conversation = self._served.conversation(walk.system)
        while (turn := walk.turn) is not None:
            began = time.perf_counter()
            try:
                await self._draw(walk, turn, uris)
            except CarinaError as error:
                # A picture that cannot be had concerns its case alone.
                reply = Reply(text=None, error=str(error))
            else:
                began = time.perf_counter()
                reply = await conversation.answer(spoken(turn, uris))
            row = walk.take(reply, seconds=round(time.perf_counter() - began, 4))
            await self._commits.commit(entry(row, reply))
            self._told(Tally(asked=1, failed=int(reply.text is None)))
            self._watch(reply)

    async def _draw(self, walk: Walk, turn: Turn, uris: dict[str, str]) -> None:
        """Add the pictures that a conversation has not shown yet, drawn and encoded once and beside the event loop."""
        # All of a case that was taken up in its midst: earlier messages show pictures too.
        missing = [view for message in turn.messages for view in message.shows if view not in uris]
        if missing:
            uris |= await asyncio.to_thread(self._pictures.data_uris, walk.case, missing)

    def _watch(self, reply: Reply) -> None:
        self._failed = 0 if reply.error is None else self._failed + 1
        if self._failed >= _GIVE_UP_AFTER:
            told = f"{self._failed} turns in a row failed, the last with {reply.error}"
            raise CarinaError(f"model {self._model!r}: {told}")


def spoken(turn: Turn, uris: dict[str, str]) -> list[Said]:
    """A turn with its pictures, each where it entered."""
    return [
        Said(role=message.role, text=message.text, pictures=tuple(uris[view] for view in message.shows))
        for message in turn.messages
    ]


# ---- several processes ----------------------------------------------------------------------------------------------


def _share(job: _Job, directory: Path, left: Sequence[str], told: Told) -> None:
    """Deal cases and connections out to processes; one that fails lets the others finish what they have."""
    context = multiprocessing.get_context("spawn")
    heard: Any = context.Queue()
    number = min(job.options.processes, len(left))
    dealt = replace(job.options, connections=max(1, job.options.connections // number))
    workers = [
        context.Process(
            target=_work,
            args=(replace(job, options=dealt), directory, tuple(left[place::number]), place, heard),
            daemon=True,
        )
        for place in range(number)
    ]
    for worker in workers:
        worker.start()
    errors = [message for message in _messages(heard, workers, told) if message]
    for worker in workers:
        worker.join()
    if errors:
        raise CarinaError(errors[0])


def _messages(heard: Any, workers: Sequence[Any], told: Told) -> Iterator[str]:  # noqa: ANN401
    """Last words of each process, "" of one that ended well; `told` hears of their progress meanwhile."""
    running = set(range(len(workers)))
    while running:
        # First who has ended, then what is left to hear: nobody says anything afterwards.
        ended = [place for place in running if workers[place].exitcode is not None]
        try:
            while True:
                place, message = heard.get(timeout=0.0 if ended else 0.5)
                if isinstance(message, Tally):
                    told(message)
                else:
                    running.discard(place)
                    yield message
        except Empty:
            for place in ended:
                if place in running:
                    running.discard(place)
                    code = workers[place].exitcode
                    yield f"a process of the run ended with exit code {code}; the same command resumes"


def _work(job: _Job, directory: Path, left: Sequence[str], place: int, say: Any) -> None:  # noqa: ANN401
    _end_with_parent()
    try:
        bench = open_benchmark(directory, job.options.images, verify=False)
        todo = _Todo(bench, left, read_log(job.out), job.options.policy)
        with StepLog(log_path(job.out, place)) as log:
            asyncio.run(_examine(job, bench, todo, log, lambda tally: say.put((place, tally))))
    except CarinaError as error:
        say.put((place, str(error)))
    except KeyboardInterrupt:
        say.put((place, "interrupted; the same command resumes"))
    else:
        say.put((place, ""))


def _end_with_parent() -> None:
    """Whoever takes the run up after its main process was killed must not find another one still asking."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, name="carina-parent", daemon=True).start()
