"""The step log: one line an answer, appended and brought to disk before the next question is asked.

A paid answer survives any crash. A line that was cut off is left aside and its question asked again; of several lines
about one step the last counts, so a later call replaces a transport error by an answer.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from carina.runs.records import StepRow
from carina.runs.steps_table import find_range_problem
from carina.store.errors import CarinaError
from carina.store.log import Log, read_lines, read_record


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line: the row, and the reply as it came where the row holds only part of it."""

    row: StepRow
    text: str | None = None
    run: str = ""
    """What the run asks, as `identify_run` names it; empty in logs of earlier versions."""

    @property
    def reply(self) -> str | None:
        """The model's words as they came."""
        return self.row.raw if self.text is None else self.text


class StepLog:
    """Appends entries to one file, for one process."""

    def __init__(self, path: Path, run: str = "") -> None:
        self.path = path
        self._run = run
        self._log = Log(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def append(self, entries: Iterable[Entry]) -> None:
        """Add entries; `sync` brings them to disk."""
        self._log.append(_ENCODER.encode(msgspec.structs.replace(entry, run=self._run)) for entry in entries)

    def sync(self) -> None:
        """Return when everything that was appended is on disk."""
        self._log.sync()


Answered = Mapping[str, Mapping[int, Entry]]
"""The last entry by case and number of the step."""


LOG_PATTERN: Final = "steps-*.jsonl"
"""Names of the logs of a run."""


def log_path(run: Path, process: int = 0) -> Path:
    """Path of the log of one process of a run."""
    return run / f"steps-{process:02d}.jsonl"


def read_log(
    directory: Path, run: str = "", *, every_line: bool = False, repair: bool = False
) -> "LoggedAnswers":
    """What earlier calls have brought to disk, from all processes.

    Args:
        directory: Directory of the run.
        run: What the run asks, as `identify_run` names it; lines of another run are refused. Empty for any.
        every_line: Refuse lines that state no run, too; logs that earlier versions began have them.
        repair: Remove a last line that was cut off; for a caller that holds the lock of the run.
    """
    places: dict[str, list[_Place]] = {}
    for path in sorted(directory.glob(LOG_PATTERN)):
        for case, place in _places(path, run, every_line=every_line, repair=repair):
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
    """Position of a line in the log."""

    path: Path
    number: int
    start: int

    def read(self) -> Entry:
        try:
            entry = _ENTRY.decode(read_record(self.path, self.start))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _not_an_entry(self.path, self.number, error) from error
        problem = find_range_problem(entry.row)
        if problem is not None:
            raise _not_an_entry(self.path, self.number, problem)
        return entry


class _Case(msgspec.Struct):
    case: str


class _Line(msgspec.Struct):
    """The part of a line that is needed to find it again."""

    row: _Case
    run: str = ""


_ENCODER: Final = msgspec.json.Encoder()
_ENTRY: Final = msgspec.json.Decoder(Entry)
_LINE: Final = msgspec.json.Decoder(_Line)


def _places(path: Path, run: str, *, every_line: bool, repair: bool) -> Iterator[tuple[str, _Place]]:
    for line in read_lines(path, repair=repair):
        try:
            found = _LINE.decode(line.record or b"")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise _not_an_entry(path, line.number, error) from error
        if run and found.run != run and (found.run or every_line):
            raise CarinaError(
                f"{path}, line {line.number}: an answer of another run, with another model, benchmark or options; "
                "restore the log of this run, or remove the file to have its questions asked again"
            )
        yield found.row.case, _Place(path, line.number, line.start)


def _not_an_entry(path: Path, number: int, problem: object) -> CarinaError:
    return CarinaError(
        f"{path}, line {number}: not an answered step ({problem}); restore the file, or remove the line to have its "
        "question asked again"
    )
