"""Nodules (up to 3 cm) and masses (above 3 cm): solid, lobulated or calcified balls."""

import numpy as np

from carina.phantom.attenuation import LUNG, SOFT
from carina.phantom.beam import Span
from carina.phantom.lesions.shadow import (
    LesionContext,
    Shadow,
    list_sides,
    measure_inside_lung,
    place_in_lung,
)
from carina.phantom.plan import LesionPlan
from carina.phantom.solids import ellipsoid
from carina.studies.model import Measure

CALCIUM = 0.55
# Diameter at extent 0 and 1.
DIAMETER_CM = {"nodule": (0.9, 2.8), "mass": (3.2, 7.0)}


def project_nodule(lesion: LesionPlan, context: LesionContext, generator: np.random.Generator) -> Shadow:
    side = list_sides(lesion)[0]
    beam = context.projection.beam
    low, high = DIAMETER_CM[lesion.name]
    diameter = low + (high - low) * lesion.extent
    centre = place_in_lung(context.thorax, side, lesion.level, generator)
    # Moved away from the pleura according to its size, so that no part lies outside the lung.
    cavity = context.thorax.lungs[side]
    centre = centre + (cavity.centre - centre) * min(0.06 * diameter, 0.35) * np.array([0.6, 1.0, 0.0])
    round_ = generator.uniform(0.9, 1.08, 3)
    spans: list[Span] = [
        beam.span(ellipsoid(centre, 0.5 * diameter * round_, tilt_degrees=generator.uniform(-40, 40, 3)))
    ]
    lobes = generator.normal(0, 1, (3, 3))
    if lesion.form == "lobulated":
        lobes /= np.linalg.norm(lobes, axis=1, keepdims=True)
        spans += [
            beam.span(ellipsoid(centre + 0.33 * diameter * lobe, np.full(3, 0.27 * diameter)))
            for lobe in lobes
        ]
    thickness = measure_inside_lung(context, side, beam.hull(spans))
    calcified = lesion.form == "calcified"
    strength = (0.75 + 0.25 * lesion.density) * ((CALCIUM if calcified else SOFT) - LUNG)
    size = Measure(name="diameter", value=round(diameter, 1), unit="cm")
    return Shadow(
        np.float32(strength) * thickness, thickness, 0.20, measures=(size,), appearance=(lesion.form,)
    )
