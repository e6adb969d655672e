"""Boxes of answer keys in pixels of their images, and the overlap from which a localisation is right."""

from typing import Final

from carina.cases.draw import Size
from carina.cases.model import Box

_UNITS: Final = {"percent": 100.0, "unit": 1.0, "thousand": 1000.0}
"""By frame of a box, the number that means the whole width or height; there is none for pixels."""

LOCALISED: Final = 0.5
"""Mean intersection over union of boxes from which a localisation counts as right."""
_ROUNDING: Final = 1e-9
"""Tolerance for frames that were converted in floating point."""


def is_localised(mean_iou: float) -> bool:
    """Whether boxes overlap enough for a localisation to count as right, of a model or of a reader."""
    return mean_iou >= LOCALISED - _ROUNDING


def pixel_box(box: Box, size: Size) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a box in pixels of an image of that size."""
    x0, y0, x1, y1 = box.xyxy
    unit = _UNITS.get(box.frame)
    if unit is None:
        return x0, y0, x1, y1
    across, down = size.width / unit, size.height / unit
    return x0 * across, y0 * down, x1 * across, y1 * down
