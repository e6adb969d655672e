"""Tubes, lines and implants: their course through the patient and the position of their tip.

Also ECG leads on the skin, whose position is random and independent of every finding.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from carina.phantom.attenuation import METAL, PLASTIC
from carina.phantom.beam import Beam, Field
from carina.phantom.plan import DevicePlan
from carina.phantom.solids import Ellipsoid, Tube, Vector, ellipsoid, resample_curve, smooth_curve, tube
from carina.phantom.thorax import Thorax
from carina.studies.model import Measure

# (inset cm, added attenuation): the wall of a catheter; its radio-opaque stripe is a wire of its own.
CATHETER = ((0.0, PLASTIC), (0.06, -0.8 * PLASTIC))
WIRE = ((0.0, METAL),)


@dataclass(frozen=True)
class DeviceGeometry:
    """The solids of one device in the patient, and where its tip lies."""

    tubes: tuple[Tube, ...]
    wires: tuple[Tube, ...] = ()
    plates: tuple[Ellipsoid, ...] = ()
    """Solid metal, as of a pulse generator."""
    tip: Vector | None = None
    site: str | None = None
    measures: tuple[Measure, ...] = ()

    def compute_attenuation(self, beam: Beam) -> Field:
        total = beam.project_tubes(self.tubes, profile=CATHETER) + beam.project_tubes(
            self.wires, profile=WIRE
        )
        for plate in self.plates:
            total += np.float32(0.35 * METAL) * beam.length(beam.span(plate))
        return total

    def compute_thickness(self, beam: Beam) -> Field:
        total = beam.project_tubes(self.tubes) + beam.project_tubes(self.wires)
        for plate in self.plates:
            total += beam.length(beam.span(plate))
        return total


def place_device(device: DevicePlan, thorax: Thorax, generator: np.random.Generator) -> DeviceGeometry:
    """Place a device in this thorax."""
    return {
        "endotracheal tube": _place_endotracheal_tube,
        "nasogastric tube": _place_nasogastric_tube,
        "central venous line": _place_central_line,
        "pacemaker": _place_pacemaker,
        "chest tube": _place_chest_tube,
    }[device.name](device, thorax, generator)


def _place_endotracheal_tube(
    device: DevicePlan, thorax: Thorax, generator: np.random.Generator
) -> DeviceGeometry:
    """Adequate with the tip 3 to 6 cm above the carina; malpositioned near the carina or too high."""
    airway = resample_curve(thorax.trachea.points, n=200)
    uniform = generator.random()
    if device.adequate:
        above = 3.0 + 3.0 * device.depth
    elif uniform < 0.6:
        above = 1.4 * device.depth  # at the carina or just above
    else:
        above = 7.5 + 2.0 * device.depth
    height = airway[:, 2] - thorax.carina[2]
    course = airway[height >= above]
    above = round(above, 1)
    site = f"{above:.1f} cm above the carina"
    return DeviceGeometry(
        tubes=(tube(course, 0.42),),
        wires=(tube(course + (0.36, 0.0, 0.0), 0.022),),
        tip=course[-1],
        site=site,
        measures=(Measure(name="distance above the carina", value=above, unit="cm"),),
    )


def _place_nasogastric_tube(
    device: DevicePlan, thorax: Thorax, generator: np.random.Generator
) -> DeviceGeometry:
    """Adequate with the tip in the stomach; malpositioned with the tip in the oesophagus."""
    dome = thorax.domes[1]
    top = dome.centre[2] + dome.axes[2, 2]
    s = thorax.habitus.scale
    wander = generator.normal(0, 0.15, 4)
    knots = [
        (0.3 + wander[0], -3.2, 36 * s),
        (0.4 + wander[1], -4.4, 20 * s),
        (0.9 + wander[2], -4.6, 9 * s),
        (1.8 + wander[3], -3.2, top - 1.0),
    ]
    if device.adequate:
        knots += [(4.2, 0.0, top - 4.0), (5.5 + 2.0 * device.depth, 1.5, top - 6.0 - 1.5 * device.depth)]
        course = smooth_curve(knots, n=160)
    else:
        whole = smooth_curve(knots, n=160)
        course = whole[whole[:, 2] > top + 2.0 + 5.0 * device.depth]
    site = "in the stomach" if device.adequate else "in the distal esophagus"
    return DeviceGeometry(tubes=(tube(course, 0.24),), wires=(tube(course, 0.02),), tip=course[-1], site=site)


def _place_central_line(device: DevicePlan, thorax: Thorax, generator: np.random.Generator) -> DeviceGeometry:
    """From the jugular or subclavian vein into the superior vena cava; malpositioned if too deep or too short."""
    s, w = thorax.habitus.scale, thorax.habitus.width
    jugular = generator.random() < 0.6
    side = -1.0 if device.side == "right" else 1.0
    entry = (side * 3.4, 0.5, 33 * s) if jugular else (side * 0.72 * w, 6.0, 19.4 * s)
    deep_wrong = generator.random() < 0.5
    junction = 12.0 * s
    tip_z = (
        junction + (1.5 - 3.0 * device.depth)
        if device.adequate
        else (junction - 6.0 - 2.0 * device.depth if deep_wrong else 19.0 * s)
    )
    knots = [entry, (side * (2.9 if jugular else 5.0), 2.2, (24 if jugular else 20.6) * s)]
    if side > 0:
        knots.append((0.6, 2.8, 18.6 * s))
    knots += [(-2.2, 2.4, 17.4 * s), (-2.5, 2.3, 14.5 * s), (-2.3, 2.2, min(tip_z, 13.0 * s))]
    course = smooth_curve(knots, n=160)
    course = course[: int(np.argmin(np.abs(course[:, 2] - tip_z) + 100.0 * (course[:, 0] > 0.5))) + 1]
    site = (
        "at the cavoatrial junction"
        if device.adequate
        else ("deep in the right atrium" if deep_wrong else "in the brachiocephalic vein")
    )
    return DeviceGeometry(
        tubes=(tube(course, 0.12),), wires=(tube(course, 0.024),), tip=course[-1], site=site
    )


def _place_pacemaker(device: DevicePlan, thorax: Thorax, generator: np.random.Generator) -> DeviceGeometry:
    """A generator under the skin, one lead to the right atrium and one to the apex of the right ventricle."""
    s, w, d = thorax.habitus.scale, thorax.habitus.width, thorax.habitus.depth
    side = -1.0 if device.side == "right" else 1.0
    box = np.array([side * (0.70 + 0.06 * device.depth) * w, d - 1.5, 17.6 * s + generator.normal(0, 0.4)])
    ventricle = thorax.heart[0]
    apex = ventricle.centre + 0.72 * ventricle.axes[:, 0] + (0.0, 0.8, 0.0)
    if not device.adequate:
        apex = thorax.heart[1].centre + (0.2, 0.0, -1.0)  # slipped back into the atrium
    vein: list[ArrayLike] = [
        box + (-side * 1.5, -1.0, 1.2),
        (side * 0.42 * w, 4.0, 20.4 * s),
        (side * 1.8, 2.8, 18.8 * s),
        (-1.9, 2.4, 16.0 * s),
    ]
    atrium = thorax.heart[1].centre
    leads = (
        smooth_curve(
            [
                *vein,
                (-2.3, 2.2, 11.0 * s),
                atrium + (-0.4, 0.8, -1.0),
                0.5 * (atrium + apex) + (0, 0.5, -1.6),
                apex,
            ],
            n=140,
        ),
        smooth_curve(
            [*vein, (-2.1, 2.2, 11.5 * s), atrium + (-0.8, 1.0, -0.8), atrium + (-0.2, 1.6, 1.3)], n=120
        ),
    )
    return DeviceGeometry(
        tubes=tuple(tube(lead, 0.08) for lead in leads),
        wires=tuple(tube(lead, 0.035) for lead in leads)
        + (tube(leads[0][-8:], 0.11), tube(leads[1][-8:], 0.11)),
        plates=(
            ellipsoid(box, (2.2, 0.3, 2.0), tilt_degrees=(0, 15, 0)),
            ellipsoid(box + (0, 0, 1.6), (1.5, 0.3, 0.9)),
        ),
        tip=leads[0][-1],
        site="at the right ventricular apex" if device.adequate else "in the right atrium",
    )


def _place_chest_tube(device: DevicePlan, thorax: Thorax, generator: np.random.Generator) -> DeviceGeometry:
    """From the side of the chest up to the apex; malpositioned with the tip in the chest wall."""
    s, w = thorax.habitus.scale, thorax.habitus.width
    side = -1.0 if device.side == "right" else 1.0
    low = generator.uniform(4.0, 7.0)
    knots = [
        (side * (w + 4.5), -1.0, (low - 1.0) * s),
        (side * (w + 0.8), -1.5, low * s),
        (side * 0.80 * w, -3.0, (low + 3.5) * s),
        (side * (0.55 - 0.05 * device.depth) * w, -3.5, (low + 8.0) * s),
        (side * (0.42 - 0.05 * device.depth) * w, -3.0, (16.5 + 2.0 * device.depth) * s),
    ]
    course = smooth_curve(
        knots if device.adequate else knots[:2] + [(side * (w + 0.5), -2.5, (low + 3.0) * s)], n=120
    )
    site = "at the apex" if device.adequate else "in the chest wall"
    return DeviceGeometry(
        tubes=(tube(course, 0.40),), wires=(tube(course + (0, 0, 0.1), 0.03),), tip=course[-1], site=site
    )


def make_ecg_leads(thorax: Thorax, generator: np.random.Generator) -> DeviceGeometry:
    """Place three to five electrodes with their wires at random on the skin."""
    s, w, d = thorax.habitus.scale, thorax.habitus.width, thorax.habitus.depth
    wires: list[Tube] = []
    for _ in range(int(generator.integers(3, 6))):
        at = np.array([generator.uniform(-0.95, 0.95) * w, d, generator.uniform(1.0, 19.0) * s])
        away = np.array([np.sign(at[0]) * 1.9 * w, d, at[2] + generator.normal(0, 6.0)])
        sag = 0.5 * (at + away) + np.array([0.0, 0.5, -generator.uniform(0.0, 4.0)])
        wires.append(tube(smooth_curve([at, sag, away], n=60), 0.03))
        ring = np.linspace(0, 2 * np.pi, 24)
        wires.append(tube(at + 0.45 * np.stack([np.cos(ring), 0 * ring, np.sin(ring)], axis=1), 0.04))
    return DeviceGeometry(tubes=(), wires=tuple(wires))
