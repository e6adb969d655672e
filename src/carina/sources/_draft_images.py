"""The images of a study in the making: files that are looked for, and images that are only described."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from carina.sources._record import RecordError
from carina.store.errors import CarinaError
from carina.studies.image_files import find_key_problem, inside
from carina.studies.model import Image
from carina.studies.pixels import read_header
from carina.studies.vocabulary import View

MissingImages: TypeAlias = Annotated[
    Literal["skip", "keep"],
    Meta(description="A study without its image file: skip it, or keep what was annotated."),
]
"""An option of readers that know the size of an image without opening it."""
ImageFolder: TypeAlias = Annotated[
    Path | None, Meta(description="Folder of the image files, where that is not the path of the source.")
]
"""An option of readers whose images may lie elsewhere."""


def find_image(root: Path, keys: Iterable[str]) -> str | None:
    """The first of several keys that names a file below a root; None where none does."""
    # Not by `Path`, which takes many times as long: most keys name no file, and sets have millions of them.
    folder = os.fspath(root)
    for key in keys:
        if os.path.isfile(f"{folder}/{key}"):  # noqa: PTH113
            with suppress(ValueError, OSError):
                inside(root.resolve(), key)
                return key
    return None


class DraftImages:
    """The images of a study in the making."""

    def __init__(self) -> None:
        self.images: list[Image] = []

    def add_image(
        self,
        root: Path,
        key: str,
        view: View,
        *,
        size: tuple[int, int] | None = None,
        missing: Literal["skip", "keep"] = "skip",
        spacing_mm: tuple[float, float] | None = None,
    ) -> Image:
        """Add an image file; its size and depth are read from it.

        Args:
            root: Folder in which image keys start.
            key: Path below it.
            view: The view.
            size: Width and height, where the source knows them.
            missing: Whether a file that is not there is an error, or the image is described by `size` alone; of 0 x 0
                pixels where the size is unknown.
            spacing_mm: Size of a pixel at the detector: between rows, between columns.

        Raises:
            RecordError: The file is missing or cannot be read, or is not of the size that the source states.
        """
        try:
            path = inside(root.resolve(), key)
        except ValueError as error:
            raise RecordError("image", f"{key!r} {error}", kind="image") from error
        if size is not None and missing == "keep" and not path.exists():
            image = Image(key=key, view=view, width=size[0], height=size[1], spacing_mm=spacing_mm)
        else:
            image = _describe_file(path, key, view, spacing_mm)
            if size is not None and (image.width, image.height) != size:
                raise RecordError(
                    "image",
                    f"{key!r} is {image.width} x {image.height}, the source states {size[0]} x {size[1]}",
                    kind="image",
                )
        self.images.append(image)
        return image

    def describe_image(self, key: str, view: View, size: tuple[int, int]) -> Image:
        """Add an image whose file is not there, by what the source says of it; no file is looked for.

        Raises:
            RecordError: The key cannot be that of a file below a root.
        """
        wrong = find_key_problem(key)
        if wrong:
            raise RecordError("image", f"{key!r} {wrong}", kind="image")
        image = Image(key=key, view=view, width=size[0], height=size[1])
        self.images.append(image)
        return image

    def find_image(self, root: Path, keys: Sequence[str], view: View, missing: MissingImages) -> Image:
        """Add the first of several image files that is there.

        Args:
            root: Folder in which image keys start.
            keys: Where the file may be, the usual place first.
            view: The view.
            missing: Whether a file that is not there is an error, or the image is described without its size.

        Raises:
            RecordError: The file is missing or cannot be read.
        """
        key = find_image(root, keys)
        if key is None and missing == "keep":
            return self.describe_image(keys[0], view, (0, 0))
        return self.add_image(root, key or keys[0], view)

    def image(self, key: str) -> Image:
        """The image with this key."""
        for image in self.images:
            if image.key == key:
                return image
        raise KeyError(key)


def _describe_file(path: Path, key: str, view: View, spacing_mm: tuple[float, float] | None) -> Image:
    if not path.exists():
        raise RecordError("image", f"{key!r} is missing", kind="image missing")
    try:
        header = read_header(path)
    except CarinaError as error:
        raise RecordError("image", str(error), kind="image") from error
    return Image(
        key=key, view=view, width=header.width, height=header.height, bits=header.bits, spacing_mm=spacing_mm
    )
