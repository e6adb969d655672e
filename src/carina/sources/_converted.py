"""Images that are published as DICOM files and read as PNG or JPEG files, at the original size or smaller."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from carina.sources._draft_images import MissingImages, find_image
from carina.sources._record import RecordError
from carina.sources._study_draft import StudyDraft
from carina.studies.model import Image

ENDINGS: Final = (".png", ".jpg", ".jpeg")
ConvertedImages: TypeAlias = Annotated[
    Path | None,
    Meta(
        description="Folder of the images as PNG or JPEG files, named as the DICOM files are. Default: the path."
    ),
]
"""An option of readers of sets that are published as DICOM files."""


def possible_keys(name: str, folders: Iterable[str]) -> Iterable[str]:
    """Where the file of an image may be; each folder ends with a slash or is empty."""
    return (f"{folder}{name}{ending}" for folder in folders for ending in ENDINGS)


def find_folders(root: Path, folders: Iterable[str]) -> tuple[str, ...]:
    """The folders below a root that are there, so that no image is looked for in others; the first is kept.

    Looked for once, since sets have hundreds of thousands of images, and often none of them as files.
    """
    first, *others = folders
    return (first, *(folder for folder in others if (root / folder).is_dir()))


class Frame:
    """The image that a study shows, and the size on which its regions were drawn.

    Args:
        image: The image.
        size: Width and height of the original image; None where it is that of the image.
    """

    def __init__(self, image: Image, size: tuple[int, int] | None) -> None:
        self.image = image
        self._scale = (1.0, 1.0) if size is None else (image.width / size[0], image.height / size[1])

    def scale_box(self, box: Sequence[float]) -> tuple[float, float, float, float]:
        """A box (x, y, width, height) of the original image, in pixels of the image."""
        (x, y, width, height), (across, down) = box, self._scale
        return x * across, y * down, width * across, height * down


def add_converted_image(
    draft: StudyDraft,
    root: Path,
    name: str,
    folders: Sequence[str],
    *,
    size: tuple[int, int] | None,
    missing: MissingImages,
) -> Frame:
    """Add the image of a study that has one; a smaller copy of the original may stand for it.

    Args:
        draft: The study.
        root: Folder in which image keys start.
        name: Name of the file without its ending.
        folders: Folders below the root in which it may be, each with a slash at its end.
        size: Width and height of the original, where they are known.
        missing: Whether a study without its file is an error, or described by `size`.

    Raises:
        RecordError: The file is missing, or its sides are not in the proportion of the original.
    """
    key = find_image(root, possible_keys(name, folders))
    if key is None and (missing == "skip" or size is None):
        why = "; convert the DICOM files to PNG, keep their names, and give the folder with --images"
        if missing == "keep":
            why = "; its size is unknown, so that it cannot be kept: give a table of sizes with --sizes"
        raise RecordError("image", f"{name}.png is missing{why}", kind="image missing")
    if key is None:
        assert size is not None  # noqa: S101 - refused above
        return Frame(draft.describe_image(f"{folders[0]}{name}.png", "unknown", size), size)
    image = draft.add_image(root, key, "unknown")
    if size is not None and abs(image.width * size[1] - image.height * size[0]) > max(size):
        reason = f"{key!r} is {image.width} x {image.height}, expected a copy of {size[0]} x {size[1]} in proportion"
        raise RecordError("image", reason, kind="image")
    return Frame(image, size)
