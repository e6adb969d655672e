"""Runs a Python function as a model (`carina.models.function`): a turn or batch at a time; async, many at a time."""

import asyncio
import base64
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from carina.cases import Benchmark
from carina.models import ModelName, Reply
from carina.models.function import (
    FunctionModel,
    FunctionStopped,
    Message,
    Outcomes,
    decode_png,
    find_function,
    is_async,
)
from carina.models.served import ChatMessage
from carina.runs.claim import identify_run, read_info
from carina.runs.examples import open_images
from carina.runs.in_process import run_batches
from carina.runs.log import Answered, StepLog, log_path
from carina.runs.options import RunOptions
from carina.runs.records import OnProgress
from carina.runs.served import OpenCases, hold_conversations, run_in_thread
from carina.runs.walk import resume_walks
from carina.store.errors import CarinaError


def run_function(
    bench: Benchmark,
    name: ModelName,
    out: Path,
    options: RunOptions,
    *,
    answered: Answered,
    cases: Sequence[str],
    progress: OnProgress,
) -> None:
    """Run a function on cases.

    Raises:
        CarinaError: A result is no text, or every turn failed, in this call and in earlier ones.
    """
    function = find_function(name)
    outcomes = Outcomes(name.name, answered=_has_answers(answered))
    try:
        with StepLog(log_path(out), identify_run(read_info(out))) as log:
            if is_async(function):
                model = _AsyncFunctionModel(function, outcomes)
                open_cases = OpenCases(bench, cases, answered, options)
                run_in_thread(
                    hold_conversations(
                        name.name,
                        model,
                        bench,
                        open_cases,
                        log,
                        options=options,
                        progress=progress,
                        give_up_after=None,
                    )
                )
            else:
                images = open_images(bench, options)
                walks = resume_walks(bench, cases, answered, options.policy, options.prompts)
                run_batches(walks, FunctionModel(function, outcomes), images, log, progress=progress)
        outcomes.require_any()
    except FunctionStopped as stopped:
        raise CarinaError(str(stopped)) from stopped.__cause__


def _has_answers(answered: Answered) -> bool:
    return any(entry.row.state == "answered" for case in answered for entry in answered[case].values())


class _AsyncFunctionModel:
    """An async function as a model that holds many conversations at a time."""

    def __init__(self, function: Callable[..., Any], outcomes: Outcomes) -> None:
        self._function = function
        self._outcomes = outcomes

    def conversation(self, system: str) -> "_FunctionConversation":
        return _FunctionConversation(self._function, self._outcomes, system)

    async def close(self) -> None:
        """Nothing to close: what the function opens is its own."""


class _FunctionConversation:
    def __init__(self, function: Callable[..., Any], outcomes: Outcomes, system: str) -> None:
        self._function = function
        self._outcomes = outcomes
        self._system = system

    async def answer(
        self,
        messages: Sequence[ChatMessage],
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002 - functions take no options of requests
    ) -> Reply:
        conversation = await asyncio.to_thread(_decode_messages, self._system, messages)
        try:
            result = await self._function(conversation)
        except Exception as error:
            return self._outcomes.failure(error)
        return self._outcomes.reply(result)


def _decode_messages(system: str, messages: Sequence[ChatMessage]) -> list[Message]:
    head = [Message("system", system)] if system else []
    return head + [Message(one.role, one.text, tuple(map(_decode_uri, one.images))) for one in messages]


def _decode_uri(uri: str) -> Any:  # noqa: ANN401 - an array
    return decode_png(base64.b64decode(uri.partition(",")[2]))
