"""Sources of the mask of a lesion: the study set's own regions, or a segmenter that is prompted with them.

A mask that a program drew is used only where no person drew. A segmenter is prompted with the box or the mask that an
annotator drew. No person has reviewed such masks, and the provenance of a mask says so.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Final, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.models import Box, Point, Prompts, Segmenter
from carina.percept.anatomy import decode_mask
from carina.percept.lesions import Lesion
from carina.percept.outline import iou
from carina.percept.rules import Ineligible, Rules
from carina.store.errors import CarinaError
from carina.studies import Studies, display_image
from carina.studies.model import Annotation, Finding, Image, Study
from carina.studies.readers import FusionRule, fuse_readers, join_regions
from carina.studies.region import Mask, Region

ANNOTATOR_AGREEMENT: Final = 0.7
"""Least overlap (IoU) of two annotators' masks; below it, neither is used as the truth."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """The mask that everything about a case is measured against."""

    mask: Mask
    provenance: str
    """Who or what drew the mask, as a phrase."""
    reviewed: bool
    """Whether an expert has drawn or approved this mask."""
    conspicuity: float | None
    """Contrast-to-noise ratio of the most visible piece, where the source states it."""


class TruthSource(Protocol):
    """Gives the mask of a lesion on an image."""

    def __call__(self, study: Study, image: Image, lesion: Lesion) -> Truth:
        """The mask on the image; `Ineligible` where there is none."""
        ...


@dataclass(frozen=True)
class FusedMasks:
    """Masks of several readers, fused by a rule: `analyse_lesion(..., truth_of=FusedMasks(rule))`.

    Only readers who have drawn contours of all findings count; how much they agree is part of the provenance.
    """

    rule: FusionRule

    def __call__(self, study: Study, image: Image, lesion: Lesion) -> Truth:
        """The fused mask; `Ineligible` where nothing is left of it."""
        contours = find_contours(study, image, lesion)
        for drawn in contours.values():
            for finding, annotation in drawn:
                decode_mask(image, annotation.region, f"finding {finding!r}")
        by_reader = {name: [annotation for _, annotation in drawn] for name, drawn in contours.items()}
        region = fuse_readers(by_reader, self.rule, readers=len(study.assessed.readers)).region
        if region.is_empty:
            raise Ineligible("readers share no pixel", f"{self.rule.fusion} of {', '.join(contours)}")
        is_reviewed = not any(map(is_by_program, contours.values()))
        provenance = _name_drawers(contours, is_reviewed=is_reviewed)
        if len(contours) > 1:
            regions = [join_regions(drawn) for drawn in by_reader.values()]
            agreement = fmean(one.iou(other) for one, other in combinations(regions, 2))
            looked = max(len(contours), len(study.assessed.readers))
            provenance += f"; {self.rule.describe(looked)}, who overlap by {agreement:.2f}"
        seen = best_conspicuity([one for drawn in contours.values() for one in drawn])
        return Truth(mask=region.to_mask(), provenance=provenance, reviewed=is_reviewed, conspicuity=seen)


def _name_drawers(names: Iterable[str], *, is_reviewed: bool) -> str:
    """Who drew a mask, as a phrase; a program is never taken for a person."""
    drawers = ", ".join(names)
    return f"drawn by {drawers}" if is_reviewed else f"drawn by a program ({drawers}); not reviewed"


def find_contours(study: Study, image: Image, lesion: Lesion) -> dict[str, list[tuple[str, Annotation]]]:
    """By annotator, contours of all findings of the name; `Ineligible` where everybody drew boxes."""
    contours = {
        name: drawn
        for name, drawn in complete_annotations(study, image, lesion).items()
        if all(annotation.drawn != "box" for _, annotation in drawn)
    }
    if not contours:
        raise Ineligible("drawn as a box", "a contour of every finding of the name is needed")
    return contours


