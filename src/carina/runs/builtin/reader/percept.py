"""Answers to the steps of a percept case, from the pictures of the conversation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import cv2
import numpy as np

from carina.cases import Step
from carina.runs.builtin.reader import attributes
from carina.runs.builtin.reader.contour import Estimate, best_mask, needs_revision
from carina.runs.builtin.reader.reading import Reading
from carina.runs.parse.choices import says_none
from carina.studies.lungs import ZONE_COVERED
from carina.studies.region import Mask
from carina.studies.vocabulary import SIDES

Look = Callable[[str], Reading]
"""The reading of a view, by its id."""
Point = tuple[float, float]
"""Column and row."""

_UNDER_A_MARK: Final = 7
"""Pixels: as far as a mark may hide the tint."""
_SEVERITIES: Final = (("less than 1/3", 0.0), ("1/3 to less than 2/3", 1 / 3), ("2/3 or more", 2 / 3))
_COMPARISONS: Final = {
    "similar": "similar",
    "left": "larger in the left",
    "right": "larger in the right",
    "one": "one lung",
}


class Examination:
    """A percept conversation as far as it has come."""

    def __init__(self, step: Step, finding: str, views: Sequence[str], look: Look) -> None:
        self._step, self._finding, self._look = step, finding, look
        self._views = list(views)
        plain = (view for view in self._views if look(view).picture.contour is None)
        self._base = look(next(plain, self._views[0]))

    def chosen(self) -> list[int]:
        """Numbers of the options that are right, as far as can be seen; none where that is nothing."""
        answer = {
            "detection": self._detection,
            "recognition": self._detection,
            "contour evaluation": self._evaluation,
            "expansion": self._expansion,
            "contraction": self._contraction,
            "revision": self._revision,
            "distribution": self._distribution,
            "location": self._location,
            "severity": self._severity,
            "comparison": self._comparison,
        }.get(self._step.task)
        return answer() if answer is not None else []

    # ---- options ------------------------------------------------------------------------------------------------

    def _saying(self, words: str) -> list[int]:
        """Options that begin with or hold words."""
        texts = [option.text.lower() for option in self._step.options]
        return [n for n, text in enumerate(texts, start=1) if words in text][:1]

    def _yes(self, *, yes: bool) -> list[int]:
        return self._saying("yes" if yes else "no")

    def _or_none(self, numbers: list[int]) -> list[int]:
        none = [n for n, option in enumerate(self._step.options, start=1) if says_none(option.text)]
        return numbers or none

    # ---- contours -----------------------------------------------------------------------------------------------

    def _contours(self, views: Sequence[str]) -> list[Mask]:
        found = []
        for view in views:
            picture = self._look(view).picture
            if picture.contour is None or picture.contour.shape != self._base.shape:
                continue
            mask = picture.contour
            if picture.marks:
                size = 2 * _UNDER_A_MARK + 1
                disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
                mask = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, disc).astype(bool)
            found.append(mask)
        return found

    def _shown(self) -> Mask | None:
        """The contour that was proposed: the first, before any points or choices were drawn."""
        contours = self._contours(self._views)
        return contours[0] if contours else None

    def _estimate(self) -> Estimate:
        return self._base.lesion(self._finding, self._shown())

    def _settled(self) -> Mask:
        """The lesion after all revisions: the contour of the conversation that fits the image best, or our own."""
        found, contours = self._estimate(), self._contours(self._views)
        return contours[best_mask(found, contours)] if contours else found.mask

    # ---- steps --------------------------------------------------------------------------------------------------

    def _detection(self) -> list[int]:
        return self._yes(yes=self._base.shows(self._finding))

    def _evaluation(self) -> list[int]:
        shown = self._shown()
        if shown is None:
            return self._yes(yes=False)
        return self._yes(yes=needs_revision(self._estimate(), self._finding, shown))

    def _points(self, *, inside: bool) -> list[int]:
        shown = self._shown()
        if shown is None or self._base.blank:
            return self._or_none([])
        found = self._estimate()
        return self._or_none(
            [
                number
                for number, point in self._offered().items()
                if holds(shown, point) == inside and (found.at(point) < 0) == inside
            ]
        )

    def _marks(self) -> dict[str, Point]:
        """Points by their colour, of the last picture that shows any."""
        marks: dict[str, Point] = {}
        for view in self._views:
            marks = self._look(view).picture.marks or marks
        return marks

    def _offered(self) -> dict[int, Point]:
        """Points by the number of the option that names them."""
        marks, texts = self._marks(), [option.text.lower() for option in self._step.options]
        found = {
            number: next((place for colour, place in marks.items() if colour in text), None)
            for number, text in enumerate(texts, start=1)
        }
        return {number: point for number, point in found.items() if point is not None}

    def _expansion(self) -> list[int]:
        return self._points(inside=False)

    def _contraction(self) -> list[int]:
        return self._points(inside=True)

    def _masks(self) -> dict[int, Mask]:
        """Contours by the number of the option that shows them."""
        found = {
            number: self._contours([option.view])
            for number, option in enumerate(self._step.options, start=1)
            if option.view
        }
        return {number: contours[0] for number, contours in found.items() if contours}

    def _fitting(self, masks: Mapping[int, Mask]) -> list[int]:
        """The number of the mask that agrees best with the image."""
        numbers = list(masks)
        return [numbers[best_mask(self._estimate(), list(masks.values()))]] if masks else []

    def _revision(self) -> list[int]:
        return self._fitting(self._masks())

    def _distribution(self) -> list[int]:
        count = len(attributes.zones(self._settled(), self._base.thorax))
        return self._saying(f"{min(max(count, 1), 4)} zone")

    def _location(self) -> list[int]:
        mask, thorax = self._settled(), self._base.thorax
        numbers = []
        for n, option in enumerate(self._step.options, start=1):
            part = attributes.region(option.text, thorax)
            if part is not None and attributes.covered(mask, part) >= ZONE_COVERED:
                numbers.append(n)
        return self._or_none(numbers)

    def _severity(self) -> list[int]:
        said = self._step.question.lower()
        side = next((side for side in SIDES if f"{side} lung" in said), "right")
        share = attributes.share_of_lung(self._settled(), self._base.thorax, side)
        return self._saying([words for words, least in _SEVERITIES if share >= least][-1])

    def _comparison(self) -> list[int]:
        return self._saying(_COMPARISONS[attributes.comparison(self._settled(), self._base.thorax)])


def holds(mask: Mask, point: Point) -> bool:
    """Whether a point lies in a mask."""
    row, column = min(int(point[1]), mask.shape[0] - 1), min(int(point[0]), mask.shape[1] - 1)
    return bool(mask[row, column])
