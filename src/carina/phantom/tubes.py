"""Projected thickness of tubes: ribs, vessels and catheters.

The thickness of a swept ball along a ray is its centre line, weighted by arc length and convolved with a disk. This is
exact for a straight tube at any angle to the ray, so a rib or a vessel needs a few points and one convolution.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.phantom.solids import Tube, Vector

if TYPE_CHECKING:
    from carina.phantom.beam import Beam, Field

Profile = Sequence[tuple[float, float]]
"""(inset cm, weight) pairs: each adds `weight` times the thickness of the tube made thinner by `inset`."""
SOLID: Profile = ((0.0, 1.0),)

# Tubes with a smaller radius in pixels are drawn with this radius and the same total; the difference is not visible.
FINEST = 0.9
# Ratio of neighbouring disk radii, between which the points of a tapering tube are divided.
RADIUS_RATIO = 1.6
# OpenCV convolves kernels of fewer values than this directly and others by Fourier transform; up to a width of
# LARGEST_IN_STRIPS, cutting a kernel into strips that are convolved directly is faster.
DIRECT = 130
LARGEST_IN_STRIPS = 21


class _Points(NamedTuple):
    """Points along all tubes: column, row and radius in pixels, and the length that each represents, cm."""

    u: Vector
    v: Vector
    radius: Vector
    weight: Vector


def add_tubes(beam: Beam, tubes: Sequence[Tube], total: Field, *, profile: Profile = SOLID) -> None:
    """Add the projected thickness of tubes, cm, to a field.

    The profile of a hollow bone is ((0, cortex), (0.15, core - cortex)).
    """
    points = _sample_points(beam, tubes)
    insets = tuple((inset / beam.pixel, factor) for inset, factor in profile)
    for disk_radius, chosen, share in _split_by_radius(points.radius):
        weight = points.weight[chosen] * share
        _add_points(
            total, points.u[chosen], points.v[chosen], weight, _make_profile_kernel(disk_radius, insets)
        )


def _sample_points(beam: Beam, tubes: Sequence[Tube]) -> _Points:
    """Sample points along the segments that reach into the image, dense enough to look continuous."""
    if not tubes:
        return _Points(*(np.empty(0) for _ in range(4)))
    points = np.concatenate([t.points.reshape(-1, 3) for t in tubes])
    first = np.concatenate(list(_list_segment_starts(tubes)))
    u, v, magnification = beam.project(points)
    radius = np.concatenate([t.radius.ravel() for t in tubes]) * magnification / beam.pixel
    flat = np.concatenate([np.broadcast_to(t.flat, t.radius.shape).ravel() for t in tubes])
    reach = radius + 2
    left, right, above, below = u < -reach, u > beam.cols + reach, v < -reach, v > beam.rows + reach
    last = first + 1
    outside = (left[first] & left[last]) | (right[first] & right[last])
    outside |= (above[first] & above[last]) | (below[first] & below[last])
    first = first[~outside]
    last = first + 1
    du, dv = u[last] - u[first], v[last] - v[first]
    spacing = np.clip(0.35 * np.minimum(radius[first], radius[last]), 1.0, 2.5)
    parts = np.maximum(np.ceil(np.hypot(du, dv) / spacing), 1).astype(np.intp)
    arc = np.sqrt(((points[last] - points[first]) ** 2).sum(axis=1)) * flat[last] / parts
    segment = np.repeat(np.arange(len(first)), parts)
    at = (np.arange(len(segment)) - np.repeat(np.cumsum(parts) - parts, parts) + 0.5) / parts[segment]
    start = first[segment]
    return _Points(
        u[start] + du[segment] * at,
        v[start] + dv[segment] * at,
        radius[start] + (radius[last] - radius[first])[segment] * at,
        arc[segment],
    )


def _list_segment_starts(tubes: Sequence[Tube]) -> Iterator[NDArray[np.intp]]:
    """Index of the first point of each straight segment, counted over the points of all tubes."""
    offset = 0
    for t in tubes:
        count = t.radius.size
        starts = np.arange(offset, offset + count).reshape(-1, t.points.shape[-2])[:, :-1]
        yield starts.ravel()
        offset += count


def _add_points(total: Field, u: Vector, v: Vector, weight: Vector, kernel: Field) -> None:
    """Add points, each divided between the four nearest pixels and convolved with a kernel."""
    reach = kernel.shape[0] // 2 + 1
    low_u, low_v = int(np.floor(u.min())) - reach, int(np.floor(v.min())) - reach
    width, height = int(np.ceil(u.max())) + reach + 2 - low_u, int(np.ceil(v.max())) + reach + 2 - low_v
    rows = slice(max(low_v, 0), max(min(low_v + height, total.shape[0]), 0))
    cols = slice(max(low_u, 0), max(min(low_u + width, total.shape[1]), 0))
    if rows.stop <= rows.start or cols.stop <= cols.start:
        return
    u, v = u - low_u, v - low_v
    iu, iv = u.astype(np.intp), v.astype(np.intp)
    fu, fv = u - iu, v - iv
    low, high = weight * (1 - fv), weight * fv
    corner = iv * width + iu
    index = np.concatenate([corner, corner + 1, corner + width, corner + width + 1])
    value = np.concatenate([low * (1 - fu), low * fu, high * (1 - fu), high * fu])
    canvas = np.bincount(index, value, minlength=width * height).astype(np.float32).reshape(height, width)
    spread = _convolve(canvas, kernel)
    total[rows, cols] += spread[
        rows.start - low_v : rows.stop - low_v, cols.start - low_u : cols.stop - low_u
    ]


def _convolve(canvas: Field, kernel: Field) -> Field:
    """Convolve a canvas whose border is zero."""
    size = len(kernel)
    height = max((DIRECT - 1) // size, 1)
    if size <= height or size > LARGEST_IN_STRIPS:
        return np.asarray(cv2.filter2D(canvas, cv2.CV_32F, kernel, borderType=cv2.BORDER_CONSTANT))
    total = np.zeros_like(canvas)
    for top in range(0, size, height):
        strip = kernel[top : top + height]
        middle = len(strip) // 2
        part = cv2.filter2D(
            canvas, cv2.CV_32F, strip, anchor=(size // 2, middle), borderType=cv2.BORDER_CONSTANT
        )
        # filter2D correlates: the result for the middle row of the strip belongs this many rows higher.
        shift = top + middle - size // 2
        if shift >= 0:
            total[: len(total) - shift] += part[shift:]
        else:
            total[-shift:] += part[:shift]
    return total


def _make_profile_kernel(radius: float, insets: tuple[tuple[float, float], ...]) -> Field:
    """The kernel of a tube of this radius in pixels: the weighted sum of disks made smaller by each inset."""
    kernel = np.zeros_like(_make_disk(radius))
    for inset, factor in insets:
        if radius > inset + 0.1:
            disk = _make_disk(round(radius - inset, 1))
            margin = (len(kernel) - len(disk)) // 2
            kernel[margin : margin + len(disk), margin : margin + len(disk)] += np.float32(factor) * disk
    return kernel


@lru_cache(maxsize=256)
def _make_disk(radius: float) -> Field:
    """A disk of this radius in pixels; each value is the share of the pixel's area inside the disk."""
    reach = int(np.ceil(radius + 0.5))
    fine = 8 if radius < 8 else 4
    at = (np.arange((2 * reach + 1) * fine) + 0.5) / fine - reach - 0.5
    inside = (at[:, None] ** 2 + at[None, :] ** 2 <= radius**2).astype(np.float32)
    size = 2 * reach + 1
    kernel = inside.reshape(size, fine, size, fine).mean(axis=(1, 3))
    # Keep the area exact: it decides the contrast of a thin tube.
    return np.asarray(kernel * np.float32(np.pi * radius**2 / max(float(kernel.sum()), 1e-9)), np.float32)


