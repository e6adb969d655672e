"""Boxes around structures and lesions, in the units that a question asks for."""

from typing import Final

import cv2
import numpy as np

from carina.cases.model import Frame as Units
from carina.runs.builtin.reader.thorax import Corners, LungFrame
from carina.studies.region import Mask

_FRONTAL: Final[dict[str, Corners]] = {
    "mediastinum": (0.379, -0.002, 0.640, 0.722),
    "right hilum": (0.310, 0.408, 0.401, 0.579),
    "left hilum": (0.613, 0.365, 0.704, 0.536),
    "right hemidiaphragm": (0.0, 0.807, 0.489, 1.247),
    "left hemidiaphragm": (0.517, 0.860, 0.998, 1.247),
    "right ribs": (-0.016, 0.013, 0.454, 1.215),
    "left ribs": (0.547, 0.012, 1.016, 1.216),
    "right clavicle": (-0.096, 0.022, 0.468, 0.175),
    "left clavicle": (0.531, 0.023, 1.096, 0.175),
    "spine": (0.423, -0.172, 0.577, 1.245),
    "trachea": (0.469, -0.174, 0.543, 0.359),
    "right lung": (0.0, 0.0, 0.427, 0.974),
    "left lung": (0.591, 0.0, 1.0, 1.026),
    "right upper zone": (0.089, 0.0, 0.415, 0.325),
    "right mid zone": (0.021, 0.325, 0.388, 0.650),
    "right lower zone": (0.0, 0.650, 0.406, 0.974),
    "left upper zone": (0.591, 0.0, 0.916, 0.343),
    "left mid zone": (0.626, 0.343, 0.983, 0.685),
    "left lower zone": (0.708, 0.685, 1.0, 1.026),
    "right medial lung": (0.214, 0.0, 0.427, 0.837),
    "right lateral lung": (0.0, 0.066, 0.214, 0.974),
    "right peripheral lung": (0.0, 0.0, 0.310, 0.973),
    "left medial lung": (0.591, 0.0, 0.795, 0.848),
    "left lateral lung": (0.795, 0.077, 1.0, 1.026),
    "left peripheral lung": (0.689, 0.0, 1.0, 1.024),
    "right costophrenic angle": (0.0, 0.730, 0.093, 0.974),
    "left costophrenic angle": (0.929, 0.770, 1.0, 1.026),
    "endotracheal tube": (0.46, -0.17, 0.54, 0.27),
    "nasogastric tube": (0.45, -0.17, 0.70, 1.15),
    "central venous line": (0.20, 0.02, 0.50, 0.45),
    "pacemaker": (0.70, 0.05, 0.90, 0.25),
    "chest tube": (0.70, 0.40, 1.0, 0.90),
}
"""Boxes in the frame of the lungs: structures of the average thorax, and devices in their usual position."""
_LATERAL: Final[dict[str, Corners]] = {
    "right lung": (0.250, 0.082, 0.768, 0.876),
    "left lung": (0.273, 0.108, 0.748, 0.875),
    "heart": (0.273, 0.420, 0.638, 0.770),
    "mediastinum": (0.363, 0.082, 0.626, 0.639),
    "right hilum": (0.498, 0.405, 0.584, 0.538),
    "left hilum": (0.508, 0.379, 0.589, 0.504),
    "right hemidiaphragm": (0.251, 0.735, 0.750, 1.0),
    "left hemidiaphragm": (0.277, 0.756, 0.724, 1.0),
    "right ribs": (0.270, 0.094, 0.794, 1.0),
    "left ribs": (0.293, 0.107, 0.785, 0.967),
    "right clavicle": (0.274, 0.085, 0.539, 0.228),
    "left clavicle": (0.287, 0.149, 0.536, 0.234),
    "spine": (0.591, 0.0, 0.719, 1.0),
    "trachea": (0.488, 0.0, 0.605, 0.365),
    "upper zone": (0.305, 0.082, 0.734, 0.350),
    "mid zone": (0.254, 0.350, 0.770, 0.616),
    "lower zone": (0.249, 0.616, 0.770, 0.881),
    "anterior lung": (0.249, 0.083, 0.511, 0.804),
    "posterior lung": (0.511, 0.082, 0.770, 0.881),
    "posterior costophrenic angle": (0.511, 0.683, 0.770, 0.881),
}
"""Boxes of structures, as shares of a lateral image."""
ONLY_LATERAL: Final = frozenset(
    {
        "upper zone",
        "mid zone",
        "lower zone",
        "anterior lung",
        "posterior lung",
        "posterior costophrenic angle",
    }
)
_LEAST_PIECE: Final = 0.3
"""Share of the largest piece's area below which a piece is noise."""
MIDDLE: Final[Corners] = (0.25, 0.25, 0.75, 0.75)
"""The middle of the image, as shares of it: the answer where nothing is found."""


def frontal_box(name: str, frame: LungFrame, heart: Corners, shape: tuple[int, int]) -> Corners | None:
    """Box of a structure on a frontal image, as shares of the image; None for an unknown structure."""
    if name == "heart":
        return to_shares(heart, shape)
    return to_shares(frame.box(_FRONTAL[name]), shape) if name in _FRONTAL else None


def lateral_box(name: str) -> Corners | None:
    """Box of a structure on a lateral image, as shares of the image; None for an unknown structure."""
    return _LATERAL.get(name)


def keep_main_pieces(mask: Mask) -> Mask:
    """The largest piece of a mask, with all pieces that are not much smaller."""
    count, labels, stats, _ = cv2.connectedComponentsWithStats(mask.astype(np.uint8))
    if count < 2:
        return mask
    areas = stats[1:, cv2.CC_STAT_AREA]
    return np.isin(labels, 1 + np.flatnonzero(areas >= _LEAST_PIECE * areas.max()))


def enclosing_box(mask: Mask) -> Corners | None:
    """The box around the main pieces of a mask, as shares of the image; None for an empty mask."""
    if not mask.any():
        return None
    x, y, width, height = cv2.boundingRect(keep_main_pieces(mask).astype(np.uint8))
    return to_shares((x, y, x + width, y + height), (mask.shape[0], mask.shape[1]))


def to_shares(corners: Corners, shape: tuple[int, int]) -> Corners:
    """Convert pixels to shares of an image, clipped to its edges."""
    height, width = shape
    x1, y1, x2, y2 = corners
    return (
        min(max(x1 / width, 0.0), 0.99),
        min(max(y1 / height, 0.0), 0.99),
        min(max(x2 / width, 0.01), 1.0),
        min(max(y2 / height, 0.01), 1.0),
    )


def write_box(name: str, corners: Corners, units: Units, width: int, height: int) -> str:
    """A box in the notation of trek, from shares of an image."""
    across, down = {
        "percent": (100.0, 100.0),
        "thousand": (1000.0, 1000.0),
        "unit": (1.0, 1.0),
        "pixel": (float(width), float(height)),
    }[units]
    x1, y1, x2, y2 = (value * side for value, side in zip(corners, (across, down, across, down), strict=True))
    digits = 4 if units == "unit" else 2
    left, right = sorted((x1, x2))
    top, bottom = sorted((y1, y2))
    return (
        f"<|ref|> {name} <|/ref|> <|box|>({left:.{digits}f}, {top:.{digits}f}), "
        f"({right:.{digits}f}, {bottom:.{digits}f})<|/box|>"
    )
