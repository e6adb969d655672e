"""Reading a benchmark: what can be asked of cases beyond what any set answers (`carina.store.view`)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, get_args

import numpy as np
from numpy.typing import NDArray

from carina.cases.build_report import BuildReport
from carina.cases.model import Case, CaseImage
from carina.cases.store import CASES, Manifest
from carina.store import Choice, Column, OpenSet
from carina.store.arguments import check_arguments
from carina.store.errors import CarinaError
from carina.store.results import Location, as_path
from carina.studies.image_files import ImageView
from carina.studies.pixels import display_image, read_colour, read_pixels
from carina.studies.vocabulary import Split

if TYPE_CHECKING:
    import polars as pl

_COLUMNS: Final = {
    "protocol": Column("protocol"),
    "target": Column("target"),
    "path": Column("path"),
    "split": Column("split", get_args(Split)),
    "patient": Column("patient"),
    "study": Column("study"),
}


_FRAME: Final = (
    "id",
    "protocol",
    "study",
    "patient",
    "source",
    "split",
    "target",
    "path",
    "order",
    "images.list.element.key",
    "steps.list.element.stage",
)


class NoCasesError(CarinaError):
    """A build made no case: `benchmark` is what was written, with the reasons in its `build_report`."""

    def __init__(self, message: str, benchmark: "Benchmark") -> None:
        super().__init__(message)
        self.benchmark = benchmark


@check_arguments
def open_benchmark(
    location: Location, images: Location | None = None, *, verify: bool = True, verify_images: bool = True
) -> "Benchmark":
    """Open a benchmark; only its manifest is read.

    Args:
        location: Directory of the benchmark, or its `bench.json`. An opened benchmark is returned as it is.
        images: Directory of the images, if they have moved.
        verify: Whether to compare each part with its checksum when it is first read; False for a benchmark that was
            verified before.
        verify_images: Whether to compare each image file with the SHA-256 that its case states, when it is first
            opened.

    Returns:
        The benchmark; cases are read when they are asked for.

    Raises:
        BenchmarkError: There is no benchmark, or a newer Carina wrote it.

    Example:
        >>> bench = open_benchmark("bench")
        >>> len(bench), len(bench.where(target="edema"))
        (18, 2)
    """
    if isinstance(location, Benchmark) and images is None:
        return location
    root = None if images is None else as_path(images)
    opened = OpenSet(CASES, as_path(location), verify=verify, image_root=root, verify_images=verify_images)
    return Benchmark(opened)


@dataclass(frozen=True, eq=False, repr=False)
class Benchmark(ImageView[Case, Manifest]):
    """A benchmark, or the part of it that meets the conditions given to `where`.

    Iterate over it to get `Case` records, or look one up by id.

    Example:
        >>> bench = open_benchmark("bench")
        >>> bench
        Benchmark('bench', cases=18, steps=82, patients=13)
        >>> bench["c-7db117ee228a361f"].target
        'cardiomegaly'
    """

    def to_frame(self) -> "pl.DataFrame":
        """One row a case: ids, protocol, split, target and path, and the numbers of images and steps."""
        import polars as pl  # noqa: PLC0415 - slow to import

        single = [name for name in _FRAME if "." not in name]
        return self._frame(_FRAME).select(*single, *(pl.col(name).list.len() for name in ("images", "steps")))

    def _counts(self) -> dict[str, object]:
        counts = self.manifest.counts
        return {"cases": counts.cases, "steps": counts.steps, "patients": counts.patients}

    def where(
        self,
        *,
        protocol: Choice | None = None,
        target: Choice | None = None,
        path: Choice | None = None,
        split: Choice | None = None,
        patient: Choice | None = None,
        study: Choice | None = None,
    ) -> "Benchmark":
        """Cases that meet all conditions; each is one value, or a list of values of which any may match."""
        given = {
            "protocol": protocol,
            "target": target,
            "path": path,
            "split": split,
            "patient": patient,
            "study": study,
        }
        return self._with_filter(_COLUMNS, given)

    def pixels(self, image: CaseImage) -> NDArray[np.uint8]:
        """An image for display: grey (height, width) with 0 black, or RGB (height, width, 3) for a finished picture."""
        if image.finished:
            return self._read_image(image, read_colour)
        stored = self._read_image(image, read_pixels)
        return display_image(stored, image)

    @property
    def build_report(self) -> BuildReport:
        """What `carina build` reported: what was built, and why not more.

        Raises:
            BenchmarkError: The benchmark was not built from studies, or its report is damaged.
        """
        from carina.cases.building import read_build_report  # noqa: PLC0415 - building needs this module

        return read_build_report(self)
