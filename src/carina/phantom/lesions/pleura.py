"""Effusion and pneumothorax.

Both are the part of the pleural cavity that the lung, modelled as a smaller ellipsoid, does not fill:
fluid below and around a lung that is displaced upwards, air above and around a lung that retracts to its hilum.
"""

import numpy as np

from carina.phantom.attenuation import BLOOD, FLUID, LUNG, SOFT
from carina.phantom.beam import measure_length_outside
from carina.phantom.lesions.shadow import (
    LesionContext,
    Shadow,
    interpolate_steps,
    list_sides,
    sample_extents_by_side,
)
from carina.phantom.plan import LesionPlan
from carina.phantom.solids import Ellipsoid, Tube, Vector
from carina.studies.model import Measure

EVEN = 0.15
"""Share of bilateral effusions that are about as large on both sides."""
STEPS = (0.20, 0.60)
"""Extents from which an effusion is moderate and large."""
LEVELS = (0.9, 2.8, 3.4, 6.6, 11.5, 17.0)
"""Height of fluid above the costophrenic angle, upright, at extent 0, below and above each step, and at 1, cm."""


def project_effusion(lesion: LesionPlan, context: LesionContext, generator: np.random.Generator) -> Shadow:
    """Free fluid: a meniscus that rises along the chest wall if upright, a posterior layer if supine."""
    beam = context.projection.beam
    fluid, volume = context.blank, 0.0
    for side, amount in sample_extents_by_side(lesion, generator, even=EVEN, first_step=STEPS[0]).items():
        lung = _displace_lung(context, side, float(np.clip(amount, 0.0, 1.0)))
        # The fluid is the part of the cavity outside the displaced lung and the organs.
        excluded = (beam.span(lung), *context.projection.get_bounding_organs(side))
        free = measure_length_outside(beam, context.projection.cavities[side], excluded)
        fluid += free
        volume = max(volume, float(free.sum()) * _measure_pixel_area(context))
    # The density of fluid hardly varies: a subtle effusion is a small one.
    attenuation = (FLUID - LUNG) * np.float32(0.75 + 0.25 * lesion.density) * fluid
    # The volume of the larger side; an extent means about the same volume supine and upright.
    measure = Measure(name="volume", value=round(volume, -1), unit="mL")
    form = "layering" if context.supine else "meniscus"
    return Shadow(attenuation, fluid, 0.30, measures=(measure,), appearance=(form,))


def _measure_pixel_area(context: LesionContext) -> float:
    """Area of one pixel at the depth of the middle of the lungs, square cm."""
    beam = context.projection.beam
    _, _, magnification = beam.project(context.thorax.lungs[0].centre)
    return float((beam.pixel / magnification[0]) ** 2)


def _displace_lung(context: LesionContext, side: int, amount: float) -> Ellipsoid:
    cavity, dome = context.thorax.lungs[side], context.thorax.domes[side]
    dome_top = dome.centre[2] + dome.axes[2, 2]
    if context.supine:
        depth = 1.3 + 7.6 * amount
        return cavity.scale((1.06, 1.0, 1.04)).shift((0.0, depth, 0.45 * depth))
    level = dome_top - 4.3 + interpolate_steps(amount, STEPS, LEVELS)
    top = cavity.centre[2] + 1.08 * cavity.half_width(2)
    height = 0.5 * (top - level)
    stretch = height / cavity.half_width(2)
    return Ellipsoid(
        np.array([cavity.centre[0], cavity.centre[1] + 0.3, level + height]),
        cavity.axes * np.array([1.22, 1.22, stretch]),
    )


def project_pneumothorax(
    lesion: LesionPlan, context: LesionContext, generator: np.random.Generator
) -> Shadow:
    """Air outside a thin pleural line; the vessels retract with the lung."""
    side = list_sides(lesion)[0]
    thorax, beam, projection = context.thorax, context.projection.beam, context.projection
    shrink = _sample_shrinkage(0.02 + 0.52 * lesion.extent, generator)
    hilum = thorax.hila[side]

    def retract(points: Vector) -> Vector:
        return np.asarray(hilum + (points - hilum) * shrink + (0.0, 0.0, -0.25 - 1.5 * lesion.extent))

    cavity = thorax.lungs[side]
    lung = Ellipsoid(retract(cavity.centre), shrink[:, None] * cavity.axes)
    inner = beam.span(lung)
    air = measure_length_outside(
        beam, projection.cavities[side], (inner, *projection.get_bounding_organs(side))
    )
    vessels = [Tube(retract(t.points), t.radius * 0.97) for t in thorax.vessels[side]]
    vessel_contrast = np.minimum(
        np.maximum(projection.lung_length[side] - air, 0) * np.float32(0.25), np.float32(1.0)
    )
    rim = np.maximum(beam.length(inner) - beam.length(beam.span(lung.scale(1 - 0.05 / 7.0))), 0)
    in_cavity = beam.silhouette(projection.cavities[side])
    attenuation = (
        -LUNG * air
        - projection.vessels[side]
        + (BLOOD - LUNG) * vessel_contrast * beam.project_tubes(vessels)
    )
    attenuation += (SOFT - LUNG) * np.float32(0.35 + 0.45 * lesion.density) * rim * in_cavity
    beyond = air * ~beam.silhouette(inner)
    appearance = ("visible pleural line", *(("tension",) if lesion.form == "tension" else ()))
    return Shadow(attenuation, beyond, 0.04, appearance=appearance)


def _sample_shrinkage(amount: float, generator: np.random.Generator) -> Vector:
    """Factors by which the lung shrinks towards its hilum along x, y and z: most at the side and the apex."""
    share = np.array([generator.uniform(0.9, 1.1), 0.35, generator.uniform(0.55, 0.75)])
    return np.asarray(1.0 - amount * share)
