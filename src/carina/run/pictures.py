"""Pictures as they are sent: rendered and encoded once a case, downscaled or replaced by a grey card where asked."""

import base64
from collections.abc import Iterable
from typing import Final

import cv2
import numpy as np

from carina.cases import Benchmark, Case, Views
from carina.draw import PngEncoder
from carina.errors import CarinaError

_GREY: Final = 128


class CasePictures:
    """PNG bytes by case and view. Threads may share it."""

    def __init__(self, benchmark: Benchmark, *, max_side: int | None = None, blind: bool = False) -> None:
        if max_side is not None and max_side < 16:
            raise CarinaError(f"--max-side {max_side}: a picture needs 16 pixels at least")
        self._views = Views(benchmark)
        self._max_side = max_side
        self._blind = blind
        self._cases: dict[str, tuple[Case, dict[str, bytes]]] = {}
        self._encoder = PngEncoder()

    def add(self, case: Case) -> None:
        """A case whose pictures may be asked for from now on."""
        self._cases[case.id] = (case, {})

    def drop(self, case: Case) -> None:
        """A case that has ended: its pictures are forgotten."""
        self._cases.pop(case.id, None)

    def __call__(self, case_id: str, view_id: str) -> bytes:
        case, made = self._cases[case_id]
        if view_id not in made:
            made[view_id] = self._png(case, view_id)
        return made[view_id]

    def data_uris(self, case: Case, views: Iterable[str]) -> dict[str, str]:
        """Views as data URIs, for a conversation that keeps what it has shown; nothing is kept here."""
        return {
            view: f"data:image/png;base64,{base64.b64encode(self._png(case, view)).decode()}"
            for view in views
        }

    def _png(self, case: Case, view_id: str) -> bytes:
        if self._max_side is None and not self._blind:
            return self._views.png(case, view_id)
        picture = self._views.array(case, view_id)
        if self._blind:
            # The same size, so that nothing else is missing.
            picture = np.full_like(picture[..., 0], _GREY)
        height, width = picture.shape[:2]
        if self._max_side is not None and max(height, width) > self._max_side:
            factor = self._max_side / max(height, width)
            size = (max(1, round(width * factor)), max(1, round(height * factor)))
            picture = np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
        return self._encoder.encode(picture)
