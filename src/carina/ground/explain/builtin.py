"""Explainers that need nothing but numpy, so that everything can be tried without torch and without weights.

`builtin/untrained` is put together as CLIP-style models are, of patches, a joint space and a cosine, with weights drawn
by chance: what a method shows of it is what the method shows of nothing. `builtin/asymmetry` is a plain image reader
that looks for what one side of the chest has and the other has not.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.ground.explain.explainer import Asked, Shown
from carina.models.frame import Frame, Map
from carina.seeding import rng

_SIDE: Final = 224
_PATCH: Final = 16
_GRID: Final = _SIDE // _PATCH
_WIDTH: Final = 64
_DARK: Final = frozenset({"pneumothorax", "emphysema"})
"""Findings that are darker than what is beside them."""
_BLUR: Final = 8.0
"""Width of the Gaussian by which an image is smoothed before its sides are compared, in pixels of the square."""

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Untrained:
    """Patches through two random layers, pooled by their mean; a text is a random direction of its own."""

    method: Literal["similarity", "occlusion"]
    seed: int = 0

    @property
    def name(self) -> str:
        return "builtin/untrained"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"seed": self.seed, "side": _SIDE, "patch": _PATCH, "width": _WIDTH}

    def explain(self, asked: Sequence[Asked]) -> list[Shown]:
        shown = []
        for one in asked:
            frame = Frame.stretched(*one.image.shape, side=_SIDE)
            patches = _patches(one.image)
            positive, negative = one.phrase, f"no {one.phrase}"
            text = self._text(positive)
            maps = {"similarity": self._similarity, "occlusion": self._occlusion}
            shown.append(
                Shown(
                    values=maps[self.method](patches, text).reshape(_GRID, _GRID),
                    frame=frame,
                    positive=(positive,),
                    negative=(negative,),
                    score=_cosine(self._embedded(patches).mean(axis=0), text),
                    against=_cosine(self._embedded(patches).mean(axis=0), self._text(negative)),
                )
            )
        return shown

    def _similarity(self, patches: Floats, text: Floats) -> Floats:
        """Of each patch alone."""
        embedded = self._embedded(patches)
        lengths = np.linalg.norm(embedded, axis=1) + 1e-12
        return np.asarray(_product(embedded, text) / lengths, np.float32)

    def _occlusion(self, patches: Floats, text: Floats) -> Floats:
        """By how much the score falls when a patch is replaced by a flat one."""
        embedded, flat = self._embedded(patches), self._embedded(np.zeros_like(patches[:1]))
        whole = embedded.mean(axis=0)
        without = whole + (flat - embedded) / len(embedded)
        scores = _product(without, text) / (np.linalg.norm(without, axis=1) + 1e-12)
        return np.asarray(_cosine(whole, text) - scores, np.float32)

    def _embedded(self, patches: Floats) -> Floats:
        first, second = self._weights
        return _product(np.maximum(_product(patches, first), 0), second)

    @cached_property
    def _weights(self) -> tuple[Floats, Floats]:
        chance = rng(self.seed, "untrained")
        shapes = (_PATCH**2, _WIDTH), (_WIDTH, _WIDTH)
        first, second = (
            chance.standard_normal(shape, np.float32) / np.float32(shape[0] ** 0.5) for shape in shapes
        )
        return first, second

    def _text(self, words: str) -> Floats:
        drawn = rng(self.seed, "untrained", words).standard_normal(_WIDTH, np.float32)
        return np.asarray(drawn / np.linalg.norm(drawn), np.float32)


def _product(rows: Floats, by: Floats) -> Floats:
    """A matrix times a matrix or a vector, with sums in one order: those of BLAS depend on the number of threads."""
    return np.asarray(np.einsum("ij,j...->i...", rows, by, optimize=False), np.float32)


def _cosine(one: Floats, unit: Floats) -> float:
    return float(one @ unit / (np.linalg.norm(one) + 1e-12))


def _patches(image: NDArray[np.uint8]) -> Floats:
    """Rows of 16 x 16 pixels, patch by patch, normalised over the image."""
    square = cv2.resize(image, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    square = (square - square.mean()) / (square.std() + 1e-6)
    cells = square.reshape(_GRID, _PATCH, _GRID, _PATCH).swapaxes(1, 2)
    return np.ascontiguousarray(cells.reshape(_GRID**2, _PATCH**2))


@dataclass(frozen=True)
class Asymmetry:
    """How much brighter a place is than its mirror image; darker for findings that are."""

    @property
    def name(self) -> str:
        return "builtin/asymmetry"

    @property
    def method(self) -> str:
        return "asymmetry"

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"side": _SIDE, "blur": _BLUR, "cell": _PATCH // 2}

    def explain(self, asked: Sequence[Asked]) -> list[Shown]:
        shown = []
        for one in asked:
            values = _asymmetry(one.image, darker=one.target in _DARK)
            frame = Frame.stretched(*one.image.shape, side=_SIDE)
            shown.append(Shown(values=values, frame=frame, positive=(one.target,), score=float(values.max())))
        return shown


def _asymmetry(image: NDArray[np.uint8], *, darker: bool) -> Map:
    square = cv2.resize(image, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA).astype(np.float32)
    smooth = cv2.GaussianBlur(square, (0, 0), _BLUR)
    difference = smooth - smooth[:, ::-1]
    seen = np.maximum(-difference if darker else difference, 0) / (smooth.std() + 1e-6)
    cells = _SIDE * 2 // _PATCH
    return np.asarray(cv2.resize(seen, (cells, cells), interpolation=cv2.INTER_AREA), np.float32)
