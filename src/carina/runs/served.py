"""Runs a served model: many conversations at a time, each answer on disk before the next question is asked.

Providers, retries, rate limits and connection limits are inspect-ai's; the walk and the log are Carina's. With several
processes each has its own share of the cases and its own log.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from carina.cases import Benchmark, open_benchmark
from carina.cases.messages import Message
from carina.models import Reply, RequestOptions
from carina.models.served import ChatMessage, ServedModel
from carina.models.served.address import served_address, without_secrets
from carina.models.served.first_request import send_first_request
from carina.models.served.terms import refuse_restricted
from carina.models.served.usage import MOST_TOKENS
from carina.runs.answer_schema import answer_schema
from carina.runs.claim import identify_run, read_info
from carina.runs.commits import Commits
from carina.runs.examples import open_examples, open_images
from carina.runs.failures import NothingAnsweredError
from carina.runs.images import CaseImages, data_uri
from carina.runs.in_process import log_entry
from carina.runs.log import Answered, StepLog, log_path, read_log
from carina.runs.options import RunOptions
from carina.runs.records import Example, ImageDetail, OnProgress, ProgressCount, Turn
from carina.runs.walk import Walk, resume_walks
from carina.store.counts import format_count
from carina.store.errors import CarinaError
from carina.store.manifest import SourceInfo
from carina.store.progress import Progress
from carina.store.waiting import wait_for_result
from carina.store.workers import in_order, send_message

_GIVE_UP_AFTER: Final = 20
"""Turns that fail in a row, after which the others would fail too."""


T = TypeVar("T")


class ConversationOf(Protocol):
    """One conversation with a model."""

    async def answer(self, messages: Sequence[ChatMessage], schema: Mapping[str, Any] | None = None) -> Reply:
        """The model's answer to the last of these messages, as JSON where there is a schema."""


class ConversationModel(Protocol):
    """A model that holds many conversations at a time, such as a `ServedModel`."""

    def conversation(self, system: str) -> ConversationOf:
        """Start a conversation."""

    async def close(self) -> None: ...


@dataclass(frozen=True)
class _Job:
    """What every process of a run needs to know."""

    model: str
    out: Path
    options: RunOptions
    stay_local: bool
    """Whether requests to any other machine are refused."""

    def open(self, request: RequestOptions) -> ServedModel:
        """Open the model with some options of requests."""
        return ServedModel(
            self.model,
            sampling=self.options.sampling,
            request=request,
            base_url=self.options.base_url,
            retries=self.options.retries,
            attempt_seconds=self.options.timeout,
            connections=self.options.connections,
            stay_local=self.stay_local,
            keep_reasoning=self.options.policy.profile == "chexpercept",
        )


def _make_job(bench: Benchmark, model: str, out: Path, options: RunOptions) -> _Job:
    stay_local = refuse_restricted(
        list_sources(bench, options), model, base_url=options.base_url, accept_terms=options.accept_terms
    )
    return _Job(model, out, options, stay_local)


def check_served(
    bench: Benchmark,
    model: str,
    out: Path,
    options: RunOptions,
    *,
    progress: Progress,
    on_notice: Callable[[str], object],
) -> None:
    """Send the first request to a served model: before anything is written, and without anything of the benchmark.

    Raises:
        CarinaError: It was not answered; the message says what to change.
    """
    job = _make_job(bench, model, out, options)
    place = without_secrets(served_address(model, options.base_url)) or model
    with progress(f"First request to {place}", 1) as advance:
        reply = run_in_thread(
            send_first_request(
                job.open,
                options.request,
                seconds=options.timeout,
                retries=options.retries,
                notify=on_notice,
            )
        )
        advance(1)
    tokens = [format_count(number, "token") for number in (reply.input_tokens, reply.output_tokens) if number]
    taken = f"; {' sent and '.join(tokens)} written, not counted in the run" if len(tokens) > 1 else ""
    on_notice(f"{model}: the first request was answered in {reply.seconds:.1f} s{taken}")


def run_served(
    bench: Benchmark,
    model: str,
    out: Path,
    options: RunOptions,
    *,
    answered: Answered,
    cases: Sequence[str],
    progress: OnProgress,
    on_notice: Callable[[str], object],
) -> None:
    """Run a served model on cases."""
    job = _make_job(bench, model, out, options)
    if options.processes > 1 and len(cases) > 1:
        refused = _run_processes(job, bench.directory, cases, progress)
    else:
        with StepLog(log_path(out), identify_run(read_info(out))) as log:
            refused = run_in_thread(
                _run_cases(job, bench, OpenCases(bench, cases, answered, options), log, progress)
            )
    if refused:
        on_notice(
            f"{model}: the token counts of {format_count(refused, 'answer')} make no sense (negative, no whole number, "
            f"above {MOST_TOKENS:,}, or a total below its parts); they are stored as not reported and not summed"
        )


