"""Images of MIMIC-CXR-JPG by patient, study and image id, for the sets of questions that are made from it."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

from carina.cases.model import CaseImage, Role
from carina.sources._questions import find_image, resolve_key
from carina.sources._record import RecordError, SourceError, describe
from carina.studies.vocabulary import View

MimicFolder: TypeAlias = Annotated[
    Path | None, Meta(description="Folder of MIMIC-CXR-JPG: the one that holds files/, or files/ itself.")
]
"""The parameter `images` of readers."""
_PATIENT: Final = re.compile(r"(?:^|/)p(\d{8})(?=/)", re.ASCII)
_STUDY: Final = re.compile(r"(?:^|/)s(\d{8})(?=/)", re.ASCII)
_ID: Final = re.compile(r"[ps]?(\d{8})(?:\.0)?", re.ASCII)
_IMAGE_ID: Final = re.compile(r"[0-9A-Za-z_-]+")


def read_mimic_id(value: object, field: str) -> str:
    """Eight digits of a patient or a study, which files write with and without their letter, and as numbers.

    Raises:
        RecordError: It is something else.
    """
    found = _ID.fullmatch(str(value).strip()) if isinstance(value, str | int | float) else None
    if found is None:
        raise RecordError(field, f"is {describe(value)}, expected eight digits", kind="id")
    return found[1]


@dataclass(frozen=True)
class MimicImages:
    """The image files of MIMIC-CXR-JPG below a root."""

    root: Path
    prefix: str
    """Folder that holds p10 to p19, relative to the root, with a final slash; or nothing."""

    @classmethod
    def at(cls, images: Path | None, source: str) -> "MimicImages":
        """The images in the folder that the user names.

        Raises:
            SourceError: No folder is named, or it holds no images in that layout.
        """
        if images is None:
            raise SourceError(
                f"source {source}: name the folder of MIMIC-CXR-JPG with --images: the one that holds files/"
            )
        for prefix in ("files/", ""):
            if any((images / prefix).glob("p1[0-9]")):
                return cls(images, prefix)
        raise SourceError(
            f"{images}: holds neither files/p10 to files/p19 nor p10 to p19; expected MIMIC-CXR-JPG"
        )

    def find(
        self, patient: str, study: str, image: str, *, role: Role = "current", view: View = "unknown"
    ) -> CaseImage:
        """An image by its ids."""
        name = image.strip().removesuffix(".dcm").removesuffix(".jpg")
        if not _IMAGE_ID.fullmatch(name):
            raise RecordError("image", f"is {describe(image)}, expected the id of an image", kind="id")
        return find_image(
            self.root, f"{self.prefix}p{patient[:2]}/p{patient}/s{study}/{name}.jpg", role=role, view=view
        )

    def find_path(self, path: str, *, role: Role = "current") -> CaseImage:
        """An image by its path, with or without files/ before it."""
        key = resolve_key(path).removeprefix("files/")
        return find_image(self.root, f"{self.prefix}{key}", role=role)


def read_path_ids(path: str) -> tuple[str, str]:
    """Patient and study of the path of an image.

    Raises:
        RecordError: It does not name them.
    """
    patient, study = _PATIENT.search(path), _STUDY.search(path)
    if patient is None or study is None:
        raise RecordError(
            "image", f"{describe(path)} does not name patient and study as in p10000001/s50000001/", kind="id"
        )
    return patient[1], study[1]
