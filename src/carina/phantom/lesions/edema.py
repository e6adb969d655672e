"""Pulmonary edema: bilateral perihilar and basal haze, septal lines, wide vessels."""

import numpy as np

from carina.phantom.attenuation import LUNG, SOFT
from carina.phantom.lesions.shadow import Scene, Shadow, ball, soft_cluster
from carina.phantom.plan import LesionPlan
from carina.phantom.solids import Tube
from carina.studies.model import Measure

SEPTAL_LINES = 14


def grade(extent: float) -> int:
    """1 cephalisation and haze, 2 interstitial, 3 alveolar."""
    return 1 + int(extent >= 0.35) + int(extent >= 0.7)


def edema(lesion: LesionPlan, scene: Scene, chance: np.random.Generator) -> Shadow:
    alveolar = lesion.form == "alveolar"
    filled, attenuation = scene.blank, scene.blank
    strength = np.float32((0.16 if not alveolar else 0.30) + 0.30 * lesion.density)
    for side, outward in ((0, -1.0), (1, 1.0)):
        hilum = scene.thorax.hila[side]
        size = 2.0 + 2.0 * lesion.extent
        blobs = [
            ball(
                hilum + (outward * (2.2 + 0.9 * k), chance.normal(-0.5, 1.0), drop),
                size * chance.uniform(0.7, 1.0, 3),
                chance,
            )
            for k, drop in enumerate((1.5, -1.2, -4.0))
        ]
        haze, textured = soft_cluster(scene, side, blobs, texture=chance, grain_cm=0.35 if alveolar else 0.7)
        filled += haze
        attenuation += (SOFT - LUNG) * strength * textured
        attenuation += (
            (SOFT - LUNG)
            * np.float32(0.6 * lesion.density)
            * scene.projection.beam.tubes(_septa(scene, side, outward, chance))
        )
    return Shadow(
        attenuation,
        filled,
        0.40,
        measures=(Measure(name="edema grade", value=float(grade(lesion.extent)), unit="1"),),
        appearance=(lesion.form, *(("septal lines",) if not alveolar else ())),
    )


def _septa(scene: Scene, side: int, outward: float, chance: np.random.Generator) -> list[Tube]:
    """Short horizontal lines that end at the pleura of the bases (Kerley B)."""
    cavity, dome = scene.thorax.lungs[side], scene.thorax.domes[side]
    z = dome.centre[2] + dome.axes[2, 2] + chance.uniform(-2.0, 4.0, SEPTAL_LINES)
    rise = (z - cavity.centre[2]) / cavity.extent(2)
    wall = cavity.centre[0] + outward * cavity.extent(0) * np.sqrt(1 - rise**2)
    length = chance.uniform(0.9, 1.7, SEPTAL_LINES)
    y = cavity.centre[1] + chance.uniform(-2.0, 2.0, SEPTAL_LINES)
    outer = np.stack([wall - outward * 0.35, y, z], axis=1)
    inner = outer - np.stack([outward * length, 0 * length, chance.normal(0, 0.1, SEPTAL_LINES)], axis=1)
    return [Tube(np.stack([outer, inner], axis=1), np.full((SEPTAL_LINES, 2), 0.06))]
