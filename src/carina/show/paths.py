"""Regions as SVG paths: outlines that stay crisp at any size and can be pointed at."""

from dataclasses import dataclass

import cv2
import numpy as np

from carina.studies.region import Region, Ring


@dataclass(frozen=True, kw_only=True)
class Outline:
    """A region's border in the coordinates of its image."""

    path: str
    """Value of an SVG path's `d`, to be filled by the even-odd rule."""
    top: tuple[float, float]
    """The middle of its highest edge, where a number may be pinned."""


def outline_of(region: Region, *, tolerance: float) -> Outline | None:
    """The border, straightened by at most `tolerance` pixels; None for an empty region."""
    rings = region.contours()
    if not rings:
        return None
    every = np.concatenate(rings)
    highest = every[every[:, 1] == every[:, 1].min()]
    left = highest[:, 0].min()
    # The first edge from the left: the highest row may hold several, and a number must touch the region.
    right = np.partition(highest[:, 0], 1)[1]
    return Outline(
        path="".join(_ring(ring, tolerance) for ring in rings),
        top=(float(left + right) / 2, float(highest[0, 1])),
    )


def _ring(ring: Ring, tolerance: float) -> str:
    """One closed ring; steps are shorter than positions, and a page holds thousands of them."""
    points = cv2.approxPolyDP(ring.astype(np.int32), tolerance, closed=True)[:, 0]
    x, y = points[0]
    return f"M{x} {y}l" + " ".join(f"{dx} {dy}" for dx, dy in np.diff(points, axis=0)) + "z"
