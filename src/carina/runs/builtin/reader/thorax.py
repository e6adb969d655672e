"""Find the lungs and the heart by fitting an average thorax to the edges of a frontal image.

The average thorax is given by tables of borders, row by row, in the frame of the two lungs: 0 to 1 from the lateral
wall of the right lung to that of the left, and from apex to costophrenic angle. Four numbers place that frame on an
image. They are found by search: across the border of a lung, the image gets brighter outwards. The width of the heart
is fitted to its own edges. No step depends on the content of the lungs, so a lung that is opaque is found as well.

The averages are those of phantoms of seed 11.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.studies.lungs import lung_parts
from carina.studies.region import Mask

Grey = NDArray[np.float32]
Corners = tuple[float, float, float, float]
"""x1, y1, x2, y2 in pixels."""

SIDE: Final = 256
"""Longer side in pixels of the resized image on which everything is measured."""
_LEVELS: Final = np.linspace(0.0125, 0.9875, 20)
"""Rows of the tables, as shares of the height of a lung or of the heart."""
# fmt: off
_RIGHT_LATERAL: Final = np.array([
    .269, .214, .178, .151, .129, .109, .092, .077, .064, .052,
    .042, .033, .025, .019, .013, .009, .005, .002, .001, .0,
])
_RIGHT_MEDIAL: Final = np.array([
    .361, .407, .414, .413, .410, .399, .390, .384, .381, .378,
    .374, .352, .335, .327, .328, .340, .356, .120, .053, .012,
])
_LEFT_MEDIAL: Final = np.array([
    .639, .594, .593, .596, .604, .634, .630, .638, .648, .674,
    .695, .745, .778, .797, .800, .784, .738, .880, .944, .986,
])
_HEART_RIGHT: Final = np.array([
    .550, .488, .438, .411, .385, .366, .353, .343, .336, .330,
    .327, .326, .327, .331, .337, .346, .361, .389, .516, .581,
])
_HEART_LEFT: Final = np.array([
    .623, .652, .667, .675, .678, .686, .714, .738, .757, .772,
    .784, .793, .799, .801, .800, .796, .786, .770, .744, .694,
])
# fmt: on
_HEART_ROWS: Final = (0.407, 0.882)
_HEART_COLUMNS: Final = (0.326, 0.801)
_LUNG_ROWS: Final = {"right": (0.0, 0.974), "left": (0.0, 1.026)}
_USUAL: Final = (0.133, 0.866, 0.122, 0.828)
"""Usual position of the frame: left, right, top, bottom as shares of the image."""
_REACH: Final = np.array([0.24, 0.24, 0.12, 0.12])
"""Search range around the usual position for each of the four: patients are off-centre mostly sideways."""
_STEPS: Final = (0.012, 0.004)
_INWARD: Final = np.array([-0.010, 0.008, -0.006, 0.005])
"""Correction of the four: the strongest edge of the chest wall is that of the ribs, inside the border of the lung."""


class LungFrame(NamedTuple):
    """Position of the frame of the two lungs on an image, in pixels."""

    left: float
    right: float
    top: float
    bottom: float

    def box(self, corners: Corners) -> Corners:
        """Convert a box of the average thorax to pixels."""
        wide, high = self.right - self.left, self.bottom - self.top
        x1, y1, x2, y2 = corners
        return self.left + x1 * wide, self.top + y1 * high, self.left + x2 * wide, self.top + y2 * high


@dataclass(frozen=True)
class Thorax:
    """Lungs and heart on the resized image."""

    frame: LungFrame
    heart: Corners
    right: Mask
    left: Mask
    heart_mask: Mask

    @property
    def ratio(self) -> float:
        """Cardiothoracic ratio: width of the heart divided by that of the chest."""
        return (self.heart[2] - self.heart[0]) / (self.frame.right - self.frame.left)

    @cached_property
    def parts(self) -> dict[str, Mask]:
        """Zones and other parts of the lungs, by name."""
        return lung_parts(self.right, self.left)


def find_thorax(image: Grey) -> Thorax:
    """Fit the thorax to a frontal image; on an image without edges it has its usual position."""
    gradient = _normalise_gradient(image)
    frame = _fit_frame(gradient, image.shape)
    heart = _find_heart(gradient, frame)
    shape = (image.shape[0], image.shape[1])
    heart_mask = _fill_outline(shape, _heart_outline(heart))
    lungs = {
        side: _fill_outline(shape, _lung_outline(frame, side)) & ~heart_mask for side in ("right", "left")
    }
    return Thorax(
        frame=frame,
        heart=heart,
        right=lungs["right"],
        left=lungs["left"],
        heart_mask=heart_mask,
    )


def _normalise_gradient(image: Grey) -> tuple[Grey, Grey]:
    """Gradient in x and y, divided by its local root mean square."""
    smooth = cv2.GaussianBlur(image, (0, 0), 1.5)
    x, y = cv2.Sobel(smooth, cv2.CV_32F, 1, 0), cv2.Sobel(smooth, cv2.CV_32F, 0, 1)
    usual = np.sqrt(cv2.GaussianBlur(x * x + y * y, (0, 0), 16.0)) + np.float32(1.0)
    return np.clip(x / usual, -1.5, 1.5), np.clip(y / usual, -1.5, 1.5)


def _make_template() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Points on the borders of both lungs, in the frame, with their outward normals; without heart and lower angle."""
    right = np.concatenate(
        [
            np.stack([_RIGHT_LATERAL, _LEVELS * _LUNG_ROWS["right"][1]], axis=1)[::-1],
            np.stack([_RIGHT_MEDIAL, _LEVELS * _LUNG_ROWS["right"][1]], axis=1),
        ]
    )
    left = np.concatenate(
        [
            np.stack([_LEFT_MEDIAL, _LEVELS * _LUNG_ROWS["left"][1]], axis=1)[::-1],
            np.stack([1.0 - _RIGHT_LATERAL, _LEVELS * _LUNG_ROWS["left"][1]], axis=1),
        ]
    )
    points, normals = [], []
    for outline in (right, left):
        closed = _resample_outline(outline)
        along = np.roll(closed, -1, axis=0) - np.roll(closed, 1, axis=0)
        # The outline is clockwise on an image (y points down), so the outward normal is to the left of its direction.
        normal = np.stack([along[:, 1], -along[:, 0]], axis=1)
        points.append(closed)
        normals.append(normal / np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-9))
    return np.concatenate(points), np.concatenate(normals)


