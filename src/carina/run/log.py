"""The step log: one line an answer, appended and brought to disk before the next question is asked.

A paid answer survives any crash. A line that was cut off is left aside and its question asked again; of several lines
about one step the last counts, so a step that failed on the way is mended by a later call.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

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


def read_log(run: Path, *, mend: bool = False) -> "LoggedAnswers":
    """What earlier calls have brought to disk, from all processes.

    `mend` cuts off what an interruption left of a last line; for whoever knows that nobody else is writing.
    """
    places: dict[str, list[_Place]] = {}
    for path in sorted(run.glob("steps-*.jsonl")):
        for case, place in _places(path, mend=mend):
            places.setdefault(case, []).append(place)
    return LoggedAnswers(places)


class LoggedAnswers(Mapping[str, Mapping[int, Entry]]):
    """Entries by case, read when asked for: of a long run only the places of its lines are held in memory."""

    def __init__(self, places: Mapping[str, Sequence["_Place"]]) -> None:
        self._places = places

    def __getitem__(self, case: str) -> dict[int, Entry]:
        found: dict[int, Entry] = {}
        for place in self._places[case]:
            entry = place.read()
            there = found.get(entry.row.number)
            # An answer is never given up for a failure, whichever file is read last.
            if there is None or entry.row.state == "answered" or there.row.state != "answered":
                found[entry.row.number] = entry
        return found

    def __contains__(self, case: object) -> bool:
        return case in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class _Place(NamedTuple):
    """Where a line lies."""

    path: Path
    number: int
    """Of the line, from 1."""
    start: int
    size: int

    def read(self) -> Entry:
        with self.path.open("rb") as file:
            file.seek(self.start)
            try:
                return _ENTRY.decode(file.read(self.size))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise CarinaError(
                    f"{self.path}, line {self.number}: not an answered step ({error})"
                ) from error


class _Case(msgspec.Struct):
    case: str


class _Line(msgspec.Struct):
    """What must be known of a line to find it again."""

    row: _Case


_ENTRY: Final = msgspec.json.Decoder(Entry)
_LINE: Final = msgspec.json.Decoder(_Line)


def _places(path: Path, *, mend: bool) -> Iterator[tuple[str, _Place]]:
    start = 0
    with path.open("r+b" if mend else "rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                if mend:
                    file.truncate(start)
                return
            try:
                case = _LINE.decode(line).row.case
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise CarinaError(f"{path}, line {number}: not an answered step ({error})") from error
            yield case, _Place(path, number, start, len(line))
            start += len(line)
