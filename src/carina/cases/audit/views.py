"""Gate: is there a picture for every view?

Looks at the files and draws a sample; how to find and draw them is told by `Pictures`.
"""

from pathlib import Path
from typing import Protocol

from carina.cases.audit.frame import Objections, defects
from carina.cases.audit.record import GateResult
from carina.cases.audit.thresholds import Thresholds
from carina.cases.model import Case, CaseImage, CaseView
from carina.errors import CarinaError
from carina.files import sha256
from carina.studies.pixels import read_header


class Pictures(Protocol):
    """Where images lie and how views are drawn."""

    def path(self, image: CaseImage) -> Path: ...

    def draw(self, case: Case, view: CaseView) -> object: ...


class Views:
    """Every image's file against its record, and a sample of views drawn."""

    def __init__(
        self, thresholds: Thresholds, pictures: Pictures | None, *, cases: int | None = None
    ) -> None:
        self._pictures = pictures
        self._objections = Objections(thresholds.worst)
        self._left = thresholds.render
        # Whole cases are drawn, evenly over the benchmark; a case has some four views.
        self._every = max(1, -(-4 * cases // thresholds.render)) if cases and thresholds.render else 1
        self._seen: dict[str, str | None] = {}
        self._n = self._views = self._drawn = 0
        self._rootless: str | None = None

    def see(self, case: Case) -> None:
        if self._pictures is None or self._rootless is not None:
            return
        self._n += 1
        wrong = False
        for image in case.images:
            if image.key not in self._seen:
                self._seen[image.key] = self._fault(image)
            fault = self._seen[image.key]
            if fault:
                wrong = True
                self._objections.add(case.id, fault, 1)
        self._views += len(case.views)
        if wrong or self._n % self._every:
            return
        for view in case.views[: self._left]:
            self._left -= 1
            self._drawn += 1
            try:
                self._pictures.draw(case, view)
            except CarinaError as error:
                self._objections.add(case.id, f"view {view.id!r} cannot be drawn: {error}")

    def _fault(self, image: CaseImage) -> str | None:
        assert self._pictures is not None  # noqa: S101 - see() has looked
        try:
            path = self._pictures.path(image)
            if not path.is_file():
                return f"image {image.key!r} is missing"
            header = read_header(path)
        except CarinaError as error:
            return str(error)
        if (header.width, header.height) != (image.width, image.height):
            return f"image {image.key!r} is {header.width} x {header.height}, expected {image.width} x {image.height}"
        if image.sha256 is not None and sha256(path) != image.sha256:
            return f"image {image.key!r} has changed: its checksum is another"
        return None

    def result(self) -> GateResult:
        every = "every one" if self._drawn == self._views else f"{self._drawn} of {self._views}"
        return defects(
            "views",
            self._n,
            self._objections,
            threshold="every image file there, of its size and checksum; every view that is tried can be drawn",
            good=f"All {len(self._seen)} images are there and unchanged; of the views, {every} was drawn.",
            bad="Some cases cannot be shown; bring the images back (or name their folder with --images) or build anew.",
            unit="cases" if self._pictures else "cases with an image root",
        )
