"""Find the image that a cell of a table names."""

import os
from collections import defaultdict
from pathlib import Path, PurePosixPath
from typing import Final

from carina.sources._image_sets import IMAGE_ENDINGS, clean_key, has_file, list_files
from carina.sources._record import RecordError, describe
from carina.sources.table.columns import ImageBy

_PLACES: Final = 3
"""Places of a file that a message names."""


class ImageFinder:
    """Finds images below a folder by path, by file name, or by file name without the ending."""

    def __init__(self, root: Path, by: ImageBy) -> None:
        self._root, self._by = root, by
        self._keys: dict[ImageBy, dict[str, list[str]]] = {}

    def by(self, by: ImageBy) -> "ImageFinder":
        """The same folder, searched in another way; it is listed once."""
        other = ImageFinder(self._root, by)
        other._keys = self._keys
        return other

    def can_find(self, text: str) -> bool:
        """Whether a cell names at least one file; it may be one that is refused, as several have its name."""
        if self._by != "path":
            return _file_name(text) in self._list_keys()
        if is_existing_file(text):
            return True
        try:
            return has_file(self._root, self.find(text))
        except RecordError:
            return False

    def find(self, text: str) -> str:
        """The path of an image below the folder, with forward slashes.

        Raises:
            RecordError: The path leaves the folder; or no file, or more than one, has the name.
        """
        if self._by == "path":
            return clean_key(text) if not is_existing_file(text) else self._find_below(text)
        name = _file_name(text)
        found = self._list_keys().get(name, [])
        if len(found) == 1:
            return found[0]
        if not found:
            raise RecordError("image", f"no image file is called {describe(name)}", kind="image missing")
        places = ", ".join(found[:_PLACES])
        raise RecordError(
            "image", f"{len(found)} image files are called {describe(name)}: {places}", kind="image"
        )

    def _find_below(self, text: str) -> str:
        """The path below the folder of a file that is named by its absolute path."""
        file = Path(text.strip())
        for path, root in (
            (Path(os.path.normpath(file)), self._root.absolute()),
            (file.resolve(), self._root.resolve()),
        ):
            if path.is_relative_to(root):
                return path.relative_to(root).as_posix()
        raise RecordError(
            "image",
            f"{describe(text)} is not a path below the folder of images, {self._root}; name a folder above it with "
            "--images",
            kind="image",
        )

    def _list_keys(self) -> dict[str, list[str]]:
        if self._by not in self._keys:
            keys: defaultdict[str, list[str]] = defaultdict(list)
            for key in list_files(self._root, IMAGE_ENDINGS):
                path = PurePosixPath(key)
                keys[path.name if self._by == "name" else path.stem].append(key)
            self._keys[self._by] = dict(keys)
        return self._keys[self._by]


def has_folder(text: str) -> bool:
    """Whether a cell names a folder, and not only a file."""
    return len(PurePosixPath(text.strip().replace("\\", "/")).parts) > 1


def is_existing_file(text: str) -> bool:
    """Whether a cell is the absolute path of a file of this computer."""
    path = Path(text.strip())
    try:
        return path.is_absolute() and path.is_file()
    except (OSError, ValueError):
        return False


def _file_name(text: str) -> str:
    return PurePosixPath(text.strip().replace("\\", "/")).name