def _resample_outline(outline: NDArray[np.float64], count: int = 60) -> NDArray[np.float64]:
    """Points at equal distances on a closed outline."""
    closed = np.concatenate([outline, outline[:1]])
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(closed, axis=0), axis=1))])
    at = np.linspace(0.0, length[-1], count, endpoint=False)
    return np.stack([np.interp(at, length, closed[:, k]) for k in range(2)], axis=1)


_POINTS, _NORMALS = _make_template()


def _fit_frame(gradient: tuple[Grey, Grey], shape: tuple[int, ...]) -> LungFrame:
    height, width = shape[:2]
    size = np.array([width, width, height, height], float)
    usual = np.array(_USUAL)
    best = usual.copy()
    for step in _STEPS:
        far = round(_REACH[0] / step) if step == _STEPS[0] else 3
        reach = np.arange(-far, far + 1) * step
        for _ in range(3):
            before = best.copy()
            for moved in ((0, 1), (2, 3), (0,), (1,), (2,), (3,)):
                tried = np.repeat(best[None], len(reach), axis=0)
                tried[:, moved] += reach[:, None]
                tried = np.clip(tried, usual - _REACH, usual + _REACH)
                best = tried[
                    int(np.argmax(_measure_fit(gradient, tried * size) - _displacement_cost(tried, usual)))
                ]
            if np.allclose(best, before):
                break
    return LungFrame(*(float(value) for value in (best + _INWARD) * size))


