"""Pulmonary vessels: trees that branch by a cube law from each hilum and fade towards the pleura."""

import numpy as np

from carina.phantom.solids import Ellipsoid, Tube, Vector

GENERATIONS = 7
FINEST_CM = 0.05
# Directions of the lobar arteries and veins as (outward, forward, up), upper to lower lobes.
_LOBAR = np.array(
    [
        (0.45, -0.25, 1.0),
        (0.75, 0.35, 0.75),
        (0.95, -0.35, 0.35),
        (0.95, 0.45, -0.15),
        (0.70, 0.10, -0.75),
        (0.45, -0.35, -1.0),
        (0.25, 0.30, -0.95),
        (0.60, -0.55, -0.70),
        (0.85, 0.0, -0.40),
        (0.25, 0.15, 1.0),
    ]
)
_LOBAR_RADIUS = np.array([0.38, 0.34, 0.32, 0.32, 0.46, 0.58, 0.44, 0.42, 0.34, 0.32])


def grow_vessels(
    cavity: Ellipsoid, dome: Ellipsoid, hilum: Vector, *, congestion: float, generator: np.random.Generator
) -> tuple[Tube, ...]:
    """The vessels of one lung, one bundle of tubes a generation; none within 1-2 cm of the pleura."""
    outward = float(np.sign(cavity.centre[0]))
    direction = _LOBAR * np.array([outward, 1.0, 1.0]) + generator.normal(0, 0.12, _LOBAR.shape)
    direction = _unit(direction)
    start = hilum + direction * np.array([0.3, 0.6, 0.6])
    radius = _LOBAR_RADIUS * generator.normal(1.0, 0.08, len(_LOBAR)) * (1 + 0.25 * congestion)
    length = 2.6 * generator.uniform(0.8, 1.25, len(radius))
    limit = cavity.scale(0.93)
    alive = np.ones(len(radius), bool)
    tubes: list[Tube] = []
    for _ in range(GENERATIONS):
        # Branches that ended go on being computed, unseen: what is drawn by chance must not depend on the breath,
        # or the same patient would have other vessels in the next image.
        bend = generator.normal(0, 0.16, direction.shape)
        middle = start + direction * (0.5 * length)[:, None] + bend * (0.35 * length)[:, None]
        end = start + (direction + 0.5 * bend) * length[:, None]
        alive &= (radius > FINEST_CM) & limit.contains(end) & ~dome.contains(end)
        # A branch narrows by about half of what its next division takes away.
        taper = radius[alive, None] * np.array([1.0, 0.95, 0.9])
        tubes.append(Tube(np.stack([start[alive], middle[alive], end[alive]], axis=1), taper))
        split = generator.uniform(0.35, 0.65, len(radius))
        axis = _unit(np.cross(direction, generator.normal(0, 1, direction.shape)))
        angle = generator.uniform(0.28, 0.62, len(radius))[:, None]
        onward = direction * np.cos(angle) + 0.18 * _unit(end - hilum)
        start = np.concatenate([end, end])
        direction = _unit(np.concatenate([onward + axis * np.sin(angle), onward - axis * np.sin(angle)]))
        # Cube law: the children's cubes add up to the parent's.
        parent = 0.9 * radius
        radius = np.concatenate([parent * split ** (1 / 3), parent * (1 - split) ** (1 / 3)])
        length = np.concatenate([length, length]) * 0.82 * generator.uniform(0.75, 1.25, 2 * len(length))
        alive = np.concatenate([alive, alive])
    return tuple(bundle for bundle in tubes if len(bundle.points))


def _unit(vectors: Vector) -> Vector:
    return np.asarray(vectors / np.sqrt((vectors * vectors).sum(axis=1, keepdims=True)))
