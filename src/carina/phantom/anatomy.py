"""Anatomy regions of an image: projections of the same solids that give its pixels.

The lung field is what a reader would outline: the pleural cavity outside heart, mediastinum, spine and diaphragm,
including opacified parts. Zones and other parts are those of the whole lung, also where the image cuts it off.
"""

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.phantom.attenuation import OrganSpans, Projection, trace_organs
from carina.phantom.beam import Beam, Window
from carina.phantom.thorax import Thorax
from carina.studies.lungs import lung_parts

Mask = NDArray[np.bool_]

# A bone's region is where it adds more than this attenuation; less is not visible.
LEAST_VISIBLE = 0.015


def outline_lung_fields(projection: OrganSpans) -> tuple[Mask, Mask]:
    """Outline the right and the left lung field."""
    beam = projection.beam
    covered = beam.silhouette(projection.central_tendon)
    if projection.frontal:  # in a lateral view heart, mediastinum and spine overlie the lungs
        for organ in (projection.heart, projection.mediastinum, projection.paraspinal):
            covered[organ.window] |= organ.far > organ.near
    fields = []
    for side in (0, 1):
        field = beam.silhouette(projection.cavities[side]) & ~covered
        dome = projection.domes[side]
        field[dome.window] &= dome.far <= dome.near
        fields.append(keep_largest_component(field))
    return fields[0], fields[1]


def project_regions(thorax: Thorax, projection: Projection, *, wide: Beam | None) -> dict[str, Mask]:
    """Masks of all anatomy in one image, by name.

    `wide` is the same beam with a margin; None where the image does not cut off a lung.
    """
    beam = projection.beam
    margin = (wide.rows - beam.rows) // 2 if wide else 0
    inner = slice(margin, margin + beam.rows), slice(margin, margin + beam.cols)
    right, left = outline_lung_fields(
        trace_organs(thorax, wide, frontal=projection.frontal) if wide else projection
    )
    parts = lung_parts(right, left) if projection.frontal else _divide_lateral_lungs(right | left)
    regions: dict[str, Mask] = {"right lung": right[inner], "left lung": left[inner]}
    apex = np.flatnonzero((regions["right lung"] | regions["left lung"]).any(axis=1))
    heart, mediastinum = beam.silhouette(projection.heart), beam.silhouette(projection.mediastinum)
    mediastinum[: apex[0] if len(apex) else 0] = False  # above the apices is the neck
    regions |= {"heart": heart, "mediastinum": mediastinum}
    for k, side in enumerate(("right", "left")):
        regions[f"{side} hilum"] = beam.silhouette(beam.span(thorax.hilar_soft_tissue[k].scale(1.25)))
        regions[f"{side} hemidiaphragm"] = beam.silhouette(projection.domes[k]) & beam.silhouette(
            projection.cavities[k]
        )
        regions[f"{side} ribs"] = projection.ribs[k] > LEAST_VISIBLE
        regions[f"{side} clavicle"] = projection.clavicles[k] > LEAST_VISIBLE
    regions["spine"] = projection.spine > 0.35 * max(float(projection.spine.max()), LEAST_VISIBLE)
    regions["trachea"] = projection.trachea > 0.3
    regions |= {name: part[inner] for name, part in parts.items()}
    return {name: mask for name, mask in regions.items() if mask.any()}


def _divide_lateral_lungs(lungs: Mask) -> dict[str, Mask]:
    """Divide a lateral view into thirds of the height, front and back, and the posterior costophrenic angle."""
    rows, cols = np.flatnonzero(lungs.any(axis=1)), np.flatnonzero(lungs.any(axis=0))
    if len(rows) == 0:
        return {}
    top, height = rows[0], rows[-1] + 1 - rows[0]
    third = (3 * (np.arange(lungs.shape[0]) - top)) // height
    back = np.arange(lungs.shape[1]) >= (cols[0] + cols[-1] + 1) / 2  # the patient faces the image's left
    low = np.arange(lungs.shape[0]) >= top + 0.75 * height
    parts = {
        f"{level} zone": lungs & (third == k)[:, None] for k, level in enumerate(("upper", "mid", "lower"))
    }
    parts |= {"anterior lung": lungs & ~back, "posterior lung": lungs & back}
    parts["posterior costophrenic angle"] = lungs & back & low[:, None]
    return parts


def keep_largest_component(mask: Mask) -> Mask:
    """Remove the small fragments that remain where silhouettes nearly touch."""
    window = find_bounding_window(mask)
    inner = mask[window]
    count, labels, stats, _ = cv2.connectedComponentsWithStats(
        np.ascontiguousarray(inner).view(np.uint8), connectivity=4, ltype=cv2.CV_16U
    )
    if count <= 2:
        return mask
    largest = np.zeros_like(mask)
    largest[window] = labels == 1 + int(np.argmax(stats[1:, cv2.CC_STAT_AREA]))
    return largest


def find_bounding_window(mask: Mask, *, margin: int = 0) -> Window:
    """The smallest window around a mask, widened by a margin; the whole image if the mask is empty."""
    rows, cols = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if len(rows) == 0:
        return slice(0, mask.shape[0]), slice(0, mask.shape[1])
    return (
        slice(max(int(rows[0]) - margin, 0), int(rows[-1]) + margin + 1),
        slice(max(int(cols[0]) - margin, 0), int(cols[-1]) + margin + 1),
    )
