"""Rays from a point source through the patient to the detector, and their path lengths in each solid.

Every value is a line integral along the ray of one pixel: for ellipsoids in closed form, for tubes as in `tubes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import sqrt
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from carina.phantom.solids import Block, Ellipsoid, Plate, Tube, Vector, rotation
from carina.phantom.tubes import SOLID, Profile, add_tubes
from carina.studies.vocabulary import View

Field = NDArray[np.float32]
Window = tuple[slice, slice]

# Entry and exit of a ray that misses the solid: the length of any intersection with such a span is negative.
MISS = np.float32(1e6)


@dataclass(frozen=True)
class Span:
    """Where each ray of a window enters and leaves a convex solid, in units of the ray's direction vector."""

    window: Window
    near: Field
    far: Field


@dataclass(frozen=True)
class Beam:
    """A point source, a detector plane and its pixels; (u, v) is (column, row), pixel centres at integers."""

    source: Vector
    right: Vector
    """Unit vector of increasing column."""
    down: Vector
    """Unit vector of increasing row."""
    towards: Vector
    """Unit vector from the source, perpendicular to the detector."""
    distance: float
    """From source to detector."""
    centre: tuple[float, float]
    """(u, v) where the perpendicular from the source meets the detector."""
    pixel: float
    """Side of a pixel at the detector, cm."""
    rows: int
    cols: int

    @cached_property
    def _u(self) -> Field:
        return ((np.arange(self.cols) - self.centre[0]) * self.pixel).astype(np.float32)[None, :]

    @cached_property
    def _v(self) -> Field:
        return ((np.arange(self.rows) - self.centre[1]) * self.pixel).astype(np.float32)[:, None]

    @cached_property
    def ray_length(self) -> Field:
        """Length of each ray's direction vector: turns span units into centimetres."""
        return np.asarray(np.sqrt(np.float32(self.distance**2) + self._u**2 + self._v**2), np.float32)

    def project(self, points: Vector) -> tuple[Vector, Vector, Vector]:
        """Columns, rows and magnification of points."""
        seen = np.atleast_2d(points) - self.source
        magnification = self.distance / (seen @ self.towards)
        u = (seen @ self.right) * magnification / self.pixel + self.centre[0]
        v = (seen @ self.down) * magnification / self.pixel + self.centre[1]
        return u, v, magnification

    def bounds(self, solid: Ellipsoid) -> tuple[float, float, float, float]:
        """Exact projected extent of an ellipsoid: u low, u high, v low, v high."""
        seen = self._camera @ solid.axes
        at = self._camera @ (solid.centre - self.source)
        # The dual conic of the outline; its tangents along each axis are the roots of a quadratic.
        (uu, _, uw), (_, vv, vw), (_, _, ww) = (seen @ seen.T - np.outer(at, at)).tolist()
        ru, rv = sqrt(max(uw * uw - uu * ww, 0.0)), sqrt(max(vw * vw - vv * ww, 0.0))
        # ww is negative for a solid in front of the source, so the plus sign gives the lower bound.
        return (uw + ru) / ww, (uw - ru) / ww, (vw + rv) / ww, (vw - rv) / ww

    @cached_property
    def _camera(self) -> Vector:
        f = self.distance / self.pixel
        return np.stack(
            [
                f * self.right + self.centre[0] * self.towards,
                f * self.down + self.centre[1] * self.towards,
                self.towards,
            ]
        )

    def window(self, low_u: float, high_u: float, low_v: float, high_v: float, *, margin: int = 2) -> Window:
        """The pixels of a rectangle, clipped to the image; the window may be empty."""

        def clip(low: float, high: float, size: int) -> slice:
            start = min(max(int(np.floor(low)) - margin, 0), size)
            return slice(start, max(min(int(np.ceil(high)) + margin + 1, size), start))

        return clip(low_v, high_v, self.rows), clip(low_u, high_u, self.cols)

    def span(self, solid: Ellipsoid) -> Span:
        """Entry and exit of every ray through an ellipsoid."""
        window = self.window(*self.bounds(solid))
        u, v = self._u[:, window[1]], self._v[window[0]]
        start, d0, du, dv = self._transform_to_unit_ball(solid)
        length = _squared_length(d0, du, dv)
        b0, bu, bv, c = float(start @ d0), float(start @ du), float(start @ dv), float(start @ start) - 1.0
        # The discriminant b^2 - a c, expanded: in float32 the plain difference would lose the silhouette.
        disc = _Quadratic(
            b0 * b0 - length.k * c,
            2 * b0 * bu - length.u * c,
            2 * b0 * bv - length.v * c,
            bu * bu - length.uu * c,
            bv * bv - length.vv * c,
            2 * bu * bv - length.uv * c,
        ).evaluate(u, v)
        a = length.evaluate(u, v)
        np.reciprocal(a, out=a)
        middle = (np.float32(-b0) - np.float32(bu) * u) - np.float32(bv) * v
        middle *= a
        missed = disc <= 0
        np.maximum(disc, 0, out=disc)
        half = np.sqrt(disc, out=disc)
        half *= a
        np.putmask(half, missed, -MISS)
        return Span(window, middle - half, middle + half)

    def _transform_to_unit_ball(self, solid: Ellipsoid) -> tuple[Vector, Vector, Vector, Vector]:
        """Rays in the frame in which the ellipsoid is a unit ball: start; constant, u and v terms of the direction.

        A ray is source + t (distance towards + u right + v down), so all its quadratics are polynomials in
        u and v, and only the last few steps work on whole arrays.
        """
        inverse = solid.to_ball
        start = inverse @ (self.source - solid.centre)
        return start, inverse @ (self.distance * self.towards), inverse @ self.right, inverse @ self.down

    def integrate_gaussian(self, solid: Ellipsoid, within: Span) -> tuple[Window, Field]:
        """Line integral, cm, of a 3-D Gaussian with height 1 whose standard deviations are the semi-axes,
        taken only where the ray is inside `within`."""
        reach = self.window(*self.bounds(solid.scale(3.0)))
        rows = slice(max(reach[0].start, within.window[0].start), min(reach[0].stop, within.window[0].stop))
        cols = slice(max(reach[1].start, within.window[1].start), min(reach[1].stop, within.window[1].stop))
        if rows.stop <= rows.start or cols.stop <= cols.start:
            return (slice(0, 0), slice(0, 0)), np.zeros((0, 0), np.float32)
        u, v = self._u[:, cols], self._v[rows]
        start, d0, du, dv = self._transform_to_unit_ball(solid)
        a = _squared_length(d0, du, dv).evaluate(u, v)
        b = np.float32(start @ d0) + np.float32(start @ du) * u + np.float32(start @ dv) * v
        closest = np.maximum(np.float32(start @ start) - b * b / a, 0.0)
        middle, root = -b / a, np.sqrt(a)
        inner = (
            slice(rows.start - within.window[0].start, rows.stop - within.window[0].start),
            slice(cols.start - within.window[1].start, cols.stop - within.window[1].start),
        )
        share = ndtr((within.far[inner] - middle) * root) - ndtr((within.near[inner] - middle) * root)
        field = (
            np.float32(np.sqrt(2 * np.pi)) / root * np.exp(np.float32(-0.5) * closest) * np.maximum(share, 0)
        )
        return (rows, cols), np.asarray(field * self.ray_length[rows, cols], np.float32)

    def height_at(self, depth_of: Vector) -> Field:
        """z of every ray in the plane that is parallel to the detector and contains a point."""
        t = float((depth_of - self.source) @ self.towards) / self.distance
        at = self.source[2] + t * (
            self.distance * self.towards[2] + self._u * self.right[2] + self._v * self.down[2]
        )
        return np.asarray(np.broadcast_to(at, (self.rows, self.cols)), np.float32)

    def blank(self) -> Field:
        return np.zeros((self.rows, self.cols), np.float32)

    def length(self, *spans: Span) -> Field:
        """Centimetres of each ray inside the solids, summed over the solids."""
        total = self.blank()
        for span in spans:
            total[span.window] += np.maximum(span.far - span.near, 0) * self.ray_length[span.window]
        return total

    def coarsen(self, factor: int) -> Beam:
        """The same view with pixels `factor` times as wide; the size must be a multiple of it."""
        middle = tuple((c + 0.5) / factor - 0.5 for c in self.centre)
        return replace(
            self,
            centre=(middle[0], middle[1]),
            pixel=self.pixel * factor,
            rows=self.rows // factor,
            cols=self.cols // factor,
        )

    def hull(self, spans: Sequence[Span]) -> Span:
        """Merge touching solids that form one organ: from the first entry to the last exit."""
        rows = slice(min(s.window[0].start for s in spans), max(s.window[0].stop for s in spans))
        cols = slice(min(s.window[1].start for s in spans), max(s.window[1].stop for s in spans))
        shape = (rows.stop - rows.start, cols.stop - cols.start)
        near, far = np.full(shape, MISS, np.float32), np.full(shape, -MISS, np.float32)
        for s in spans:
            inner = (
                slice(s.window[0].start - rows.start, s.window[0].stop - rows.start),
                slice(s.window[1].start - cols.start, s.window[1].stop - cols.start),
            )
            np.minimum(near[inner], s.near, out=near[inner])
            np.maximum(far[inner], s.far, out=far[inner])
        return Span((rows, cols), near, far)

    def silhouette(self, span: Span) -> NDArray[np.bool_]:
        """Pixels whose ray passes through the solid."""
        mask = np.zeros((self.rows, self.cols), bool)
        mask[span.window] = span.far > span.near
        return mask

    def project_tubes(self, tubes: Sequence[Tube], *, profile: Profile = SOLID) -> Field:
        """Projected thickness of tubes, cm, summed where they cross; see `tubes.add_tubes`."""
        total = self.blank()
        add_tubes(self, tubes, total, profile=profile)
        return total

    def project_plates(self, plates: Sequence[Plate], *, soften: float = 0.08) -> Field:
        """Projected thickness of flat bones, cm: constant over a plate, larger the more it is seen edge-on."""
        total = self.blank()
        for plate in plates:
            u, v, _ = self.project(plate.corners)
            normal = np.cross(plate.corners[1] - plate.corners[0], plate.corners[2] - plate.corners[0])
            sight = plate.corners.mean(axis=0) - self.source
            cosine = abs(normal @ sight) / (np.linalg.norm(normal) * np.linalg.norm(sight))
            window = self.window(u.min(), u.max(), v.min(), v.max(), margin=2 + int(3 * soften / self.pixel))
            shape = (window[0].stop - window[0].start, window[1].stop - window[1].start)
            if min(shape) == 0:
                continue
            layer = np.zeros(shape, np.float32)
            at = np.stack([u - window[1].start, v - window[0].start], axis=1)
            cv2.fillPoly(layer, [np.round(at * 16).astype(np.int32)], 1.0, lineType=cv2.LINE_8, shift=4)
            layer = cv2.GaussianBlur(layer, (0, 0), max(soften / self.pixel, 0.6))
            # At most four times the thickness of the plate, because a real bone is curved.
            total[window] += layer * np.float32(plate.thickness / max(cosine, 0.25))
        return total

    def project_blocks(self, blocks: Sequence[Block], *, core: float, rim: float) -> Field:
        """Attenuation of box-shaped bones: `core` per cm through the box, and `rim` more near its outline."""
        corner = np.array([(i, j, k) for i in (-1, 1) for j in (-1, 1) for k in (-1, 1)], dtype=float)
        layer = self.blank()
        for block in blocks:
            u, v, _ = self.project(block.centre + block.half * corner)
            outline = cv2.convexHull(np.stack([u, v], axis=1).astype(np.float32))
            sight = block.centre - self.source
            sight = np.abs(sight) / np.linalg.norm(sight)
            thickness = float(np.min(2 * block.half / np.maximum(sight, 1e-6)))
            cv2.fillPoly(
                layer, [np.round(outline * 16).astype(np.int32)], thickness, lineType=cv2.LINE_8, shift=4
            )
        used = np.flatnonzero(layer.any(axis=0))
        if len(used) == 0:
            return layer
        reach = 2 + int(0.7 / self.pixel)
        strip = slice(max(int(used[0]) - reach, 0), int(used[-1]) + reach + 1)
        soft = cv2.GaussianBlur(layer[:, strip], (0, 0), max(0.07 / self.pixel, 0.7))
        softer = cv2.GaussianBlur(layer[:, strip], (0, 0), max(0.22 / self.pixel, 1.0))
        layer[:, strip] = core * soft + rim * np.maximum(soft - softer, 0)
        return layer


