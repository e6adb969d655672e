"""Do the images of a study look like what the study says of them?

Four checks, of which the first two may answer "cannot tell":

- polarity: is a radiograph stored inverted, bright where it should be dark?
- view: does an image that is called frontal look lateral, or the other way round?
- lungs: are there two, on their sides, of plausible area, and not one of them twice?
- repeated: was the same image, pixel by pixel, seen before under another name?

Polarity and view compare a thumbnail with an average frontal and an average lateral radiograph. What is found is a
reason to look at the image, not a proof: `docs/explanation/plausibility.md` has the rates of hits and false alarms.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

import cv2
import msgspec
import numpy as np

from carina.store.errors import CarinaError
from carina.studies.average_radiographs import SIDE, Thumbnail, rank_thumbnail, read_average_radiographs
from carina.studies.model import Anatomy, Image, Study
from carina.studies.pixels import Pixels, decode_png, read_reduced_pixels
from carina.studies.region import Region

PlausibilityCheck = Literal["pixels", "polarity", "view", "lungs", "repeated"]
PLAUSIBILITY_CHECKS: Final[tuple[PlausibilityCheck, ...]] = get_args(PlausibilityCheck)
Polarity = Literal["normal", "inverted", "cannot tell"]
ViewKind = Literal["frontal", "lateral", "cannot tell"]

POLARITY_LIMIT: Final = 0.12
"""Correlation with the average frontal radiograph: at least this is normal, at most its negative is inverted."""
FRONTAL_LIMIT: Final = 0.08
"""Advantage of the frontal over the lateral average, from which on an image is called frontal."""
LATERAL_LIMIT: Final = 0.11
"""Advantage of the lateral over the frontal average, from which on an image is called lateral."""
REDUCED_SIDE: Final = 256
"""Width and height to which a JPEG is reduced at most before its thumbnail is made."""
SMALLEST_SIDE: Final = 64
"""Width and height in pixels below which nothing is said about an image."""
FEWEST_LEVELS: Final = 16
"""Number of different values in a thumbnail below which nothing is said: a drawing, or an empty image."""
LUNG_SHARES: Final = (0.015, 0.5)
"""Share of the image that one lung may cover: our choice, from 0.03 to 0.28 on human masks of real images."""
SMALLER_LUNG: Final = 0.2
"""Share of the larger lung that the smaller one has at least, as in the reader of COVID-19 lung masks: our choice."""
SAME_REGION: Final = 0.5
"""IoU of the two lungs from which on they are one region twice: our choice; lungs of real masks do not overlap."""

_FRONTAL_SCALES: Final = (0.8, 0.9, 1.0, 1.12, 1.25, 1.4)
_LATERAL_SCALES: Final = (0.6, 0.7, 0.8, 0.9, 1.0, 1.12, 1.25)
_LATERAL_ASPECTS: Final = (1.0, 1.3)
"""Height by width: the average lateral image is cropped to the body, real ones are not all."""
_MARGIN: Final = SIDE // 4
_FINE, _COARSE = 1.0, 10.0
"""Standard deviations, in pixels of a thumbnail, between which structures are compared: organs, not the exposure."""
_LUNGS: Final = ("right lung", "left lung")


class PlausibilityProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Something about an image that does not look like what the study says."""

    study: str
    image: str
    """Key of the image."""
    check: PlausibilityCheck
    seen: str
    expected: str
    annotator: str = ""
    """Whose drawing it is about, for lungs."""
    correction: str = ""
    """What `correct_study` does about it; empty where nothing can be done."""

    @property
    def message(self) -> str:
        """One line with study, image, what was seen and what was expected."""
        drawn = f" by {self.annotator!r}" if self.annotator else ""
        place = f"study {self.study!r}, image {self.image!r}: {self.check}{drawn}"
        return f"{place}: seen {self.seen}, expected {self.expected}"


class Appearance(NamedTuple):
    """What a thumbnail looks like."""

    polarity: float
    """Correlation with the average frontal radiograph, from -1 (inverted) to 1."""
    frontal: float
    """Largest correlation with the organs of the average frontal radiograph, over positions and sizes."""
    lateral: float
    """Largest correlation with those of the average lateral radiograph, facing left or right."""

    @property
    def shows_polarity(self) -> Polarity:
        """Polarity, or that it cannot be told."""
        if self.polarity <= -POLARITY_LIMIT:
            return "inverted"
        return "normal" if self.polarity >= POLARITY_LIMIT else "cannot tell"

    @property
    def shows_view(self) -> ViewKind:
        """View, or that it cannot be told."""
        if self.lateral - self.frontal >= LATERAL_LIMIT:
            return "lateral"
        return "frontal" if self.frontal - self.lateral >= FRONTAL_LIMIT else "cannot tell"


