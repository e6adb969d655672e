"""Many prompts to one served model: answers in the order of the prompts, a bounded number of requests at a time.

`ask` is synchronous. Inside, one thread runs the event loop of the clients; it starts at the first prompt whose answer
is not in the cache, so a build whose answers are all cached needs neither key nor network.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future
from contextlib import closing
from typing import Final

from carina.models.conversation import Reply, Sampling
from carina.models.served.cache import AnswerCache
from carina.models.served.records import Prompt, key_of
from carina.models.served.service import ServedModel
from carina.store.errors import CarinaError
from carina.store.waiting import wait_for_result

AHEAD: Final = 4
"""Prompts read ahead per connection: a slow answer must not leave the other connections idle."""


Replies = Generator[Reply, None, None]


def ask(
    model: str,
    prompts: Iterable[Prompt],
    *,
    connections: int = 8,
    sampling: Sampling | None = None,
    cache: AnswerCache | None = None,
    base_url: str | None = None,
    stay_local: bool = False,
    retries: int = 5,
    attempt_seconds: int = 300,
    give_up_after: int = 20,
) -> Replies:
    """Send prompts to a served model.

    Args:
        model: Name in inspect-ai: "openai/gpt-5".
        prompts: What to send.
        connections: Requests at a time.
        sampling: Temperature, longest answer and seed.
        cache: Answers of earlier calls; with a cache no prompt is paid for twice.
        base_url: Address of the server; None for the provider's own.
        stay_local: Whether requests to any other machine are refused; see `refuse_restricted`.
        retries: Retries after a transport error; a prompt that still fails gives a reply with an error.
        attempt_seconds: Seconds for one attempt.
        give_up_after: Failures in a row after which the rest is not tried.

    Returns:
        Replies in the order of the prompts. Close the generator if it is not read to its end.

    Raises:
        CarinaError: The key is refused, the model is unknown, or too many prompts in a row failed.
    """
    if connections < 1:
        raise CarinaError(f"connections: expected 1 or more, found {connections}")
    sender = _Sender(
        model,
        sampling=sampling or Sampling(),
        cache=cache,
        base_url=base_url,
        stay_local=stay_local,
        connections=connections,
        retries=retries,
        attempt_seconds=attempt_seconds,
    )
    replies = _in_order(sender, prompts, ahead=AHEAD * connections)
    return _stop_after_failures(model, replies, give_up_after=give_up_after)


def _in_order(sender: "_Sender", prompts: Iterable[Prompt], *, ahead: int) -> Replies:
    pending: deque[Future[Reply]] = deque()
    try:
        for prompt in prompts:
            pending.append(sender.submit(prompt))
            while pending and (pending[0].done() or len(pending) >= ahead):
                yield wait_for_result(pending.popleft())
        while pending:
            yield wait_for_result(pending.popleft())
    finally:
        sender.close()


def _stop_after_failures(model: str, replies: Replies, *, give_up_after: int) -> Replies:
    failed = 0
    # Closed here, not when the error is garbage-collected: a thread waits for it.
    with closing(replies):
        for reply in replies:
            yield reply
            failed = 0 if reply.error is None else failed + 1
            if failed >= give_up_after:
                raise CarinaError(
                    f"model {model!r}: {failed} prompts in a row failed, the last with {reply.error}"
                )


class _Sender:
    """Sends prompts from its own thread."""

    def __init__(
        self,
        model: str,
        *,
        sampling: Sampling,
        cache: AnswerCache | None,
        base_url: str | None,
        stay_local: bool,
        connections: int,
        retries: int,
        attempt_seconds: int,
    ) -> None:
        self._name = model
        self._sampling = sampling
        self._cache = cache
        self._base_url = base_url
        self._stay_local = stay_local
        self._connections = asyncio.Semaphore(connections)
        self._retries = retries
        self._attempt_seconds = attempt_seconds
        self._in_flight: dict[str, Future[Reply]] = {}
        self._served: ServedModel | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, prompt: Prompt) -> "Future[Reply]":
        """The future reply: from the cache, shared with an equal prompt in flight, or of a new request."""
        key = key_of(self._name, prompt, self._sampling)
        # In this order: a request stays in flight until its answer is in the cache.
        shared = self._in_flight.get(key) if self._cache is not None else None
        if shared is not None:
            return shared
        cached = self._cache.get(key) if self._cache is not None else None
        if cached is not None:
            ready: Future[Reply] = Future()
            ready.set_result(cached)
            return ready
        served, loop = self._open()
        future = asyncio.run_coroutine_threadsafe(self._answer(served, key, prompt), loop)
        self._in_flight[key] = future
        future.add_done_callback(lambda _: self._in_flight.pop(key, None))
        return future

    def close(self) -> None:
        """Cancel requests in flight and end the thread."""
        if self._loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._loop = None

    def _open(self) -> tuple[ServedModel, asyncio.AbstractEventLoop]:
        if self._served is None or self._loop is None:
            self._served = ServedModel(
                self._name,
                sampling=self._sampling,
                base_url=self._base_url,
                stay_local=self._stay_local,
                retries=self._retries,
                attempt_seconds=self._attempt_seconds,
            )
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="carina-served", daemon=True)
            self._thread.start()
        return self._served, self._loop

    async def _answer(self, served: ServedModel, key: str, prompt: Prompt) -> Reply:
        async with self._connections:
            reply = await served.answer(prompt)
        if self._cache is not None:
            # Cached when it arrives, not when it is used: answers behind a slow one are paid for too.
            await asyncio.to_thread(self._cache.add, key, self._name, reply)
        return reply

    async def _stop(self) -> None:
        own = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not own]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # An answer that is being written reaches the disk before the cache may be closed.
        await asyncio.get_running_loop().shutdown_default_executor()
        if self._served is not None:
            await self._served.close()
