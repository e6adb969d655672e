"""The public function that exports a benchmark."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from carina.cases.benchmark import open_benchmark
from carina.exports._exporter import EXPORTS
from carina.exports._folder import write_folder
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, Result, as_path, image_directory

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, repr=False)
class ExportResult(Result):
    """A folder that an export has written."""

    out: Path
    manifest: dict[str, Any]
    """The content of its `carina.json`."""

    @property
    def path(self) -> Path:
        """The folder."""
        return self.out

    @property
    def counts(self) -> dict[str, Any]:
        """How many cases, questions and pictures it holds, and cases by split or by target and path."""
        counts: dict[str, Any] = self.manifest["counts"]
        return counts

    @property
    def files(self) -> dict[str, str]:
        """SHA-256 of its files, by path."""
        files: dict[str, str] = self.manifest["files"]
        return files

    def to_frame(self) -> "pl.DataFrame":
        """One row a file: path, SHA-256."""
        import polars as pl  # noqa: PLC0415 - takes longer to import than small exports take

        rows = list(self.files.items())
        return pl.DataFrame(rows, schema={"file": pl.String, "sha256": pl.String}, orient="row")

    def _summary(self) -> Mapping[str, object]:
        return {name: self.counts[name] for name in ("cases", "questions", "pictures")}


@check_arguments
def export(
    bench: Location,
    out: Location,
    *,
    to: str,
    options: Mapping[str, object] | None = None,
    images: Location | None = None,
    workers: PositiveInt | None = None,
    progress: Progress = no_progress,
) -> ExportResult:
    """Write a benchmark in the format of another tool.

    The directory appears when it is complete. An interrupted export resumes with the first part that is not finished; a
    directory that already holds the same export is compared with its checksums and not changed.

    Args:
        bench: Directory of a benchmark, or an opened one.
        out: Directory to write; it must not hold anything else.
        to: Name of the export: "chat", "chexpercept", "hf", or one of another package.
        options: Options of the export by name; `carina export --to NAME --help` lists them.
        images: Directory of the images, if they have moved.
        workers: Number of processes; None for one per core.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The folder, with its counts and the checksums of its files.

    Raises:
        CarinaError: The export, an option, the benchmark or an image is wrong, or `out` holds something else or the
            same export with a file that was changed or removed.

    Example:
        >>> export("bench", "conversations", to="word")
        Traceback (most recent call last):
        carina.store.errors.CarinaError: unknown export 'word'. Known: chat, chexpercept, hf.
    """
    found = EXPORTS[to]
    values = found.convert(options)
    folder = image_directory(bench, images)
    opened = open_benchmark(as_path(bench), folder)
    form = found.make(opened, **values)
    cores = min(workers or os.cpu_count() or 1, max(1, len(opened)))
    with progress("Cases", len(opened)) as advance:
        content = write_folder(
            opened,
            as_path(out),
            form,
            to=to,
            images=folder,
            # Without pictures, one process writes a case sooner than it could send it to another.
            workers=cores if form.renders else 1,
            progress=advance,
        )
    return ExportResult(as_path(out), msgspec.json.decode(content))
