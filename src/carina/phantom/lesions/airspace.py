"""Airspace disease: consolidation, pneumonia and ground-glass opacity, as clusters of soft balls in the lung."""

import numpy as np

from carina.phantom.attenuation import LUNG, SOFT
from carina.phantom.beam import Field
from carina.phantom.lesions.shadow import Scene, Shadow, ball, place_in_lung, sides_of, soft_cluster
from carina.phantom.plan import LesionPlan
from carina.phantom.solids import Ellipsoid, Tube

BALLS = {"lobar": 9, "patchy": 7}
# Airways in filled lung stay open as dark branches: these generations of the vessel tree run beside them.
AIRWAY_GENERATIONS = slice(1, 5)


def consolidation(lesion: LesionPlan, scene: Scene, chance: np.random.Generator) -> Shadow:
    """Dense lung: one mass of it (lobar) or scattered patches; air bronchograms when it is dense enough."""
    side = sides_of(lesion)[0]
    centre = place_in_lung(scene.thorax, side, lesion.level, chance)
    reach = 2.2 + 4.2 * lesion.extent
    patchy = lesion.form == "patchy"
    blobs: list[Ellipsoid] = []
    for _ in range(BALLS["patchy" if patchy else "lobar"]):
        offset = chance.normal(0, 1, 3)
        offset *= (0.95 if patchy else 0.62) * reach * chance.uniform(0.2, 1.0) / np.linalg.norm(offset)
        blobs.append(
            ball(centre + offset, reach * (0.30 if patchy else 0.42) * chance.uniform(0.75, 1.25, 3), chance)
        )
    filled, textured = soft_cluster(scene, side, blobs, texture=chance)
    fissure = chance.random() < 0.6
    if not patchy and fissure and side == 0 and lesion.level == "upper":
        # The minor fissure stops right upper lobe disease with a straight lower border.
        edge = scene.projection.beam.height_at(centre) - np.float32(centre[2] - 0.35 * reach)
        above = np.clip(edge / np.float32(0.25) + np.float32(0.5), 0, 1)
        filled, textured = filled * above, textured * above
    strength = 0.30 + 0.60 * lesion.density
    attenuation = (SOFT - LUNG) * np.float32(strength) * textured
    bronchograms = not patchy and lesion.density > 0.55
    if bronchograms:
        attenuation = attenuation - np.float32(0.75 * strength) * SOFT * _airways(scene, side, filled)
    return Shadow(
        attenuation, filled, 0.45, appearance=(lesion.form, *(("air bronchograms",) if bronchograms else ()))
    )


def _airways(scene: Scene, side: int, filled: Field) -> Field:
    branches = [
        Tube(t.points + np.array([0.25, 0.15, 0.2]), np.minimum(t.radius * 0.85, 0.22))
        for t in scene.thorax.vessels[side][AIRWAY_GENERATIONS]
    ]
    filling = np.minimum(filled / np.float32(max(float(filled.max(initial=0.0)), 1e-3)), 1.0)
    return np.asarray(scene.projection.beam.tubes(branches) * filling**2, np.float32)


def opacity(lesion: LesionPlan, scene: Scene, chance: np.random.Generator) -> Shadow:
    """Ground-glass haze through which the vessels show."""
    side = sides_of(lesion)[0]
    centre = place_in_lung(scene.thorax, side, lesion.level, chance)
    reach = 2.0 + 3.0 * lesion.extent
    blobs = [
        ball(centre + chance.normal(0, 0.45 * reach, 3), 0.62 * reach * chance.uniform(0.8, 1.2, 3), chance)
        for _ in range(4)
    ]
    filled, textured = soft_cluster(scene, side, blobs, texture=chance, grain_cm=0.8)
    strength = np.float32(0.14 + 0.30 * lesion.density)
    return Shadow((SOFT - LUNG) * strength * textured, filled, 0.45, appearance=("ground-glass",))