class _Quadratic(NamedTuple):
    """k + u U + v V + uu U^2 + vv V^2 + uv U V."""

    k: float
    u: float
    v: float
    uu: float
    vv: float
    uv: float

    def evaluate(self, row: Field, column: Field) -> Field:
        """Evaluate the polynomial for a row of U and a column of V."""
        across = np.float32(self.k) + (np.float32(self.u) + np.float32(self.uu) * row) * row
        along = (np.float32(self.v) + np.float32(self.vv) * column) * column
        total = (np.float32(self.uv) * column) * row
        total += across
        total += along
        return np.asarray(total, np.float32)


def _squared_length(d0: Vector, du: Vector, dv: Vector) -> _Quadratic:
    """|d0 + u du + v dv|^2."""
    return _Quadratic(
        float(d0 @ d0),
        2 * float(d0 @ du),
        2 * float(d0 @ dv),
        float(du @ du),
        float(dv @ dv),
        2 * float(du @ dv),
    )


def intersect_spans(first: Span, second: Span) -> Span:
    """The span in which a ray is inside both convex solids."""
    rows = slice(
        max(first.window[0].start, second.window[0].start), min(first.window[0].stop, second.window[0].stop)
    )
    cols = slice(
        max(first.window[1].start, second.window[1].start), min(first.window[1].stop, second.window[1].stop)
    )
    if rows.stop <= rows.start or cols.stop <= cols.start:
        nothing = np.zeros((0, 0), np.float32)
        return Span((slice(0, 0), slice(0, 0)), nothing, nothing)

    def crop(span: Span, values: Field) -> Field:
        return values[
            rows.start - span.window[0].start : rows.stop - span.window[0].start,
            cols.start - span.window[1].start : cols.stop - span.window[1].start,
        ]

    return Span(
        (rows, cols),
        np.maximum(crop(first, first.near), crop(second, second.near)),
        np.minimum(crop(first, first.far), crop(second, second.far)),
    )


