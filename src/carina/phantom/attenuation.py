"""From solids to the attenuation of every ray: what the patient without lesions puts between source and detector.

Also keeps what lesions, devices and truth need of it: where each ray runs inside lungs, heart and diaphragm.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.phantom.beam import Beam, Field, Span, length_without
from carina.phantom.solids import Ellipsoid
from carina.phantom.thorax import Thorax

# Linear attenuation at about 60-70 keV, 1/cm.
SOFT = 0.195
FAT = 0.175
LUNG = 0.048
BLOOD = 0.20
FLUID = 0.192
METAL = 3.0
PLASTIC = 0.45  # radio-opaque catheter wall
# Bones as hollow tubes: (inset cm, attenuation above soft tissue), see `Beam.tubes`.
RIB = ((0.0, 0.54), (0.10, -0.36))
CLAVICLE = ((0.0, 0.46), (0.15, -0.26))
LIMB = ((0.0, 0.46), (0.20, -0.33))
PROCESS = ((0.0, 0.20), (0.12, -0.11))
SCAPULA = 0.34
STERNUM = 0.09
VERTEBRA_CORE = 0.058
VERTEBRA_RIM = 0.075
# Ribs begin as cartilage in front, which casts no shadow of bone.


@dataclass(frozen=True)
class Projection:
    """One image's rays through one thorax."""

    beam: Beam
    frontal: bool
    attenuation: Field
    """Of the patient without lesions and devices."""
    body: Span
    cavities: tuple[Span, Span]
    """Right and left pleural cavity, diaphragm and heart not yet taken away."""
    domes: tuple[Span, Span]
    midriff: Span
    heart: Span
    mediastinum: Span
    column: Span
    lung_length: tuple[Field, Field]
    """Centimetres of right and left lung along each ray."""
    rib_thickness: tuple[Field, Field]
    clavicle_thickness: tuple[Field, Field]

    def removed(self, side: int) -> tuple[Span, ...]:
        """What a pleural cavity has to give room to."""
        return self.heart, self.mediastinum, self.column, self.domes[side], self.midriff


def project(thorax: Thorax, beam: Beam, *, frontal: bool, texture: np.random.Generator) -> Projection:
    """Ray sums through everything that is not a lesion or a device."""

    def spans(solids: tuple[Ellipsoid, ...]) -> list[Span]:
        return [beam.span(solid) for solid in solids]

    body = beam.hull(spans(thorax.torso))
    flesh = beam.hull(spans(thorax.flesh))
    total = FAT * beam.length(body) + (SOFT - FAT) * beam.length(flesh)
    if frontal:
        total += SOFT * 0.95 * beam.length(spans(thorax.arms))
        total += SOFT * 0.95 * _outside(beam, thorax.shoulders, body, blur_cm=0.0)
    total += 0.5 * (FAT + SOFT) * _outside(beam, thorax.breasts, body, blur_cm=0.7)
    heart, mediastinum = beam.hull(spans(thorax.heart)), beam.hull(spans(thorax.mediastinum))
    column, midriff = beam.hull(spans(thorax.column)), beam.span(thorax.midriff)
    cavities = beam.span(thorax.lungs[0]), beam.span(thorax.lungs[1])
    domes = beam.span(thorax.domes[0]), beam.span(thorax.domes[1])
    lung_length = tuple(
        _softened(beam, length_without(beam, cavities[k], (heart, mediastinum, column, domes[k], midriff))) for k in (0, 1)
    )
    lungs = lung_length[0] + lung_length[1]
    total += (LUNG - SOFT) * lungs
    total += _parenchyma(beam, lungs, texture)
    for bubble in thorax.gas:
        total -= SOFT * beam.length(beam.span(bubble))
    total -= SOFT * beam.tubes([thorax.trachea, *thorax.bronchi])
    for hilum in thorax.hilar_soft_tissue:
        total += 0.7 * (BLOOD - LUNG) * beam.length(beam.span(hilum))
    # A vessel inside the mediastinum or below the dome is soft tissue in soft tissue: it shows only through lung.
    shown = np.minimum(lungs * np.float32(0.25), np.float32(1.0))
    for bundle in thorax.vessels:
        total += (BLOOD - LUNG) * shown * beam.tubes(bundle)
    bone = np.float32(thorax.build.bone)
    ribs = beam.tubes(thorax.ribs[0], profile=RIB), beam.tubes(thorax.ribs[1], profile=RIB)
    clavicles = (
        beam.tubes(thorax.clavicles[:1], profile=CLAVICLE),
        beam.tubes(thorax.clavicles[1:], profile=CLAVICLE),
    )
    total += bone * (ribs[0] + ribs[1] + clavicles[0] + clavicles[1])
    half = len(thorax.limbs) // 2
    if frontal:  # arms are raised out of the lateral view
        for side in (thorax.limbs[:half], thorax.limbs[half:]):
            total += bone * beam.tubes(side, profile=LIMB)
    total += bone * SCAPULA * beam.plates(thorax.scapulae) + bone * STERNUM * beam.plates(thorax.sternum)
    total += bone * beam.blocks(thorax.vertebrae, core=VERTEBRA_CORE, rim=VERTEBRA_RIM)
    total += bone * beam.tubes(thorax.processes, profile=PROCESS)
    return Projection(
        beam=beam,
        frontal=frontal,
        attenuation=np.maximum(total, 0),
        body=body,
        cavities=cavities,
        domes=domes,
        midriff=midriff,
        heart=heart,
        mediastinum=mediastinum,
        column=column,
        lung_length=(lung_length[0], lung_length[1]),
        rib_thickness=ribs,
        clavicle_thickness=clavicles,
    )


def _outside(beam: Beam, solids: tuple[Ellipsoid, ...], body: Span, *, blur_cm: float) -> Field:
    """Centimetres of soft parts that stand out from the torso; their edges are loose folds, not sharp rims."""
    total = beam.blank()
    for solid in solids:
        total += length_without(beam, beam.span(solid), [body])
    return np.asarray(cv2.GaussianBlur(total, (0, 0), blur_cm / beam.pixel), np.float32) if blur_cm else total


def _softened(beam: Beam, length: Field) -> Field:
    """Heartbeat and breath blur the borders of the lungs by about a millimetre."""
    return np.asarray(cv2.GaussianBlur(length, (0, 0), max(0.07 / beam.pixel, 0.5)), np.float32)


def _parenchyma(beam: Beam, lungs: Field, chance: np.random.Generator) -> Field:
    """Texture of lung too fine for the vessel trees: grows with the square root of the path, as sums do."""
    texture = np.zeros_like(lungs)
    for grain_cm, strength in ((0.10, 0.007), (0.28, 0.010)):
        step = max(grain_cm / beam.pixel, 1.0)
        shape = int(np.ceil(beam.rows / step)) + 2, int(np.ceil(beam.cols / step)) + 2
        grain = chance.standard_normal(shape, dtype=np.float32)
        texture += np.float32(strength) * cv2.resize(grain, (beam.cols, beam.rows), interpolation=cv2.INTER_CUBIC)
    return texture * np.sqrt(lungs)


