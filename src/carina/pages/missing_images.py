"""Rendered views for pages, with an empty frame in place of an image that was imported without its file."""

from typing import Final

from carina.cases import Views
from carina.cases.draw import INK, MUTED, WHITE, Rgb, Size, blank, line_height, put_text, text_size, wrap
from carina.cases.model import Case, CaseImage
from carina.pages.sets import CaseSet

_FRAME: Final = Size(width=512, height=512)
_FONT: Final = 24
_BORDER: Final = 2


class FramedViews:
    """Views of a benchmark; where the size and the file of an image are missing, an empty frame says so.

    Args:
        cases: Benchmark whose views are rendered.
    """

    def __init__(self, cases: CaseSet) -> None:
        self._cases = cases
        self._views = Views(cases)

    def array(self, case: Case, view_id: str) -> Rgb:
        """A view as RGB (height, width, 3), uint8."""
        panels = next((view.panels for view in case.views if view.id == view_id), ())
        images = [image for image in case.images if image.key in {panel.image for panel in panels}]
        missing = [image for image in images if self._is_missing(image)]
        return _draw_frame(missing[0]) if missing else self._views.array(case, view_id)

    def _is_missing(self, image: CaseImage) -> bool:
        """Whether an image was imported without its file, and the file is still not there."""
        return image.width < 1 and not self._cases.image_path(image).is_file()


def _draw_frame(image: CaseImage) -> Rgb:
    frame = blank(_FRAME, MUTED)
    frame[_BORDER:-_BORDER, _BORDER:-_BORDER] = WHITE
    lines = ["The image file is not here:", *wrap(image.key, width=_FRAME.width - 2 * _FONT, size=_FONT)]
    top = (_FRAME.height - len(lines) * line_height(_FONT)) // 2
    for place, line in enumerate(lines):
        left = (_FRAME.width - text_size(line, size=_FONT).width) // 2
        put_text(frame, line, x=left, y=top + place * line_height(_FONT), size=_FONT, colour=INK)
    return frame