def measure_length_outside(beam: Beam, solid: Span, excluded: Sequence[Span]) -> Field:
    """Centimetres of each ray inside `solid` and in none of `excluded`, exact by inclusion and exclusion."""
    total = beam.blank()
    total[solid.window] = np.maximum(solid.far - solid.near, 0)
    _exclude(total, solid, excluded, np.float32(-1))
    inside = total[solid.window]
    np.maximum(inside, 0, out=inside)
    inside *= beam.ray_length[solid.window]
    return total


def _exclude(total: Field, solid: Span, excluded: Sequence[Span], sign: np.float32) -> None:
    for k, other in enumerate(excluded):
        common = intersect_spans(solid, other)
        if common.near.size:
            inside = np.maximum(common.far - common.near, 0)
            if inside.any():
                total[common.window] += sign * inside
                _exclude(total, common, excluded[k + 1 :], np.float32(-sign))


# Source to detector, cm.
DISTANCE = {"PA": 180.0, "AP": 100.0, "lateral": 180.0}


def make_beam(
    view: View,
    *,
    size: int,
    field_cm: float,
    centre: Vector,
    half_depth: float,
    half_width: float,
    turn_degrees: float = 0.0,
    tilt_degrees: float = 0.0,
    margin: int = 0,
) -> Beam:
    """The geometry of a PA, AP or lateral chest radiograph.

    The central ray passes through `centre`; the image shows `field_cm` at the detector, which touches
    the patient. `turn_degrees` turns the patient's front to their left (it turns source and detector the
    other way), `tilt_degrees` turns the detector in its plane, `margin` adds pixels on every side.
    """
    distance = DISTANCE[view]
    if view == "lateral":  # left side to the detector, shown facing the image's left
        towards, right, reach = np.array([1.0, 0.0, 0.0]), np.array([0.0, -1.0, 0.0]), half_width
    elif view == "AP":
        towards, right, reach = np.array([0.0, -1.0, 0.0]), np.array([1.0, 0.0, 0.0]), half_depth
    else:
        towards, right, reach = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]), half_depth
    down = np.array([0.0, 0.0, -1.0])
    turn = rotation((0.0, 0.0, turn_degrees))
    a = np.radians(tilt_degrees)
    right, down = np.cos(a) * right + np.sin(a) * down, -np.sin(a) * right + np.cos(a) * down
    pixel = field_cm / size
    middle = (size - 1) / 2 + margin
    return Beam(
        source=np.asarray(centre) + turn @ (towards * (reach - distance)),
        right=turn @ right,
        down=turn @ down,
        towards=turn @ towards,
        distance=distance,
        centre=(middle, middle),
        pixel=pixel,
        rows=size + 2 * margin,
        cols=size + 2 * margin,
    )
