"""The folder of an export, whatever the format: made beside its place, and there only when it is whole."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec

from carina.errors import BenchmarkError
from carina.files import alone_in, write_bytes

MANIFEST: Final = "carina.json"
_STARTED: Final = ".export"
"""Holds, while the export is not finished, what it is an export of."""


class _Stated(Protocol):
    """A manifest that states what it is of."""

    @property
    def fingerprint(self) -> str: ...


Stated = TypeVar("Stated", bound=_Stated)


def finished(out: Path, fingerprint: str, kind: type[Stated], error: type[BenchmarkError]) -> Stated | None:
    """The manifest of this very export, if it is there already; whatever else is there is in the way."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return None
    try:
        there = msgspec.json.decode((out / MANIFEST).read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError):
        there = None
    if there is None or there.fingerprint != fingerprint:
        raise error(f"{out}: holds something else already: choose another directory, or remove it")
    return there


@contextmanager
def exporting(out: Path, fingerprint: str, error: type[BenchmarkError]) -> Iterator[Path]:
    """Where the export is made, which becomes `out` when the block ends well.

    It lies beside that place under a hidden name, is emptied where it was begun in another way, and else goes on with
    what an interrupted command has left. `finished` must have been asked before.
    """
    target = out.resolve()
    partly = target.with_name(f".{target.name}.partial")
    started = partly / _STARTED
    partly.mkdir(parents=True, exist_ok=True)
    with alone_in(partly) as alone:
        if not alone:
            raise error(f"{out}: another command exports to it at this moment")
        if any(partly.iterdir()) and (not started.is_file() or started.read_text() != fingerprint):
            for item in partly.iterdir():
                shutil.rmtree(item) if item.is_dir() else item.unlink()
        for leftover in partly.rglob(".*.tmp"):  # of a command that was killed
            leftover.unlink()
        write_bytes(started, fingerprint.encode())
        yield partly
        started.unlink()
        if target.is_dir():
            target.rmdir()  # it is empty, or `finished` had refused
        partly.replace(target)
