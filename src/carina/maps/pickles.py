"""Convert pickled maps, as cheXlocalize publishes them, to `.npz`, in a process that never runs their code."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from carina.store.arguments import check_arguments
from carina.store.errors import CarinaError
from carina.store.layout import lock_output
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, Result, as_path
from carina.studies.pixels import MAX_BYTES

if TYPE_CHECKING:
    import polars as pl

_SUFFIXES: Final = (".pkl", ".pickle")
_CHILD: Final = Path(__file__).with_name("unpickle.py")
"""Program of the child process."""


@dataclass(frozen=True, repr=False)
class ConvertedPickles(Result):
    """Result of `convert_pickles`: the files that were written, and those that were refused."""

    directory: Path
    written: tuple[Path, ...]
    """Paths of the `.npz` files."""
    refused: Mapping[str, str]
    """Why a file was not converted, by its path."""

    @property
    def path(self) -> Path:
        """The directory of the `.npz` files."""
        return self.directory

    def to_frame(self) -> "pl.DataFrame":
        """One row a file: the `.npz` file that was written, or the pickle that was refused and the reason."""
        import polars as pl  # noqa: PLC0415 - slow to import

        rows = [(str(file), None) for file in self.written] + list(self.refused.items())
        return pl.DataFrame(rows, schema={"file": pl.String, "refused": pl.String}, orient="row")

    def _summary(self) -> Mapping[str, object]:
        return {"written": len(self.written), "refused": len(self.refused)}


@check_arguments
def convert_pickles(source: Location, out: Location, *, progress: Progress = no_progress) -> ConvertedPickles:
    """Convert pickled maps to `.npz` without running the code that pickles may contain.

    A separate process with limits on memory, time and size reads the files. A file that ends the process is refused,
    and a new process continues with the next file.

    Args:
        source: Directory of pickles; folders below it are searched too.
        out: Directory to write the `.npz` files to, which keep the names of the pickles.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The files that were written, and the reasons why others were refused.

    Raises:
        CarinaError: There are no pickles, or two have the same name.

    Example:
        >>> convert_pickles("pickled-maps", "converted")
        ConvertedPickles('converted', written=1, refused=0)
    """
    directory, target = as_path(source), as_path(out)
    total = sum(1 for path in directory.rglob("*") if path.suffix.lower() in _SUFFIXES)
    with progress("Pickles", total) as advance:
        return _convert(directory, target, advance)


def _convert(source: Path, out: Path, advance: Callable[[int], object]) -> ConvertedPickles:
    if not source.is_dir():
        raise CarinaError(f"{source}: expected a directory of pickles")
    paths = sorted(path for path in source.rglob("*") if path.suffix.lower() in _SUFFIXES and path.is_file())
    if not paths:
        raise CarinaError(f"{source}: expected {' or '.join(_SUFFIXES)} files, found none")
    repeated = {path.stem for path in paths if sum(other.stem == path.stem for other in paths) > 1}
    if repeated:
        raise CarinaError(
            f"{source}: found several pickles called {sorted(repeated)[0]} in different folders; rename all but one"
        )
    with lock_output(out, "the converted maps"):
        return _convert_files(paths, out, advance)


def _convert_files(paths: Sequence[Path], out: Path, advance: Callable[[int], object]) -> ConvertedPickles:
    refused = {
        str(path): f"{path.stat().st_size:,} bytes, more than the limit of {MAX_BYTES:,}"
        for path in paths
        if path.stat().st_size > MAX_BYTES
    }
    waiting = [(path, out / f"{path.stem}.npz") for path in paths if str(path) not in refused]
    written: list[Path] = []
    while waiting:
        reasons = _run_child(waiting, advance)
        for (path, target), reason in zip(waiting, reasons, strict=False):
            if reason is None:
                written.append(target)
            else:
                refused[str(path)] = reason
        waiting = waiting[len(reasons) :]
        if waiting and not reasons:
            raise CarinaError(
                f"{waiting[0][0]}: the process that reads pickles does not start; install numpy into the environment "
                f"of {sys.executable}, since PYTHONPATH and the user's site-packages are ignored here"
            )
    return ConvertedPickles(out, tuple(written), refused)


def _run_child(pairs: Sequence[tuple[Path, Path]], advance: Callable[[int], object]) -> list[str | None]:
    """Convert files in a child process until it ends.

    The child runs in isolated mode (`python -I`), so that neither the current directory nor PYTHONPATH can put a module
    in place of numpy or of the standard library.

    Returns:
        Why each file that the child reached was refused, None where it was converted. The last file may be the one that
        ended the child.
    """
    request = json.dumps([[str(source), str(target)] for source, target in pairs])
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(  # noqa: S603 - a module of this package, whose input is paths
        [sys.executable, "-I", str(_CHILD)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
        text=True,
    ) as child:
        assert child.stdin is not None  # noqa: S101 - both are pipes
        assert child.stdout is not None  # noqa: S101
        child.stdin.write(request)
        child.stdin.close()
        reasons: list[str | None] = []
        for line in child.stdout:
            reasons.append(json.loads(line)[1])
            advance(1)
        code = child.wait()
    if len(reasons) < len(pairs) and (reasons or code < 0):
        reasons.append("exceeded a limit on memory, time or size, which ended the process that read it")
        advance(1)
    return reasons
