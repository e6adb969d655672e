"""A cache of paid answers in one file, for a build that is interrupted or repeated.

One line of JSON an answer, appended and brought to disk before it is used. A line that was cut off is left aside and
asked for again. Only the places of the lines are held in memory.
"""

from contextlib import ExitStack
from pathlib import Path

import msgspec

from carina.models.conversation import Reply
from carina.store.errors import CarinaError
from carina.store.files import lock_file
from carina.store.log import Log, read_lines, read_record


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
        self._places: dict[bytes, int] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        busy = CarinaError(f"{path}: another process is adding answers to it; give each build its own")
        with ExitStack() as opening:
            opening.enter_context(lock_file(path.with_name(f".{path.name}.lock"), busy))
            if path.exists():
                self._find_lines()
            # Answers about reports may be confidential.
            self._log = opening.enter_context(Log(path, private=True))
            self._open = opening.pop_all()

    def __enter__(self) -> "AnswerCache":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._places)

    def close(self) -> None:
        """Close the file and let other processes have it."""
        self._open.close()

    def get(self, key: str) -> Reply | None:
        """The answer of an earlier occasion."""
        place = self._places.get(bytes.fromhex(key))
        if place is None:
            return None
        line = msgspec.json.decode(read_record(self.path, place), type=_Line)
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
        self._places[bytes.fromhex(key)] = self._log.add(msgspec.json.encode(line))

    def _find_lines(self) -> None:
        """Find every line, and remove what an interruption left of a last one."""
        decoder = msgspec.json.Decoder(_Line)
        for line in read_lines(self.path, repair=True):
            try:
                key = bytes.fromhex(decoder.decode(line.record or b"").key)
            except (msgspec.DecodeError, ValueError) as error:
                raise CarinaError(
                    f"{self.path}, line {line.number}: not an answer of a model ({error}); remove the line or the file"
                ) from error
            self._places[key] = line.start
