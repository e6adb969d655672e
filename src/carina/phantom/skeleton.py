"""Ribs, clavicles, shoulders, sternum and spine of one patient, as curves, plates and boxes of bone.

They depend on habitus, inspiration and posture, and are cached
for further images of the same patient.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from carina.phantom.habitus import Habitus
from carina.phantom.solids import (
    Block,
    Ellipsoid,
    Plate,
    Tube,
    Vector,
    ellipsoid,
    mirror_points,
    smooth_curve,
    tube,
)

VERTEBRA_SPACING = 2.55
# For each rib: drop from the spine to the front end, cm, and angle around the chest at which it ends, degrees.
RIB_DROP = np.array([3.4, 5.2, 6.8, 8.0, 9.0, 9.6, 10.0, 10.0, 9.6, 8.4, 5.4, 2.8])
RIB_END = np.array([138, 142, 145, 146, 146, 143, 138, 132, 124, 112, 78, 48])


@dataclass(frozen=True)
class Skeleton:
    ribs: tuple[Tube, Tube]
    """Right and left, each a bundle of twelve curves from the spine round to the front."""
    clavicles: tuple[Tube, Tube]
    scapular_borders: tuple[Tube, ...]
    """Right side first, then left."""
    humeri: tuple[Ellipsoid, ...]
    """Heads and shafts, hollow."""
    scapulae: tuple[Plate, ...]
    sternum: tuple[Plate, ...]
    vertebrae: tuple[Block, ...]
    processes: tuple[Tube, ...]


@lru_cache(maxsize=8)
def build_skeleton(habitus: Habitus, *, squeeze: float, supine: bool) -> Skeleton:
    """Build all bones; `squeeze` below 1 narrows the chest in expiration."""
    ribs = _build_ribs(habitus, squeeze)
    borders, humeri, scapulae = _build_shoulders(habitus, supine=supine)
    vertebrae, processes = _build_spine(habitus)
    return Skeleton(
        ribs=(ribs, replace(ribs, points=mirror_points(ribs.points))),
        clavicles=_build_clavicles(habitus, supine=supine),
        scapular_borders=borders,
        humeri=humeri,
        scapulae=scapulae,
        sternum=_build_sternum(habitus),
        vertebrae=vertebrae,
        processes=processes,
    )


def compute_vertebra_heights(habitus: Habitus, number: Vector) -> Vector:
    """Heights of thoracic vertebrae: T10 at zero, T1 near the apex."""
    return np.asarray((10.0 - number) * VERTEBRA_SPACING * habitus.scale)


def _build_ribs(habitus: Habitus, squeeze: float) -> Tube:
    s, w, d = habitus.scale, habitus.width * squeeze, habitus.depth
    along = np.linspace(0.0, 1.0, 60)
    turn = np.radians(11.0 + (RIB_END[:, None] - 11.0) * along)
    head = compute_vertebra_heights(habitus, np.arange(1.0, 13.0))[:, None]
    z = head + 0.9 * np.sin(np.pi * np.minimum(along * 3.2, 1.0)) - RIB_DROP[:, None] * s * along**1.75
    taper = np.sqrt(np.maximum(1 - ((np.maximum(z, 3.0 * s) - 3.0 * s) / (22.6 * s)) ** 2, 0.06))
    x = -((0.98 * w + 0.35) * taper * np.sin(turn) + 0.4 * np.cos(turn))
    y = -0.6 - (d + 0.2) * (0.35 + 0.65 * taper) * np.cos(turn)
    slender = np.where(np.isin(np.arange(12), (0, 10, 11)), 0.88, 1.0)[:, None]
    radius = np.interp(along, [0, 0.12, 0.5, 1], [0.44, 0.50, 0.50, 0.60]) * slender * s**0.5
    # The front parts are thinner and less mineralised, and end in cartilage, which is not visible.
    flat = np.interp(along, [0, 0.1, 0.55, 0.75, 1], [0.6, 0.8, 0.75, 0.42, 0.3])
    faint = np.where(np.arange(12) == 0, 0.6, 1.0)[:, None]
    return Tube(np.stack([x, y, z], axis=2), radius, flat * faint)


def _build_clavicles(habitus: Habitus, *, supine: bool) -> tuple[Tube, Tube]:
    s, w = habitus.scale, habitus.width
    raise_cm = 1.4 if supine else 0.0
    knots = (
        (-1.7, 6.4, 20.4 * s),
        (-0.30 * w, 6.9, 21.3 * s + 0.2 * raise_cm),
        (-0.62 * w, 4.2, 22.4 * s + 0.5 * raise_cm),
        (-0.95 * w, 0.5, 22.7 * s + 0.8 * raise_cm),
        (-1.16 * w, -0.6, 22.4 * s + raise_cm),
    )
    right = smooth_curve(knots, n=60)
    radius = np.interp(np.linspace(0, 1, 60), [0, 0.12, 0.5, 1], [0.85, 0.62, 0.52, 0.7])
    return tube(right, radius), tube(mirror_points(right), radius)


def _build_shoulders(
    habitus: Habitus, *, supine: bool
) -> tuple[tuple[Tube, ...], tuple[Ellipsoid, ...], tuple[Plate, ...]]:
    """Scapulae and humeri; turned outwards in PA, lying over the lungs when supine."""
    s, w = habitus.scale, habitus.width
    inward = 2.6 if supine else 0.0
    up = 1.5 if supine else 0.0
    top = np.array([-(0.72 * w - 0.2 * inward), -9.2, 20.6 * s + up])
    tip = np.array([-(1.02 * w - inward), -9.8, 6.6 * s + up])
    joint = np.array([-(1.20 * w - 0.3 * inward), -3.4, 19.2 * s + up])
    spine_root = 0.72 * top + 0.28 * tip
    acromion = np.array([-(1.30 * w), -1.2, 22.8 * s + up])
    head = joint + (-2.2, 0.4, -0.2)
    elbow = head + (-(3.2 if not supine else 6.0), 0.3, -20 * s)
    right_tubes = [
        tube(smooth_curve([joint + (0.3, -0.5, -1), 0.5 * (joint + tip) + (0.5, -0.4, 0), tip]), 0.42),
        tube(smooth_curve([top, 0.5 * (top + tip) + (-0.2, -0.3, 0), tip]), 0.24),
        tube(smooth_curve([spine_root, 0.5 * (spine_root + acromion) + (0, -0.8, 0.4), acromion]), 0.42),
        tube(smooth_curve([top, 0.5 * (top + joint) + (0, 0, 0.3), joint + (0.2, 0.5, 1.2)]), 0.26),
        tube(smooth_curve([joint + (0.2, -0.3, 1.3), joint, joint + (0.2, -0.3, -1.5)]), 0.5),
    ]
    lean = np.degrees(np.arctan2(head[0] - elbow[0], head[2] - elbow[2]))
    right_arm = (
        ellipsoid(head, (2.1, 2.2, 2.3)),
        ellipsoid(
            0.5 * (head + elbow),
            (1.25, 1.25, 0.62 * float(np.linalg.norm(head - elbow))),
            tilt_degrees=(0, lean, 0),
        ),
    )
    mirror = np.diag([-1.0, 1.0, 1.0])
    left_arm = tuple(Ellipsoid(mirror_points(part.centre), mirror @ part.axes) for part in right_arm)
    right_plate = Plate(np.stack([top, joint + (0.6, 0, 0), joint + (1.2, -1, -2), tip]), 0.28)
    borders = (*right_tubes, *(replace(t, points=mirror_points(t.points)) for t in right_tubes))
    return borders, (*right_arm, *left_arm), (right_plate, Plate(mirror_points(right_plate.corners), 0.28))


def _build_sternum(habitus: Habitus) -> tuple[Plate, ...]:
    s, front = habitus.scale, habitus.depth + 0.3
    manubrium = [
        (-2.4, front - 2.4, 19.5 * s),
        (2.4, front - 2.4, 19.5 * s),
        (1.6, front - 1.2, 15.2 * s),
        (-1.6, front - 1.2, 15.2 * s),
    ]
    body = [
        (-1.5, front - 1.1, 14.9 * s),
        (1.5, front - 1.1, 14.9 * s),
        (1.6, front, 5.2 * s),
        (-1.6, front, 5.2 * s),
    ]
    return Plate(np.array(manubrium), 1.0), Plate(np.array(body), 0.9)


def _build_spine(habitus: Habitus) -> tuple[tuple[Block, ...], tuple[Tube, ...]]:
    """Vertebral bodies from C5 to L2, their pedicles, transverse and spinous processes."""
    number = np.arange(-2.0, 15.0)
    size = np.interp(number, [-2, 1, 12, 14], [0.72, 0.8, 1.08, 1.18]) * habitus.scale**0.5
    bend = habitus.kyphosis * np.cos(np.pi * (number - 6) / 14.0)
    y = -5.6 - bend + np.where(number < 1, 1.6 * (1 - number) / 3, 0.0)
    z = compute_vertebra_heights(habitus, number)
    half = np.stack([1.75 * size, 1.45 * size, 1.04 * habitus.scale * np.minimum(size + 0.08, 1.05)], axis=1)
    centre = np.stack([np.zeros_like(y), y, z], axis=1)

    def make_pair(start: Vector, end: Vector, radius: Vector) -> Tube:
        """The same short process on both sides."""
        right = np.stack([start, end], axis=1)
        both = np.concatenate([right, mirror_points(right)])
        return Tube(both, np.tile(radius, 2)[:, None] * np.ones(2))

    def offset(x: Vector, dy: float, dz: float) -> Vector:
        return np.stack([x, y + dy, z + dz], axis=1)

    none = np.zeros_like(size)
    pedicles = make_pair(offset(-1.25 * size, -1.9, 0.35), offset(-1.25 * size, -2.8, 0.35), 0.42 * size)
    wings = make_pair(offset(-1.2 * size, -2.6, 0.0), offset(-3.0 * size, -3.3, 0.45), none + 0.36)
    spines = Tube(
        np.stack([offset(none, -2.7, -0.3), offset(none, -4.6, -2.1)], axis=1), np.full((len(size), 2), 0.3)
    )
    return tuple(Block(c, h) for c, h in zip(centre, half, strict=True)), (pedicles, wings, spines)
