"""What sources of images with drawn regions share: a draft of a study, category maps, ids, and what was looked for."""

import hashlib
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, NamedTuple, TypeAlias, TypeVar

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike

from carina.sources._labels import name_listed, name_of
from carina.sources._record import RecordError, SourceError, describe, printable
from carina.sources._source import Repaired
from carina.sources._study_draft import DEFECTS as DRAFT_DEFECTS
from carina.sources._study_draft import Drawing, StudyDraft, is_outside, make_or_empty
from carina.sources._values import SPLITS
from carina.store.documents import read_yaml
from carina.store.errors import CarinaError
from carina.store.files import sha256
from carina.store.layout import what_is
from carina.studies.image_files import inside
from carina.studies.model import Assessed, Image, Study
from carina.studies.region import Region
from carina.studies.terms import find_term, read_label
from carina.studies.vocabulary import Certainty, Drawn, Scope, Split

T = TypeVar("T")

IMAGE_ENDINGS: Final = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
"""Endings of image files that Carina reads, in lower case."""
SWAPPED, OUTSIDE, NO_AREA = "swapped corners", "outside", "no area"
"""Defects of boxes and polygons that can be read."""
UNUSED: Final = "no finding unused"
"""The defect of a label that states that nothing was found, where nobody says what was looked for."""
DEFECTS: Final[Mapping[str, str]] = {
    **DRAFT_DEFECTS,
    "region": "a box, polygon, mask or point that cannot be read, such as one with a number missing, or a mask without "
    "a pixel, is left out",
    SWAPPED: "a box whose second corner lies left of or above its first, or whose width or height is negative, is left "
    "out",
    OUTSIDE: "a box or polygon that lies outside of its image altogether is left out",
    NO_AREA: "a box or polygon without area is left out",
    UNUSED: "a label such as 'No finding' is used for nothing, since nobody says what was looked for: say it with "
    "--looked-for",
    "category": "a region or label whose category the map leaves out is not used",
    "patient": "the patient is unknown: the study counts as the only one of its patient",
}
"""Defects that an `ImageSetDraft` counts, for the decorator of a source."""
ImageFolder: TypeAlias = Annotated[
    Path | None, Meta(description="Folder of the images, where they do not lie beside the annotations.")
]
LookedFor: TypeAlias = Annotated[
    Scope,
    Meta(
        description="What the annotators looked for: every finding, the listed categories, or unknown. What was looked "
        "for and is not recorded counts as absent."
    ),
]
Categories: TypeAlias = Annotated[
    Path | None,
    Meta(description="YAML file from category names of the source to ours; null leaves a category out."),
]
PatientPattern: TypeAlias = Annotated[
    str | None,
    Meta(
        description="Regular expression with one group that finds the patient in the path of an image. Without it, "
        "each image is its own patient."
    ),
]
COMPARED_ANATOMY: Final = "compared anatomy"
"""The defect of sources with readers for comparison who draw anatomy, which has no place for it."""
_PAGE_MARK: Final = b'<meta name="generator" content="carina">'
"""What every page of `carina.pages` has in its head."""
_PAGE_START: Final = 1000
"""Bytes at the start of a page that hold its mark."""
_LARGEST: Final = 1e9
"""Coordinates from this on, and NaN, are no coordinates; whole numbers may be too large for a float."""


# ---- names ----------------------------------------------------------------------------------------------------------


def read_categories(path: Path | None) -> Mapping[str, str | None]:
    """A map from names of categories in a source to ours.

    Raises:
        SourceError: The file is not a YAML map from texts to texts or null.
    """
    if path is None:
        return {}
    try:
        found = read_yaml(path)
    except CarinaError as error:
        raise SourceError(str(error)) from error
    if not isinstance(found, dict):
        raise SourceError(f"{path}: expected a map from category names to names of findings")
    for name, ours in found.items():
        if not isinstance(name, str) or not (ours is None or (isinstance(ours, str) and ours.strip())):
            raise SourceError(
                f"{path}: {describe(name)}: expected a name (in quotes where it is a number) and the name of a finding "
                f"or null, found {describe(ours)}"
            )
    return {name.strip(): ours for name, ours in found.items()}