CANNOT_TELL: Final = Appearance(0.0, 0.0, 0.0)


def measure_appearance(pixels: Pixels) -> Appearance:
    """Compare an image with the average radiographs.

    Args:
        pixels: Grey values of shape (height, width), at full size or smaller, 0 black.

    Returns:
        Three correlations; all 0 for an image that is too small or has too few values.

    Example:
        >>> measure_appearance(np.zeros((512, 512), np.uint8)).shows_polarity
        'cannot tell'
    """
    if min(pixels.shape) < SMALLEST_SIDE:
        return CANNOT_TELL
    ranks = rank_thumbnail(pixels)
    if len(np.unique(ranks)) < FEWEST_LEVELS:
        return CANNOT_TELL
    polarity = _correlate(ranks, read_average_radiographs().frontal)
    # The view of an inverted image is found as if it were not.
    organs = _extract_organs(ranks if polarity >= 0 else 1 - ranks)
    around = np.pad(organs, _MARGIN, mode="edge")
    frontal, lateral = _make_templates()
    return Appearance(polarity, _match(around, frontal), _match(around, lateral))


def _correlate(one: Thumbnail, other: Thumbnail) -> float:
    a, b = one - one.mean(), other - other.mean()
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def _extract_organs(ranks: Thumbnail) -> Thumbnail:
    """Structures of the size of organs, without the slow change of exposure across the image."""
    return np.asarray(cv2.GaussianBlur(ranks, (0, 0), _FINE) - cv2.GaussianBlur(ranks, (0, 0), _COARSE))


@cache
def _make_templates() -> tuple[tuple[Thumbnail, ...], tuple[Thumbnail, ...]]:
    """The organs of the frontal and of the lateral average, in all sizes; the lateral one also mirrored."""
    averages = read_average_radiographs()
    frontal = tuple(_resize(_extract_organs(averages.frontal), scale, 1.0) for scale in _FRONTAL_SCALES)
    facing_left = [
        _resize(_extract_organs(averages.lateral), scale, aspect)
        for scale in _LATERAL_SCALES
        for aspect in _LATERAL_ASPECTS
        if SIDE * scale * aspect <= SIDE + 2 * _MARGIN
    ]
    facing_right = [np.ascontiguousarray(template[:, ::-1]) for template in facing_left]
    return frontal, (*facing_left, *facing_right)


def _resize(organs: Thumbnail, scale: float, aspect: float) -> Thumbnail:
    size = round(SIDE * scale), round(SIDE * scale * aspect)
    return np.asarray(cv2.resize(organs, size, interpolation=cv2.INTER_AREA))


def _match(organs: Thumbnail, templates: Iterable[Thumbnail]) -> float:
    return max(float(cv2.matchTemplate(organs, each, cv2.TM_CCOEFF_NORMED).max()) for each in templates)


# ---- one study ------------------------------------------------------------------------------------------------------

ReadImage = Callable[[Image], Pixels | None]
"""Grey values of an image, 0 black, at full size or smaller; None where there is no file. Raises CarinaError or OSError
where the file cannot be decoded."""


def read_for_plausibility(file: Path | bytes, image: Image) -> Pixels | None:
    """Grey values of an image, reduced where that is faster, 0 black, as its record says; None without a file.

    The image is a file, or the content of the PNG file that a reader of a source has made.
    """
    if isinstance(file, Path) and not file.exists():
        return None
    pixels = (
        read_reduced_pixels(file, REDUCED_SIDE)
        if isinstance(file, Path)
        else decode_png(file, place=image.key)
    )
    is_negative = image.rescale is not None and image.rescale[0] < 0
    return ~pixels if image.monochrome1 != is_negative else pixels


class PlausibilityResult(NamedTuple):
    """What was found in the images of a study."""

    problems: tuple[PlausibilityProblem, ...] = ()
    images: int = 0
    """Images that were opened."""
    undecided: tuple[PlausibilityCheck, ...] = ()
    """The checks that could not tell, once for each image."""
    digests: tuple[tuple[str, bytes], ...] = ()
    """Keys of images, each with a checksum of its pixels; without images of which nothing can be told."""