def _displacement_cost(tried: NDArray[np.float64], usual: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cost of a frame that differs from the usual position."""
    away = (tried - usual) / 0.05
    shifted, narrow = (away[:, 0] + away[:, 1]) / 4, away[:, 0] - away[:, 1]
    return np.asarray(0.0125 * (shifted**2 + narrow**2 + away[:, 2] ** 2 + away[:, 3] ** 2))


def _measure_fit(gradient: tuple[Grey, Grey], frames: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean increase of brightness across the borders of both lungs, for each of many frames."""
    wide = (frames[:, 1] - frames[:, 0])[:, None]
    high = (frames[:, 3] - frames[:, 2])[:, None]
    x = frames[:, :1] + _POINTS[:, 0] * wide
    y = frames[:, 2:3] + _POINTS[:, 1] * high
    height, width = gradient[0].shape
    column = np.clip(x.astype(np.intp), 0, width - 1)
    row = np.clip(y.astype(np.intp), 0, height - 1)
    across = gradient[0][row, column] * _NORMALS[:, 0] + gradient[1][row, column] * _NORMALS[:, 1]
    return np.asarray(across.mean(axis=1), np.float64)


def _find_heart(gradient: tuple[Grey, Grey], frame: LungFrame) -> Corners:
    """The box of the heart: its sides where the borders of a heart of that width have the strongest edges."""
    wide, high = frame.right - frame.left, frame.bottom - frame.top
    rows = np.array([0.58, 0.62, 0.66, 0.70, 0.74, 0.78])
    inside = (rows - _HEART_ROWS[0]) / (_HEART_ROWS[1] - _HEART_ROWS[0])
    height, width = gradient[0].shape
    y = np.clip((frame.top + rows * high).astype(np.intp), 0, height - 1)
    sides = []
    for table, column, usual, sign, reach in (
        (_HEART_RIGHT, 0, 0.326, 1.0, (-0.10, 0.06)),
        (_HEART_LEFT, 1, 0.801, -1.0, (-0.10, 0.14)),
    ):
        border = np.interp(inside, _LEVELS, table) - _HEART_COLUMNS[column]
        tried = usual + np.arange(reach[0], reach[1], 0.005)
        x = frame.left + (tried[:, None] + border) * wide
        near = np.clip(x.astype(np.intp), 0, width - 1)
        edge = sign * gradient[0][y, near]
        cost = 0.05 * ((tried - usual) / 0.05) ** 2 / 4
        sides.append(float(tried[int(np.argmax(edge.mean(axis=1) - cost))]))
    return frame.box((sides[0], _HEART_ROWS[0], sides[1], _HEART_ROWS[1]))


def _heart_outline(heart: Corners) -> NDArray[np.float64]:
    x1, y1, x2, y2 = heart
    low, high = _HEART_COLUMNS
    y = y1 + _LEVELS * (y2 - y1)
    right = x1 + (_HEART_RIGHT - low) / (high - low) * (x2 - x1)
    left = x1 + (_HEART_LEFT - low) / (high - low) * (x2 - x1)
    return np.concatenate([np.stack([right, y], axis=1)[::-1], np.stack([left, y], axis=1)])


def _lung_outline(frame: LungFrame, side: str) -> NDArray[np.float64]:
    wide, high = frame.right - frame.left, frame.bottom - frame.top
    y = frame.top + _LEVELS * _LUNG_ROWS[side][1] * high
    one, other = (_RIGHT_LATERAL, _RIGHT_MEDIAL) if side == "right" else (_LEFT_MEDIAL, 1.0 - _RIGHT_LATERAL)
    return np.concatenate(
        [
            np.stack([frame.left + one * wide, y], axis=1)[::-1],
            np.stack([frame.left + other * wide, y], axis=1),
        ]
    )


def _fill_outline(shape: tuple[int, int], outline: NDArray[np.float64]) -> Mask:
    canvas = np.zeros(shape, np.uint8)
    cv2.fillPoly(canvas, [np.round(outline - 0.5).astype(np.int32)], (1,))
    return canvas.astype(bool)
