"""The step log: one line an answer, appended and brought to disk before the next question is asked.

A paid answer survives any crash. A line that was cut off is left aside and its question asked again; of several lines
about one step the last counts, so a step that failed on the way is mended by a later call.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Self

import msgspec

from carina.errors import CarinaError
from carina.run.records import StepRow


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line: the row, and the reply as it came where the row holds only part of it."""

    row: StepRow
    text: str | None = None

    @property
    def reply(self) -> str | None:
        """The model's words as they came."""
        return self.row.raw if self.text is None else self.text


class StepLog:
    """Appends entries to one file, for one process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("ab")
        self._encoder = msgspec.json.Encoder()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, entries: Iterable[Entry]) -> None:
        """Write entries; `sync` brings them to disk."""
        self._file.write(b"".join(self._encoder.encode(entry) + b"\n" for entry in entries))

    def sync(self) -> None:
        """Return when everything that was appended is on disk."""
        self._file.flush()
        os.fsync(self._file.fileno())


Answered = Mapping[str, Mapping[int, Entry]]
"""The last entry by case and number of the step."""


def log_path(run: Path, process: int = 0) -> Path:
    """Where a process of a run writes its log."""
    return run / f"steps-{process:02d}.jsonl"


def read_log(run: Path) -> dict[str, dict[int, Entry]]:
    """What earlier calls have brought to disk, from all processes; cuts off what an interruption left of a line."""
    found: dict[str, dict[int, Entry]] = {}
    for path in sorted(run.glob("steps-*.jsonl")):
        for entry in _entries(path):
            of_case = found.setdefault(entry.row.case, {})
            there = of_case.get(entry.row.number)
            # An answer is never given up for a failure, whichever file is read last.
            if there is None or entry.row.state == "answered" or there.row.state != "answered":
                of_case[entry.row.number] = entry
    return found


def _entries(path: Path) -> Iterator[Entry]:
    decoder = msgspec.json.Decoder(Entry)
    place = 0
    with path.open("r+b") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                file.truncate(place)
                return
            try:
                yield decoder.decode(line)
            except msgspec.DecodeError as error:
                raise CarinaError(f"{path}, line {number}: not an answered step ({error})") from error
            place += len(line)
