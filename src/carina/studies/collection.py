"""Reading a study set: what can be asked of studies beyond what any set answers (`carina.store.view`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

from carina.store import Choice, Column, OpenSet
from carina.studies.image_files import ImageView
from carina.studies.model import Image, Study
from carina.studies.pixels import Pixels, read_pixels
from carina.studies.store import STUDIES, Manifest
from carina.studies.vocabulary import Certainty, Split, View

_COLUMNS: Final = {
    "patient": Column("patient"),
    "split": Column("split", get_args(Split)),
    "finding": Column("findings.list.element.name"),
    "certainty": Column("findings.list.element.certainty", get_args(Certainty)),
    "view": Column("images.list.element.view", get_args(View)),
}


def open_studies(path: str | Path, images: str | Path | None = None, *, verify: bool = True) -> "Studies":
    """The study set in a directory (or named by its `studies.json`).

    `images` says where the images lie on this machine, where that is not what the manifest says. `verify=False` skips
    the checksum of each part, for a set that was verified before.
    """
    root = None if images is None else Path(images)
    return Studies(OpenSet(STUDIES, Path(path), verify=verify, image_root=root))


@dataclass(frozen=True)
class Problem:
    """Something wrong in a study set, as `Studies.check` finds it."""

    message: str
    """Names part, row, study and field, as far as they are known."""
    study: str | None = None

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True, eq=False, repr=False)
class Studies(ImageView[Study, Manifest]):
    """A study set, or the part of it that meets the conditions given to `where`."""

    def where(
        self,
        *,
        patient: Choice | None = None,
        split: Choice | None = None,
        finding: Choice | None = None,
        certainty: Choice | None = None,
        view: Choice | None = None,
    ) -> "Studies":
        """Studies that meet all conditions; each is a value or several, of which any will do.

        A `finding` is meant to be present unless `certainty` says otherwise.
        """
        if finding is not None and certainty is None:
            certainty = "present"
        given = {
            "patient": patient,
            "split": split,
            "finding": finding,
            "certainty": certainty,
            "view": view,
        }
        return self._narrowed(_COLUMNS, given)

    def prior(self, study: Study) -> Study | None:
        """The study before this one; None where there is none, or the set does not hold it.

        Looked up in the whole set: a prior need not meet the conditions of this view.
        """
        return self._neighbour(study.prior)

    def later(self, study: Study) -> Study | None:
        """The study after this one, in the same way as `prior`."""
        return self._neighbour(study.later)

    def pixels(self, image: Image) -> Pixels:
        """The stored grey values of an image, of shape (height, width)."""
        return self._read_image(image, read_pixels)

    def check(self, *, images: bool) -> Iterator[Problem]:
        """Everything wrong with the set: parts, rows, links, regions and, if asked, every image file and its checksum.

        Checks all of each part, whatever the conditions of this view.
        """
        return (Problem(message, study) for message, study in self._problems(images=images))

    def _neighbour(self, study_id: str | None) -> Study | None:
        return None if study_id is None else self._whole()._find(study_id)
