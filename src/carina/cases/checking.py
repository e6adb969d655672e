"""Checking a study set or a benchmark: is it whole, and is it what its manifest says?"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from carina.cases.benchmark import Benchmark, open_benchmark
from carina.store import Problem
from carina.store.arguments import check_arguments
from carina.store.errors import CarinaError
from carina.store.layout import layout_of, what_is
from carina.store.results import Location, Result, as_path
from carina.studies import Studies, open_studies
from carina.studies.collection import PatientInSplits
from carina.studies.plausibility import (
    PlausibilityProblem,
    SeenImages,
    check_plausibility,
    read_for_plausibility,
)
from carina.studies.terms import UnknownName

if TYPE_CHECKING:
    import polars as pl

    from carina.studies import Image
    from carina.studies.pixels import Pixels

OnImplausible = Literal["report", "fail", "ignore"]


@dataclass(frozen=True, repr=False)
class CheckResult(Result):
    """What `check` found."""

    set_path: Path
    noun: str
    """What the set holds: "studies" or "cases"."""
    records: int
    """Number of studies or cases."""
    problems: tuple[Problem, ...]
    """In the order of the set; none for a sound set."""
    unknown_names: tuple[UnknownName, ...] = ()
    """Names of findings, devices and anatomy in studies that are not known: to be looked at, but not a problem."""
    implausible: tuple[PlausibilityProblem, ...] = ()
    """Images of studies that do not look like what the study says of them: to be looked at, but not a problem."""
    patients_in_several_splits: tuple[PatientInSplits, ...] = ()
    """Patients of whom studies are in different splits: to be looked at, but not a problem of the files."""

    @property
    def path(self) -> Path:
        """Directory of the set that was checked."""
        return self.set_path

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def to_frame(self) -> "pl.DataFrame":
        """One row a problem: `record` (id of the study or case, or null) and `message`."""
        import polars as pl  # noqa: PLC0415 - slow to import

        columns = {
            "record": [problem.record for problem in self.problems],
            "message": [problem.message for problem in self.problems],
        }
        return pl.DataFrame(columns, schema={"record": pl.String, "message": pl.String})

    def _summary(self) -> dict[str, object]:
        return {self.noun: self.records, "problems": len(self.problems)}


@check_arguments
def check(
    location: Location,
    *,
    images: Location | None = None,
    files: bool = True,
    implausible: OnImplausible = "report",
    on_problem: Callable[[Problem], object] | None = None,
) -> CheckResult:
    """Check every part, row and image of a study set or a benchmark.

    Args:
        location: Directory of the set, its manifest, or an opened set.
        images: Directory of the images, if they have moved.
        files: Whether to open every image file, and to compare its size and checksum with the records.
        implausible: What to do with images of studies that do not look like what the study says of them (inverted,
            another view, impossible lungs): "report" lists them, "fail" counts them as problems, "ignore" does not
            look. Without `files`, only the lungs are checked.
        on_problem: Called with each problem as soon as it is found.

    Returns:
        All problems; none for a sound set. Names in studies that are not known and patients in several splits are
        listed apart, as far as the parts can be read.

    Raises:
        CarinaError: There is neither a study set nor a benchmark, or its manifest cannot be read.

    Example:
        >>> check("studies").is_sound
        True
    """
    if not files and images is not None:
        raise CarinaError(
            "images: names the directory of the images, but files=False opens none; give one of the two"
        )
    opened = _open(location, images)
    problems = []
    for problem in opened.check(images=files):
        problems.append(problem)
        if on_problem is not None:
            on_problem(problem)
    unsound = {problem.record for problem in problems}
    found = () if implausible == "ignore" else _find_implausible(opened, unsound, files=files)
    if implausible == "fail":
        for each in found:
            problems.append(Problem(each.message, each.study))
            if on_problem is not None:
                on_problem(problems[-1])
    noun = "studies" if isinstance(opened, Studies) else "cases"
    return CheckResult(
        opened.path,
        noun,
        len(opened),
        tuple(problems),
        _find_unknown_names(opened),
        found,
        _find_patients_in_several_splits(opened),
    )


def _find_implausible(
    opened: Studies | Benchmark, unsound: Collection[str | None], *, files: bool
) -> tuple[PlausibilityProblem, ...]:
    """What is implausible about the studies that have no problem, as far as they can be read."""
    if not isinstance(opened, Studies):
        return ()
    read_image = partial(_read_image, opened) if files else None
    found: list[PlausibilityProblem] = []
    seen = SeenImages()
    try:
        for study in opened:
            if study.id not in unsound:
                result = check_plausibility(study, read_image)
                found += [*result.problems, *seen.find_repeated(study.id, result.digests)]
                seen.add(study.id, result.digests)
    except CarinaError:  # a part or row that cannot be read: a problem already
        pass
    return tuple(found)


def _read_image(studies: Studies, image: "Image") -> "Pixels | None":
    return read_for_plausibility(studies.image_path(image), image)


def _find_unknown_names(opened: Studies | Benchmark) -> tuple[UnknownName, ...]:
    if not isinstance(opened, Studies):
        return ()
    try:
        return opened.unknown_names()
    except CarinaError:  # a part that cannot be read: a problem already
        return ()


def _find_patients_in_several_splits(opened: Studies | Benchmark) -> tuple[PatientInSplits, ...]:
    if not isinstance(opened, Studies):
        return ()  # of a benchmark, the gate `patient-overlap` says it
    try:
        return opened.patients_in_several_splits()
    except CarinaError:  # a part that cannot be read: a problem already
        return ()


def _open(location: Location, image_root: Location | None) -> Studies | Benchmark:
    """The study set or benchmark at a location."""
    if isinstance(location, Studies):
        return open_studies(location, image_root)
    if isinstance(location, Benchmark):
        return open_benchmark(location, image_root)
    path = as_path(location)
    match what_is(path):
        case "studies":
            return open_studies(path, image_root)
        case "benchmark":
            return open_benchmark(path, image_root)
    raise CarinaError(explain_no_set(path))


def explain_no_set(path: Path) -> str:
    """Why a path is neither a study set nor a benchmark, for messages."""
    if not path.exists():
        return f"{path}: no such directory, expected a study set or a benchmark"
    found = layout_of(path)
    if found is not None:
        return f"{path}: is a {found.title}, expected a study set or a benchmark"
    return f"{path}: neither a study set (studies.json) nor a benchmark (bench.json)"