def masks_as_drawn(study: Study, image: Image, lesion: Lesion) -> Truth:
    """The study set's own regions: all findings of the name, as one annotator drew them.

    Where several annotators have drawn contours of all findings, they must agree; the first annotator by name is used.
    """
    contours = find_contours(study, image, lesion)
    masks = {
        name: np.logical_or.reduce(
            [decode_mask(image, annotation.region, f"finding {finding!r}") for finding, annotation in drawn]
        )
        for name, drawn in contours.items()
    }
    first, *others = masks
    is_reviewed = not is_by_program(contours[first])
    provenance = _name_drawers([first], is_reviewed=is_reviewed)
    for other in others:
        agreement = iou(masks[first], masks[other])
        if not agreement >= ANNOTATOR_AGREEMENT:
            raise Ineligible("annotators disagree", f"{first} and {other} overlap by {agreement:.2f}")
        provenance += f"; {other} agrees to {agreement:.2f}"
    seen = best_conspicuity(contours[first])
    return Truth(mask=masks[first], provenance=provenance, reviewed=is_reviewed, conspicuity=seen)


def best_conspicuity(drawn: list[tuple[str, Annotation]]) -> float | None:
    """Conspicuity of the most visible piece of a lesion."""
    known = [annotation.conspicuity for _, annotation in drawn if annotation.conspicuity is not None]
    return max(known, default=None)


def annotations_on(study: Study, image: Image, lesion: Lesion) -> Iterator[tuple[str, Annotation]]:
    """Annotations of a lesion on an image with the ids of its findings; `Ineligible` where a finding is not drawn."""
    for finding in _find_present(study, lesion):
        here = [drawn for drawn in finding.annotations if drawn.image == image.key]
        if not here:
            raise Ineligible("not drawn", f"finding {finding.id!r} has no region on {image.key!r}")
        yield from ((finding.id, drawn) for drawn in here)


def complete_annotations(
    study: Study, image: Image, lesion: Lesion
) -> dict[str, list[tuple[str, Annotation]]]:
    """By annotator, the annotations of those who drew every finding of the name; `Ineligible` where none did.

    Programs count only where no person drew.
    """
    by_annotator: dict[str, list[tuple[str, Annotation]]] = {}
    for finding, drawn in annotations_on(study, image, lesion):
        by_annotator.setdefault(drawn.annotator, []).append((finding, drawn))
    findings = {finding.id for finding in _find_present(study, lesion)}
    names = [name for name, drawn in by_annotator.items() if {finding for finding, _ in drawn} == findings]
    if not names:
        raise Ineligible("not drawn", "no annotator has drawn every finding of the name")
    people = [name for name in names if not is_by_program(by_annotator[name])]
    return {name: by_annotator[name] for name in sorted(people or names)}


def is_by_program(drawn: list[tuple[str, Annotation]]) -> bool:
    """Whether a program drew any of what one annotator drew."""
    return any(annotation.automatic for _, annotation in drawn)


def _find_present(study: Study, lesion: Lesion) -> list[Finding]:
    return [f for f in study.findings if f.name == lesion.finding and f.certainty == "present"]


# ---- masks by a segmenter ----

GreyReader = Callable[[Image], NDArray[np.uint8]]
"""Grey values (height, width) of an image, 0 black."""


def grey_reader(studies: Studies) -> GreyReader:
    """A function that reads images of a study set; it raises `Ineligible` for an image that cannot be read."""

    def read(image: Image) -> NDArray[np.uint8]:
        try:
            stored = studies.pixels(image)
        except CarinaError as error:
            # The message contains a path of this machine, which must not be stored in a benchmark.
            raise Ineligible("image cannot be read", repr(image.key)) from error
        return display_image(stored, image)

    return read


LEAST_PIECE: Final = 1000.0
"""Smaller pieces of a mask are ignored, as in CheXpercept; in pixels of the rules' frame."""
SEGMENTER_AGREEMENT: Final = 0.5
"""Least overlap (IoU) of the segmenter's mask with the drawn mask, or of its bounding box with the drawn box. Below it,
the segmenter has outlined something else."""
CHECKSUM_DIGITS: Final = 12
"""Number of digits of a checksum in the name of a model."""


