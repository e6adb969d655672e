"""Pictures as they are sent: rendered and encoded once a case, downscaled or replaced by a grey card where asked."""

import threading
from collections import OrderedDict
from typing import Final

import cv2
import numpy as np

from carina.cases import Benchmark, Case, Views
from carina.draw import PngEncoder
from carina.errors import CarinaError

_GREY: Final = 128
_CASES: Final = 256
"""Cases whose pictures are kept: more than are on the way at any time."""


class CasePictures:
    """PNG bytes by case and view. Threads may share it."""

    def __init__(
        self, benchmark: Benchmark, *, max_side: int | None = None, blind: bool = False, cases: int = _CASES
    ) -> None:
        if max_side is not None and max_side < 16:
            raise CarinaError(f"--max-side {max_side}: a picture needs 16 pixels at least")
        self._views = Views(benchmark)
        self._max_side = max_side
        self._blind = blind
        self._most = cases
        self._cases: OrderedDict[str, tuple[Case, dict[str, bytes]]] = OrderedDict()
        self._lock = threading.Lock()
        self._encoder = PngEncoder()

    def add(self, case: Case) -> None:
        """Make the pictures of a case known; those of the case that was added first are forgotten in time."""
        with self._lock:
            self._cases.setdefault(case.id, (case, {}))
            self._cases.move_to_end(case.id)
            while len(self._cases) > self._most:
                self._cases.popitem(last=False)

    def __call__(self, case_id: str, view_id: str) -> bytes:
        with self._lock:
            case, made = self._cases[case_id]
        if view_id not in made:
            made[view_id] = self._png(case, view_id)
        return made[view_id]

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
