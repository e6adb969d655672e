"""Find the image that a cell of a table names."""

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

    def exists(self, key: str) -> bool:
        """Whether there is such a file."""
        return has_file(self._root, key)

    def find(self, text: str) -> str:
        """The path of an image below the folder, with forward slashes.

        Raises:
            RecordError: The path leaves the folder; or no file, or more than one, has the name.
        """
        if self._by == "path":
            return clean_key(text)
        name = PurePosixPath(text.strip().replace("\\", "/")).name
        found = self._list_keys().get(name, [])
        if len(found) == 1:
            return found[0]
        if not found:
            raise RecordError("image", f"no image file is called {describe(name)}", kind="image missing")
        places = ", ".join(found[:_PLACES])
        raise RecordError(
            "image", f"{len(found)} image files are called {describe(name)}: {places}", kind="image"
        )

    def _list_keys(self) -> dict[str, list[str]]:
        if self._by not in self._keys:
            keys: defaultdict[str, list[str]] = defaultdict(list)
            for key in list_files(self._root, IMAGE_ENDINGS):
                path = PurePosixPath(key)
                keys[path.name if self._by == "name" else path.stem].append(key)
            self._keys[self._by] = dict(keys)
        return self._keys[self._by]
