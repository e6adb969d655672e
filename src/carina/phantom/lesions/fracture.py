"""Rib fractures: a gap and a step in one or more neighbouring ribs, and callus in healing ones."""

import numpy as np

from carina.phantom.attenuation import RIB
from carina.phantom.lesions.shadow import LesionContext, Shadow, list_sides
from carina.phantom.plan import LesionPlan
from carina.phantom.solids import Tube
from carina.studies.model import Measure

# First fractured rib at each level, counted from 0.
FIRST_RIB = {"upper": 2, "mid": 4, "lower": 6}
CALLUS = 0.12
ORDINAL = ("1st", "2nd", "3rd", "4th", "5th", "6th", "7th", "8th", "9th", "10th", "11th", "12th")


def count_fractured_ribs(lesion: LesionPlan) -> int:
    return 1 + int(lesion.extent >= 0.45) + int(lesion.extent >= 0.8)


def project_fracture(lesion: LesionPlan, context: LesionContext, generator: np.random.Generator) -> Shadow:
    side = list_sides(lesion)[0]
    beam, bone = context.projection.beam, np.float32(context.thorax.habitus.bone)
    first = FIRST_RIB[lesion.level or "mid"] + int(generator.integers(0, 2))
    along = generator.uniform(0.30, 0.50)
    step_mm = round(2.0 + 6.0 * lesion.density * generator.uniform(0.6, 1.0), 1)
    attenuation, site = context.blank, context.blank
    count = count_fractured_ribs(lesion)
    ribs = range(first, first + count)
    for number in ribs:
        rib = context.thorax.skeleton.ribs[side].curve(number)
        before = beam.project_tubes([rib], profile=RIB)
        pieces = _split_rib(rib, along, 0.1 * step_mm)
        attenuation += bone * (beam.project_tubes(pieces, profile=RIB) - before)
        at = int(along * (len(rib.points) - 1))
        near = slice(max(at - 2, 0), at + 3)
        around = Tube(rib.points[near], rib.radius[near] * 1.5)
        if lesion.form == "healing":
            attenuation += np.float32(CALLUS) * beam.project_tubes(
                [Tube(rib.points[near], rib.radius[near] * 1.35)]
            )
        site += beam.project_tubes([around])
    names = [ORDINAL[number] for number in ribs]
    measures = (
        Measure(name="fractured ribs", value=float(count), unit="1"),
        Measure(name="displacement", value=step_mm, unit="mm"),
    )
    where = f"{lesion.side} {names[0]} rib" if count == 1 else f"{lesion.side} {names[0]} to {names[-1]} ribs"
    return Shadow(
        attenuation, site, 0.02, in_lung_field=False, measures=measures, appearance=(lesion.form,), site=where
    )


def _split_rib(rib: Tube, along: float, step_cm: float) -> list[Tube]:
    """Split a rib into two fragments with a gap, the outer one displaced downwards."""
    at = int(along * (len(rib.points) - 1))
    flat = np.broadcast_to(rib.flat, len(rib.points))
    spacing = float(np.linalg.norm(rib.points[at + 1] - rib.points[at]))
    gap = round(0.25 / spacing) + 1
    push = np.array([0.0, 0.0, -step_cm]) * np.exp(-np.arange(len(rib.points) - at - gap) / 9.0)[:, None]
    return [
        Tube(rib.points[: at + 1], rib.radius[: at + 1], flat[: at + 1]),
        Tube(rib.points[at + gap :] + push, rib.radius[at + gap :], flat[at + gap :]),
    ]