def list_sources(bench: Benchmark, options: RunOptions) -> list[SourceInfo]:
    """Sources of all data that a run sends: of the cases and of the examples."""
    examples = open_examples(options)
    return [*bench.manifest.sources, *(examples.manifest.sources if examples is not None else ())]


def run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end in another thread; an interrupt of this one cancels the work, which keeps its answers.

    Ctrl-C is raised in the main thread, wherever it is: inside a task it would leave the other tasks of the event loop
    behind with errors that nobody takes. And in a notebook an event loop is already running in this thread.
    """
    begun: Future[asyncio.Task[int] | None] = Future()

    async def begin() -> T:
        begun.set_result(asyncio.current_task())
        return await work

    with ThreadPoolExecutor(max_workers=1) as thread:
        running = thread.submit(asyncio.run, begin())
        try:
            return wait_for_result(running)
        except KeyboardInterrupt:
            # Where the event loop itself could not begin, there is nothing to cancel.
            both: tuple[Future[Any], ...] = (begun, running)
            wait(both, return_when=FIRST_COMPLETED)
            task = begun.result() if begun.done() else None
            if task is not None:
                with suppress(RuntimeError):  # it has ended in the meantime
                    task.get_loop().call_soon_threadsafe(task.cancel)
            raise


# ---- one process ----------------------------------------------------------------------------------------------------


async def _run_cases(
    job: _Job, bench: Benchmark, open_cases: "OpenCases", log: StepLog, progress: OnProgress
) -> int:
    """Walk all cases; returns the number of answers whose token counts were refused."""
    options = job.options
    return await hold_conversations(
        job.model, job.open(options.request), bench, open_cases, log, options=options, progress=progress
    )


async def hold_conversations(
    name: str,
    model: ConversationModel,
    bench: Benchmark,
    open_cases: "OpenCases",
    log: StepLog,
    *,
    options: RunOptions,
    progress: OnProgress,
    give_up_after: int | None = _GIVE_UP_AFTER,
) -> int:
    """Walk all cases, `options.connections` at a time; returns how many answers had token counts that were refused."""
    images = open_images(bench, options)
    commits = Commits(log)
    runner = _Runner(
        name, model, options, images=images, commits=commits, progress=progress, give_up_after=give_up_after
    )
    # The garbage collector would go through the objects of the providers' packages again and again: a tenth of a turn.
    gc.freeze()
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(options.connections):
                group.create_task(runner.work(open_cases))
    except BaseExceptionGroup as failed:
        # The error that stopped the others, not their cancellation.
        raise _first(failed) from None
    finally:
        gc.unfreeze()
        await commits.close()
        await model.close()
    return runner.refused_usages


def _first(failed: BaseExceptionGroup[BaseException]) -> BaseException:
    first = next(
        (error for error in failed.exceptions if isinstance(error, CarinaError)), failed.exceptions[0]
    )
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


class OpenCases:
    """The walks of the cases to run, each at its first open question."""

    def __init__(
        self, bench: Benchmark, cases: Sequence[str], answered: Answered, options: RunOptions
    ) -> None:
        self._walks = resume_walks(bench, cases, answered, options.policy, options.prompts)
        self._reading = asyncio.Lock()

    async def next(self) -> Walk | None:
        # Cases are read in another thread than the event loop's, one at a time.
        async with self._reading:
            return await asyncio.to_thread(next, self._walks, None)


class _Runner:
    """Takes cases one after the other and walks each to its end."""

    def __init__(
        self,
        model: str,
        served: ConversationModel,
        options: RunOptions,
        *,
        images: CaseImages,
        commits: Commits,
        progress: OnProgress,
        give_up_after: int | None,
    ) -> None:
        self._model = model
        self._image_detail = options.prompts.image_detail
        self._examples = ExampleMessages(images, options.prompts.image_detail)
        self._served = served
        self._images = images
        self._commits = commits
        self._progress = progress
        self._is_structured = options.request.structured
        self._failed = 0
        self._has_answer = False
        self._give_up_after = give_up_after
        self.refused_usages = 0
        """Answers whose token counts made no sense."""

    async def work(self, open_cases: OpenCases) -> None:
        while (walk := await open_cases.next()) is not None:
            await self._walk(walk)
            self._progress(ProgressCount(cases=1))

    async def _walk(self, walk: Walk) -> None:
        uris: dict[str, str] = {}
        conversation = self._served.conversation(walk.system)
        while (turn := walk.turn) is not None:
            began = time.perf_counter()
            try:
                await self._render(walk, turn, uris)
            except CarinaError as error:
                # A missing image concerns its case alone.
                reply = Reply(text=None, error=str(error))
            else:
                began = time.perf_counter()
                messages = [*await self._examples.of(turn), *chat_messages(turn, uris, self._image_detail)]
                schema = answer_schema(turn.step) if self._is_structured else None
                reply = await conversation.answer(messages, schema)
            row = walk.take(reply, seconds=round(time.perf_counter() - began, 4))
            await self._commits.commit(log_entry(row, reply))
            self._progress(ProgressCount(asked=1, failed=int(reply.text is None)))
            self.refused_usages += reply.is_usage_refused
            self._count_failures(reply)

    async def _render(self, walk: Walk, turn: Turn, uris: dict[str, str]) -> None:
        """Add the images that the conversation lacks, rendered and encoded once, outside the event loop's thread."""
        # All messages: those of a resumed case show images too.
        missing = [view for message in turn.messages for view in message.shows if view not in uris]
        if missing:
            uris |= await asyncio.to_thread(self._images.data_uris, walk.case, missing)

    def _count_failures(self, reply: Reply) -> None:
        self._has_answer |= reply.error is None
        self._failed = 0 if reply.error is None else self._failed + 1
        if self._give_up_after is not None and self._failed >= self._give_up_after:
            kind = CarinaError if self._has_answer else NothingAnsweredError
            raise kind(
                f"model {self._model!r}: {self._failed} turns in a row failed, the last with {reply.error}"
            )


