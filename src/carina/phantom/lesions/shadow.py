"""The shadow of a lesion in one image, and what lesions share: sides, positions in the lung, clusters of balls."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.phantom.attenuation import Projection
from carina.phantom.beam import Field, Span, intersect_spans, measure_length_outside
from carina.phantom.plan import LesionPlan, Level
from carina.phantom.solids import Ellipsoid, Vector, ellipsoid
from carina.phantom.thorax import Thorax
from carina.studies.model import Measure

# Depth of the costophrenic angle below the top of the dome, cm.
ANGLE_BELOW_DOME = 4.4
# Height of lesions of each level, as shares of the height of the lung field from its lowest point: inside that third
# and, for the lower level, above the dome.
SHARE_OF_HEIGHT = {"lower": (0.20, 0.28), "mid": (0.42, 0.58), "upper": (0.72, 0.82)}

# Ratio of the size (length) of a bilateral lesion in one lung to that in the other: symmetric and asymmetric.
ALIKE, LESS = (0.96, 1.04), (0.54, 0.70)
# Width of the patches of patchy disease, cm.
PATCH_CM = 2.6
# Half of the width of a step in extent, see `interpolate_steps`.
HALF_A_STEP = 0.02
# Share of asymmetric lesions with the left lung less affected; the heart hides part of the left lung anyway.
LEFT_LESS = 0.42
# Extent in the less affected lung: up to STOP times the extent of the first step it grows as in the other lung, above
# that by CREEP times the further growth.
STOP, CREEP = 0.7, 0.05


@dataclass(frozen=True)
class Shadow:
    """Attenuation and thickness of one lesion in one image."""

    attenuation: Field
    """Added to the patient's attenuation; negative where the lesion is air."""
    thickness: Field
    """Thickness of the lesion along each ray, cm."""
    threshold: float
    """Share of the greatest thickness above which a pixel belongs to the mask."""
    in_lung_field: bool = True
    """Whether the mask of a frontal image is limited to the lung field, without parts behind heart or diaphragm."""
    measures: tuple[Measure, ...] = ()
    appearance: tuple[str, ...] = ()
    site: str | None = None

    def make_mask(self) -> NDArray[np.bool_]:
        top = float(self.thickness.max(initial=0.0))
        return self.thickness > max(self.threshold * top, 1e-3)


@dataclass(frozen=True)
class LesionContext:
    """What a lesion is placed in: the solids of the patient and their projection in one image."""

    thorax: Thorax
    projection: Projection
    supine: bool

    @property
    def blank(self) -> Field:
        return self.projection.beam.blank()


def list_sides(lesion: LesionPlan) -> tuple[int, ...]:
    """Indices of the affected lungs: 0 for the right, 1 for the left."""
    return {"right": (0,), "left": (1,)}.get(lesion.side, (0, 1))


def locate_across_lung(thorax: Thorax, side: int, z: float, share: float) -> float:
    """x at a height and at a share of the distance from the mediastinum to the chest wall."""
    outward = 1.0 if side else -1.0
    edges = [solid.x_range_at(z) for solid in (*thorax.heart, *thorax.mediastinum, *thorax.paraspinal)]
    inner = max((outward * edge[side] for edge in edges if edge), default=0.0)
    wall = thorax.lungs[side].x_range_at(z)
    outer = outward * wall[side] if wall else inner + 1.0
    return float(outward * (inner + (outer - inner) * share))


def interpolate_steps(extent: float, steps: tuple[float, float], values: tuple[float, ...]) -> float:
    """Interpolate a size that grows slowly except at two steps.

    `values` are those at extent 0, below and above the first step, below and above the second step, and at extent 1.
    A fissure limits disease to a lobe, so most lesions end before a fissure or well beyond it.
    """
    (one, two), half = steps, HALF_A_STEP
    return float(np.interp(extent, (0.0, one - half, one + half, two - half, two + half, 1.0), values))


def sample_extents_by_side(
    lesion: LesionPlan, generator: np.random.Generator, *, even: float, first_step: float
) -> dict[int, float]:
    """Sample the extent of a lesion in each lung that it affects.

    A share `even` of bilateral lesions has the same extent in both lungs; in the others, one lung is less affected and
    hardly grows beyond `STOP` times its `first_step`.
    """
    alike, left_less = _sample_balance(generator, even)
    if lesion.side != "bilateral":
        return dict.fromkeys(list_sides(lesion), lesion.extent)
    stop = STOP * first_step
    beyond = max(lesion.extent - stop, 0.0)
    less = lesion.extent if alike else lesion.extent - (1.0 - CREEP) * beyond
    return {0: lesion.extent, 1: less} if left_less else {0: less, 1: lesion.extent}


def sample_sizes_by_side(
    lesion: LesionPlan, generator: np.random.Generator, *, even: float, right: float
) -> dict[int, float]:
    """Sample the size of a lesion in each lung that it affects, as a factor of the length that its extent implies.

    A share `even` of bilateral lesions is about as large in both lungs; in the others, one lung is clearly less
    affected. `right` is the size in the right lung that looks like size 1 in the left.
    """
    alike, left_less = _sample_balance(generator, even)
    near, less = generator.uniform(*ALIKE), generator.uniform(*LESS)
    if lesion.side != "bilateral":
        return dict.fromkeys(list_sides(lesion), 1.0)
    if alike:
        return {0: right * near, 1: 1.0}
    return {0: right, 1: less} if left_less else {0: right * less, 1: 1.0}


