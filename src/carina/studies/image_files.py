"""Views of sets whose records show images: where the files lie, and whether they are what the records say.

Serves study sets and benchmarks; what is done with the pixels is theirs.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from carina.errors import CarinaError, ImageError
from carina.files import sha256
from carina.store import M, R, View
from carina.studies.pixels import read_header

_KEY_LEAF: Final = "images.list.element.key"

Read = TypeVar("Read", bound=NDArray[np.generic])


class FiledImage(Protocol):
    """What a record says of an image file."""

    @property
    def key(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def sha256(self) -> str | None: ...


@dataclass(frozen=True, eq=False, repr=False)
class ImageView(View[R, M]):
    """A view whose records have a field `images`."""

    def image_path(self, image: FiledImage) -> Path:
        """Where an image lies; an error for a key that leads out of the image root."""
        try:
            return inside(self._set.image_root, image.key)
        except ValueError as error:
            raise self._image_error(image, str(error)) from error

    def _read_image(self, image: FiledImage, read: Callable[[Path], Read]) -> Read:
        """An image as `read` gives it, of the size that the record says."""
        path = self.image_path(image)
        if not path.is_file():
            raise self._image_error(image, f"is missing: no file {path}")
        pixels = read(path)
        height, width = pixels.shape[:2]
        if (width, height) != (image.width, image.height):
            raise self._image_error(image, self._other_size(image, width, height))
        return pixels

    def _images(self, record: R) -> Iterable[FiledImage]:
        raise NotImplementedError

    def _image_faults(self, record: R) -> Iterator[str]:
        for image in self._images(record):
            wrong = self._image_fault(image)
            if wrong:
                yield f"image {image.key!r} {wrong}"

    def _image_fault(self, image: FiledImage) -> str | None:
        try:
            path = inside(self._set.image_root, image.key)
            if not path.is_file():
                return f"is missing: no file {path}"
            header = read_header(path)
            if (header.width, header.height) != (image.width, image.height):
                return self._other_size(image, header.width, header.height)
            if image.sha256 is not None and sha256(path) != image.sha256:
                return f"has not the SHA-256 of the {self._kind.noun}"
        except ImageError as error:
            return f"cannot be read: {error}"
        except ValueError as error:
            return str(error)
        return None

    def _other_size(self, image: FiledImage, width: int, height: int) -> str:
        stated = f"{image.width} x {image.height}"
        return f"has {width} x {height} pixels, the {self._kind.noun} says {stated}"

    def _image_error(self, image: FiledImage, wrong: str) -> CarinaError:
        return self._kind.error(f"{self._place_of(image.key)}, image {image.key!r} {wrong}")

    def _place_of(self, key: str) -> str:
        """Part, row and record of an image, for messages about it."""
        for part in self._set.parts:
            for row, values in part.rows(["id", _KEY_LEAF]):
                if any(image["key"] == key for image in values["images"]):
                    return part.place(row, values["id"])
        return str(self.directory)


def inside(root: Path, key: str) -> Path:
    """The path of an image key; `ValueError` for one that is no path or leads out of the root."""
    parts = PurePosixPath(key).parts
    if not parts or parts[0] == "/" or ".." in parts or "\\" in key or "\0" in key:
        raise ValueError("is not a plain relative path")
    path = root.joinpath(*parts)
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError) as error:  # a name too long, a loop of links
        raise ValueError(f"is not a path: {error}") from error
    if not resolved.is_relative_to(root):
        raise ValueError(f"leads out of the image root {root}")
    return path