class SeenImages:
    """Images by their pixels, to find those that come again under another name.

    Example:
        >>> seen = SeenImages()
        >>> seen.add("s1", [("a.png", b"1")])
        >>> seen.find_repeated("s2", [("b.png", b"1")])[0].seen
        "the pixels of image 'a.png' of study 's1'"
    """

    def __init__(self) -> None:
        self._first: dict[bytes, tuple[str, str]] = {}

    def add(self, study: str, digests: Iterable[tuple[str, bytes]]) -> None:
        """Note the images of a study: keys and checksums, as `PlausibilityResult` has them."""
        for image, digest in digests:
            self._first.setdefault(digest, (study, image))

    def find_repeated(self, study: str, digests: Iterable[tuple[str, bytes]]) -> list[PlausibilityProblem]:
        """Images of a study whose pixels are those of an image that was noted, or of another image of the study."""
        problems, own = [], dict[bytes, tuple[str, str]]()
        for image, digest in digests:
            first = self._first.get(digest) or own.setdefault(digest, (study, image))
            if first != (study, image):
                seen = f"the pixels of image {first[1]!r} of study {first[0]!r}"
                problems.append(
                    PlausibilityProblem(
                        study=study, image=image, check="repeated", seen=seen, expected="an image of its own"
                    )
                )
        return problems


def check_plausibility(study: Study, read_image: ReadImage | None) -> PlausibilityResult:
    """Look for images of a study that do not look like what the study says of them.

    Args:
        study: The study.
        read_image: Reads the pixels of an image; None to check the lungs alone, without opening a file.

    Returns:
        Problems by image: polarity, view, lungs. Images of unknown size are not opened: they have no file.
    """
    problems: list[PlausibilityProblem] = []
    undecided: list[PlausibilityCheck] = []
    digests: list[tuple[str, bytes]] = []
    opened = 0
    for image in study.images:
        if read_image is not None and image.width:
            appearance, digest = _measure_image(read_image, image)
            digests += [(image.key, digest)] if digest else []
            opened += appearance is not None
            problems += _find_pixel_problems(study, image, appearance)
            undecided += _list_undecided(image, appearance)
        problems += _check_lungs(study, image)
    return PlausibilityResult(tuple(problems), opened, tuple(undecided), tuple(digests))


def _measure_image(read_image: ReadImage, image: Image) -> tuple[Appearance | str | None, bytes]:
    """What an image looks like, or why it cannot be decoded, or None without a file; and a checksum of its pixels,
    empty where nothing is said about it."""
    try:
        pixels = read_image(image)
    except (CarinaError, OSError) as error:
        return str(error), b""
    if pixels is None:
        return None, b""
    appearance = measure_appearance(pixels)
    if appearance == CANNOT_TELL:
        return appearance, b""
    whole = hashlib.blake2b(f"{pixels.dtype.str} {pixels.shape}".encode(), digest_size=16)
    whole.update(np.ascontiguousarray(pixels).data)
    return appearance, whole.digest()


def _find_pixel_problems(
    study: Study, image: Image, appearance: Appearance | str | None
) -> Iterator[PlausibilityProblem]:
    def make_problem(
        check: PlausibilityCheck, seen: str, expected: str, correction: str = ""
    ) -> PlausibilityProblem:
        return PlausibilityProblem(
            study=study.id, image=image.key, check=check, seen=seen, expected=expected, correction=correction
        )

    if isinstance(appearance, str):
        yield make_problem("pixels", f"a file that cannot be decoded ({appearance})", "an image")
    if not isinstance(appearance, Appearance):
        return
    if appearance.shows_polarity == "inverted":
        seen = f"an inverted image (correlation {appearance.polarity:.2f} with an average radiograph)"
        done = f"monochrome1 is set to {not image.monochrome1}"
        yield make_problem("polarity", seen, "air dark and bone bright", done)
    shown, stated = appearance.shows_view, _kind_of_view(image)
    if stated is not None and shown not in (stated, "cannot tell"):
        seen = f"a {shown} image (frontal {appearance.frontal:.2f}, lateral {appearance.lateral:.2f})"
        view = "lateral" if shown == "lateral" else "unknown"  # PA or AP cannot be told
        yield make_problem("view", seen, f"the view {image.view}", f"the view is set to {view}")


def _list_undecided(image: Image, appearance: Appearance | str | None) -> Iterator[PlausibilityCheck]:
    if not isinstance(appearance, Appearance):
        return
    if appearance.shows_polarity == "cannot tell":
        yield "polarity"
    if _kind_of_view(image) is not None and appearance.shows_view == "cannot tell":
        yield "view"


def _kind_of_view(image: Image) -> ViewKind | None:
    if image.view == "unknown":
        return None
    return "lateral" if image.view == "lateral" else "frontal"


# ---- lungs ----------------------------------------------------------------------------------------------------------

_SWAP: Final = "right lung and left lung are swapped"
_LEAVE_OUT: Final = "the lungs of this annotator are left out"