def _sample_balance(generator: np.random.Generator, even: float) -> tuple[bool, bool]:
    """Sample whether bilateral disease is symmetric, and whether the left lung is less affected if it is not.

    Sampled for unilateral lesions too, so that the random numbers that follow are the same.
    """
    return generator.random() < even, generator.random() < LEFT_LESS


def measure_lung_heights(thorax: Thorax, side: int) -> tuple[float, float]:
    """Heights of the lowest and the highest point of a lung field, cm."""
    cavity, dome = thorax.lungs[side], thorax.domes[side]
    base = dome.centre[2] + dome.axes[2, 2] - ANGLE_BELOW_DOME
    return float(base), float(cavity.centre[2] + cavity.half_width(2))


def place_in_lung(thorax: Thorax, side: int, level: Level | None, generator: np.random.Generator) -> Vector:
    """Sample a point of a lung at a level, away from heart, mediastinum and diaphragm.

    Levels are thirds of the visible height of the lung, so the zone in the truth is the planned one.
    """
    cavity = thorax.lungs[side]
    base, top = measure_lung_heights(thorax, side)
    z = base + (top - base) * generator.uniform(*SHARE_OF_HEIGHT[level or "mid"])
    x = locate_across_lung(thorax, side, z, generator.uniform(0.30, 0.72))
    rise = (z - cavity.centre[2]) / cavity.half_width(2)
    depth = cavity.half_width(1) * np.sqrt(max(1 - rise**2, 0.05))
    y = cavity.centre[1] + depth * generator.uniform(-0.55, 0.4)
    return np.array([x, y, z])


def fill_lung(
    context: LesionContext,
    side: int,
    blobs: list[Ellipsoid],
    *,
    texture: np.random.Generator,
    grain_cm: float = 0.5,
    deep_cm: float = np.inf,
    patches: float = 0.0,
) -> tuple[Field, Field]:
    """Centimetres of lung along each ray that a cluster of Gaussian balls fills: without and with texture.

    At most the lung itself and at most `deep_cm` are filled. The mask is made without texture, because texture and
    `patches` (the amplitude of variation over `PATCH_CM`) change the look of filled lung, not its border.
    """
    beam = context.projection.beam
    filled = _sum_balls(context, side, blobs)
    rows, cols = np.flatnonzero(filled.any(axis=1)), np.flatnonzero(filled.any(axis=0))
    if len(rows) == 0:
        return filled, filled
    window = slice(rows[0], rows[-1] + 1), slice(cols[0], cols[-1] + 1)
    room = np.minimum(context.projection.lung_length[side][window], np.float32(deep_cm)) + np.float32(1e-3)
    grain = 1 + 0.17 * _make_grain(filled[window].shape, grain_cm / beam.pixel, texture)
    textured = context.blank
    textured[window] = room * (1 - np.exp(-np.maximum(filled[window] * grain, 0) / room))
    if patches:
        spots = _make_grain(filled[window].shape, PATCH_CM / beam.pixel, texture)
        textured[window] *= np.clip(1 + np.float32(patches) * spots, 0.1, 1.4)
    filled[window] = room * (1 - np.exp(-filled[window] / room))
    return filled, textured


def _sum_balls(context: LesionContext, side: int, blobs: list[Ellipsoid]) -> Field:
    """Sum Gaussian balls in a pleural cavity. They have no sharp edge, so every second ray is enough."""
    full = context.projection.beam
    halved = full.rows % 2 == 0 and full.cols % 2 == 0
    beam = full.coarsen(2) if halved else full
    cavity = beam.span(context.thorax.lungs[side])
    total = beam.blank()
    for blob in blobs:
        window, amount = beam.integrate_gaussian(blob, cavity)
        total[window] += amount
    if not halved:
        return total
    return np.asarray(cv2.resize(total, (full.cols, full.rows), interpolation=cv2.INTER_LINEAR), np.float32)


def _make_grain(shape: tuple[int, int], step: float, generator: np.random.Generator) -> Field:
    # A fixed number of random values for every size of the window, because later ones must not depend on it.
    grain = generator.standard_normal((24, 24), dtype=np.float32)
    rows, cols = (max(int(np.ceil(length / max(step, 1.0))), 2) for length in shape)
    tiled = np.tile(grain, (rows // 24 + 1, cols // 24 + 1))[:rows, :cols]
    return np.asarray(cv2.resize(tiled, (shape[1], shape[0]), interpolation=cv2.INTER_CUBIC), np.float32)


def make_ball(
    centre: Vector, semi: tuple[float, float, float] | Vector | float, generator: np.random.Generator
) -> Ellipsoid:
    """Make an ellipsoid with a random orientation."""
    sizes = np.broadcast_to(np.asarray(semi, dtype=float), 3)
    return ellipsoid(centre, sizes, tilt_degrees=generator.uniform(-35, 35, 3))


def measure_inside_lung(context: LesionContext, side: int, span: Span) -> Field:
    """Centimetres of a solid inside the lung along each ray."""
    within = intersect_spans(span, context.projection.cavities[side])
    return measure_length_outside(
        context.projection.beam, within, context.projection.get_bounding_organs(side)
    )
