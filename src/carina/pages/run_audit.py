"""`carina.audit`: audit a benchmark and write its page. The gates are in `carina.audits`, the page is rendered here."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from carina.audits import AuditOptions, AuditResult, audit_benchmark
from carina.audits.benchmark import load_limits
from carina.audits.gate import FAIL_LEVEL, RENDER, WARN_LEVEL
from carina.cases import open_benchmark
from carina.pages.audit import HTML, JSON, write_audit
from carina.pages.output import check_pages, claim_pages, lock_pages
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.errors import CarinaError
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, as_path, image_directory

DIRECTORY: Final = "audit"
"""Directory inside the benchmark to which an audit is written by default."""


@check_arguments
def audit(
    bench: Location,
    out: "Location | None" = None,
    *,
    images: "Location | None" = None,
    files: bool = True,
    render: int = RENDER,
    limits: "Location | Mapping[str, Mapping[str, object]] | None" = None,
    gates: Sequence[str] | None = None,
    warn_level: float = WARN_LEVEL,
    fail_level: float = FAIL_LEVEL,
    workers: PositiveInt | None = None,
    progress: Progress = no_progress,
) -> AuditResult:
    """Audit a benchmark: can it be passed without looking at the images, and are its answer keys sound?

    A gate is one check of the whole benchmark. Every case passes once through every gate: those for all protocols, and
    those for the protocols that the benchmark holds. Writes `audit.html` and `audit.json`. The result is the same for
    any number of workers.

    Args:
        bench: Directory of the benchmark.
        out: Directory to write to; by default `audit` inside the benchmark.
        images: Directory of the images, if they have moved.
        files: Whether to open every image file and to render some views.
        render: Number of views (images as a model gets them) to render as a test.
        limits: Limits to set, by gate: `{"answer-balance": {"majority": 0.65}}`, or a YAML file with the same content.
        gates: Names of the gates to run; by default all that apply.
        warn_level: A gate warns if chance alone would give such a result with a probability below this, corrected for
            all comparisons of the gate.
        fail_level: The same for a gate that fails.
        workers: Number of processes; by default one per core, or one for a small benchmark.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The results of all gates; `.passed` says whether none failed, `.to_frame()` has one row per gate.

    Raises:
        CarinaError: The benchmark cannot be read; a gate or limit is unknown; a limit is out of range.

    Example:
        >>> import carina
        >>> result = carina.audit("bench", files=False)
        >>> result.passed, result.gate("answer-position").status
        (True, 'pass')
    """
    directory = as_path(bench)
    target = as_path(out) if out is not None else _benchmark_directory(directory) / DIRECTORY
    if not 0 <= fail_level <= warn_level <= 1:
        raise CarinaError(
            f"fail_level, warn_level: expected 0 <= fail_level <= warn_level <= 1, found {fail_level} and {warn_level}"
        )
    stated, source = None, "limits"
    if isinstance(limits, Mapping):
        stated = limits
    elif limits is not None:
        stated, source = load_limits(as_path(limits)), str(as_path(limits))
    options = AuditOptions(
        images=image_directory(bench, images),
        files=files,
        render=render,
        limits=stated,
        limits_source=source,
        gates=tuple(gates) if gates is not None else None,
        warn_level=warn_level,
        fail_level=fail_level,
    )
    number = len(open_benchmark(directory, options.images))
    output = (target, "the audit", {JSON: HTML, HTML: HTML})
    with lock_pages(target, "the audit", ()):
        check_pages(*output)
        with progress("Cases", number) as advance:
            record = audit_benchmark(directory, options, workers=workers, progress=advance)
        with claim_pages(*output):
            written = write_audit(record, target, title=_benchmark_directory(directory).resolve().name)
    return AuditResult(directory=target, audit=record, page=written.html)


def _benchmark_directory(path: Path) -> Path:
    """The directory of a benchmark that is named by its directory or by its manifest."""
    return path.parent if path.is_file() else path
