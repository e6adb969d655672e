"""What a technologist and a workstation add to a picture: laterality marker, collimation, bit depth."""

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.phantom.beam import Field
from carina.studies.vocabulary import View


def mark(picture: Field, view: View, generator: np.random.Generator) -> None:
    """A lead letter in an upper corner, on the side it names; painted in place."""
    size = picture.shape[0]
    left = bool(generator.random() < 0.75)  # most departments mark the left
    letter = "L" if left or view == "lateral" else "R"
    scale = size / 512 * generator.uniform(0.45, 0.8)
    across = generator.uniform(0.03, 0.09) if letter == "R" else generator.uniform(0.88, 0.94)
    x, y = int(across * size), int(generator.uniform(0.06, 0.14) * size)
    thick = max(round(1.6 * scale), 1)
    layer = np.zeros(picture.shape, np.uint8)
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
    np.maximum(picture, layer * np.float32(generator.uniform(0.85, 1.0) / 255), out=picture)


def collimate(picture: Field, generator: np.random.Generator) -> None:
    """Black (or nearly) edges where the collimator's blades stood, in some images."""
    size = picture.shape[0]
    widths = generator.uniform(0.004, 0.025, 4) * (generator.random(4) < 0.25)
    top, bottom, left, right = (int(w * size) for w in widths)
    for blade in (np.s_[:top], np.s_[size - bottom :], np.s_[:, :left], np.s_[:, size - right :]):
        picture[blade] *= np.float32(0.03)


def digitised(picture: Field, *, bits: int, monochrome1: bool) -> NDArray[np.uint8] | NDArray[np.uint16]:
    """Stored values: 8 bits in a byte, 12 bits in two."""
    shown = 1.0 - picture if monochrome1 else picture
    top = 2**bits - 1
    stored = np.rint(np.clip(shown, 0.0, 1.0) * np.float32(top))
    return np.asarray(stored, np.uint8) if bits == 8 else np.asarray(stored, np.uint16)
