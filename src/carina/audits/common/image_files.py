"""Gate: does every image exist unchanged, and can views be rendered?

Every image file is compared with its record once; the views of a sample of cases are rendered.
"""

from typing import Final

from carina.audits.first_seen import FirstSeen
from carina.audits.gate import AuditContext, Gate, NoLimits, gate
from carina.audits.result import GateResult, Objections
from carina.cases.model import Case, CaseImage
from carina.cases.render import Views
from carina.cases.render.views import ImageSource
from carina.store.errors import CarinaError
from carina.store.files import sha256
from carina.studies.pixels import read_header

_VIEWS_PER_CASE: Final = 4
"""About; lesion-free cases have one view and those with a revision seven."""
_MISSING: Final = "is missing"
_SOUND, _FAULTY = 0, 1
_FILES_COST: Final = 20.0
"""Microseconds per question for small files."""


@gate(
    "image-files",
    title="Image files and views",
    meaning="Every image file exists and is unchanged, and views can be rendered.",
    order=90,
)
class ImageFiles(Gate[NoLimits]):
    """Image files and rendered views."""

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        self._source = context.images
        self.cost = 0.0 if self._source is None else _FILES_COST
        self._renderer = Views(self._source) if self._source is not None else None
        self._objections = Objections()
        self._to_render = context.render
        # Whole cases, evenly over the benchmark.
        wanted = max(1, context.render // _VIEWS_PER_CASE)
        self._every = max(1, (context.cases or 0) // wanted)
        self._checked = FirstSeen()
        self._all_missing = True
        self._n = self._views = self._rendered = self._without_checksum = 0

    def see(self, case: Case) -> None:
        if self._source is None:
            return
        self._n += 1
        self._views += len(case.views)
        faults = [fault for image in case.images if (fault := self._check(self._source, image))]
        for fault in faults:
            self._objections.add(case.id, fault, 1)
        if not faults and not (self._n - 1) % self._every:
            self._render(case)

    def _check(self, source: ImageSource, image: CaseImage) -> str | None:
        """The fault of an image, if any; a sound image is checked once only."""
        known = self._checked.get(image.key)
        if known == _SOUND:
            return None
        fault = _find_fault(source, image)
        if known is None:
            self._checked.first(image.key, _SOUND if fault is None else _FAULTY)
            self._without_checksum += image.sha256 is None
            self._all_missing = self._all_missing and fault is not None and fault.endswith(_MISSING)
        return fault

    def _render(self, case: Case) -> None:
        for view in case.views[: self._to_render]:
            self._to_render -= 1
            self._rendered += 1
            try:
                if self._renderer is not None:
                    self._renderer.array(case, view.id)
            except CarinaError as error:
                self._objections.add(case.id, f"view {view.id!r} cannot be rendered: {error}")

    def result(self) -> GateResult:
        return self.report_defects(
            self._n,
            self._objections,
            threshold="every image file exists, with its size and checksum; every view of the sample can be rendered",
            good=f"All {len(self._checked)} images exist{self._describe_checksums()}; {self._rendered} of "
            f"{self._views} views were rendered as a test.",
            bad="No image was found: the image root is missing or wrong; pass the directory of the images."
            if self._all_missing
            else "Some cases cannot be shown; restore their images, or remove these cases.",
            unit="cases with checked images",
        )

    def _describe_checksums(self) -> str:
        if not self._without_checksum:
            return " and are unchanged"
        return f", but for {self._without_checksum} the cases state no checksum, so a change would not be noticed"


def _find_fault(source: ImageSource, image: CaseImage) -> str | None:
    try:
        path = source.image_path(image)
        if not path.exists():
            return f"image {image.key!r} {_MISSING}"
        header = read_header(path)
        checksum = None if image.sha256 is None else sha256(path)
    except (CarinaError, OSError) as error:
        return str(error)
    if (header.width, header.height) != (image.width, image.height):
        size = f"{header.width} x {header.height}"
        return f"image {image.key!r} has {size} pixels, the case states {image.width} x {image.height}"
    if checksum != image.sha256:
        return f"image {image.key!r} has another checksum than the case states"
    return None
