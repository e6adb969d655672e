"""Views of sets whose records show images: finds the image files, and compares them with the records.

Serves study sets and benchmarks.
"""

import stat
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Protocol, TypeVar, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from carina.store import M, R, View
from carina.store.errors import CarinaError, ImageError
from carina.store.files import sha256
from carina.studies.pixels import read_header, read_reduced_pixels

_KEY_LEAF: Final = "images.list.element.key"
_LONGEST_NAME: Final = 255
"""Length of a file name, in bytes, that file systems allow."""

Read = TypeVar("Read", bound=NDArray[np.generic])


class FiledImage(Protocol):
    """The fields of a record that describe an image file."""

    @property
    def key(self) -> str: ...
    @property
    def width(self) -> int: ...
    @property
    def height(self) -> int: ...
    @property
    def sha256(self) -> str | None: ...


class _RecordWithImages(Protocol):
    """A record that shows images."""

    @property
    def images(self) -> Sequence[FiledImage]: ...


@dataclass(frozen=True, eq=False, repr=False)
class ImageView(View[R, M]):
    """A view whose records have a field `images`."""

    def image_path(self, image: FiledImage) -> Path:
        """Path of an image file; raises for a key that leads out of the image root."""
        try:
            return inside(self._set.image_root, image.key)
        except ValueError as error:
            raise self._image_error(image, str(error)) from error

    def _read_image(self, image: FiledImage, read: Callable[[Path], Read]) -> Read:
        """An image as `read` returns it; raises where size or SHA-256 are not those of the record."""
        path = self.image_path(image)
        if not path.exists():
            raise self._image_error(image, f"is missing: no file {path}")
        pixels = read(path)
        height, width = pixels.shape[:2]
        if (width, height) != (image.width, image.height):
            raise self._image_error(image, self._other_size(image, width, height))
        # Last, because a damaged file and another size are described better by what was found.
        self._check_content(image, path)
        return pixels

    def check_image(self, image: FiledImage) -> None:
        """Compare an image file with the SHA-256 that the record states, once in a process.

        Nothing is compared where the set was opened with `verify_images=False`, the record states no SHA-256, or there
        is no file, which reading it reports.

        Raises:
            CarinaError: The file is not the one that the record was made for.
        """
        self._check_content(image, self.image_path(image))

    def _check_content(self, image: FiledImage, path: Path) -> None:
        if image.sha256 is None or not self._set.verify_images:
            return
        try:
            content = _checksum(path)
        except OSError:
            return
        if content != image.sha256:
            raise self._image_error(
                image,
                f"is not the file that the {self._kind.noun} was made for: the SHA-256 of {path} differs; restore the "
                "file. `carina run` and `carina explain` use it all the same with --no-verify-images",
            )

    def _image_faults(self, record: R, *, files: bool) -> Iterator[str]:
        for image in cast(_RecordWithImages, record).images:
            wrong = self._find_image_problem(image) if files else find_key_problem(image.key)
            if wrong:
                yield f"image {image.key!r} {wrong}"

    def _find_image_problem(self, image: FiledImage) -> str | None:
        try:
            path = inside(self._set.image_root, image.key)
            if not path.exists():
                return f"is missing: no file {path}"
            header = read_header(path)
            if (header.width, header.height) != (image.width, image.height):
                return self._other_size(image, header.width, header.height)
            if image.sha256 is not None and sha256(path) != image.sha256:
                return f"has another SHA-256 than the {self._kind.noun} states: the file was changed"
            read_reduced_pixels(path, _DECODED_SIDE)
        except (ImageError, OSError) as error:
            return f"cannot be read: {error}"
        except ValueError as error:
            return str(error)
        return None

    def _other_size(self, image: FiledImage, width: int, height: int) -> str:
        stated = f"{image.width} x {image.height}"
        return f"has {width} x {height} pixels, the {self._kind.noun} states {stated}"

    def _image_error(self, image: FiledImage, wrong: str) -> CarinaError:
        return self._kind.error(f"{self._place_of(image.key)}, image {image.key!r} {wrong}")

    def _place_of(self, key: str) -> str:
        """Part, row and record of an image, for messages."""
        place = self._image_places.get(key)
        if place is None:
            return str(self.directory)
        index, row, record = place
        return self._set.parts[index].place(row, record)

    @property
    def _image_places(self) -> dict[str, tuple[int, int, str]]:
        """Part, row and record of every image by key: the set is read once, however many images are missing."""
        found = _PLACES.get(self._set)
        if found is None:
            found = _PLACES[self._set] = {}
            for index, part in enumerate(self._set.parts):
                for row, values in part.rows(["id", _KEY_LEAF]):
                    for image in values["images"]:
                        found.setdefault(image["key"], (index, row, values["id"]))
        return found


_PLACES: Final[WeakKeyDictionary[Any, dict[str, tuple[int, int, str]]]] = WeakKeyDictionary()
"""Places of images by opened set, for as long as the set is in use."""
_CHECKSUMS: Final[OrderedDict[tuple[Path, int, int], str]] = OrderedDict()
"""SHA-256 of the image files that this process opened last, by path, size and time of change."""
_MOST_CHECKSUMS: Final = 16384
_DECODED_SIDE: Final = 64
"""Pixels to which an image is decoded where nobody looks at it: small, which is quick, but all of the file is read."""


def _checksum(path: Path) -> str:
    """SHA-256 of a file, computed once for as long as the file does not change."""
    state = path.stat()
    key = (path, state.st_size, state.st_mtime_ns)
    content = _CHECKSUMS.get(key)
    if content is None:
        content = _CHECKSUMS[key] = sha256(path)
        while len(_CHECKSUMS) > _MOST_CHECKSUMS:
            with suppress(KeyError):  # another thread was faster
                _CHECKSUMS.popitem(last=False)
    return content


def inside(root: Path, key: str) -> Path:
    """The path of an image key below a root, whether or not the file exists.

    Raises:
        ValueError: The key is not a relative path, leads out of the root, cannot be looked up, or names a folder or a
            pipe.
    """
    wrong = find_key_problem(key)
    if wrong:
        raise ValueError(wrong)
    path = root.joinpath(*PurePosixPath(key).parts)
    try:
        resolved = path.resolve()
    except (OSError, RuntimeError) as error:  # a loop of links
        raise ValueError(f"is not a path: {error}") from error
    if not resolved.is_relative_to(root):
        raise ValueError(f"leads out of the image root {root}")
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError("is not a regular file")
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:  # too long altogether, or in a folder that may not be entered
        raise ValueError(f"cannot be looked up: {error.strerror}") from error
    return path


def find_key_problem(key: str) -> str | None:
    """What is wrong with a key, whichever files exist; None for a valid key."""
    parts = key.split("/")
    is_path = any(part not in ("", ".") for part in parts)
    if not is_path or key[0] == "/" or ".." in parts or "\\" in key or "\0" in key:
        return "is not a plain relative path"
    if len(key) <= _LONGEST_NAME // 4:  # at most four bytes a character
        return None
    longest = max(len(part.encode("utf-8", "surrogatepass")) for part in parts)
    if longest > _LONGEST_NAME:
        return f"is not a path: a name of {longest} bytes, of which file systems take {_LONGEST_NAME}"
    return None
