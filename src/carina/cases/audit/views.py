"""Gate: is there a picture for every view?

Every image's file is compared with its record, once; a sample of the cases is drawn.
"""

from carina.cases.audit.frame import Objections, defects
from carina.cases.audit.record import GateResult
from carina.cases.audit.register import Firsts
from carina.cases.audit.thresholds import Thresholds
from carina.cases.model import Case, CaseImage
from carina.cases.render import Views as Drawing
from carina.cases.render.views import ImageSource
from carina.errors import CarinaError
from carina.files import sha256
from carina.studies.pixels import read_header

_VIEWS_OF_A_CASE = 4
"""About; lesion-free cases have one and those with a revision seven."""
_MISSING = "is missing"
_SOUND, _FAULTY = 0, 1
_FILES = 20.0
"""Microseconds a question that small files take."""


class Views:
    """Image files and drawn views."""

    def __init__(
        self, thresholds: Thresholds, images: ImageSource | None, *, cases: int | None = None
    ) -> None:
        self._images = images
        self.cost = 0.0 if images is None else _FILES
        self._drawing = Drawing(images) if images is not None else None
        self._objections = Objections(thresholds.worst)
        self._left = thresholds.render
        # Whole cases, evenly over the benchmark.
        wanted = max(1, thresholds.render // _VIEWS_OF_A_CASE)
        self._every = max(1, (cases or 0) // wanted)
        self._seen = Firsts()
        self._all_missing = True
        self._n = self._views = self._drawn = 0

    def see(self, case: Case) -> None:
        if self._images is None:
            return
        self._n += 1
        self._views += len(case.views)
        faults = [fault for image in case.images if (fault := self._fault(self._images, image))]
        for fault in faults:
            self._objections.add(case.id, fault, 1)
        if not faults and not (self._n - 1) % self._every:
            self._draw(case)

    def _fault(self, images: ImageSource, image: CaseImage) -> str | None:
        """What is wrong with an image; of one that was looked at before only whether something is, is remembered."""
        known = self._seen.get(image.key)
        if known == _SOUND:
            return None
        fault = _fault(images, image)
        if known is None:
            self._seen.first(image.key, _SOUND if fault is None else _FAULTY)
            self._all_missing = self._all_missing and fault is not None and fault.endswith(_MISSING)
        return fault

    def _draw(self, case: Case) -> None:
        for view in case.views[: self._left]:
            self._left -= 1
            self._drawn += 1
            try:
                if self._drawing is not None:
                    self._drawing.array(case, view.id)
            except CarinaError as error:
                self._objections.add(case.id, f"view {view.id!r} cannot be drawn: {error}")

    def result(self) -> GateResult:
        return defects(
            "views",
            self._n,
            self._objections,
            threshold="every image file there, of its size and checksum; every view that is tried can be drawn",
            good=f"All {len(self._seen)} images are there and unchanged; {self._drawn} of {self._views} views were "
            "drawn as a trial.",
            bad="No image was found: the image root is missing or another; say where the images lie."
            if self._all_missing
            else "Some cases cannot be shown; bring their images back as they were, or leave these cases out.",
            unit="cases whose images were looked for",
        )


def _fault(images: ImageSource, image: CaseImage) -> str | None:
    try:
        path = images.image_path(image)
        if not path.exists():
            return f"image {image.key!r} {_MISSING}"
        header = read_header(path)
        found = None if image.sha256 is None else sha256(path)
    except (CarinaError, OSError) as error:
        return str(error)
    if (header.width, header.height) != (image.width, image.height):
        size = f"{header.width} x {header.height}"
        return f"image {image.key!r} is {size}, the case says {image.width} x {image.height}"
    if found != image.sha256:
        return f"image {image.key!r} has another checksum than the case says"
    return None
