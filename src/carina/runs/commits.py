"""Write the answers of many conversations to disk together."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from carina.runs.log import Entry, StepLog
from carina.store.errors import CarinaError

_GATHER: Final = 0.002
"""Seconds for which answers wait for others, to be written with them."""


class Commits:
    """Writes all waiting entries with one flush, so that a hundred conversations do not need a hundred flushes."""

    def __init__(self, log: StepLog) -> None:
        self._log = log
        self._waiting: list[asyncio.Future[None]] = []
        self._flusher: asyncio.Task[None] | None = None
        # A separate thread: a paid answer does not wait behind the rendering of images.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="carina-log")

    async def commit(self, written: Entry) -> None:
        """Return when the entry is on disk."""
        self._log.append([written])
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(ready)
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush())
        await ready

    async def close(self) -> None:
        """Write all remaining entries to disk."""
        if self._flusher is not None:
            await self._flusher
        self._thread.shutdown()

    async def _flush(self) -> None:
        while self._waiting:
            await asyncio.sleep(_GATHER)
            waiting, self._waiting = self._waiting, []
            try:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._log.sync)
            except OSError as error:
                failed = CarinaError(f"{self._log.path}: cannot be written: {error.strerror}")
                for ready in waiting:
                    if not ready.done():
                        ready.set_exception(failed)
            else:
                for ready in waiting:
                    if not ready.done():
                        ready.set_result(None)
