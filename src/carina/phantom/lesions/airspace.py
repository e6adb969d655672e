"""Airspace disease: consolidation, pneumonia and ground-glass opacity, as clusters of Gaussian balls in the lung."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from carina.phantom.attenuation import LUNG, SOFT
from carina.phantom.beam import Field
from carina.phantom.lesions.shadow import (
    LesionContext,
    Shadow,
    fill_lung,
    interpolate_steps,
    make_ball,
    measure_lung_heights,
    place_in_lung,
    sample_extents_by_side,
)
from carina.phantom.plan import LesionPlan
from carina.phantom.solids import Ellipsoid, Tube, Vector

THRESHOLD = 0.45
# Air bronchograms follow these generations of the vessel tree.
AIRWAY_GENERATIONS = slice(1, 5)
EVEN = 0.15
"""Share of bilateral lesions that are about as large on both sides."""


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """How balls fill the lung: part of a lobe at extent 0, most of a lung at extent 1.

    Pairs are the values at extent 0 and 1; `FILLING` interpolates between them.
    """

    balls: int
    size: tuple[float, float]
    """Radius of a ball, cm."""
    across: tuple[float, float]
    """Distance of the centres from the middle, sideways and front to back, cm."""
    along: tuple[float, float]
    """Distance up and down, as a share of the height of the lung: the lung is higher than wide."""
    steps: tuple[float, float]
    """Extents from which it exceeds a part of a lobe, and a lobe; severity changes at the same extents."""
    deep_cm: float
    """Limit of the filled lung along a ray, cm: a lobe is about half as deep as the lung."""
    grain_cm: float = 0.5
    patches: float = 0.0
    """Amplitude of the variation of filling between patches."""

    def interpolate(self, extent: float, *, height: float) -> tuple[float, Vector]:
        """Radius of the balls and distance of their centres, cm, in a lung of the given height."""
        filling = interpolate_steps(extent, self.steps, FILLING)
        radius, across, along = (
            low + (high - low) * filling for low, high in (self.size, self.across, self.along)
        )
        return radius, np.array([across, across, along * height])


FILLING = (0.0, 0.18, 0.44, 0.49, 0.95, 1.0)
"""Spread at extent 0, below and above each step, and at 1: smallest, about a segment, most of a lobe, a lobe,
more than a lobe, most of the lung; see `interpolate_steps`."""
CLUSTERS: Final[dict[str, Cluster]] = {
    "lobar": Cluster(
        balls=10, size=(1.25, 3.5), across=(0.5, 4.4), along=(0.01, 0.47), steps=(0.30, 0.65), deep_cm=8.0
    ),
    "patchy": Cluster(
        balls=10,
        size=(0.95, 3.3),
        across=(1.3, 4.8),
        along=(0.02, 0.48),
        steps=(0.30, 0.65),
        deep_cm=7.0,
        patches=0.32,
    ),
    "ground-glass": Cluster(
        balls=8,
        size=(1.3, 3.6),
        across=(0.6, 4.2),
        along=(0.01, 0.46),
        steps=(0.20, 0.50),
        deep_cm=8.0,
        grain_cm=0.8,
    ),
}
ROOM = (0.14, 0.90)
"""Range of the centres of balls, as shares of the height of the lung; there is little lung outside it."""
FISSURE = 0.52
"""Height of the minor fissure, as a share of the height of the lung."""
BY_FISSURE = 0.6
"""Share of right upper lobe consolidations that reach the minor fissure."""


def project_consolidation(
    lesion: LesionPlan, context: LesionContext, generator: np.random.Generator
) -> Shadow:
    """Dense lung, either lobar or in scattered patches; air bronchograms if it is lobar and dense enough."""
    patchy = lesion.form == "patchy"
    strength = 0.40 + 0.60 * lesion.density
    bronchograms = not patchy and lesion.density > 0.55
    thickness, attenuation = context.blank, context.blank
    for side, extent in _sample_extents(lesion, generator).items():
        filled, textured = _fill_side(lesion, context, generator, side=side, extent=extent)
        thickness += filled
        attenuation += (SOFT - LUNG) * np.float32(strength) * textured
        if bronchograms:
            attenuation -= np.float32(0.75 * strength) * SOFT * _project_airways(context, side, filled)
    return Shadow(
        attenuation,
        thickness,
        THRESHOLD,
        appearance=(lesion.form, *(("air bronchograms",) if bronchograms else ())),
    )


def project_opacity(lesion: LesionPlan, context: LesionContext, generator: np.random.Generator) -> Shadow:
    """Ground-glass haze through which vessels remain visible."""
    strength = np.float32(0.14 + 0.30 * lesion.density)
    thickness, attenuation = context.blank, context.blank
    for side, extent in _sample_extents(lesion, generator).items():
        filled, textured = _fill_side(lesion, context, generator, side=side, extent=extent)
        thickness += filled
        attenuation += (SOFT - LUNG) * strength * textured
    return Shadow(attenuation, thickness, THRESHOLD, appearance=("ground-glass",))


def _select_cluster(lesion: LesionPlan) -> Cluster:
    return CLUSTERS.get(lesion.form, CLUSTERS["lobar"])


def _sample_extents(lesion: LesionPlan, generator: np.random.Generator) -> dict[int, float]:
    return sample_extents_by_side(lesion, generator, even=EVEN, first_step=_select_cluster(lesion).steps[0])


def _fill_side(
    lesion: LesionPlan, context: LesionContext, generator: np.random.Generator, *, side: int, extent: float
) -> tuple[Field, Field]:
    """Centimetres of one lung that are filled along each ray: without and with texture."""
    cluster = _select_cluster(lesion)
    base, top = measure_lung_heights(context.thorax, side)
    middle = place_in_lung(context.thorax, side, lesion.level, generator)
    fissure, down = generator.random() < BY_FISSURE, generator.random() < 0.5
    fissure = fissure and lesion.form == "lobar" and (side, lesion.level) == (0, "upper")
    fissure = fissure and extent < cluster.steps[1]
    radius, reach = cluster.interpolate(extent, height=top - base)
    lowest, highest = (base + share * (top - base) for share in (FISSURE if fissure else ROOM[0], ROOM[1]))
    if lesion.level == "mid" and extent > cluster.steps[0]:
        # Disease larger than a part of a lobe that began in the middle has spread up or down.
        middle[2] += -reach[2] if down else reach[2]
    middle[2] = _clip_to_range(middle[2], lowest + reach[2], highest - reach[2])
    blobs = [
        _make_cluster_ball(middle, reach, height, radius, generator)
        for height in np.linspace(-1.0, 1.0, cluster.balls)
    ]
    filled, textured = fill_lung(
        context,
        side,
        blobs,
        texture=generator,
        grain_cm=cluster.grain_cm,
        deep_cm=cluster.deep_cm,
        patches=cluster.patches,
    )
    if fissure:
        # The minor fissure gives right upper lobe disease a straight lower border.
        edge = context.projection.beam.height_at(middle) - np.float32(lowest)
        above = np.clip(edge / np.float32(0.25) + np.float32(0.5), 0, 1)
        filled, textured = filled * above, textured * above
    return filled, textured


def _clip_to_range(value: float, low: float, high: float) -> float:
    """Clip a value to a range; the middle of the limits if the range is empty."""
    return min(max(value, low), high) if low < high else 0.5 * (low + high)


def _make_cluster_ball(
    middle: Vector, reach: Vector, height: float, radius: float, generator: np.random.Generator
) -> Ellipsoid:
    """One ball at a height from -1 to 1; heights are evenly spaced, so the cluster has no gap."""
    angle, out = generator.uniform(0, 2 * np.pi), np.sqrt(generator.random())
    offset = np.array([out * np.cos(angle), out * np.sin(angle), height + generator.normal(0, 0.12)])
    return make_ball(middle + reach * offset, radius * generator.uniform(0.75, 1.25, 3), generator)


def _project_airways(context: LesionContext, side: int, filled: Field) -> Field:
    branches = [
        Tube(t.points + np.array([0.25, 0.15, 0.2]), np.minimum(t.radius * 0.85, 0.22))
        for t in context.thorax.vessels[side][AIRWAY_GENERATIONS]
    ]
    filling = np.minimum(filled / np.float32(max(float(filled.max(initial=0.0)), 1e-3)), 1.0)
    return np.asarray(context.projection.beam.project_tubes(branches) * filling**2, np.float32)
