"""The pictures of a benchmark's views, made when they are asked for and kept on disk where a cache is given.

A kept picture is named by the hash of all that decides its pixels, so it never has to be thrown away, and several
processes may share a cache: each picture is written whole or not at all.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from carina.cases.model import Case, CaseImage
from carina.cases.render.picture import draw
from carina.cases.render.plan import Plan, fingerprint, plan_view
from carina.draw import PngEncoder, Rgb, is_whole, to_rgb
from carina.errors import BenchmarkError, CarinaError
from carina.files import sha256, write_bytes

_IMAGES: Final = 4
"""Decoded images to remember: those of one case."""
_DIGESTS: Final = 1024
_WRITING: Final = threading.Lock()
"""Threads of one process would write the same picture to the same temporary name."""


class ImageSource(Protocol):
    """What is asked of a benchmark here."""

    def pixels(self, image: CaseImage) -> NDArray[np.uint8]:
        """For display: grey (height, width) with 0 black, or RGB (height, width, 3)."""

    def image_path(self, image: CaseImage) -> Path:
        """The image's file."""


class Views:
    """Pictures of views, as PNG or as arrays. Threads may share it."""

    def __init__(self, benchmark: ImageSource, cache: Path | None = None) -> None:
        self._benchmark = benchmark
        self._cache = cache
        self._encoder = PngEncoder()
        self._decoded: _Recent[CaseImage, NDArray[np.uint8]] = _Recent(_IMAGES)
        self._digests: _Recent[tuple[Path, int, int], str] = _Recent(_DIGESTS)

    def png(self, case: Case, view_id: str) -> bytes:
        """A view as PNG, grey or RGB, 8 bits a channel; a finished picture that is a PNG is its file, byte for byte."""
        plan = _plan(case, view_id)
        if plan.as_it_stands:
            content = self._as_it_stands(plan.panels[0].image)
            if content is not None:
                return content
        if self._cache is None:
            return self._encoder.encode(draw(plan, self._pixels))
        key = fingerprint(plan, {panel.image.key: self._digest(panel.image) for panel in plan.panels})
        kept = self._cache / key[:2] / f"{key}.png"
        content = _read(kept)
        if content is None:
            content = self._encoder.encode(draw(plan, self._pixels))
            _keep(kept, content)
        return content

    def array(self, case: Case, view_id: str) -> Rgb:
        """A view as RGB (height, width, 3). The array is the caller's."""
        return to_rgb(draw(_plan(case, view_id), self._pixels))

    def _pixels(self, image: CaseImage) -> NDArray[np.uint8]:
        return self._decoded.get(image, lambda: self._benchmark.pixels(image))

    def _digest(self, image: CaseImage) -> str:
        """Of the file as it is now; as the case states it where the file is not at hand."""
        path = self._benchmark.image_path(image)
        try:
            state = path.stat()
            return self._digests.get((path, state.st_size, state.st_mtime_ns), lambda: sha256(path))
        except OSError as error:
            if image.sha256 is not None:
                return image.sha256
            raise BenchmarkError(f"{path}: cannot be read: {error.strerror}") from error

    def _as_it_stands(self, image: CaseImage) -> bytes | None:
        """The bytes of its file, or None where that is no PNG, or a damaged one, which decoding will tell."""
        return _read(self._benchmark.image_path(image))


def _plan(case: Case, view_id: str) -> Plan:
    view = next((view for view in case.views if view.id == view_id), None)
    if view is None:
        known = ", ".join(view.id for view in case.views) or "none"
        raise BenchmarkError(f"case {case.id!r} has no view {view_id!r}; it has {known}")
    return plan_view(case, view)


def _read(path: Path) -> bytes | None:
    """The whole PNG at this place, or None where there is none or it is damaged."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if is_whole(content) else None


def _keep(path: Path, content: bytes) -> None:
    try:
        with _WRITING:
            write_bytes(path, content)
    except OSError as error:
        raise CarinaError(f"{path}: the picture cannot be kept: {error.strerror}") from error


_Key = TypeVar("_Key", bound=Hashable)
_Value = TypeVar("_Value")


class _Recent(Generic[_Key, _Value]):
    """The last few values that were asked for. Two threads at once may both make one, and get the same."""

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
