"""Outcomes of the lesions that a build has analysed so far, so that an interrupted build resumes.

The file is a log with checksums (`carina.store.log`) beside the unfinished benchmark: the first record is the
fingerprint of the build, each further record is an outcome. What follows a damaged or unknown record is analysed again.
"""

from pathlib import Path
from typing import Final

import msgspec

from carina.percept.records import LesionAnalysis, Outcome, Skipped
from carina.store.log import Log, read_lines

FILE: Final = ".journal"
_DECODER: Final = msgspec.json.Decoder(LesionAnalysis | Skipped)


class Journal:
    """Outcomes by study and target; open it as a context to add to it."""

    def __init__(self, directory: Path, fingerprint: str) -> None:
        self._path = directory / FILE
        self._fingerprint = fingerprint.encode()
        self._outcomes: dict[tuple[str, str], Outcome] = {}
        end = self._read()
        self._log = Log(self._path, keep=end, checksums=True)
        if not end:
            self._append(self._fingerprint)

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def get(self, study: str, target: str) -> Outcome | None:
        """The outcome of an earlier call, or None."""
        return self._outcomes.get((study, target))

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome, so that it survives the end of this process."""
        self._append(msgspec.json.encode(outcome))

    def _append(self, record: bytes) -> None:
        try:
            self._log.append([record])
            self._log.flush()
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._path)) from error

    def _read(self) -> int:
        """Read the outcomes of this build; returns where they end, 0 for the journal of another build or none."""
        if not self._path.exists():
            return 0
        end = 0
        for line in read_lines(self._path, checksums=True):
            if line.number == 1:
                if line.record != self._fingerprint:
                    return 0
            else:
                try:
                    outcome = _DECODER.decode(line.record or b"")
                except msgspec.DecodeError:
                    break
                study = outcome.study if isinstance(outcome, Skipped) else outcome.subject.study
                self._outcomes[study, outcome.target] = outcome
            end = line.end
        return end
