"""The public functions that import a source."""

import os
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple, cast, get_args

from carina.cases import Benchmark
from carina.sources._imported import SKIPPED, Imported
from carina.sources._joining import joined_defects
from carina.sources._plausibility import Implausible
from carina.sources._record import SourceError
from carina.sources._source import SOURCES, Brings
from carina.sources._writing import Job, OnError, run_import
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.counts import format_count
from carina.store.errors import CarinaError
from carina.store.options import convert_options
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, as_path
from carina.studies import Studies
from carina.studies.rejected_regions import DEFECTS


@check_arguments
def import_studies(
    source: str,
    path: Location,
    out: Location,
    *,
    options: Mapping[str, object] | None = None,
    images: Location | None = None,
    joins: Mapping[str, Location] | None = None,
    on_error: OnError = "skip",
    limit: PositiveInt | None = None,
    copy_images: bool = False,
    implausible: Implausible = "report",
    workers: PositiveInt | None = None,
    progress: Progress = no_progress,
) -> Studies:
    """Import a data set as a study set.

    Args:
        source: Name of the source; `list_sources()` lists them.
        path: File or directory of the data set.
        out: Directory to write the study set to.
        options: Options of the source by name; `carina sources NAME` lists them.
        images: Directory of the image files, for sources whose images may be in another directory.
        joins: Paths of other sources by name, such as {"chexmask": "MIMIC-CXR-JPG.csv"}: what they say about the same
            images is added to the studies.
        on_error: "skip" leaves records out that cannot be used, and lists them in `skipped.csv`; "stop" raises at the
            first.
        limit: Largest number of studies to import; None for all.
        copy_images: Copy the images into the study set; otherwise they stay where they are.
        implausible: What to do with images that do not look like what the study says of them (inverted, another view,
            impossible lungs): "report" lists them in `implausible.csv`, "exclude" leaves their studies out, "correct"
            corrects what can be corrected, "ignore" opens no image.
        workers: Number of processes; None for one per core.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The study set.

    Raises:
        CarinaError: The source, an option or a file is wrong, or no record can be used.

    Warns:
        UserWarning: Records were skipped, regions were left out or are probably misread, names are not known, or a
            table is not UTF-8 or has decimal commas: one warning says all. `import_source` of `carina.sources` returns
            the counts.

    Example:
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from carina.studies import write_png
        >>> _ = write_png(Path("scans/0001.png"), np.full((400, 300), 128, np.uint8))
        >>> _ = Path("labels.csv").write_text("file,patient,finding\\n0001.png,p1,Nodule\\n")
        >>> studies = import_studies(
        ...     "table", "labels.csv", "own-studies", images="scans", options={"looked_for": "listed"}, workers=1
        ... )
        >>> [study.assessed.listed for study in studies]
        [('nodule',)]
    """
    settings = _Settings(options, images, joins, on_error, limit, copy_images, implausible, workers, progress)
    _check_brings("studies", source)
    imported = _import_source(source, path, out, settings)
    studies = cast(Studies, imported.opened())
    _warn_of_losses(imported)
    return studies


@check_arguments
def import_cases(
    source: str,
    path: Location,
    out: Location,
    *,
    options: Mapping[str, object] | None = None,
    images: Location | None = None,
    on_error: OnError = "skip",
    limit: PositiveInt | None = None,
    copy_images: bool = False,
    workers: PositiveInt | None = None,
    progress: Progress = no_progress,
) -> Benchmark:
    """Import published questions as a benchmark.

    Args:
        source: Name of the source; `list_sources()` lists them.
        path: File or directory of the questions.
        out: Directory to write the benchmark to.
        options: Options of the source by name; `carina sources NAME` lists them.
        images: Directory of the image files, for sources whose images may be in another directory.
        on_error: "skip" leaves records out that cannot be used, and lists them in `skipped.csv`; "stop" raises at the
            first.
        limit: Largest number of cases to import; None for all.
        copy_images: Copy the images into the benchmark; otherwise they stay where they are.
        workers: Number of processes; None for one per core.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The benchmark.

    Raises:
        CarinaError: The source, an option or a file is wrong, or no record can be used.

    Example:
        >>> import_cases("chexpercept", "nowhere", "bench")
        Traceback (most recent call last):
        carina.sources._record.SourceError: nowhere: no such file or directory. nowhere/chexpercept.json: ...
    """
    settings = _Settings(options, images, None, on_error, limit, copy_images, "ignore", workers, progress)
    _check_brings("cases", source)
    return cast(Benchmark, _import_source(source, path, out, settings).opened())


