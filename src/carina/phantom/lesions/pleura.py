"""The pleural space: effusion and pneumothorax.

Both are what is left of a pleural cavity when the lung, drawn in as a smaller ellipsoid, no longer fills it:
fluid below and around a lung that floats up, air above and around a lung that has fallen to its hilum.
"""

import numpy as np

from carina.phantom.attenuation import BLOOD, FLUID, LUNG, SOFT
from carina.phantom.beam import length_without
from carina.phantom.lesions.shadow import Scene, Shadow, extents_by_side, sides_of, stepwise
from carina.phantom.plan import LesionPlan
from carina.phantom.solids import Ellipsoid, Tube, Vector
from carina.studies.model import Measure

EVEN = 0.15
"""Share of the bilateral effusions that are about as large on both sides."""
STEPS = (0.20, 0.60)
"""Extents from which an effusion is moderate and large."""
LEVELS = (0.9, 2.8, 3.4, 6.6, 11.5, 17.0)
"""How high it stands above the costophrenic angle, upright, at extent 0, about each step, and at 1, cm."""


def effusion(lesion: LesionPlan, scene: Scene, chance: np.random.Generator) -> Shadow:
    """Free fluid: a meniscus that climbs the chest wall when upright, a veil that thickens downwards when supine."""
    beam = scene.projection.beam
    fluid, volume = scene.blank, 0.0
    for side, amount in extents_by_side(lesion, chance, even=EVEN, first_step=STEPS[0]).items():
        lung = _floating(scene, side, float(np.clip(amount, 0.0, 1.0)))
        # The lung that floats is inside the cavity: what it and the organs leave free is fluid.
        removed = (beam.span(lung), *scene.projection.removed(side))
        free = length_without(beam, scene.projection.cavities[side], removed)
        fluid += free
        volume = max(volume, float(free.sum()) * _pixel_area(scene))
    # Fluid is fluid: subtlety comes from how little there is, not from how thin it is.
    attenuation = (FLUID - LUNG) * np.float32(0.75 + 0.25 * lesion.density) * fluid
    # Of the larger side, where there are two; the same extent is about as much lying down as standing.
    measure = Measure(name="volume", value=round(volume, -1), unit="mL")
    form = "layering" if scene.supine else "meniscus"
    return Shadow(attenuation, fluid, 0.30, measures=(measure,), appearance=(form,))


def _pixel_area(scene: Scene) -> float:
    """Square centimetres of patient behind one pixel, at the depth of the lungs' middle."""
    beam = scene.projection.beam
    _, _, magnification = beam.project(scene.thorax.lungs[0].centre)
    return float((beam.pixel / magnification[0]) ** 2)


def _floating(scene: Scene, side: int, amount: float) -> Ellipsoid:
    cavity, dome = scene.thorax.lungs[side], scene.thorax.domes[side]
    dome_top = dome.centre[2] + dome.axes[2, 2]
    if scene.supine:
        depth = 1.3 + 7.6 * amount
        return cavity.scaled((1.06, 1.0, 1.04)).shifted((0.0, depth, 0.45 * depth))
    level = dome_top - 4.3 + stepwise(amount, STEPS, LEVELS)
    top = cavity.centre[2] + 1.08 * cavity.extent(2)
    height = 0.5 * (top - level)
    stretch = height / cavity.extent(2)
    return Ellipsoid(
        np.array([cavity.centre[0], cavity.centre[1] + 0.3, level + height]),
        cavity.axes * np.array([1.22, 1.22, stretch]),
    )


def pneumothorax(lesion: LesionPlan, scene: Scene, chance: np.random.Generator) -> Shadow:
    """Air beyond a fine pleural line; the lung's vessels draw in with it."""
    side = sides_of(lesion)[0]
    thorax, beam, projection = scene.thorax, scene.projection.beam, scene.projection
    shrink = _collapse(0.02 + 0.52 * lesion.extent, chance)
    hilum = thorax.hila[side]

    def drawn_in(points: Vector) -> Vector:
        return np.asarray(hilum + (points - hilum) * shrink + (0.0, 0.0, -0.25 - 1.5 * lesion.extent))

    cavity = thorax.lungs[side]
    lung = Ellipsoid(drawn_in(cavity.centre), shrink[:, None] * cavity.axes)
    inner = beam.span(lung)
    air = length_without(beam, projection.cavities[side], (inner, *projection.removed(side)))
    vessels = [Tube(drawn_in(t.points), t.radius * 0.97) for t in thorax.vessels[side]]
    shown = np.minimum(np.maximum(projection.lung_length[side] - air, 0) * np.float32(0.25), np.float32(1.0))
    rim = np.maximum(beam.length(inner) - beam.length(beam.span(lung.scaled(1 - 0.05 / 7.0))), 0)
    in_cavity = beam.silhouette(projection.cavities[side])
    attenuation = -LUNG * air - projection.vessels[side] + (BLOOD - LUNG) * shown * beam.tubes(vessels)
    attenuation += (SOFT - LUNG) * np.float32(0.35 + 0.45 * lesion.density) * rim * in_cavity
    beyond = air * ~beam.silhouette(inner)
    appearance = ("visible pleural line", *(("tension",) if lesion.form == "tension" else ()))
    return Shadow(attenuation, beyond, 0.04, appearance=appearance)


def _collapse(amount: float, chance: np.random.Generator) -> Vector:
    """How far the lung shrinks towards its hilum, along x, y and z: most from the side and the apex."""
    share = np.array([chance.uniform(0.9, 1.1), 0.35, chance.uniform(0.55, 0.75)])
    return np.asarray(1.0 - amount * share)
