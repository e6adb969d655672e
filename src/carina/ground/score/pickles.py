"""Pickled maps, as cheXlocalize hands them out, made into `.npz` by a process that runs nothing of theirs."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from carina.errors import CarinaError
from carina.studies.pixels import MAX_BYTES

_SUFFIXES: Final = (".pkl", ".pickle")
_CHILD: Final = "carina.ground.score.unpickle"


def convert_pickles(
    source: Path, out: Path, *, progress: Callable[[int], None] = lambda _: None
) -> tuple[list[Path], dict[str, str]]:
    """A `.npz` in `out` for each pickle in `source` and below; what was written, and why the rest was not, by file.

    Names are kept, folders are not. A file that ends the process (by its limits on memory, time or size) is left out,
    and a new process goes on with the next.
    """
    if not source.is_dir():
        raise CarinaError(f"{source}: expected a directory of pickles")
    found = sorted(path for path in source.rglob("*") if path.suffix.lower() in _SUFFIXES and path.is_file())
    if not found:
        raise CarinaError(f"{source}: holds no {' or '.join(_SUFFIXES)} files")
    repeated = {path.stem for path in found if sum(other.stem == path.stem for other in found) > 1}
    if repeated:
        raise CarinaError(f"{source}: {sorted(repeated)[0]} is there more than once, in several folders")
    out.mkdir(parents=True, exist_ok=True)
    refused = {
        str(path): f"{path.stat().st_size:,} bytes, more than the limit of {MAX_BYTES:,}"
        for path in found
        if path.stat().st_size > MAX_BYTES
    }
    waiting = [(path, out / f"{path.stem}.npz") for path in found if str(path) not in refused]
    written: list[Path] = []
    while waiting:
        done = _run(waiting, progress)
        for (path, target), wrong in zip(waiting, done, strict=False):
            if wrong is None:
                written.append(target)
            else:
                refused[str(path)] = wrong
        waiting = waiting[len(done) :]
        if waiting and not done:
            raise CarinaError(f"{waiting[0][0]}: the process that reads pickles does not start")
    return written, refused


def _run(pairs: Sequence[tuple[Path, Path]], progress: Callable[[int], None]) -> list[str | None]:
    """What is wrong with each file that the child came to, None where nothing is; the last may be what ended it."""
    told = json.dumps([[str(source), str(target)] for source, target in pairs])
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(  # noqa: S603 - our own module, its input are paths
        [sys.executable, "-m", _CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    ) as child:
        assert child.stdin is not None  # noqa: S101 - both are pipes
        assert child.stdout is not None  # noqa: S101
        child.stdin.write(told)
        child.stdin.close()
        done: list[str | None] = []
        for line in child.stdout:
            done.append(json.loads(line)[1])
            progress(1)
        code = child.wait()
    if len(done) < len(pairs) and (done or code < 0):
        _, target = pairs[len(done)]
        target.unlink(missing_ok=True)
        done.append("ended the process that read it, by its limits on memory, time or size")
        progress(1)
    return done
