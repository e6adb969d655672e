"""Deformers: how contours of a study are changed by an edit.

The signed-distance warp needs no pixels. A segmenter can deform contours too: prompted with a point beside the contour,
it proposes another contour. The change has the requested size whatever the model proposes: the model only decides which
pixels move first. All other rules for changes are those of the warp.
"""

from dataclasses import dataclass, field
from typing import Final, Protocol

import cv2
import numpy as np
from numpy.typing import NDArray

from carina.models import Point, Prompts, Segmenter
from carina.percept.deform import EffortFunction, Operation, warp
from carina.percept.outline import Field, Outline, Window
from carina.percept.truth import CHECKSUM_DIGITS, GreyReader
from carina.studies.model import Image, Study
from carina.studies.region import Mask


@dataclass(frozen=True)
class Deformer:
    """A way to change contours of one study."""

    name: str
    effort: EffortFunction


class DeformerSource(Protocol):
    """Makes the deformer of a study."""

    def __call__(self, study: Study, image: Image, /) -> Deformer:
        """The deformer for contours on an image; `Ineligible` where there can be none."""
        ...


def warp_deformer(_study: Study, _image: Image) -> Deformer:
    """The signed-distance warp: the same for all studies, needs no pixels."""
    return Deformer("signed-distance warp", warp)


# ---- a segmenter as deformer ----

POINT_DEPTH: Final = 0.3
"""Distance of the prompt point to the contour, in widths of the change."""
LEVELS: Final = 24
"""Steps in which a change grows from the contour."""
_CACHED_ANSWERS: Final = 4
"""Answers of the segmenter that are kept: a smaller and a larger change at the same site need the same answer."""


@dataclass(frozen=True)
class SegmenterDeformers:
    """Makes deformers: `analyse_lesion(..., deformer_of=SegmenterDeformers(segmenter, grey_reader(studies)))`."""

    segmenter: Segmenter
    grey: GreyReader

    def __call__(self, _study: Study, image: Image, /) -> Deformer:
        name = f"{self.segmenter.name} (weights {self.segmenter.weights[:CHECKSUM_DIGITS]})"
        return Deformer(name, SegmenterEffort(self.segmenter, self.grey(image)))


@dataclass
class SegmenterEffort:
    """The effort of moving pixels on one image, by a segmenter."""

    segmenter: Segmenter
    pixels: NDArray[np.uint8]
    _answers: list[tuple[Outline, Point, Field]] = field(default_factory=list)

    def __call__(
        self,
        outline: Outline,
        place: tuple[int, int],
        operation: Operation,
        *,
        width: float,
        chance: np.random.Generator,
    ) -> tuple[Window, Field]:
        """The window and movable pixels of the warp, ordered by how readily the segmenter changes them."""
        window, plain = warp(outline, place, operation, width=width, chance=chance)
        movable = np.isfinite(plain)
        if not movable.any():
            return window, plain
        row, column = _find_point_beside_contour(outline, window, movable, place, POINT_DEPTH * width)
        point = Point(
            column + outline.window[1].start + 0.5,
            row + outline.window[0].start + 0.5,
            inside=operation == "expansion",
        )
        sure = self._logits(outline, point)[window]
        cost = np.where(movable, -sure if operation == "expansion" else sure, np.float32(np.inf))
        kept = outline.mask[window] == (operation == "expansion")
        return window, grow_from_contour(cost, _find_neighbours(kept) & movable, plain)

    def _logits(self, outline: Outline, point: Point) -> Field:
        """The segmenter's logits in the outline's window, prompted with the mask and the point."""
        for other, asked, answer in self._answers:
            if other is outline and asked == point:
                return answer
        prompts = Prompts(points=(point,), mask=outline.on_image(outline.mask))
        answer = self.segmenter.propose(self.pixels, prompts)[0].logits[outline.window].copy()
        self._answers = [*self._answers[1 - _CACHED_ANSWERS :], (outline, point, answer)]
        return answer


def grow_from_contour(cost: Field, contour: Mask, plain: Field) -> Field:
    """The effort of each pixel that can be reached from the contour over pixels that cost no more; inf elsewhere.

    So a change is neither an island apart from the contour nor a hole in the mask. It grows in steps of equal numbers
    of pixels. Within a step, pixels are ordered by their effort in `plain`, so that few have the same effort.
    """
    cost = np.where(np.isnan(cost), np.float32(np.inf), cost)
    effort = np.full(cost.shape, np.inf, np.float32)
    finite = cost[np.isfinite(cost)]
    if not finite.size:
        return effort
    for step, level in enumerate(np.quantile(finite, np.linspace(0, 1, LEVELS + 1)[1:], method="higher")):
        labels = cv2.connectedComponents((cost <= level).view(np.uint8), connectivity=4)[1]
        rooted = np.zeros(int(labels.max()) + 1, bool)
        rooted[labels[contour]] = True
        rooted[0] = False
        fresh = rooted[labels] & np.isinf(effort)
        effort[fresh] = step + plain[fresh] / (1 + plain[fresh])
    return effort


def _find_point_beside_contour(
    outline: Outline, window: Window, movable: Mask, place: tuple[int, int], away: float
) -> tuple[int, int]:
    """Of the movable pixels at least `away` from the contour, the one nearest to a place.

    Where no pixel is that far away, the most distant one counts.
    """
    depth = np.where(movable, np.abs(outline.depth[window]), np.float32(-1))
    rows, columns = np.nonzero(depth >= min(away, float(depth.max())))
    rows, columns = rows + window[0].start, columns + window[1].start
    nearest = int(((rows - place[0]) ** 2 + (columns - place[1]) ** 2).argmin())
    return int(rows[nearest]), int(columns[nearest])


def _find_neighbours(other: Mask) -> Mask:
    """Pixels with a neighbour on the other side of the contour."""
    cross = cv2.getStructuringElement(cv2.MORPH_CROSS, (3, 3))
    return cv2.dilate(np.ascontiguousarray(other).view(np.uint8), cross).astype(bool)
