"""Many prompts to one model: answers in the order of the prompts, a bounded number on the way at any time.

Synchronous outside. Inside, one thread runs the event loop of the clients, started at the first prompt whose answer
is not in the cache: a build whose answers are all there needs neither key nor network.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future
from contextlib import closing
from typing import Final

from carina.errors import CarinaError
from carina.models.served.cache import AnswerCache
from carina.models.served.records import Prompt, Reply, Sampling, key_of
from carina.models.served.service import ServedModel

AHEAD: Final = 4
"""Prompts taken in a connection: a slow answer must not leave the other connections idle behind it."""


Replies = Generator[Reply, None, None]


def ask(
    model: str,
    prompts: Iterable[Prompt],
    *,
    connections: int = 8,
    sampling: Sampling | None = None,
    cache: AnswerCache | None = None,
    base_url: str | None = None,
    retries: int = 5,
    attempt_seconds: int = 300,
    give_up_after: int = 20,
) -> Replies:
    """Answers of a model, one a prompt, in order; close it where it is left early.

    A prompt that fails after `retries` gives a reply with an error, and the rest goes on; `give_up_after` failures in
    a row, a refused key or an unknown model end it with a `CarinaError`. With a cache no prompt is paid for twice.
    """
    if connections < 1:
        raise CarinaError(f"connections: {connections}; at least 1 is needed")
    asker = _Asker(
        model,
        sampling=sampling or Sampling(),
        cache=cache,
        base_url=base_url,
        connections=connections,
        retries=retries,
        attempt_seconds=attempt_seconds,
    )
    replies = _in_order(asker, prompts, ahead=AHEAD * connections)
    return _while_answered(model, replies, give_up_after=give_up_after)


def _in_order(asker: "_Asker", prompts: Iterable[Prompt], *, ahead: int) -> Replies:
    waiting: deque[Future[Reply]] = deque()
    try:
        for prompt in prompts:
            waiting.append(asker.submit(prompt))
            while waiting and (waiting[0].done() or len(waiting) >= ahead):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        asker.close()


def _while_answered(model: str, replies: Replies, *, give_up_after: int) -> Replies:
    failed = 0
    # Closed here and now, not when somebody lets go of the error: a thread hangs on it.
    with closing(replies):
        for reply in replies:
            yield reply
            failed = 0 if reply.error is None else failed + 1
            if failed >= give_up_after:
                told = f"{failed} prompts in a row failed, the last with {reply.error}"
                raise CarinaError(f"model {model!r}: {told}")


class _Asker:
    """Sends prompts from a thread of its own."""

    def __init__(
        self,
        model: str,
        *,
        sampling: Sampling,
        cache: AnswerCache | None,
        base_url: str | None,
        connections: int,
        retries: int,
        attempt_seconds: int,
    ) -> None:
        self._name = model
        self._sampling = sampling
        self._cache = cache
        self._base_url = base_url
        self._connections = asyncio.Semaphore(connections)
        self._retries = retries
        self._attempt_seconds = attempt_seconds
        self._on_the_way: dict[str, Future[Reply]] = {}
        self._served: ServedModel | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def submit(self, prompt: Prompt) -> "Future[Reply]":
        """The reply to come: from the cache, shared with the same prompt already on the way, or asked for now."""
        key = key_of(self._name, prompt, self._sampling)
        # In this order: an answer leaves the way only after it has entered the cache.
        shared = self._on_the_way.get(key) if self._cache is not None else None
        if shared is not None:
            return shared
        kept = self._cache.get(key) if self._cache is not None else None
        if kept is not None:
            there: Future[Reply] = Future()
            there.set_result(kept)
            return there
        served, loop = self._open()
        future = asyncio.run_coroutine_threadsafe(self._answer(served, key, prompt), loop)
        self._on_the_way[key] = future
        future.add_done_callback(lambda _: self._on_the_way.pop(key, None))
        return future

    def close(self) -> None:
        """Stop what is on the way and end the thread."""
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
            # Kept as it comes, not as it is used: what waits behind a slow answer is paid for too.
            await asyncio.to_thread(self._cache.add, key, self._name, reply)
        return reply

    async def _stop(self) -> None:
        own = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not own]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        # An answer that is just being written is brought to disk before the cache may be closed.
        await asyncio.get_running_loop().shutdown_default_executor()
        if self._served is not None:
            await self._served.close()
