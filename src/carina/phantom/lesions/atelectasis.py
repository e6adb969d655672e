"""Atelectasis: plate-like bands above the diaphragm, or a collapsed wedge with loss of volume."""

import numpy as np

from carina.phantom.attenuation import LUNG, SOFT
from carina.phantom.lesions.shadow import (
    LesionContext,
    Shadow,
    fill_lung,
    list_sides,
    make_ball,
    measure_inside_lung,
    place_in_lung,
    sample_sizes_by_side,
)
from carina.phantom.plan import LesionPlan
from carina.phantom.solids import ellipsoid
from carina.studies.model import Measure

PLATES = 3
RIGHT = 0.78
"""Size in the right lung that looks like size 1 in the left, where the heart hides much of the lower lobe."""
EVEN = 0.5
"""Share of bilateral lesions that are about as large on both sides."""


def project_atelectasis(lesion: LesionPlan, context: LesionContext, generator: np.random.Generator) -> Shadow:
    return (
        _project_plates(lesion, context, generator)
        if lesion.form == "plate"
        else _project_wedge(lesion, context, generator)
    )


def compute_volume_loss(lesion: LesionPlan) -> float:
    """Volume loss as a share of the lung; it raises the dome and shifts the mediastinum."""
    return round(
        (0.02 + 0.05 * lesion.extent) if lesion.form == "plate" else (0.08 + 0.27 * lesion.extent), 3
    )


def _make_measures(lesion: LesionPlan) -> tuple[Measure, ...]:
    return (Measure(name="volume lost", value=compute_volume_loss(lesion), unit="1"),)


def _project_plates(lesion: LesionPlan, context: LesionContext, generator: np.random.Generator) -> Shadow:
    """Thin discs, nearly edge-on to a horizontal ray, which appear as bright bands."""
    beam = context.projection.beam
    thickness = context.blank
    for side in list_sides(lesion):
        centre = place_in_lung(context.thorax, side, lesion.level, generator)
        for k in range(PLATES):
            at = centre + np.array(
                [generator.normal(0, 0.5), generator.normal(0, 1.0), 1.4 * k + 0.3 + generator.normal(0, 0.3)]
            )
            tilt = (generator.normal(0, 4), generator.normal(0, 14), 0)
            semi = (
                generator.uniform(1.4, 2.0) + 1.6 * lesion.extent,
                generator.uniform(1.5, 2.5),
                0.12 + 0.12 * lesion.extent,
            )
            # The number of plates grows with the extent; random numbers are used for every plate.
            if k <= 2.2 * lesion.extent:
                thickness += measure_inside_lung(
                    context, side, beam.span(ellipsoid(at, semi, tilt_degrees=tilt))
                )
    strength = np.float32(0.45 + 0.55 * lesion.density)
    return Shadow(
        (SOFT - LUNG) * strength * thickness,
        thickness,
        0.25,
        measures=_make_measures(lesion),
        appearance=("plate-like",),
    )


def _project_wedge(lesion: LesionPlan, context: LesionContext, generator: np.random.Generator) -> Shadow:
    """Airless lung at the base next to a raised dome: dense below, less dense above."""
    filled, textured = context.blank, context.blank
    for side, share in sample_sizes_by_side(lesion, generator, even=EVEN, right=RIGHT).items():
        base = place_in_lung(context.thorax, side, "lower", generator)
        size, tall = 1.5 + 1.2 * lesion.extent, 0.75 + 0.2 * lesion.extent
        blobs = [
            make_ball(
                # Spread sideways and down to the dome, which clips them.
                base
                + (generator.normal(0.0, 1.0), generator.normal(-1.0, 1.0), generator.uniform(-1.6, 0.3)),
                np.array([1.5 * share, 1.2, tall * share]) * size * generator.uniform(0.8, 1.15),
                generator,
            )
            for _ in range(5)
        ]
        plain, with_texture = fill_lung(context, side, blobs, texture=generator, grain_cm=0.9)
        filled += plain
        textured += with_texture
    strength = np.float32(0.35 + 0.55 * lesion.density)
    return Shadow(
        (SOFT - LUNG) * strength * textured,
        filled,
        0.45,
        measures=_make_measures(lesion),
        appearance=("volume loss",),
    )
