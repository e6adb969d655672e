"""What pages show in place of an image whose file is not there: an empty frame that names it."""

from typing import Final

from carina.cases import Views
from carina.cases.draw import INK, MUTED, WHITE, Rgb, Size, blank, line_height, put_text, text_size, wrap
from carina.cases.model import Case, CaseImage
from carina.pages.sets import CaseSet

_FRAME: Final = Size(width=512, height=512)
_LINES: Final = 21
"""Lines of text that would fill the height of a frame."""
_SMALLEST_FONT: Final = 8
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
        return draw_missing_image(missing[0].key) if missing else self._views.array(case, view_id)

    def _is_missing(self, image: CaseImage) -> bool:
        """Whether an image was imported without its file, and the file is still not there."""
        return image.width < 1 and not self._cases.image_path(image).is_file()


def draw_missing_image(key: str, size: Size | None = None) -> Rgb:
    """An empty frame that says which image file is not there; 512 x 512 pixels unless a size is given."""
    size = size or _FRAME
    font = max(_SMALLEST_FONT, min(size) // _LINES)
    frame = blank(size, MUTED)
    frame[_BORDER:-_BORDER, _BORDER:-_BORDER] = WHITE
    width = max(font, size.width - 2 * font)
    lines = [
        line for text in ("The image file is not here:", key) for line in wrap(text, width=width, size=font)
    ]
    top = max(0, (size.height - len(lines) * line_height(font)) // 2)
    for place, line in enumerate(lines):
        left = max(0, (size.width - text_size(line, size=font).width) // 2)
        put_text(frame, line, x=left, y=top + place * line_height(font), size=font, colour=INK)
    return frame
