"""From attenuation to grey levels: scatter, blur, noise, display curve, collimation, marker and bit depth.

Scatter and display window are computed from the patient without lesions, so a lesion changes only the pixels it covers
and their blur; without the lesion, the rest of the image is identical.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from carina.phantom.beam import Field, Window
from carina.studies.vocabulary import View

# Size in pixels at which smooth quantities (scatter, local density) are computed.
COARSE = 96
# Normal deviates by their rank among 65,536: a look-up is four times as fast as sampling.
_NORMAL = ndtri((np.arange(2**16) + 0.5) / 2**16).astype(np.float32)
# Standard deviation of the read-out noise, as a share of the unattenuated signal.
ELECTRONIC = np.float32(4e-4)
# Least signal, which reaches the detector even behind metal, in the same unit.
FLOOR = np.float32(0.0015)


@dataclass(frozen=True)
class Detector:
    """Exposure and display settings of one image."""

    scatter_share: float
    """Scatter as a share of the primary signal, where the patient has mean thickness."""
    scatter_width: float
    """Standard deviation of the scatter kernel, as a share of the field."""
    counts: float
    """Photons per square millimetre without attenuation, in units of 1000; decides the noise."""
    blur_mm: float
    exposure: float
    """Stops from the ideal exposure; shifts the display window."""
    lung_level: float
    """Grey level of lung, 0-1."""
    dense_level: float
    """Grey level of the densest tenth of the patient, 0-1."""
    detail: float
    """Gain of detail over local density, as in the image processing of every vendor."""


def sample_detector(generator: np.random.Generator, *, view: View, exposure: float) -> Detector:
    """Sample the settings of one exposure; a portable unit has no grid and therefore more scatter."""
    portable = view == "AP"
    lung_level = {"PA": 0.42, "AP": 0.45, "lateral": 0.44}[view]
    return Detector(
        scatter_share=generator.uniform(0.5, 0.7) if portable else generator.uniform(0.25, 0.45),
        scatter_width=generator.uniform(0.08, 0.14),
        counts=generator.uniform(40.0, 90.0) * 2.0 ** (0.7 * exposure),
        blur_mm=generator.uniform(0.18, 0.35),
        exposure=exposure,
        lung_level=float(np.clip(generator.normal(lung_level, 0.04), 0.22, 0.5)),
        dense_level=float(np.clip(generator.normal(0.78 if not portable else 0.73, 0.04), 0.64, 0.90)),
        detail=generator.uniform(1.5, 2.2),
    )


@dataclass(frozen=True)
class Exposure:
    """The part of an exposure that does not depend on lesions and devices."""

    detector: Detector
    pixel_cm: float
    baseline: Field
    """Attenuation of the patient without lesions and devices."""
    scatter: Field
    local: Field
    """Smooth density over which detail is enhanced."""
    slope: float
    middle: float
    """Slope and middle of the sigmoid that maps density to grey levels."""

    def render_image(self, added: Field, noise: np.random.Generator) -> Field:
        """Render the image, 0 (black) to 1 (white), with the attenuation `added` by lesions and devices."""
        signal = self._compute_signal(np.s_[:, :], added)
        photons = np.float32(self.detector.counts * 1000 * (10 * self.pixel_cm) ** 2)
        grain = signal * (1 / photons)
        grain += ELECTRONIC**2
        np.sqrt(grain, out=grain)
        grain *= _NORMAL[noise.integers(0, len(_NORMAL), signal.shape, dtype=np.uint16)]
        signal += grain
        sigma = max(self.detector.blur_mm / (10 * self.pixel_cm), 0.35)
        return self._apply_display_curve(
            np.s_[:, :], np.asarray(cv2.GaussianBlur(signal, (0, 0), sigma), np.float32)
        )

    def render_noiseless(self, window: Window, added: Field) -> Field:
        """Render a window of the image without noise and blur."""
        return self._apply_display_curve(window, self._compute_signal(window, added))

    def _compute_signal(self, window: Window, added: Field) -> Field:
        signal = np.add(self.baseline[window], added)
        np.negative(signal, out=signal)
        np.exp(signal, out=signal)
        signal += self.scatter[window]
        return signal

    def _apply_display_curve(self, window: Window, signal: Field) -> Field:
        """Convert signal to grey levels, in place."""
        np.maximum(signal, np.float32(1e-4), out=signal)
        density = np.negative(np.log(signal, out=signal), out=signal)
        density -= self.local[window]
        density *= np.float32(self.detector.detail)
        density += self.local[window]
        density -= np.float32(self.middle)
        density *= np.float32(-self.slope)
        np.exp(density, out=density)
        density += 1
        return np.reciprocal(density, out=density)


def expose(
    baseline: Field, *, lungs: NDArray[np.bool_], body: NDArray[np.bool_], pixel_cm: float, detector: Detector
) -> Exposure:
    """Expose a patient; the display window is fitted to the masks of lungs and body."""
    primary = np.exp(-baseline)
    scatter = _compute_scatter(primary, detector)
    primary += scatter
    local = _compute_local_density(primary)
    slope, middle = _fit_display_window(local, lungs, body, detector)
    smooth = cv2.resize(local, (baseline.shape[1], baseline.shape[0]), interpolation=cv2.INTER_LINEAR)
    return Exposure(detector, pixel_cm, baseline, scatter, np.asarray(smooth, np.float32), slope, middle)


def _compute_scatter(primary: Field, detector: Detector) -> Field:
    size = (primary.shape[1], primary.shape[0])
    coarse = cv2.resize(primary, (COARSE, COARSE), interpolation=cv2.INTER_AREA)
    # Rays beside the patient cause no scatter: limit them, or air would add a haze to the whole image.
    coarse = np.minimum(coarse, np.float32(0.25))
    spread = cv2.GaussianBlur(
        coarse, (0, 0), detector.scatter_width * COARSE, borderType=cv2.BORDER_REPLICATE
    )
    spread = np.float32(detector.scatter_share) * spread + FLOOR
    return np.asarray(cv2.resize(spread, size, interpolation=cv2.INTER_LINEAR), np.float32)


def _compute_local_density(primary: Field) -> Field:
    """The patient's smoothed density, over which detail is enhanced."""
    coarse = -np.log(cv2.resize(primary, (COARSE, COARSE), interpolation=cv2.INTER_AREA))
    return np.asarray(
        cv2.GaussianBlur(coarse, (0, 0), 0.045 * COARSE, borderType=cv2.BORDER_REPLICATE), np.float32
    )


