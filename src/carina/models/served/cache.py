"""Answers that were paid for, kept in one file: whoever asks again, after an interruption or in a new build, is told.

One line of JSON an answer, appended and brought to disk before it is used. A line that was cut off is left aside and
asked for again. Only the places of the lines are held in memory.
"""

import fcntl
import os
import threading
from io import BufferedRandom
from pathlib import Path

import msgspec

from carina.errors import CarinaError
from carina.models.served.records import Reply


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """An answer on disk. The prompt is not repeated: it may hold text that must not be spread."""

    key: str
    model: str
    text: str
    stop: str
    input_tokens: int | None = None
    output_tokens: int | None = None


class AnswerCache:
    """Answers by key; for one process at a time, any of its threads. Open it as a context, or close it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._places: dict[bytes, int] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600, exist_ok=True)  # a model's words about reports are nobody else's business
        self._file: BufferedRandom = path.open("r+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._take_in()
        except BlockingIOError:
            self._file.close()
            raise CarinaError(
                f"{path}: another process is adding answers to it; give each build its own"
            ) from None
        except CarinaError:
            self._file.close()
            raise

    def __enter__(self) -> "AnswerCache":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._places)

    def close(self) -> None:
        self._file.close()

    def get(self, key: str) -> Reply | None:
        """The answer of an earlier occasion."""
        with self._lock:
            place = self._places.get(bytes.fromhex(key))
            if place is None:
                return None
            self._file.seek(place)
            line = msgspec.json.decode(self._file.readline(), type=_Line)
        return Reply(
            text=line.text,
            stop=line.stop,
            input_tokens=line.input_tokens,
            output_tokens=line.output_tokens,
            cached=True,
        )

    def add(self, key: str, model: str, reply: Reply) -> None:
        """Keep an answer; when this returns, it is on disk. A failure is not an answer and is not kept."""
        if reply.text is None:
            return
        line = _Line(
            key=key,
            model=model,
            text=reply.text,
            stop=reply.stop,
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
        )
        with self._lock:
            place = self._file.seek(0, os.SEEK_END)
            self._file.write(msgspec.json.encode(line) + b"\n")
            self._file.flush()
            os.fsync(self._file.fileno())
            self._places[bytes.fromhex(key)] = place

    def _take_in(self) -> None:
        """Find every line, and cut off what an interruption left of a last one."""
        decoder = msgspec.json.Decoder(_Line)
        place = 0
        for number, line in enumerate(self._file, start=1):
            if not line.endswith(b"\n"):
                self._file.truncate(place)
                break
            try:
                key = bytes.fromhex(decoder.decode(line).key)
            except (msgspec.DecodeError, ValueError) as error:
                raise CarinaError(
                    f"{self.path}, line {number}: not an answer of a model ({error}); remove the line or the file"
                ) from error
            self._places[key] = place
            place += len(line)