def _check_lungs(study: Study, image: Image) -> Iterator[PlausibilityProblem]:
    """The problems of the lungs on one image, annotator by annotator; none where nobody has drawn a lung."""
    if image.view == "lateral" or not image.width:
        return
    for annotator, lungs in _group_lungs(study, image.key).items():
        found = _find_lung_problem(lungs, image)
        if found is not None:
            seen, expected, correction = found
            yield PlausibilityProblem(
                study=study.id, image=image.key, check="lungs", annotator=annotator, seen=seen, expected=expected,
                correction=correction,
            )  # fmt: skip


def _group_lungs(study: Study, key: str) -> dict[str, list[Anatomy]]:
    """Drawings called right or left lung on an image, by annotator."""
    groups: dict[str, list[Anatomy]] = {}
    for structure in study.anatomy:
        if structure.name in _LUNGS and structure.image == key:
            groups.setdefault(structure.annotator, []).append(structure)
    return groups


def _find_lung_problem(lungs: Sequence[Anatomy], image: Image) -> tuple[str, str, str] | None:
    """What is seen, what is expected, and the correction; None for two plausible lungs."""
    names = sorted(lung.name for lung in lungs)
    if names != sorted(_LUNGS):
        counted = " and ".join(f"{names.count(name)} x {name}" for name in _LUNGS if name in names)
        return counted, "one right lung and one left lung", _LEAVE_OUT
    regions = {lung.name: lung.region for lung in lungs}
    right, left = regions["right lung"], regions["left lung"]
    if right.centroid is None or left.centroid is None:
        return "an empty lung", "two lungs with pixels", _LEAVE_OUT
    overlap = right.iou(left)
    if overlap >= SAME_REGION:
        return f"one region twice (IoU {overlap:.2f})", "two lungs beside each other", _LEAVE_OUT
    return _find_area_problem(right, left, image) or _find_side_problem(right.centroid[0], left.centroid[0])


def _find_area_problem(right: Region, left: Region, image: Image) -> tuple[str, str, str] | None:
    low, high = LUNG_SHARES
    for name, lung in zip(_LUNGS, (right, left), strict=True):
        share = lung.area / (image.width * image.height)
        if not low <= share <= high:
            return f"a {name} of {share:.1%} of the image", f"{low:.1%} to {high:.0%}", _LEAVE_OUT
    smaller, larger = sorted((right.area, left.area))
    if smaller < SMALLER_LUNG * larger:
        return (
            f"one lung with {smaller / larger:.0%} of the area of the other",
            f"at least {SMALLER_LUNG:.0%}",
            _LEAVE_OUT,
        )
    return None


def _find_side_problem(right_x: float, left_x: float) -> tuple[str, str, str] | None:
    if right_x < left_x:
        return None
    seen = f"the right lung at column {right_x:.1f}, right of the left lung at column {left_x:.1f}"
    return seen, "the right lung on the left of a frontal image", _SWAP


# ---- correcting -----------------------------------------------------------------------------------------------------


def correct_study(study: Study, problems: Iterable[PlausibilityProblem]) -> Study:
    """The study with what its problems say of their correction; a problem without one changes nothing.

    Args:
        study: The study.
        problems: Problems that `check_plausibility` found in it.

    Returns:
        A study of the same images: an inverted image is marked by `monochrome1`, a view is replaced, swapped lungs
        change their names, and lungs that cannot be right are left out.
    """
    for problem in problems:
        match problem.check:
            case "polarity":
                image = study.image(problem.image)
                study = _replace_image(
                    study, msgspec.structs.replace(image, monochrome1=not image.monochrome1)
                )
            case "view":
                image = study.image(problem.image)
                view: Literal["lateral", "unknown"] = "unknown" if image.view == "lateral" else "lateral"
                study = _replace_image(study, msgspec.structs.replace(image, view=view))
            case "lungs":
                study = _correct_lungs(study, problem)
            case "pixels":
                pass
    return study


def _replace_image(study: Study, changed: Image) -> Study:
    images = tuple(changed if image.key == changed.key else image for image in study.images)
    return msgspec.structs.replace(study, images=images)


def _correct_lungs(study: Study, problem: PlausibilityProblem) -> Study:
    own = _group_lungs(study, problem.image)[problem.annotator]
    is_swapped = problem.correction == _SWAP
    other = dict(zip(_LUNGS, reversed(_LUNGS), strict=True))
    anatomy = tuple(
        msgspec.structs.replace(structure, name=other[structure.name]) if structure in own else structure
        for structure in study.anatomy
        if is_swapped or structure not in own
    )
    return msgspec.structs.replace(study, anatomy=anatomy)
