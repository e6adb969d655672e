"""Masks of lesions by a segmenter that is prompted with what annotators drew: a box, or a mask that it draws anew.

Nobody has looked at such a mask, and its provenance says so.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.models import Box, Point, Prompts, Segmenter
from carina.percept.anatomy import mask_on
from carina.percept.grey import GreyOf
from carina.percept.lesions import Lesion
from carina.percept.outline import iou
from carina.percept.rules import Ineligible, Rules
from carina.percept.truth import Truth, conspicuity, whole
from carina.studies.model import Annotation, Image, Study
from carina.studies.region import Mask, Region

PIECE: Final = 1000.0
"""Smaller pieces of a mask are left aside, as CheXpercept does: pixels of the rules' frame."""
AGREEMENT: Final = 0.5
"""Overlap (IoU) of an answer with what was asked for: of masks, or of boxes where that was one. Below, the segmenter
has outlined something else."""
SHORT: Final = 12
"""Digits of a checksum that are told."""


@dataclass(frozen=True)
class Segmented:
    """A source of truth: `examine(..., truth_of=Segmented(segmenter, grey_of(studies)))`."""

    segmenter: Segmenter
    grey: GreyOf
    rules: Rules = field(default_factory=Rules)

    def __call__(self, study: Study, image: Image, lesion: Lesion) -> Truth:
        """The union of what the segmenter makes of each drawn piece."""
        annotator, drawn = _chosen(study, image, lesion)
        pixels = self.grey(image)
        mask = np.zeros((image.height, image.width), bool)
        for finding, annotation in drawn:
            for piece, prompts in self._pieces(image, finding, annotation):
                mask |= self._outlined(pixels, piece, prompts, box=annotation.drawn == "box")
        return Truth(
            mask=mask,
            provenance=self._provenance(annotator, drawn),
            reviewed=False,
            conspicuity=conspicuity(drawn),
        )

    def _pieces(self, image: Image, finding: str, annotation: Annotation) -> Iterator[tuple[Mask, Prompts]]:
        """What was drawn, one object at a time, and how the segmenter is asked for it."""
        mask = mask_on(image, annotation.region, f"finding {finding!r}")
        if not mask.any():
            raise Ineligible("empty mask", f"finding {finding!r} has no pixel")
        region = Region.from_mask(mask)
        if annotation.drawn == "box":
            yield mask, Prompts(box=_box(region))
            return
        least = PIECE * (max(mask.shape) / self.rules.frame) ** 2
        pieces = region.components(connectivity=4)
        for piece in [piece for piece in pieces if piece.area >= least] or pieces[:1]:
            alone = piece.to_mask()
            yield alone, Prompts(box=_box(piece), points=(_inner_point(alone),))

    def _outlined(self, pixels: NDArray[np.uint8], piece: Mask, prompts: Prompts, *, box: bool) -> Mask:
        proposals = self.segmenter.propose(pixels, prompts)
        found = proposals[0].region.to_mask() if proposals else np.zeros_like(piece)
        overlap = iou(_boxed(found), piece) if box else iou(found, piece)
        if not overlap >= AGREEMENT:
            kind = "box" if box else "mask"
            raise Ineligible(
                "segmenter disagrees",
                f"its answer overlaps the drawn {kind} by {overlap:.2f}, at least {AGREEMENT} needed",
            )
        return found

    def _provenance(self, annotator: str, drawn: list[tuple[str, Annotation]]) -> str:
        kinds = {annotation.drawn == "box" for _, annotation in drawn}
        prompt = {True: "box", False: "box and inner point of each piece of the mask"}
        return (
            f"segmented by {self.segmenter.name} (weights {self.segmenter.weights[:SHORT]}) from "
            f"{' and '.join(prompt[kind] for kind in sorted(kinds))} drawn by {annotator}; not reviewed"
        )


def _chosen(study: Study, image: Image, lesion: Lesion) -> tuple[str, list[tuple[str, Annotation]]]:
    """An annotator who has drawn every finding, one who drew no box if there is any."""
    drawn = whole(study, image, lesion)

    def rank(name: str) -> tuple[bool, str]:
        return any(annotation.drawn == "box" for _, annotation in drawn[name]), name

    annotator = min(drawn, key=rank)
    return annotator, drawn[annotator]


def _box(region: Region) -> Box:
    x, y, w, h = region.bbox or (0, 0, 0, 0)
    return Box(x, y, x + w, y + h)


def _boxed(mask: Mask) -> Mask:
    """The smallest box that holds a mask, as a mask."""
    x, y, w, h = cv2.boundingRect(mask.view(np.uint8))
    filled = np.zeros_like(mask)
    filled[y : y + h, x : x + w] = True
    return filled


def _inner_point(mask: Mask) -> Point:
    """The pixel that is furthest from the outside, the first in reading order if several are."""
    padded = np.pad(mask, 1).view(np.uint8)
    distance = cv2.distanceTransform(padded, cv2.DIST_L2, cv2.DIST_MASK_5)
    row, column = divmod(int(distance.argmax()), padded.shape[1])
    return Point(column - 0.5, row - 0.5, inside=True)
