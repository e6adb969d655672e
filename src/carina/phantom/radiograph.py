"""One radiograph of one planned study: its pixels, and exact masks of anatomy, lesions and devices."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.phantom import anatomy
from carina.phantom.anatomy import Mask
from carina.phantom.attenuation import project_thorax
from carina.phantom.beam import Beam, Field, Window, make_beam
from carina.phantom.devices import DeviceGeometry, make_ecg_leads, place_device
from carina.phantom.habitus import Habitus, sample_habitus
from carina.phantom.imaging import Exposure, add_collimation, add_marker, expose, quantise, sample_detector
from carina.phantom.lesions import PROJECTORS, LesionContext, Shadow, derive_state
from carina.phantom.options import PhantomOptions
from carina.phantom.plan import LesionPlan, PatientPlan, StudyPlan, Technique
from carina.phantom.thorax import Thorax, build_thorax
from carina.store.seeding import rng

# Side of the image at the detector, in half-widths of the thorax, and height of the central ray (z, cm).
FIELD = {"PA": 3.0, "AP": 3.15, "lateral": 2.9}
CENTRE_HEIGHT = 9.6
# Shift of the field that certainly puts one costophrenic angle outside it, in half-widths of the thorax.
CUT_OFF_SHIFT = 0.48
# Pieces of a lesion's mask below this share of the image are removed as fragments, if there is a larger piece.
LARGEST_FRAGMENT = 2e-4


@dataclass(frozen=True)
class VisibleLesion:
    """A lesion in one image: its mask and how visible it is."""

    mask: Mask
    shadow: Shadow | None
    """None for an enlarged heart, which is part of the anatomy."""
    conspicuity: float


@dataclass(frozen=True)
class VisibleDevice:
    mask: Mask
    geometry: DeviceGeometry
    tip: tuple[float, float] | None
    """Column and row, in pixel-edge coordinates; None where it lies outside the image."""


@dataclass(frozen=True)
class Radiograph:
    technique: Technique
    pixels: NDArray[np.uint8] | NDArray[np.uint16]
    pixel_mm: float
    anatomy: dict[str, Mask]
    lesions: dict[str, VisibleLesion]
    devices: dict[str, VisibleDevice]
    posterior_ribs: int | None
    cut_off: tuple[str, ...]


def take_radiograph(
    patient: PatientPlan, study: StudyPlan, technique: Technique, options: PhantomOptions, seed: int
) -> Radiograph:
    """Image the patient. The result depends only on the plan, the options and the seed."""

    def make_generator(*purpose: str) -> np.random.Generator:
        return rng(seed, study.id, technique.view, *purpose)

    habitus = sample_habitus(patient, seed)
    state = derive_state(study.lesions, inspiration=technique.inspiration, supine=study.supine)
    body = build_thorax(patient, habitus, state, seed)
    frontal = technique.view != "lateral"
    beam, wide = _make_beams(habitus, technique, options.size, make_generator("geometry"))
    projection = project_thorax(body, beam, frontal=frontal, texture=make_generator("texture"))
    regions = anatomy.project_regions(body, projection, wide=wide)
    context = LesionContext(body, projection, study.supine)
    shadows = {
        lesion.key: PROJECTORS[lesion.name](lesion, context, rng(seed, patient.id, lesion.key))
        for lesion in study.lesions
        if lesion.name in PROJECTORS
    }
    geometries = {
        device.key: place_device(device, body, rng(seed, patient.id, device.key)) for device in study.devices
    }
    added = beam.blank()
    lesion_attenuations = {
        key: np.float32(options.conspicuity) * shadow.attenuation for key, shadow in shadows.items()
    }
    for attenuation in lesion_attenuations.values():
        added += attenuation
    for device in geometries.values():
        added += device.compute_attenuation(beam)
    if study.ecg_leads and frontal:
        added += make_ecg_leads(body, make_generator("ecg")).compute_attenuation(beam)
    exposure = expose(
        projection.attenuation,
        lungs=_merge_lungs(regions, beam),
        body=projection.body,
        pixel_cm=beam.pixel,
        detector=sample_detector(
            make_generator("detector"), view=technique.view, exposure=technique.exposure
        ),
    )
    displayed = exposure.render_image(added, make_generator("noise"))
    lesions: dict[str, VisibleLesion] = {}
    for lesion in study.lesions:
        shadow = shadows.get(lesion.key)
        mask = _make_mask(lesion, shadow, regions, beam, frontal=frontal)
        contrast = (
            _measure_contrast(exposure, mask, added, lesion_attenuations[lesion.key])
            if shadow
            else _measure_edge_contrast(displayed, mask)
        )
        lesions[lesion.key] = VisibleLesion(
            mask, shadow, round(contrast / _measure_noise(displayed, mask), 3)
        )
    add_collimation(displayed, make_generator("collimation"))
    add_marker(displayed, technique.view, make_generator("marker"))
    return Radiograph(
        technique=technique,
        pixels=quantise(displayed, bits=options.bits, monochrome1=options.monochrome1),
        pixel_mm=10 * beam.pixel,
        anatomy=regions,
        lesions=lesions,
        devices={key: _project_device(device, beam) for key, device in geometries.items()},
        posterior_ribs=_count_posterior_ribs(body, beam, regions=regions) if frontal else None,
        cut_off=_list_cut_off_parts(technique),
    )


def _make_beams(
    habitus: Habitus, technique: Technique, size: int, generator: np.random.Generator
) -> tuple[Beam, Beam | None]:
    """The beam, and where a side is cut off, the same beam with a margin that includes it."""
    jitter = generator.normal(0, 0.4, 3)
    centre = np.array([jitter[0], jitter[1], CENTRE_HEIGHT * habitus.scale + jitter[2]])
    field = FIELD[technique.view] * habitus.width * float(np.clip(generator.normal(1.0, 0.03), 0.94, 1.08))
    tilt = generator.normal(0, 0.8)
    if technique.cut_off:
        away = 1.0 if technique.cut_off == "right" else -1.0
        centre[0] += away * CUT_OFF_SHIFT * habitus.width
    margin = size // 2 if technique.cut_off else 0
    beams = [
        make_beam(
            technique.view,
            size=size,
            field_cm=field,
            centre=centre,
            half_depth=habitus.depth + 4.0,
            half_width=habitus.width + 5.0,
            turn_degrees=technique.rotation_degrees,
            tilt_degrees=tilt,
            margin=m,
        )
        for m in ((0, margin) if margin else (0,))
    ]
    return beams[0], beams[1] if margin else None


def _merge_lungs(regions: dict[str, Mask], beam: Beam) -> Mask:
    lungs = np.zeros((beam.rows, beam.cols), bool)
    for side in ("right lung", "left lung"):
        if side in regions:
            lungs |= regions[side]
    return lungs


def _make_mask(
    lesion: LesionPlan, shadow: Shadow | None, regions: dict[str, Mask], beam: Beam, *, frontal: bool
) -> Mask:
    empty = np.zeros((beam.rows, beam.cols), bool)
    if shadow is None:
        return regions.get("heart", empty)
    whole = shadow.make_mask()
    if not shadow.in_lung_field:
        return _remove_fragments(whole)
    sides = ("right", "left") if lesion.side == "bilateral" or not frontal else (lesion.side,)
    field = empty
    for side in sides:
        field = field | regions.get(f"{side} lung", empty)
    displayed = whole & field
    # A lesion entirely behind the heart or below the dome has nothing in the lung field: keep its whole mask.
    return _remove_fragments(displayed if displayed.any() else whole)


def _remove_fragments(mask: Mask) -> Mask:
    window = anatomy.find_bounding_window(mask)
    inner = np.ascontiguousarray(mask[window]).view(np.uint8)
    count, labels, stats, _ = cv2.connectedComponentsWithStats(inner, connectivity=8, ltype=cv2.CV_16U)
    areas = stats[1:, cv2.CC_STAT_AREA]
    small = [k for k in range(1, count) if areas[k - 1] < min(LARGEST_FRAGMENT * mask.size, areas.max())]
    if small:
        mask[window] &= ~np.isin(labels, small)
    return mask


def _measure_contrast(exposure: Exposure, mask: Mask, added: Field, own: Field) -> float:
    """Change of the mean grey level inside the mask against the same image without the lesion."""
    if not mask.any():
        return 0.0
    window = anatomy.find_bounding_window(mask)
    inside = mask[window]
    with_it = exposure.render_noiseless(window, added[window])
    without = exposure.render_noiseless(window, added[window] - own[window])
    return abs(float(with_it[inside].mean()) - float(without[inside].mean()))


def _find_surround(mask: Mask) -> tuple[Window, Mask]:
    """The surround of a mask, a fortieth of the image wide, and a window that contains both."""
    reach = max(mask.shape[0] // 40, 4)
    window = anatomy.find_bounding_window(mask, margin=2 * reach)
    inside = mask[window]
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * reach + 1, 2 * reach + 1))
    return window, (cv2.dilate(inside.astype(np.uint8), kernel) > 0) & ~inside


def _measure_edge_contrast(displayed: Field, mask: Mask) -> float:
    """Mean grey level of a mask against its surround, for anatomy that cannot be left out of the image."""
    window, ring = _find_surround(mask)
    if not ring.any() or not mask.any():
        return 0.0
    return abs(float(displayed[mask].mean()) - float(displayed[window][ring].mean()))


def _measure_noise(displayed: Field, mask: Mask) -> float:
    """Standard deviation of the grey levels around a lesion: noise and anatomy, which both hide it."""
    window, ring = _find_surround(mask)
    return max(float(displayed[window][ring].std()), 1e-3) if ring.any() else 1.0


def _project_device(geometry: DeviceGeometry, beam: Beam) -> VisibleDevice:
    mask, tip = geometry.compute_thickness(beam) > 0.02, None
    if geometry.tip is not None:
        u, v, _ = beam.project(geometry.tip)
        # Pixel centres are at whole numbers here, at halves in regions.
        x, y = round(float(u[0]) + 0.5, 1), round(float(v[0]) + 0.5, 1)
        if 0 <= x < beam.cols and 0 <= y < beam.rows:
            tip = x, y
            mask[int(y), int(x)] = True  # the end of a thin line may cover too little of its pixel
    return VisibleDevice(mask, geometry, tip)


def _count_posterior_ribs(body: Thorax, beam: Beam, *, regions: dict[str, Mask]) -> int | None:
    """Count the right posterior ribs that cross the mid-clavicular line above the dome, as a reader does."""
    lung = regions.get("right lung")
    if lung is None:
        return None
    clavicle = body.skeleton.clavicles[0].points
    middle = clavicle[len(clavicle) // 2]
    count = 0
    for curve in body.skeleton.ribs[0].points:
        back = curve[: len(curve) // 2]
        near = back[int(np.argmin(np.abs(back[:, 0] - middle[0])))]
        u, v, _ = beam.project(near)
        column, row = round(float(u[0])), round(float(v[0]))
        if not 0 <= column < beam.cols:
            return None
        rows = np.flatnonzero(lung[:, column])
        count += bool(len(rows) and row <= rows[-1])
    return count


def _list_cut_off_parts(technique: Technique) -> tuple[str, ...]:
    return (f"{technique.cut_off} costophrenic angle",) if technique.cut_off else ()


__all__ = ["Radiograph", "VisibleDevice", "VisibleLesion", "take_radiograph"]