def import_source(
    source: str,
    path: Location,
    out: Location,
    *,
    options: Mapping[str, object] | None = None,
    images: Location | None = None,
    joins: Mapping[str, Location] | None = None,
    on_error: OnError = "skip",
    limit: int | None = None,
    copy_images: bool = False,
    implausible: Implausible = "report",
    workers: int | None = None,
    progress: Progress = no_progress,
) -> Imported:
    """Import a source as studies or as cases, whichever it brings, and report what was skipped.

    An interrupted import resumes with the first part that is not finished; a finished one is left as it is. The
    arguments are those of `import_studies`.

    Returns:
        Counts, skipped records and defects. Where no record can be used, nothing is written and it `is_empty`.

    Raises:
        CarinaError: The source, an option or a file is wrong; with `on_error="stop"`, also a record.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("sample.jsonl").write_text('{"messages": []}')
        >>> imported = import_source("swift-chat", "sample.jsonl", "imported", workers=1)
        >>> imported.is_empty, imported.skipped[0].message
        (True, 'sample.jsonl: record 1: study_id: is missing')
    """
    settings = _Settings(options, images, joins, on_error, limit, copy_images, implausible, workers, progress)
    return _import_source(source, path, out, settings)


class _Settings(NamedTuple):
    """The keyword arguments of the public functions."""

    options: Mapping[str, object] | None
    images: Location | None
    joins: Mapping[str, Location] | None
    on_error: OnError
    limit: int | None
    copy_images: bool
    implausible: Implausible
    workers: int | None
    progress: Progress


def _check_brings(wanted: Brings, source: str) -> None:
    """Refuse a source that does not bring what is wanted."""
    brings = SOURCES[source].brings
    if brings != wanted:
        what = "questions" if brings == "cases" else "studies"
        raise CarinaError(f"source {source} carries {what}: use import_{brings}")


_NAMED: Final = 3
"""Names that are not known and that a warning lists."""


def _warn_of_losses(imported: Imported) -> None:
    """Say in one warning what the command line prints about what is lost, not known or probably misread."""
    sentences = [*imported.plan.notices, *imported.notices]
    if imported.skipped:
        skipped = format_count(len(imported.skipped), "record")
        sentences.append(
            f"{skipped} skipped, such as {imported.skipped[0].message} (see {imported.path / SKIPPED})"
        )
    lost = [f"{times} {name}" for name, times in imported.lost_regions.items()]
    if lost:
        regions = format_count(sum(imported.lost_regions.values()), "region")
        sentences.append(f"{regions} left out: {', '.join(lost)} (see {imported.path / DEFECTS})")
    unknown = [one for one in imported.unknown_names if one.studies]
    if unknown:
        more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
        named = ", ".join(
            repr(one.name) + (f" (did you mean {one.nearest!r}?)" if one.nearest else "")
            for one in unknown[:_NAMED]
        )
        sentences.append(f"{format_count(len(unknown), 'name')} not known: {named}{more}")
    if sentences:
        warnings.warn(f"{imported.source.name}: {'; '.join(sentences)}", stacklevel=4)


def _import_source(source: str, path: Location, out: Location, settings: _Settings) -> Imported:
    found = SOURCES[source]
    images, limit = settings.images, settings.limit
    if found.read is None:
        raise CarinaError(f"{source}: is not imported; make {source} studies with `carina {source}`")
    if settings.on_error not in get_args(OnError):
        raise CarinaError(f"on_error: expected skip or stop, found {settings.on_error!r}")
    if settings.implausible not in get_args(Implausible):
        raise CarinaError(
            f"implausible: expected {', '.join(get_args(Implausible))}, found {settings.implausible!r}"
        )
    if limit is not None and limit < 1:
        raise CarinaError(f"limit: expected 1 or more, found {limit}")
    joins = {name: (SOURCES[name], as_path(given)) for name, given in (settings.joins or {}).items()}
    others = [other for other, _ in joins.values()]
    job = Job(
        source=replace(found, defects={**found.defects, **joined_defects(others)}),
        path=as_path(path),
        out=as_path(out),
        options=convert_options(f"source {source}", found.options, settings.options),
        images=None if images is None else as_path(images),
        copy_images=settings.copy_images,
        limit=limit,
        joins=joins,
        implausible=settings.implausible,
    )
    job.check()
    try:
        return _run(job, settings)
    except SourceError as error:
        reason = _find_path_problem(job.path)
        if reason is None or reason in str(error):
            raise
        raise SourceError(f"{job.path}: {reason}. {error}") from error


def _find_path_problem(path: Path) -> str | None:
    """What is wrong with the path that the user gives, whatever the source; None where nothing is."""
    try:
        if not path.exists():
            return "no such file or directory"
        if path.is_dir() and next(path.iterdir(), None) is None:
            return "an empty folder"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None


def _run(job: Job, settings: _Settings) -> Imported:
    found = job.source
    workers = settings.workers or os.cpu_count() or 1
    total = found.measure(job.path) if found.measure is not None and job.limit is None else None
    with settings.progress(found.unit.capitalize(), total) as advance:
        counted = _ignore if found.has_advance else advance
        return run_import(job, settings.on_error, workers, job.stream(advance), counted)


def _ignore(_done: int) -> None:
    pass
