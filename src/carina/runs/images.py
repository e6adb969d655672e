"""Rendered images of cases as they are sent: encoded once per case, downscaled or replaced by grey if so configured."""

import base64
from collections.abc import Iterable
from typing import Final

import cv2
import numpy as np

from carina.cases import Benchmark, Case, Views
from carina.cases.draw import PngEncoder
from carina.store.errors import CarinaError

_GREY: Final = 128
EXAMPLE: Final = "example:"
"""Before the id of a case that is shown as an example: the two benchmarks may use one id for different cases."""


def data_uri(png: bytes) -> str:
    """A PNG as a data URI."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


class CaseImages:
    """PNG bytes by case and view. Threads may share it."""

    def __init__(self, benchmark: Benchmark, *, max_side: int | None = None, blind: bool = False) -> None:
        if max_side is not None and max_side < 16:
            raise CarinaError(f"max_side {max_side}: expected 16 pixels or more")
        self._views = Views(benchmark)
        self._max_side = max_side
        self._blind = blind
        self._cases: dict[str, tuple[Case, dict[str, bytes]]] = {}
        self._encoder = PngEncoder()
        self._examples: CaseImages | None = None

    def add(self, case: Case) -> None:
        """Add a case whose images will be needed."""
        self._cases[case.id] = (case, {})

    def drop(self, case: Case) -> None:
        """Forget the images of a case that has ended."""
        self._cases.pop(case.id, None)

    def show_examples(self, images: "CaseImages") -> None:
        """Give the images of examples too, by ids that begin with `EXAMPLE`."""
        self._examples = images

    def __call__(self, case_id: str, view_id: str) -> bytes:
        if self._examples is not None and case_id.startswith(EXAMPLE):
            return self._examples(case_id.removeprefix(EXAMPLE), view_id)
        case, encoded = self._cases[case_id]
        if view_id not in encoded:
            encoded[view_id] = self._png(case, view_id)
        return encoded[view_id]

    def data_uris(self, case: Case, views: Iterable[str]) -> dict[str, str]:
        """Views as data URIs, for a conversation that keeps its own images; nothing is cached here."""
        return {view: data_uri(self._png(case, view)) for view in views}

    def _png(self, case: Case, view_id: str) -> bytes:
        if self._max_side is None and not self._blind:
            return self._views.png(case, view_id)
        image = self._views.array(case, view_id)
        if self._blind:
            # The same size, so that nothing else is missing.
            image = np.full_like(image[..., 0], _GREY)
        height, width = image.shape[:2]
        if self._max_side is not None and max(height, width) > self._max_side:
            factor = self._max_side / max(height, width)
            size = (max(1, round(width * factor)), max(1, round(height * factor)))
            image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
        return self._encoder.encode(image)
