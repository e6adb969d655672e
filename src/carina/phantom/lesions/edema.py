"""Pulmonary edema: bilateral perihilar and basal haze, septal lines, wide vessels."""

import numpy as np

from carina.phantom.attenuation import LUNG, SOFT
from carina.phantom.lesions.shadow import (
    LesionContext,
    Shadow,
    fill_lung,
    interpolate_steps,
    locate_across_lung,
    make_ball,
    measure_lung_heights,
    sample_sizes_by_side,
)
from carina.phantom.plan import LesionPlan
from carina.phantom.solids import Tube
from carina.studies.model import Measure

SEPTAL_LINES = 14
GRADES = (0.35, 0.70)
"""Extents from which edema is of grade 2 and 3."""
FILLING = (0.0, 0.16, 0.20, 0.32, 0.75, 1.0)
"""Spread at extent 0, just below and above each change of grade, and at 1; see `interpolate_steps`."""
BALLS = 5
HILUM = 0.48
"""Height of the hila, as a share of the height of the lung."""
LOWEST, HIGHEST = (0.26, 0.16), (0.48, 0.86)
"""Lowest and highest point of the haze at extents 0 and 1, as shares of the height of the lung: from the hila down,
because of gravity, then everything except the apices."""
RADIUS = (2.3, 3.7)
"""Radius of the balls at extents 0 and 1, cm."""
DEEP = 8.0
"""Limit of the haze along a ray, cm."""
RIGHT = 0.88
"""Size in the right lung that looks like size 1 in the left, more of which is hidden by the heart."""
EVEN = 0.64
"""Share of edemas that are about as large on both sides."""


def grade_edema(extent: float) -> int:
    """1 cephalisation and haze, 2 interstitial, 3 alveolar."""
    return 1 + sum(extent >= bound for bound in GRADES)


def project_edema(lesion: LesionPlan, context: LesionContext, generator: np.random.Generator) -> Shadow:
    alveolar = lesion.form == "alveolar"
    filled, attenuation = context.blank, context.blank
    strength = np.float32((0.16 if not alveolar else 0.30) + 0.30 * lesion.density)
    full = interpolate_steps(lesion.extent, GRADES, FILLING)
    radius, lowest, highest = (low + (high - low) * full for low, high in (RADIUS, LOWEST, HIGHEST))
    sizes = sample_sizes_by_side(lesion, generator, even=EVEN, right=RIGHT)
    for side, outward in ((0, -1.0), (1, 1.0)):
        size = sizes[side]
        base, top = measure_lung_heights(context.thorax, side)
        blobs = [
            make_ball(
                np.array([locate_across_lung(context.thorax, side, z, 0.40), generator.normal(-2.0, 1.0), z]),
                size**0.9 * radius * generator.uniform(0.9, 1.1, 3),
                generator,
            )
            for z in base + (top - base) * (HILUM + size**1.5 * (np.linspace(lowest, highest, BALLS) - HILUM))
        ]
        haze, textured = fill_lung(
            context, side, blobs, texture=generator, grain_cm=0.35 if alveolar else 0.7, deep_cm=DEEP
        )
        filled += haze
        attenuation += (SOFT - LUNG) * strength * textured
        attenuation += (
            (SOFT - LUNG)
            * np.float32(0.6 * lesion.density)
            * context.projection.beam.project_tubes(_make_septal_lines(context, side, outward, generator))
        )
    return Shadow(
        attenuation,
        filled,
        0.40,
        measures=(Measure(name="edema grade", value=float(grade_edema(lesion.extent)), unit="1"),),
        appearance=(lesion.form, *(("septal lines",) if not alveolar else ())),
    )


def _make_septal_lines(
    context: LesionContext, side: int, outward: float, generator: np.random.Generator
) -> list[Tube]:
    """Short horizontal lines that end at the pleura of the bases (Kerley B)."""
    cavity, dome = context.thorax.lungs[side], context.thorax.domes[side]
    z = dome.centre[2] + dome.axes[2, 2] + generator.uniform(-2.0, 4.0, SEPTAL_LINES)
    rise = (z - cavity.centre[2]) / cavity.half_width(2)
    wall = cavity.centre[0] + outward * cavity.half_width(0) * np.sqrt(1 - rise**2)
    length = generator.uniform(0.9, 1.7, SEPTAL_LINES)
    y = cavity.centre[1] + generator.uniform(-2.0, 2.0, SEPTAL_LINES)
    outer = np.stack([wall - outward * 0.35, y, z], axis=1)
    inner = outer - np.stack([outward * length, 0 * length, generator.normal(0, 0.1, SEPTAL_LINES)], axis=1)
    return [Tube(np.stack([outer, inner], axis=1), np.full((SEPTAL_LINES, 2), 0.06))]
