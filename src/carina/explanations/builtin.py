"""Built-in explainers, which need neither torch nor weights.

`builtin/untrained` has the structure of a CLIP-style model (patches, a joint space, a cosine) with random weights: its
maps show what a method gives without a trained model. `builtin/asymmetry` is classical image processing: it compares
the two sides of the chest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.explanations.explainer import MapResult, Probe
from carina.models.frame import Frame, Map
from carina.store.seeding import rng

_SIDE: Final = 224
_PATCH: Final = 16
_GRID: Final = _SIDE // _PATCH
_WIDTH: Final = 64
_DARK: Final = frozenset({"pneumothorax", "emphysema"})
"""Findings that are darker than the surrounding tissue."""
_BLUR: Final = 8.0
"""Standard deviation of the Gaussian that smooths an image before its sides are compared, in pixels of the square."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Untrained:
    """Embeds patches by two random layers and averages them; each text is a random direction."""

    method: Literal["similarity", "occlusion"]
    seed: int = 0

    @property
    def name(self) -> str:
        return "builtin/untrained"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"seed": self.seed, "side": _SIDE, "patch": _PATCH, "width": _WIDTH}

    def explain(self, probes: Sequence[Probe]) -> list[MapResult]:
        results = []
        for probe in probes:
            frame = Frame.stretched(*probe.image.shape, side=_SIDE)
            patches = _patches(probe.image)
            positive, negative = probe.phrase, f"no {probe.phrase}"
            text = self._embed_text(positive)
            maps = {"similarity": self._similarity, "occlusion": self._occlusion}
            results.append(
                MapResult(
                    values=maps[self.method](patches, text).reshape(_GRID, _GRID),
                    frame=frame,
                    positive=(positive,),
                    negative=(negative,),
                    score=_cosine(self._embed(patches).mean(axis=0), text),
                    against=_cosine(self._embed(patches).mean(axis=0), self._embed_text(negative)),
                )
            )
        return results

    def _similarity(self, patches: Floats, text: Floats) -> Floats:
        """Cosine of each patch with the text."""
        embedded = self._embed(patches)
        lengths = np.linalg.norm(embedded, axis=1) + 1e-12
        return np.asarray(_product(embedded, text) / lengths, np.float32)

    def _occlusion(self, patches: Floats, text: Floats) -> Floats:
        """Fall of the score when a patch is replaced by a uniform one."""
        embedded, flat = self._embed(patches), self._embed(np.zeros_like(patches[:1]))
        whole = embedded.mean(axis=0)
        without = whole + (flat - embedded) / len(embedded)
        scores = _product(without, text) / (np.linalg.norm(without, axis=1) + 1e-12)
        return np.asarray(_cosine(whole, text) - scores, np.float32)

    def _embed(self, patches: Floats) -> Floats:
        first, second = self._weights
        return _product(np.maximum(_product(patches, first), 0), second)

    @cached_property
    def _weights(self) -> tuple[Floats, Floats]:
        generator = rng(self.seed, "untrained")
        shapes = (_PATCH**2, _WIDTH), (_WIDTH, _WIDTH)
        first, second = (
            generator.standard_normal(shape, np.float32) / np.float32(shape[0] ** 0.5) for shape in shapes
        )
        return first, second

    def _embed_text(self, text: str) -> Floats:
        vector = rng(self.seed, "untrained", text).standard_normal(_WIDTH, np.float32)
        return np.asarray(vector / np.linalg.norm(vector), np.float32)


def _product(rows: Floats, factor: Floats) -> Floats:
    """A matrix times a matrix or a vector, summed in a fixed order: that of BLAS depends on the number of threads."""
    return np.asarray(np.einsum("ij,j...->i...", rows, factor, optimize=False), np.float32)


def _cosine(vector: Floats, unit: Floats) -> float:
    return float(vector @ unit / (np.linalg.norm(vector) + 1e-12))


def _patches(image: NDArray[np.uint8]) -> Floats:
    """Rows of 16 x 16 pixels, patch by patch, normalised over the image."""
    square = cv2.resize(image, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    square = (square - square.mean()) / (square.std() + 1e-6)
    cells = square.reshape(_GRID, _PATCH, _GRID, _PATCH).swapaxes(1, 2)
    return np.ascontiguousarray(cells.reshape(_GRID**2, _PATCH**2))


@dataclass(frozen=True)
class Asymmetry:
    """Brightness of each cell minus that of its mirror image; the reverse for dark findings."""

    @property
    def name(self) -> str:
        return "builtin/asymmetry"

    @property
    def method(self) -> str:
        return "asymmetry"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"side": _SIDE, "blur": _BLUR, "cell": _PATCH // 2}

    def explain(self, probes: Sequence[Probe]) -> list[MapResult]:
        results = []
        for probe in probes:
            values = _asymmetry(probe.image, darker=probe.target in _DARK)
            frame = Frame.stretched(*probe.image.shape, side=_SIDE)
            results.append(
                MapResult(values=values, frame=frame, positive=(probe.target,), score=float(values.max()))
            )
        return results


def _asymmetry(image: NDArray[np.uint8], *, darker: bool) -> Map:
    square = cv2.resize(image, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    smooth = cv2.GaussianBlur(square, (0, 0), _BLUR)
    difference = smooth - smooth[:, ::-1]
    asymmetry = np.maximum(-difference if darker else difference, 0) / (smooth.std() + 1e-6)
    cells = _SIDE * 2 // _PATCH
    return np.asarray(cv2.resize(asymmetry, (cells, cells), interpolation=cv2.INTER_AREA), np.float32)