def _fit_display_window(
    local: Field, lungs: NDArray[np.bool_], body: NDArray[np.bool_], detector: Detector
) -> tuple[float, float]:
    """Slope and middle of the sigmoid that maps lung and the densest tenth of the patient to their grey levels."""
    lung_density = _compute_percentile(local, lungs, 50, otherwise=1.8)
    dense_density = _compute_percentile(local, body, 90, otherwise=lung_density + 1.6)
    low, high = (float(np.log(level / (1 - level))) for level in (detector.lung_level, detector.dense_level))
    slope = (high - low) / max(dense_density - lung_density, 1.7)
    return slope, lung_density - low / slope + 0.35 * detector.exposure


def _compute_percentile(local: Field, mask: NDArray[np.bool_], share: float, *, otherwise: float) -> float:
    coarse = cv2.resize(mask.view(np.uint8), (COARSE, COARSE), interpolation=cv2.INTER_NEAREST) > 0
    return float(np.percentile(local[coarse], share)) if coarse.any() else otherwise


def add_marker(image: Field, view: View, generator: np.random.Generator) -> None:
    """Draw a lead letter in an upper corner, on the side it names, in place."""
    size = image.shape[0]
    left = bool(generator.random() < 0.75)  # most departments mark the left
    letter = "L" if left or view == "lateral" else "R"
    scale = size / 512 * generator.uniform(0.45, 0.8)
    across = generator.uniform(0.03, 0.09) if letter == "R" else generator.uniform(0.88, 0.94)
    x, y = int(across * size), int(generator.uniform(0.06, 0.14) * size)
    thick = max(round(1.6 * scale), 1)
    layer = np.zeros(image.shape, np.uint8)
    cv2.putText(layer, letter, (x, y), cv2.FONT_HERSHEY_SIMPLEX, scale, 255, thick, cv2.LINE_AA)
    if view == "AP" and generator.random() < 0.5:
        cv2.putText(
            layer,
            "AP",
            (x - size // 60, y + size // 18),
            cv2.FONT_HERSHEY_SIMPLEX,
            0.7 * scale,
            255,
            thick,
            cv2.LINE_AA,
        )
    np.maximum(image, layer * np.float32(generator.uniform(0.85, 1.0) / 255), out=image)


def add_collimation(image: Field, generator: np.random.Generator) -> None:
    """Darken the edges that collimator blades cover, in some images, in place."""
    size = image.shape[0]
    widths = generator.uniform(0.004, 0.025, 4) * (generator.random(4) < 0.25)
    top, bottom, left, right = (int(w * size) for w in widths)
    for blade in (np.s_[:top], np.s_[size - bottom :], np.s_[:, :left], np.s_[:, size - right :]):
        image[blade] *= np.float32(0.03)


def quantise(image: Field, *, bits: int, monochrome1: bool) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Convert grey levels to stored values: 8 bits in one byte, 12 bits in two."""
    grey = 1.0 - image if monochrome1 else image
    top = 2**bits - 1
    stored = np.rint(np.clip(grey, 0.0, 1.0) * np.float32(top))
    return np.asarray(stored, np.uint8) if bits == 8 else np.asarray(stored, np.uint16)