def _split_by_radius(radius: Vector) -> Iterator[tuple[float, NDArray[np.intp], Vector]]:
    """Divide points of varying radius between a few disk radii, so a tapering tube needs few convolutions.

    Yields (radius, points, share): each point is divided between the two nearest radii, which keeps the area exact.
    """
    if len(radius) == 0:
        return
    # Multiples of a tenth of a pixel, so that cached kernels are used again.
    low, high = np.floor(10 * max(radius.min(), FINEST)) / 10, np.ceil(10 * max(radius.max(), FINEST)) / 10
    if high < 1.06 * low:
        low = high = np.round(5 * (low + high)) / 10
    steps = int(np.ceil(np.log(high / low) / np.log(RADIUS_RATIO)))
    disk_radii = np.round(low * (high / low) ** (np.arange(steps + 1) / max(steps, 1)), 1)
    area, areas = radius**2, np.append(disk_radii, disk_radii[-1] * RADIUS_RATIO) ** 2
    below = np.clip(np.searchsorted(areas, area, side="right") - 1, 0, len(disk_radii) - 1)
    upward = np.clip((area - areas[below]) / (areas[below + 1] - areas[below]), 0.0, 1.0)
    # Points below the smallest radius keep their own area; so do all points where there is a single radius.
    thin = np.minimum(area / areas[0], 1.0) if steps else area / areas[0]
    if not steps:
        upward[:] = 0.0
    for k, disk_radius in enumerate(disk_radii):
        from_below, here = np.flatnonzero(below == k - 1), np.flatnonzero(below == k)
        points = np.concatenate([from_below, here])
        share = np.concatenate([upward[from_below], 1.0 - upward[here]]) * thin[points]
        if len(points):
            yield float(disk_radius), points, share
