"""From attenuation to a picture: scatter, blur, noise, and the display curve of a digital radiography system.

Scatter and display window follow the patient without lesions, so that a lesion changes only the pixels it covers
(and their blur): switching one off leaves the rest of the picture identical.
"""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from carina.phantom.beam import Field, Window
from carina.studies.vocabulary import View

# Working size of what is smooth by nature (scatter, local brightness); finer than any of it.
COARSE = 96
# Normal deviates by their rank among 65,536: looked up four times as fast as they are drawn.
_NORMAL = ndtri((np.arange(2**16) + 0.5) / 2**16).astype(np.float32)
# Noise of the read-out, as a share of the unattenuated signal.
ELECTRONIC = np.float32(4e-4)
# What reaches the detector even behind metal, in the same unit.
FLOOR = np.float32(0.0015)


@dataclass(frozen=True)
class Detector:
    """How one image is exposed and shown."""

    scatter_share: float
    """Scatter against primary where the patient is of mean thickness."""
    scatter_width: float
    """Standard deviation of the scatter's spread, share of the field."""
    counts: float
    """Photons per square millimetre behind nothing, in units of 1000: sets the noise."""
    blur_mm: float
    exposure: float
    """Stops from ideal: shifts the display window."""
    lung_level: float
    """Share of the grey range at which lung is shown."""
    dense_level: float
    """Share of the grey range at which the densest tenth of the patient is shown."""
    detail: float
    """Gain of detail over local brightness, as in every vendor's processing."""


def sample_detector(generator: np.random.Generator, *, view: View, exposure: float) -> Detector:
    """The settings of one exposure; a portable unit has no grid, so more scatter."""
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
    """All of one exposure that the patient without lesions decides."""

    detector: Detector
    pixel_cm: float
    baseline: Field
    """Attenuation."""
    scatter: Field
    local: Field
    """Smooth density over which detail is enhanced."""
    slope: float
    middle: float
    """Of the sigmoid that turns density into grey."""

    def render_image(self, added: Field, noise: np.random.Generator) -> Field:
        """The displayed image, 0 (black) to 1 (white), with what lesions and devices add to the attenuation."""
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
        """What a perfect detector would show in a window."""
        return self._apply_display_curve(window, self._compute_signal(window, added))

    def _compute_signal(self, window: Window, added: Field) -> Field:
        signal = np.add(self.baseline[window], added)
        np.negative(signal, out=signal)
        np.exp(signal, out=signal)
        signal += self.scatter[window]
        return signal

    def _apply_display_curve(self, window: Window, signal: Field) -> Field:
        """From signal to grey, in place."""
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
    """Expose a patient; the automatic display window goes by the masks of lung and body."""
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
    # Rays outside the patient make no scatter in the patient: bound them, or bare air would fog the picture.
    coarse = np.minimum(coarse, np.float32(0.25))
    spread = cv2.GaussianBlur(
        coarse, (0, 0), detector.scatter_width * COARSE, borderType=cv2.BORDER_REPLICATE
    )
    spread = np.float32(detector.scatter_share) * spread + FLOOR
    return np.asarray(cv2.resize(spread, size, interpolation=cv2.INTER_LINEAR), np.float32)


def _compute_local_density(primary: Field) -> Field:
    """Coarse picture of the patient's density, over which detail is enhanced."""
    coarse = -np.log(cv2.resize(primary, (COARSE, COARSE), interpolation=cv2.INTER_AREA))
    return np.asarray(
        cv2.GaussianBlur(coarse, (0, 0), 0.045 * COARSE, borderType=cv2.BORDER_REPLICATE), np.float32
    )


def _fit_display_window(
    local: Field, lungs: NDArray[np.bool_], body: NDArray[np.bool_], detector: Detector
) -> tuple[float, float]:
    """Slope and middle of a sigmoid that puts the patient's lung and densest tenth at the wanted grey levels."""
    lung_density = _percentile(local, lungs, 50, otherwise=1.8)
    dense_density = _percentile(local, body, 90, otherwise=lung_density + 1.6)
    low, high = (float(np.log(level / (1 - level))) for level in (detector.lung_level, detector.dense_level))
    slope = (high - low) / max(dense_density - lung_density, 1.7)
    return slope, lung_density - low / slope + 0.35 * detector.exposure


def _percentile(local: Field, mask: NDArray[np.bool_], share: float, *, otherwise: float) -> float:
    coarse = cv2.resize(mask.view(np.uint8), (COARSE, COARSE), interpolation=cv2.INTER_NEAREST) > 0
    return float(np.percentile(local[coarse], share)) if coarse.any() else otherwise