@dataclass(frozen=True)
class SegmenterTruth:
    """Masks by a segmenter: `analyse_lesion(..., truth_of=SegmenterTruth(segmenter, grey_reader(studies)))`."""

    segmenter: Segmenter
    grey: GreyReader
    rules: Rules = field(default_factory=Rules)

    def __call__(self, study: Study, image: Image, lesion: Lesion) -> Truth:
        """The union of the segmenter's masks for all drawn pieces."""
        annotator, drawn = _choose_annotator(study, image, lesion)
        pixels = self.grey(image)
        mask = np.zeros((image.height, image.width), bool)
        for finding, annotation in drawn:
            for piece, prompts in self._list_pieces(image, finding, annotation):
                mask |= self._segment_piece(pixels, piece, prompts, box=annotation.drawn == "box")
        return Truth(
            mask=mask,
            provenance=self._provenance(annotator, drawn),
            reviewed=False,
            conspicuity=best_conspicuity(drawn),
        )

    def _list_pieces(
        self, image: Image, finding: str, annotation: Annotation
    ) -> Iterator[tuple[Mask, Prompts]]:
        """The drawn pieces, each with the prompts for the segmenter."""
        mask = decode_mask(image, annotation.region, f"finding {finding!r}")
        if not mask.any():
            raise Ineligible("empty mask", f"finding {finding!r} has no pixel")
        region = Region.from_mask(mask)
        if annotation.drawn == "box":
            yield mask, Prompts(box=_bounding_box(region))
            return
        least = LEAST_PIECE * (max(mask.shape) / self.rules.frame) ** 2
        pieces = region.components(connectivity=4)
        for piece in [piece for piece in pieces if piece.area >= least] or pieces[:1]:
            alone = piece.to_mask()
            yield alone, Prompts(box=_bounding_box(piece), points=(_inner_point(alone),))

    def _segment_piece(self, pixels: NDArray[np.uint8], piece: Mask, prompts: Prompts, *, box: bool) -> Mask:
        proposals = self.segmenter.propose(pixels, prompts)
        found = proposals[0].region.to_mask() if proposals else np.zeros_like(piece)
        overlap = iou(_fill_bounding_box(found), piece) if box else iou(found, piece)
        if not overlap >= SEGMENTER_AGREEMENT:
            kind = "box" if box else "mask"
            raise Ineligible(
                "segmenter disagrees",
                f"its answer overlaps the drawn {kind} by {overlap:.2f}, at least {SEGMENTER_AGREEMENT} needed",
            )
        return found

    def _provenance(self, annotator: str, drawn: list[tuple[str, Annotation]]) -> str:
        kinds = {annotation.drawn == "box" for _, annotation in drawn}
        prompt = {True: "box", False: "box and inner point of each piece of the mask"}
        return (
            f"segmented by {self.segmenter.name} (weights {self.segmenter.weights[:CHECKSUM_DIGITS]}) from "
            f"{' and '.join(prompt[kind] for kind in sorted(kinds))} drawn by {annotator}; not reviewed"
        )


def _choose_annotator(study: Study, image: Image, lesion: Lesion) -> tuple[str, list[tuple[str, Annotation]]]:
    """An annotator who has drawn every finding; preferably one who drew no box."""
    drawn = complete_annotations(study, image, lesion)

    def rank(name: str) -> tuple[bool, str]:
        return any(annotation.drawn == "box" for _, annotation in drawn[name]), name

    annotator = min(drawn, key=rank)
    return annotator, drawn[annotator]


def _bounding_box(region: Region) -> Box:
    x, y, w, h = region.bbox or (0, 0, 0, 0)
    return Box(x, y, x + w, y + h)


def _fill_bounding_box(mask: Mask) -> Mask:
    """The smallest box that holds a mask, as a mask."""
    x, y, w, h = cv2.boundingRect(mask.view(np.uint8))
    filled = np.zeros_like(mask)
    filled[y : y + h, x : x + w] = True
    return filled


def _inner_point(mask: Mask) -> Point:
    """The pixel that is farthest from the edge of the mask; of several, the first in row order."""
    padded = np.pad(mask, 1).view(np.uint8)
    distance = cv2.distanceTransform(padded, cv2.DIST_L2, cv2.DIST_MASK_5)
    row, column = divmod(int(distance.argmax()), padded.shape[1])
    return Point(column - 0.5, row - 0.5, inside=True)