def assess(looked_for: Scope, labels: Iterable[str], names: Mapping[str, str | None]) -> Assessed:
    """What was looked for, where `labels` is the closed list of a source.

    That every finding was looked for says nothing about devices, unless they are on the list.
    """
    ours = (names.get(label, label) for label in labels)
    listed = name_listed(label for label in ours if label)
    terms = {name: term.kind if term is not None else "finding" for name, term in listed.items()}
    if looked_for == "unknown":
        return Assessed()
    has_devices = "device" in terms.values()
    findings: Scope = "listed" if looked_for == "listed" and "finding" in terms.values() else "unknown"
    if looked_for == "every":
        findings = "every"
    kinds = ("finding", "device") if looked_for == "listed" else ("device",)
    return Assessed(
        findings=findings,
        devices="listed" if has_devices else "unknown",
        listed=tuple(sorted(name for name, kind in terms.items() if kind in kinds)),
    )


def name_studies(keys: Iterable[str]) -> dict[str, str]:
    """Ids of studies of one image each: the key without its ending, or with it where two differ in nothing else."""
    keys = list(dict.fromkeys(keys))
    stems = {
        key: PurePosixPath(key).with_suffix("").as_posix() if PurePosixPath(key).name else key for key in keys
    }
    times = Counter(stems.values())
    return {key: stem if times[stem] == 1 else key for key, stem in stems.items()}


def compile_patient_pattern(pattern: str | None) -> re.Pattern[str] | None:
    """The expression that finds the patient.

    Raises:
        SourceError: It is no regular expression, or does not have exactly one group.
    """
    if pattern is None:
        return None
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise SourceError(
            f"patient pattern {describe(pattern)}: not a regular expression: {error}"
        ) from error
    if compiled.groups != 1:
        raise SourceError(f"patient pattern {describe(pattern)}: {compiled.groups} groups, expected one")
    return compiled


def find_patient(pattern: re.Pattern[str] | None, key: str) -> str | None:
    """The patient that the path of an image names; None without a pattern.

    Raises:
        RecordError: The pattern does not match.
    """
    if pattern is None:
        return None
    match = pattern.search(key)
    if match is None or not match[1]:
        raise RecordError(
            "patient",
            f"the pattern {describe(pattern.pattern)} finds none in {describe(key)}",
            kind="patient",
        )
    return match[1]


def find_split(key: str) -> Split | None:
    """The split of an image in a folder such as `train` or `images/val`."""
    return next((SPLITS[part] for part in reversed(PurePosixPath(key).parts[:-1]) if part in SPLITS), None)


# ---- files ----------------------------------------------------------------------------------------------------------


def list_files(root: Path, endings: Sequence[str]) -> list[str]:
    """Paths of the files below a folder with these endings, in order.

    Links to folders are not followed, and folders that Carina wrote (sets, pages) are left out.

    Raises:
        SourceError: The folder is missing or cannot be read.
    """
    if not root.is_dir():
        raise SourceError(f"{root}: no such folder")
    found: list[str] = []
    try:
        for folder, folders, files in os.walk(root, onerror=_raise):
            folders[:] = [name for name in folders if not _is_written_by_carina(Path(folder, name))]
            below = PurePosixPath(Path(folder).relative_to(root).as_posix())
            found.extend(str(below / name) for name in files if name.lower().endswith(tuple(endings)))
    except OSError as error:
        raise SourceError(f"{root}: cannot be read: {error.strerror}") from error
    return sorted(found)


def _is_written_by_carina(folder: Path) -> bool:
    """Whether a folder holds a study set, a benchmark, a run or another set, or pages of `carina show`."""
    if what_is(folder) is not None:
        return True
    try:
        with (folder / "index.html").open("rb") as page:
            return _PAGE_MARK in page.read(_PAGE_START)
    except OSError:
        return False


def find_file(root: Path, file: str) -> Path:
    """A file below a folder, whether or not it exists.

    Raises:
        RecordError: The path, or a link that it leads to, leaves the folder.
    """
    try:
        return inside(root.resolve(), file)
    except ValueError as error:
        raise RecordError("", f"{describe(file)} {error}", kind="file") from error


