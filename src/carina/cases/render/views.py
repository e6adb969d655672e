"""Rendered images of a benchmark's views, drawn on demand and cached on disk where a cache is given.

A cached image is named by the hash of everything that determines its pixels, so that it never becomes stale, and
several processes may share a cache: each image is written completely or not at all.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from carina.cases.draw import PngEncoder, Rgb, is_complete, to_rgb
from carina.cases.model import Case, CaseImage
from carina.cases.render.drawing import draw_plan
from carina.cases.render.plan import Plan, fingerprint, plan_view
from carina.store.errors import BenchmarkError, CarinaError
from carina.store.files import sha256, write_bytes

_IMAGES: Final = 4
"""Decoded images to remember: about those of one case."""
_DIGESTS: Final = 1024
_WRITING: Final = threading.Lock()
"""Threads of one process would write the same image under the same temporary name."""


class ImageSource(Protocol):
    """What rendering needs of a benchmark."""

    def pixels(self, image: CaseImage) -> NDArray[np.uint8]:
        """Pixels for display: grey (height, width) with 0 black, or RGB (height, width, 3)."""

    def image_path(self, image: CaseImage) -> Path:
        """File of the image."""

    def check_image(self, image: CaseImage) -> None:
        """Raise where the file is not the one that the case was made for."""


class Views:
    """Rendered images of views, as PNG or as arrays. Threads may share it."""

    def __init__(self, benchmark: ImageSource, cache: Path | None = None) -> None:
        self._benchmark = benchmark
        self._cache = cache
        self._encoder = PngEncoder()
        self._decoded: _RecentValues[CaseImage, NDArray[np.uint8]] = _RecentValues(_IMAGES)
        self._digests: _RecentValues[tuple[Path, int, int], str] = _RecentValues(_DIGESTS)

    def png(self, case: Case, view_id: str) -> bytes:
        """A view as PNG, grey or RGB, 8 bits a channel; a view of a finished PNG file is that file, byte for byte."""
        plan = _plan(case, view_id)
        if plan.is_unchanged_file:
            content = self._read_file(plan.panels[0].image)
            if content is not None:
                return content
        if self._cache is None:
            return self._encoder.encode(draw_plan(plan, self._pixels))
        key = fingerprint(plan, {panel.image.key: self._digest(panel.image) for panel in plan.panels})
        path = self._cache / key[:2] / f"{key}.png"
        content = _read_complete_png(path)
        if content is None:
            content = self._encoder.encode(draw_plan(plan, self._pixels))
            _write_cached(path, content)
        return content

    def array(self, case: Case, view_id: str) -> Rgb:
        """A view as RGB (height, width, 3), uint8. The array belongs to the caller."""
        return to_rgb(draw_plan(_plan(case, view_id), self._pixels))

    def _pixels(self, image: CaseImage) -> NDArray[np.uint8]:
        return self._decoded.get(image, lambda: self._benchmark.pixels(image))

    def _digest(self, image: CaseImage) -> str:
        """SHA-256 of the file as it is now; as the case states it where the file cannot be read."""
        self._benchmark.check_image(image)
        path = self._benchmark.image_path(image)
        try:
            state = path.stat()
            return self._digests.get((path, state.st_size, state.st_mtime_ns), lambda: sha256(path))
        except OSError as error:
            if image.sha256 is not None:
                return image.sha256
            raise BenchmarkError(f"{path}: cannot be read: {error.strerror}") from error

    def _read_file(self, image: CaseImage) -> bytes | None:
        """The bytes of its file; None where that is no complete PNG, which decoding reports."""
        self._benchmark.check_image(image)
        return _read_complete_png(self._benchmark.image_path(image))


def _plan(case: Case, view_id: str) -> Plan:
    view = next((view for view in case.views if view.id == view_id), None)
    if view is None:
        known = ", ".join(view.id for view in case.views) or "none"
        raise BenchmarkError(f"case {case.id!r} has no view {view_id!r}; it has {known}")
    return plan_view(case, view)


def _read_complete_png(path: Path) -> bytes | None:
    """The complete PNG at this path; None where there is none or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if is_complete(content) else None


def _write_cached(path: Path, content: bytes) -> None:
    try:
        with _WRITING:
            write_bytes(path, content)
    except OSError as error:
        raise CarinaError(f"{path}: cannot write the cached image: {error.strerror}") from error


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class _RecentValues(Generic[_Key, _Value]):
    """The values that were used last. Two threads at once may both compute one, with the same result."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[_Key, _Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: _Key, make: Callable[[], _Value]) -> _Value:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = make()
        with self._lock:
            self._values[key] = value
            while len(self._values) > self._most:
                self._values.popitem(last=False)
        return value
