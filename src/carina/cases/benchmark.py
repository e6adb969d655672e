"""Reading a benchmark: what can be asked of cases beyond what any set answers (`carina.store.view`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

import numpy as np
from numpy.typing import NDArray

from carina.cases.model import Case, CaseImage
from carina.cases.store import CASES, Manifest
from carina.store import Choice, Column, OpenSet
from carina.studies.image_files import ImageView
from carina.studies.pixels import read_colour, read_pixels, to_display
from carina.studies.vocabulary import Split

_COLUMNS: Final = {
    "protocol": Column("protocol"),
    "target": Column("target"),
    "path": Column("path"),
    "split": Column("split", get_args(Split)),
    "patient": Column("patient"),
    "study": Column("study"),
}


def open_benchmark(path: str | Path, images: str | Path | None = None, *, verify: bool = True) -> "Benchmark":
    """The benchmark in a directory (or named by its `bench.json`).

    `images` says where the images lie on this machine, where that is not what the manifest says. `verify=False` skips
    the checksum of each part, for a benchmark that was verified before.
    """
    root = None if images is None else Path(images)
    return Benchmark(OpenSet(CASES, Path(path), verify=verify, image_root=root))


@dataclass(frozen=True)
class Problem:
    """Something wrong in a benchmark, as `Benchmark.check` finds it."""

    message: str
    """Names part, row, case and field, as far as they are known."""
    case: str | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, eq=False, repr=False)
class Benchmark(ImageView[Case, Manifest]):
    """A benchmark, or the part of it that meets the conditions given to `where`."""

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
        """Cases that meet all conditions; each is a value or several, of which any will do."""
        given = {
            "protocol": protocol,
            "target": target,
            "path": path,
            "split": split,
            "patient": patient,
            "study": study,
        }
        return self._narrowed(_COLUMNS, given)

    def pixels(self, image: CaseImage) -> NDArray[np.uint8]:
        """An image for display: grey (height, width) with 0 black, or RGB (height, width, 3) for a finished picture."""
        if image.finished:
            return self._read_image(image, read_colour)
        stored = self._read_image(image, read_pixels)
        return to_display(stored, bits=image.bits, monochrome1=image.monochrome1)

    def check(self, *, images: bool) -> Iterator[Problem]:
        """Everything wrong with the benchmark: parts, rows, steps, views, keys and, if asked, every image file.

        Checks all of each part, whatever the conditions of this view.
        """
        return (Problem(message, case) for message, case in self._problems(images=images))
