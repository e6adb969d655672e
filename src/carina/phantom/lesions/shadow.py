"""What a lesion does to one image: the attenuation it adds, and the solid whose projection is its mask."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.phantom.attenuation import Projection
from carina.phantom.beam import Field, Span, length_without, overlap
from carina.phantom.plan import LesionPlan, Level
from carina.phantom.solids import Ellipsoid, Vector, ellipsoid
from carina.phantom.thorax import Thorax
from carina.studies.model import Measure

# The lung field reaches this far below the top of the dome, at the costophrenic angle.
ANGLE_BELOW_DOME = 4.4
# Where lesions of a level sit, as shares of the height of the lung field from its lowest point: inside that third
# and, for the lowest, above the dome.
SHARE_OF_HEIGHT = {"lower": (0.20, 0.28), "mid": (0.42, 0.58), "upper": (0.72, 0.82)}


@dataclass(frozen=True)
class Shadow:
    """One lesion in one image."""

    attenuation: Field
    """Added to the patient's; negative where the lesion is air."""
    thickness: Field
    """Of the lesion's solid along each ray, cm."""
    threshold: float
    """The mask is where the thickness exceeds this share of its maximum."""
    in_lung_field: bool = True
    """Whether a frontal mask is what shows in the lung field, not behind heart or diaphragm."""
    measures: tuple[Measure, ...] = ()
    appearance: tuple[str, ...] = ()
    site: str | None = None

    def mask(self) -> NDArray[np.bool_]:
        top = float(self.thickness.max(initial=0.0))
        return self.thickness > max(self.threshold * top, 1e-3)


@dataclass(frozen=True)
class Scene:
    """Everything a lesion is placed in: the solids, and their rays in one image."""

    thorax: Thorax
    projection: Projection
    supine: bool

    @property
    def blank(self) -> Field:
        return self.projection.beam.blank()


def sides_of(lesion: LesionPlan) -> tuple[int, ...]:
    """0 for the right lung, 1 for the left."""
    return {"right": (0,), "left": (1,)}.get(lesion.side, (0, 1))


def place_in_lung(thorax: Thorax, side: int, level: Level | None, chance: np.random.Generator) -> Vector:
    """A point of a lung at a level, away from heart, mediastinum and diaphragm.

    The level's third of the lung is the third of its height as seen, so that the stored zone is the planned one.
    """
    cavity, dome = thorax.lungs[side], thorax.domes[side]
    base = dome.centre[2] + dome.axes[2, 2] - ANGLE_BELOW_DOME
    top = cavity.centre[2] + cavity.extent(2)
    z = base + (top - base) * chance.uniform(*SHARE_OF_HEIGHT[level or "mid"])
    outward = 1.0 if side else -1.0
    edges = [solid.across_at(z) for solid in (*thorax.heart, *thorax.mediastinum, *thorax.column)]
    inner = max((outward * edge[side] for edge in edges if edge), default=0.0)
    wall = cavity.across_at(z)
    outer = outward * wall[side] if wall else inner + 1.0
    x = outward * (inner + (outer - inner) * chance.uniform(0.30, 0.72))
    rise = (z - cavity.centre[2]) / cavity.extent(2)
    depth = cavity.extent(1) * np.sqrt(max(1 - rise**2, 0.05))
    y = cavity.centre[1] + depth * chance.uniform(-0.55, 0.4)
    return np.array([x, y, z])


def soft_cluster(
    scene: Scene, side: int, blobs: list[Ellipsoid], *, texture: np.random.Generator, grain_cm: float = 0.5
) -> tuple[Field, Field]:
    """Centimetres of lung filled by a cluster of soft balls, never more than the lung: plain, and with texture.

    The plain one makes the mask: texture is what filled lung looks like, not where it ends.
    """
    beam, cavity = scene.projection.beam, scene.projection.cavities[side]
    filled = scene.blank
    for blob in blobs:
        window, amount = beam.blob(blob, cavity)
        filled[window] += amount
    rows, cols = np.flatnonzero(filled.any(axis=1)), np.flatnonzero(filled.any(axis=0))
    if len(rows) == 0:
        return filled, filled
    window = slice(rows[0], rows[-1] + 1), slice(cols[0], cols[-1] + 1)
    room = scene.projection.lung_length[side][window] + np.float32(1e-3)
    grain = 1 + 0.17 * _grain(filled[window].shape, grain_cm / beam.pixel, texture)
    textured = scene.blank
    textured[window] = room * (1 - np.exp(-np.maximum(filled[window] * grain, 0) / room))
    filled[window] = room * (1 - np.exp(-filled[window] / room))
    return filled, textured


def _grain(shape: tuple[int, int], step: float, chance: np.random.Generator) -> Field:
    # A fixed number of draws, whatever the size of the window: later draws must not depend on it.
    grain = chance.standard_normal((24, 24), dtype=np.float32)
    side = max(int(np.ceil(max(shape) / max(step, 1.0))), 2)
    tiled = np.tile(grain, (side // 24 + 1, side // 24 + 1))[:side, :side]
    return np.asarray(cv2.resize(tiled, (shape[1], shape[0]), interpolation=cv2.INTER_CUBIC), np.float32)


def ball(
    centre: Vector, semi: tuple[float, float, float] | Vector | float, chance: np.random.Generator
) -> Ellipsoid:
    """An ellipsoid turned at random."""
    sizes = np.broadcast_to(np.asarray(semi, dtype=float), 3)
    return ellipsoid(centre, sizes, tilt_degrees=chance.uniform(-35, 35, 3))


def inside_lung(scene: Scene, side: int, span: Span) -> Field:
    """Centimetres of a solid that lie in aerated lung."""
    within = overlap(span, scene.projection.cavities[side])
    return length_without(scene.projection.beam, within, scene.projection.removed(side))