def chat_messages(turn: Turn, uris: dict[str, str], detail: ImageDetail = "auto") -> list[ChatMessage]:
    """The messages of a turn with their images, without its examples."""
    return [
        _chat_message(turn, message, tuple(uris[view] for view in message.shows), detail)
        for message in turn.messages
    ]


def _chat_message(turn: Turn, message: Message, images: tuple[str, ...], detail: ImageDetail) -> ChatMessage:
    return ChatMessage(
        role=message.role,
        text=message.text,
        images=images,
        are_images_last=turn.image_order == "after",
        detail=detail,
    )


class ExampleMessages:
    """The examples of a run as messages, each made when it is first needed."""

    def __init__(self, images: CaseImages, detail: ImageDetail) -> None:
        self._images = images
        self._detail = detail
        self._made: dict[str, list[ChatMessage]] = {}
        self._making = asyncio.Lock()

    async def of(self, turn: Turn) -> list[ChatMessage]:
        """The messages of the examples of a turn, first to last."""
        if not turn.examples:
            return []
        async with self._making:
            for one in turn.examples:
                if one.case not in self._made:
                    self._made[one.case] = await asyncio.to_thread(self._make, turn, one)
        return [message for one in turn.examples for message in self._made[one.case]]

    def _make(self, turn: Turn, example: Example) -> list[ChatMessage]:
        return [
            _chat_message(
                turn,
                message,
                tuple(data_uri(self._images(example.case, view)) for view in message.shows),
                self._detail,
            )
            for message in example.messages
        ]


# ---- several processes ----------------------------------------------------------------------------------------------


def _run_processes(job: _Job, directory: Path, cases: Sequence[str], progress: OnProgress) -> int:
    """Divide cases and connections among processes; when one fails, the others finish their cases."""
    number = min(job.options.processes, len(cases))
    options = replace(job.options, connections=max(1, job.options.connections // number))
    work = partial(_run_worker, replace(job, options=options), directory)
    shares = [(place, tuple(cases[place::number])) for place in range(number)]
    results = list(in_order(work, shares, workers=number, on_message=progress))
    for result in results:
        if isinstance(result, CarinaError):
            raise result
    return sum(result for result in results if isinstance(result, int))


def _run_worker(job: _Job, directory: Path, share: tuple[int, tuple[str, ...]]) -> CarinaError | int:
    """Run the cases of one share; returns the error that ended it, or as `_run_cases` does."""
    place, cases = share
    try:
        bench = open_benchmark(
            directory, job.options.images, verify=False, verify_images=job.options.verify_images
        )
        open_cases = OpenCases(bench, cases, read_log(job.out), job.options)
        with StepLog(log_path(job.out, place), identify_run(read_info(job.out))) as log:
            return asyncio.run(_run_cases(job, bench, open_cases, log, send_message))
    except CarinaError as error:
        return error