def has_file(root: Path, file: str) -> bool:
    """Whether there is a file below a folder; a name that no file can have is no file."""
    try:
        return (root / file).is_file()
    except (OSError, ValueError):
        return False


def checksum_files(root: Path, files: Iterable[str]) -> str:
    """One SHA-256 of the names and contents of many files below a folder, for the manifest."""
    whole = hashlib.sha256()
    for file in files:
        try:
            content = sha256(find_file(root, file))
        except (RecordError, OSError):
            content = "cannot be read"
        whole.update(f"{file}\0{content}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()


def _raise(error: OSError) -> None:
    raise error


def clean_key(text: str, folder: str = "") -> str:
    """The path of an image below the folder of images, where a source states one relative to `folder`.

    Windows' separators and steps such as `./` and `../` are resolved; a path that leaves the folder is refused.

    Raises:
        RecordError: The path is absolute or leads out of the folder of images.
    """
    path = text.strip().replace("\\", "/")
    if not path or path.startswith("/") or re.match(r"[A-Za-z]:", path):
        raise RecordError("image", f"{describe(text)} is not a path below the folder of images", kind="image")
    parts: list[str] = []
    for part in [*PurePosixPath(folder).parts, *PurePosixPath(path).parts]:
        if part == ".." and not parts:
            raise RecordError("image", f"{describe(text)} leads out of the folder of images", kind="image")
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def gather(items: Iterable[tuple[str, T]], sizes: Mapping[str, int]) -> Iterator[tuple[str, list[T]]]:
    """Groups of items that need not lie together, each as soon as it is complete.

    Args:
        items: Name of the group and the item.
        sizes: Number of items of each group.
    """
    groups: defaultdict[str, list[T]] = defaultdict(list)
    for name, item in items:
        groups[name].append(item)
        if len(groups[name]) == sizes[name]:
            yield name, groups.pop(name)


# ---- the draft ------------------------------------------------------------------------------------------------------


class _Ink(NamedTuple):
    """How a region was drawn."""

    drawn: Drawn
    annotator: str
    certainty: Certainty
    is_comparison: bool = False
    """Whether it is compared with the truth, and no part of it."""


class ImageSetDraft(StudyDraft):
    """A study of drawn regions: categories are mapped, anatomy is told from findings, cut regions are counted.

    Args:
        study_id: Id of the study.
        patient: Id of the patient; None where it is unknown.
        source: Name of the source.
        number: Number of the record as its file counts them: the header of a table is row 1.
        file: Path of the file; may be left out where that is the path of the source.
        categories: Our names by those of the source; None leaves a category out.
    """

    def __init__(
        self,
        study_id: str,
        *,
        patient: str | None,
        source: str,
        number: int,
        file: str = "",
        categories: Mapping[str, str | None] | None = None,
    ) -> None:
        self.categories = categories or {}
        names = {name: ours for name, ours in self.categories.items() if ours is not None}
        super().__init__(
            study_id, patient=patient or study_id, source=source, number=number, file=file, names=names
        )
        self._cause: str | None = None
        """Why the region that is being drawn cannot be used, where its points show that."""
        if patient is None:
            self.defects["patient"] += 1

    def finish(self, *, assessed: Assessed | None = None, mined: Iterable[str] = ()) -> Study | Repaired:
        """As `StudyDraft.finish`; counts labels such as "No finding" that are used for nothing."""
        scope = "unknown" if assessed is None else assessed.findings
        if scope == "unknown" and not any(not thing.is_device for thing in self._things.values()):
            for place in self._normal:
                self.defects.place = place
                self.defects[UNUSED] += 1
        return super().finish(assessed=assessed, mined=mined)

    def state_category(self, label: str, certainty: Certainty = "present") -> None:
        """State that something is present, absent or uncertain, unless the map leaves it out."""
        if self.is_left_out(label):
            self.defects["category"] += 1
        elif not self.is_anatomy(label):
            self.state(label, certainty)

    def draw_box(
        self,
        label: str,
        key: str,
        corners: Sequence[Sequence[float]],
        *,
        annotator: str,
        certainty: Certainty = "present",
        is_comparison: bool = False,
    ) -> None:
        """Add a box by its corners at the top left and the bottom right, in pixels of the image."""
        on = self.image(key)
        (left, top), (right, bottom) = corners
        self._draw(
            label,
            on,
            _Ink("box", annotator, certainty, is_comparison),
            lambda: Region.from_box(left, top, right - left, bottom - top, height=on.height, width=on.width),
            points=corners,
        )

    def draw_polygons(
        self,
        label: str,
        key: str,
        rings: Sequence[ArrayLike],
        *,
        annotator: str,
        certainty: Certainty = "present",
        is_comparison: bool = False,
    ) -> None:
        """Add the union of closed rings of points, in pixels of the image."""
        on = self.image(key)
        self._draw(
            label,
            on,
            _Ink("polygon", annotator, certainty, is_comparison),
            lambda: Region.from_polygons(rings, height=on.height, width=on.width),
            points=[point for ring in rings for point in np.asarray(ring).reshape(-1, 2).tolist()],
        )

    def draw_region(
        self,
        label: str,
        key: str,
        make_region: Callable[[], Region],
        *,
        annotator: str,
        drawn: Drawn = "mask",
        certainty: Certainty = "present",
        is_comparison: bool = False,
    ) -> None:
        """Add a region that a function makes; where that raises `RegionError`, the region is counted and left out."""
        self._draw(label, self.image(key), _Ink(drawn, annotator, certainty, is_comparison), make_region)

    def lose_region(self, label: str, defect: str = "region") -> None:
        """Count a region that cannot be read; that the source names the finding stays."""
        self.state_category(label)
        self.defects[defect] += 1

    def leave_out(self, fields: Iterable[str]) -> None:
        """Report fields of the source that have no place in a study."""
        self.unmapped = tuple(dict.fromkeys([*self.unmapped, *(printable(field) for field in fields)]))

    def _draw(
        self,
        label: str,
        on: Image,
        ink: _Ink,
        make_region: Callable[[], Region],
        points: Iterable[Sequence[float]] = (),
    ) -> None:
        if self.is_left_out(label):
            self.defects["category"] += 1
            return
        drawing = Drawing(label, on.key, ink.drawn, ink.annotator, ink.certainty)
        points = list(points)
        self._cause = _find_cause(points, on, is_box=ink.drawn == "box")
        if ink.is_comparison and self.is_anatomy(label):
            self.defects[COMPARED_ANATOMY] += 1
            return
        if ink.is_comparison:
            is_used = self.compare_region(drawing, make_or_empty(make_region))
        elif self.is_anatomy(label):
            is_used = self.draw_anatomy(name_of(self.names.get(label, label)), drawing, make_region)
        else:
            is_used = self.draw_finding(drawing, make_region)
        self._cause = None
        if is_used and any(is_outside(point, on) for point in points):
            self.defects["cut"] += 1

    def _is_usable(self, image: str, region: Region) -> bool:
        if self._cause is None:
            return super()._is_usable(image, region)
        self.defects[self._cause] += 1
        return False

    def is_left_out(self, label: str) -> bool:
        """Whether the map of categories leaves a label out."""
        return label in self.categories and self.categories[label] is None

    def is_anatomy(self, label: str) -> bool:
        """Whether a label names a structure of the body."""
        term = find_term(read_label(self.names.get(label, label)).words)
        return term is not None and term.kind == "anatomy"


def _find_cause(points: Sequence[Sequence[float]], on: Image, *, is_box: bool) -> str | None:
    """Why a box or polygon cannot be used; None where it can, or where that only shows when it is drawn."""
    corners = np.array(points, np.float64).reshape(-1, 2)
    if not len(corners) or not np.isfinite(corners).all():
        return None
    if is_box and (corners[0] > corners[1]).any():
        return SWAPPED
    low, high = corners.min(axis=0), corners.max(axis=0)
    if (low == high).any():
        return NO_AREA
    return OUTSIDE if (high <= 0).any() or (low >= (on.width, on.height)).any() else None


def is_number(value: object) -> bool:
    """Whether a JSON value is a number that a coordinate can be."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST
