"""Attenuation of every ray through the patient without lesions and devices.

The result also holds what lesions, devices and truth need: where each ray runs inside lungs, heart and diaphragm.
"""

from dataclasses import dataclass, fields

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.phantom.beam import Beam, Field, Span, measure_length_outside
from carina.phantom.skeleton import Skeleton
from carina.phantom.solids import Ellipsoid
from carina.phantom.thorax import Thorax
from carina.phantom.tubes import add_tubes

# Linear attenuation at about 60-70 keV, 1/cm.
SOFT = 0.195
FAT = 0.175
LUNG = 0.048
BLOOD = 0.20
FLUID = 0.192
METAL = 9.0  # steel and silver at these energies; values above a few per cm all saturate
PLASTIC = 1.1  # catheter wall loaded with barium
# The mediastinum holds vessels, airways and air in the oesophagus, so it attenuates less than its fat alone explains.
MEDIASTINAL_FAT = 2.8
# Rays with more attenuation than this pass through the patient, others through air.
BODY = 0.6
# Bones as hollow tubes: (inset cm, attenuation above soft tissue), see `Beam.project_tubes`.
RIB = ((0.0, 0.54), (0.10, -0.36))
CLAVICLE = ((0.0, 0.46), (0.15, -0.26))
SCAPULAR_BORDER = ((0.0, 0.40), (0.20, -0.32))
HUMERUS = 0.26
HUMERUS_CORE = 0.82  # width of the marrow as a share of the width of the bone
PROCESS = ((0.0, 0.20), (0.12, -0.11))
SCAPULA = 0.34
STERNUM = 0.09
VERTEBRA_CORE = 0.058
VERTEBRA_RIM = 0.075


@dataclass(frozen=True)
class OrganSpans:
    """Where each ray runs inside the large organs of one thorax."""

    beam: Beam
    frontal: bool
    cavities: tuple[Span, Span]
    """Right and left pleural cavity, before diaphragm, heart and mediastinum are subtracted."""
    domes: tuple[Span, Span]
    central_tendon: Span
    heart: Span
    mediastinum: Span
    paraspinal: Span

    def get_bounding_organs(self, side: int) -> tuple[Span, ...]:
        """The organs that are subtracted from a pleural cavity."""
        return self.heart, self.mediastinum, self.paraspinal, self.domes[side], self.central_tendon


@dataclass(frozen=True)
class Projection(OrganSpans):
    """Attenuation and path lengths of one image's rays through one thorax."""

    attenuation: Field
    """Of the patient without lesions and devices."""
    body: NDArray[np.bool_]
    """Pixels whose ray passes through the patient."""
    lung_length: tuple[Field, Field]
    """Centimetres of right and left lung along each ray."""
    vessels: tuple[Field, Field]
    """Attenuation of the vessels in each lung, included in `compute_attenuation`."""
    trachea: Field
    """Thickness, cm."""
    ribs: tuple[Field, Field]
    clavicles: tuple[Field, Field]
    spine: Field
    """Attenuation of each bone, included in `compute_attenuation`."""


def trace_organs(thorax: Thorax, beam: Beam, *, frontal: bool) -> OrganSpans:
    """Intersect the rays with the organs that bound the lungs."""
    return OrganSpans(
        beam=beam,
        frontal=frontal,
        cavities=(beam.span(thorax.lungs[0]), beam.span(thorax.lungs[1])),
        domes=(beam.span(thorax.domes[0]), beam.span(thorax.domes[1])),
        central_tendon=beam.span(thorax.central_tendon),
        heart=_merge_spans(beam, thorax.heart),
        mediastinum=_merge_spans(beam, thorax.mediastinum),
        paraspinal=_merge_spans(beam, thorax.paraspinal),
    )


def project_thorax(thorax: Thorax, beam: Beam, *, frontal: bool, texture: np.random.Generator) -> Projection:
    """Compute the ray sums through everything that is not a lesion or a device."""
    organs = trace_organs(thorax, beam, frontal=frontal)
    lengths = [
        _blur_motion(beam, measure_length_outside(beam, organs.cavities[k], organs.get_bounding_organs(k)))
        for k in (0, 1)
    ]
    lungs = lengths[0] + lengths[1]
    total = _project_soft_tissue(thorax, beam, frontal=frontal)
    body = total > BODY
    total += (LUNG - SOFT) * lungs
    _add_solid(total, beam, organs.mediastinum, -MEDIASTINAL_FAT * (SOFT - FAT))
    _add_parenchyma(total, beam, lungs, texture)
    for bubble in thorax.gas:
        _add_solid(total, beam, beam.span(bubble), -SOFT)
    trachea = beam.project_tubes([thorax.trachea])
    total -= SOFT * trachea
    add_tubes(beam, thorax.bronchi, total, profile=((0.0, -SOFT),))
    for hilum in thorax.hilar_soft_tissue:
        _add_solid(total, beam, beam.span(hilum), 0.7 * (BLOOD - LUNG))
    # Inside the mediastinum or below the dome a vessel is soft tissue in soft tissue: it has contrast only in lung.
    vessel_contrast = np.minimum(lungs * np.float32(0.25), np.float32(1.0))
    vessel_contrast *= np.float32(BLOOD - LUNG)
    vessels = [beam.project_tubes(bundle) for bundle in thorax.vessels]
    for vessel in vessels:
        np.multiply(vessel, vessel_contrast, out=vessel)
        total += vessel
    bones = thorax.skeleton
    ribs = beam.project_tubes(bones.ribs[:1], profile=RIB), beam.project_tubes(bones.ribs[1:], profile=RIB)
    clavicles = (
        beam.project_tubes(bones.clavicles[:1], profile=CLAVICLE),
        beam.project_tubes(bones.clavicles[1:], profile=CLAVICLE),
    )
    spine = beam.project_blocks(bones.vertebrae, core=VERTEBRA_CORE, rim=VERTEBRA_RIM)
    bones_total = _project_other_bones(bones, beam, frontal=frontal)
    for part in (*ribs, spine):
        bones_total += part
    for part in clavicles:
        # Raised arms move the clavicles out of a lateral view; the rest is faint.
        bones_total += part if frontal else np.float32(0.2) * part
    bones_total *= np.float32(thorax.habitus.bone)
    total += bones_total
    return Projection(
        **{name.name: getattr(organs, name.name) for name in fields(OrganSpans)},
        attenuation=np.maximum(total, 0, out=total),
        body=body,
        lung_length=(lengths[0], lengths[1]),
        vessels=(vessels[0], vessels[1]),
        trachea=trachea,
        ribs=ribs,
        clavicles=clavicles,
        spine=spine,
    )


def _add_solid(total: Field, beam: Beam, span: Span, attenuation: float) -> None:
    """Add the attenuation of a solid to a field, inside the solid's window."""
    total[span.window] += attenuation * np.maximum(span.far - span.near, 0) * beam.ray_length[span.window]


def _merge_spans(beam: Beam, solids: tuple[Ellipsoid, ...]) -> Span:
    return beam.hull([beam.span(solid) for solid in solids])


def _project_soft_tissue(thorax: Thorax, beam: Beam, *, frontal: bool) -> Field:
    """Fat and soft tissue of torso, limbs and breasts; arms and shoulders are raised out of a lateral view.

    Skin has no sharp edge, so every second ray is enough.
    """
    full, beam = beam, beam.coarsen(2) if beam.rows % 2 == 0 and beam.cols % 2 == 0 else beam
    body = _merge_spans(beam, thorax.torso)
    torso = beam.length(body)
    total = FAT * torso + (SOFT - FAT) * beam.length(_merge_spans(beam, thorax.lean_torso))
    if frontal:
        limbs = [beam.span(solid) for solid in (*thorax.shoulders, *thorax.arms)]
        total += 0.95 * SOFT * (beam.length(beam.hull([body, *limbs])) - torso)
    if thorax.breasts:
        loose = sum(
            (measure_length_outside(beam, beam.span(breast), [body]) for breast in thorax.breasts),
            beam.blank(),
        )
        # Blurred, because breasts have no sharp borders.
        total += 0.5 * (FAT + SOFT) * cv2.GaussianBlur(loose, (0, 0), 0.7 / beam.pixel)
    return np.asarray(cv2.resize(total, (full.cols, full.rows), interpolation=cv2.INTER_LINEAR), np.float32)


def _project_other_bones(bones: Skeleton, beam: Beam, *, frontal: bool) -> Field:
    """Scapulae, sternum, vertebral processes, and in frontal views the humeri."""
    total = SCAPULA * beam.project_plates(bones.scapulae) + STERNUM * beam.project_plates(bones.sternum)
    faint = 1.0 if frontal else 0.5
    add_tubes(beam, bones.processes, total, profile=[(inset, faint * weight) for inset, weight in PROCESS])
    if frontal:
        half = len(bones.scapular_borders) // 2
        for side in (bones.scapular_borders[:half], bones.scapular_borders[half:]):
            add_tubes(beam, side, total, profile=SCAPULAR_BORDER)
        for humerus in bones.humeri:
            shell = beam.span(humerus)
            chord = np.maximum(shell.far - shell.near, 0) * beam.ray_length[shell.window]
            # The marrow has the same shape as the bone but is smaller, so its chord follows from that of the bone.
            longest = np.float32(chord.max(initial=0.0))
            marrow = np.sqrt(np.maximum(chord**2 - (1 - HUMERUS_CORE**2) * longest**2, 0))
            total[shell.window] += HUMERUS * (chord - np.float32(0.55) * marrow)
    return total


def _blur_motion(beam: Beam, length: Field) -> Field:
    """Blur the borders of the lungs by about a millimetre, as heartbeat and breathing do."""
    return np.asarray(cv2.GaussianBlur(length, (0, 0), max(0.07 / beam.pixel, 0.5)), np.float32)


def _add_parenchyma(total: Field, beam: Beam, lungs: Field, generator: np.random.Generator) -> None:
    """Add lung texture that is finer than the vessel trees; its amplitude grows with the square root of the path."""
    rows, cols = np.flatnonzero(lungs.any(axis=1)), np.flatnonzero(lungs.any(axis=0))
    if len(rows) == 0:
        return
    window = slice(rows[0], rows[-1] + 1), slice(cols[0], cols[-1] + 1)
    inside = lungs[window]
    texture = np.zeros_like(inside)
    for grain_cm, strength in ((0.14, 0.009), (0.32, 0.010)):
        step = max(grain_cm / beam.pixel, 1.0)
        shape = tuple(int(np.ceil(side / step)) + 2 for side in inside.shape)
        grain = np.float32(strength) * generator.standard_normal(shape, dtype=np.float32)
        texture += cv2.resize(grain, inside.shape[::-1], interpolation=cv2.INTER_CUBIC)
    texture *= np.sqrt(inside)
    total[window] += texture
