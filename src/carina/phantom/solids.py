"""The solids that make up a phantom patient, in centimetres.

Patient frame: x to the patient's left, y to the front, z up. Solids are plain data; `beam` projects them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Ellipsoid:
    """All points `centre + axes @ s` with |s| <= 1; the columns of `axes` are the semi-axes."""

    centre: Vector
    axes: Vector

    def scale(self, factors: ArrayLike) -> "Ellipsoid":
        """The semi-axes multiplied by one factor each (or all by the same)."""
        return replace(self, axes=self.axes * np.asarray(factors, dtype=float))

    def shift(self, offset: ArrayLike) -> "Ellipsoid":
        return replace(self, centre=self.centre + np.asarray(offset, dtype=float))

    @cached_property
    def to_ball(self) -> Vector:
        """The matrix that maps it to a unit ball: the inverse of `axes`, in closed form because it is used often."""
        (a, b, c), (d, e, f), (g, h, i) = self.axes.tolist()
        p, q, r = e * i - f * h, f * g - d * i, d * h - e * g
        adjugate = (
            (p, c * h - b * i, b * f - c * e),
            (q, a * i - c * g, c * d - a * f),
            (r, b * g - a * h, a * e - b * d),
        )
        return np.array(adjugate, dtype=float) / float(a * p + b * q + c * r)

    def contains(self, points: Vector) -> NDArray[np.bool_]:
        local = (points - self.centre) @ self.to_ball.T
        return np.asarray((local * local).sum(axis=1) <= 1.0)

    def x_range_at(self, z: float) -> tuple[float, float] | None:
        """Lowest and highest x at a height, over all depths; None above and below the solid."""
        (xx, _, xz), _, (_, _, zz) = (self.axes @ self.axes.T).tolist()
        rise = z - float(self.centre[2])
        if rise * rise >= zz:
            return None
        middle = float(self.centre[0]) + rise * xz / zz
        half = sqrt((xx - xz * xz / zz) * (1 - rise * rise / zz))
        return middle - half, middle + half

    def half_width(self, axis: int) -> float:
        """Half of the width along one axis of the patient frame."""
        return float(np.linalg.norm(self.axes[axis]))


def ellipsoid(centre: ArrayLike, semi: ArrayLike, *, tilt_degrees: ArrayLike = (0.0, 0.0, 0.0)) -> Ellipsoid:
    """Make an ellipsoid with semi-axes along x, y, z, then turn it about x, y and z in that order."""
    return Ellipsoid(
        np.asarray(centre, dtype=float), rotation(tilt_degrees) @ np.diag(np.asarray(semi, dtype=float))
    )


def rotation(degrees: ArrayLike) -> Vector:
    """Rotation matrix: about x, then y, then z."""
    a, b, c = np.radians(np.asarray(degrees, dtype=float))
    about_x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    about_y = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    about_z = np.array([[np.cos(c), -np.sin(c), 0], [np.sin(c), np.cos(c), 0], [0, 0, 1]])
    return np.asarray(about_z @ about_y @ about_x)


@dataclass(frozen=True)
class Tube:
    """A ball swept along a curve of points (n, 3) with a radius at each, or a bundle of k such curves (k, n, 3).

    `flat` scales the thickness along the ray without changing the width seen: 1 is round, 0.5 a flat rib; an
    array gives it point by point.
    """

    points: Vector
    radius: Vector
    flat: float | Vector = 1.0

    def curve(self, k: int) -> "Tube":
        """One curve of a bundle."""
        flat = np.broadcast_to(self.flat, self.radius.shape)
        return Tube(self.points[k], self.radius[k], flat[k])


def tube(points: ArrayLike, radius: ArrayLike, *, flat: float | Vector = 1.0) -> Tube:
    curve = np.asarray(points, dtype=float)
    return Tube(curve, np.broadcast_to(np.asarray(radius, dtype=float), len(curve)), flat)


@dataclass(frozen=True)
class Plate:
    """A flat polygon of bone of a given thickness (scapula, sternum)."""

    corners: Vector
    thickness: float


@dataclass(frozen=True)
class Block:
    """An upright box (a vertebral body); `half` holds its half sizes along x, y, z."""

    centre: Vector
    half: Vector


def mirror_points(points: Vector) -> Vector:
    """Mirror points to the patient's other side."""
    return np.asarray(points * np.array([-1.0, 1.0, 1.0]))


def smooth_curve(knots: Sequence[ArrayLike], *, n: int = 48) -> Vector:
    """A smooth curve through 3-D knots, sampled at n points of about equal spacing (Catmull-Rom)."""
    p = np.stack([np.asarray(knot, dtype=float) for knot in knots])
    p = np.vstack([2 * p[0] - p[1], p, 2 * p[-1] - p[-2]])
    p0, p1, p2, p3 = (p[k : len(p) - 3 + k, None] for k in range(4))
    t = np.linspace(0.0, 1.0, 16, endpoint=False)[:, None]
    curve = 0.5 * (
        2 * p1 + (p2 - p0) * t + (2 * p0 - 5 * p1 + 4 * p2 - p3) * t**2 + (3 * p1 - p0 - 3 * p2 + p3) * t**3
    )
    return resample_curve(np.vstack([curve.reshape(-1, 3), p[-2]]), n=n)


def resample_curve(curve: Vector, *, n: int) -> Vector:
    """Sample a curve at n points of equal spacing along it."""
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))])
    at = np.linspace(0.0, length[-1], n)
    return np.stack([np.interp(at, length, curve[:, axis]) for axis in range(3)], axis=1)
