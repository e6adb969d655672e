"""Atelectasis: plate-like bands above the diaphragm, or a collapsed wedge with loss of volume."""

import numpy as np

from carina.phantom.attenuation import LUNG, SOFT
from carina.phantom.lesions.shadow import (
    Scene,
    Shadow,
    ball,
    inside_lung,
    place_in_lung,
    sides_of,
    sizes_by_side,
    soft_cluster,
)
from carina.phantom.plan import LesionPlan
from carina.phantom.solids import ellipsoid
from carina.studies.model import Measure

PLATES = 3
RIGHT = 0.78
"""Size in the right lung of what looks the same in both: the heart hides much of a left lower lobe."""
EVEN = 0.5
"""Share of the bilateral collapses that are about as large on both sides."""


def atelectasis(lesion: LesionPlan, scene: Scene, chance: np.random.Generator) -> Shadow:
    return _plates(lesion, scene, chance) if lesion.form == "plate" else _wedge(lesion, scene, chance)


def volume_lost(lesion: LesionPlan) -> float:
    """Share of the lung; what raises the dome and draws the mediastinum over."""
    return round(
        (0.02 + 0.05 * lesion.extent) if lesion.form == "plate" else (0.08 + 0.27 * lesion.extent), 3
    )


def _measure(lesion: LesionPlan) -> tuple[Measure, ...]:
    return (Measure(name="volume lost", value=volume_lost(lesion), unit="1"),)


def _plates(lesion: LesionPlan, scene: Scene, chance: np.random.Generator) -> Shadow:
    """Thin discs, nearly edge-on to a horizontal ray: bright bands."""
    beam = scene.projection.beam
    thickness = scene.blank
    for side in sides_of(lesion):
        centre = place_in_lung(scene.thorax, side, lesion.level, chance)
        for k in range(PLATES):
            at = centre + np.array(
                [chance.normal(0, 0.5), chance.normal(0, 1.0), 1.4 * k + 0.3 + chance.normal(0, 0.3)]
            )
            tilt = (chance.normal(0, 4), chance.normal(0, 14), 0)
            semi = (
                chance.uniform(1.4, 2.0) + 1.6 * lesion.extent,
                chance.uniform(1.5, 2.5),
                0.12 + 0.12 * lesion.extent,
            )
            if (
                k <= 2.2 * lesion.extent
            ):  # the number of plates grows with the extent; every plate is drawn all the same
                thickness += inside_lung(scene, side, beam.span(ellipsoid(at, semi, tilt_degrees=tilt)))
    strength = np.float32(0.45 + 0.55 * lesion.density)
    return Shadow(
        (SOFT - LUNG) * strength * thickness,
        thickness,
        0.25,
        measures=_measure(lesion),
        appearance=("plate-like",),
    )


def _wedge(lesion: LesionPlan, scene: Scene, chance: np.random.Generator) -> Shadow:
    """Airless lung at the base: dense below, fading upwards, beside a raised dome."""
    filled, textured = scene.blank, scene.blank
    for side, share in sizes_by_side(lesion, chance, even=EVEN, right=RIGHT).items():
        base = place_in_lung(scene.thorax, side, "lower", chance)
        size, tall = 1.5 + 1.2 * lesion.extent, 0.75 + 0.2 * lesion.extent
        blobs = [
            ball(
                # Spread sideways and down onto the dome, where the lung cuts them off.
                base + (chance.normal(0.0, 1.0), chance.normal(-1.0, 1.0), chance.uniform(-1.6, 0.3)),
                np.array([1.5 * share, 1.2, tall * share]) * size * chance.uniform(0.8, 1.15),
                chance,
            )
            for _ in range(5)
        ]
        plain, with_texture = soft_cluster(scene, side, blobs, texture=chance, grain_cm=0.9)
        filled += plain
        textured += with_texture
    strength = np.float32(0.35 + 0.55 * lesion.density)
    return Shadow(
        (SOFT - LUNG) * strength * textured,
        filled,
        0.45,
        measures=_measure(lesion),
        appearance=("volume loss",),
    )
