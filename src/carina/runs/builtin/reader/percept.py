"""Answer the steps of a percept case from the images of the conversation."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import cv2
import numpy as np

from carina.cases import Step
from carina.runs.builtin.reader import attributes
from carina.runs.builtin.reader.contour import LesionEstimate, find_best_mask, needs_revision
from carina.runs.builtin.reader.reading import Reading
from carina.runs.parse.choices import says_none
from carina.studies.lungs import ZONE_COVERED
from carina.studies.region import Mask
from carina.studies.vocabulary import SIDES

GetReading = Callable[[str], Reading]
"""Gives the reading of a view by its id."""
Point = tuple[float, float]
"""Column and row."""

_UNDER_A_MARK: Final = 7
"""Radius in pixels in which a mark may hide the tint of a contour."""
_SEVERITIES: Final = (("less than 1/3", 0.0), ("1/3 to less than 2/3", 1 / 3), ("2/3 or more", 2 / 3))
_COMPARISONS: Final = {
    "similar": "similar",
    "left": "larger in the left",
    "right": "larger in the right",
    "one": "one lung",
}


class PerceptReader:
    """One step of a percept conversation, with the images of the conversation so far."""

    def __init__(self, step: Step, finding: str, views: Sequence[str], get_reading: GetReading) -> None:
        self._step, self._finding, self._get_reading = step, finding, get_reading
        self._views = list(views)
        plain = (view for view in self._views if get_reading(view).image.contour is None)
        self._base = get_reading(next(plain, self._views[0]))

    def choose(self) -> list[int]:
        """Numbers of the options that agree with the images; empty for an unknown task."""
        answer = {
            "detection": self._answer_detection,
            "recognition": self._answer_detection,
            "contour evaluation": self._answer_evaluation,
            "expansion": self._answer_expansion,
            "contraction": self._answer_contraction,
            "revision": self._answer_revision,
            "distribution": self._answer_distribution,
            "location": self._answer_location,
            "severity": self._answer_severity,
            "comparison": self._answer_comparison,
        }.get(self._step.task)
        return answer() if answer is not None else []

    # ---- options ------------------------------------------------------------------------------------------------

    def _find_option(self, words: str) -> list[int]:
        """Number of the first option with these words, in a list; empty if there is none."""
        texts = [option.text.lower() for option in self._step.options]
        return [n for n, text in enumerate(texts, start=1) if words in text][:1]

    def _choose_yes_no(self, *, yes: bool) -> list[int]:
        return self._find_option("yes" if yes else "no")

    def _choose_or_none(self, numbers: list[int]) -> list[int]:
        none = [n for n, option in enumerate(self._step.options, start=1) if says_none(option.text)]
        return numbers or none

    # ---- contours -----------------------------------------------------------------------------------------------

    def _read_contours(self, views: Sequence[str]) -> list[Mask]:
        found = []
        for view in views:
            picture = self._get_reading(view).image
            if picture.contour is None or picture.contour.shape != self._base.shape:
                continue
            mask = picture.contour
            if picture.marks:
                size = 2 * _UNDER_A_MARK + 1
                disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (size, size))
                mask = cv2.morphologyEx(mask.astype(np.uint8), cv2.MORPH_CLOSE, disc).astype(bool)
            found.append(mask)
        return found

    def _proposal(self) -> Mask | None:
        """The proposed contour: the first of the conversation, before points and candidate masks are shown."""
        contours = self._read_contours(self._views)
        return contours[0] if contours else None

    def _estimate(self) -> LesionEstimate:
        return self._base.estimate_lesion(self._finding, self._proposal())

    def _final_mask(self) -> Mask:
        """The lesion after all revisions: the contour of the conversation that fits best, or else the estimate."""
        found, contours = self._estimate(), self._read_contours(self._views)
        return contours[find_best_mask(found, contours)] if contours else found.mask

    # ---- steps --------------------------------------------------------------------------------------------------

    def _answer_detection(self) -> list[int]:
        return self._choose_yes_no(yes=self._base.has_finding(self._finding))

    def _answer_evaluation(self) -> list[int]:
        proposal = self._proposal()
        if proposal is None:
            return self._choose_yes_no(yes=False)
        return self._choose_yes_no(yes=needs_revision(self._estimate(), self._finding, proposal))

    def _answer_points(self, *, inside: bool) -> list[int]:
        proposal = self._proposal()
        if proposal is None or self._base.is_blank:
            return self._choose_or_none([])
        found = self._estimate()
        return self._choose_or_none(
            [
                number
                for number, point in self._offered_points().items()
                if is_inside(proposal, point) == inside and (found.at(point) < 0) == inside
            ]
        )

    def _find_marks(self) -> dict[str, Point]:
        """Points by their colour, from the last image that shows any."""
        marks: dict[str, Point] = {}
        for view in self._views:
            marks = self._get_reading(view).image.marks or marks
        return marks

    def _offered_points(self) -> dict[int, Point]:
        """Points by the number of the option that names them."""
        marks, texts = self._find_marks(), [option.text.lower() for option in self._step.options]
        found = {
            number: next((place for colour, place in marks.items() if colour in text), None)
            for number, text in enumerate(texts, start=1)
        }
        return {number: point for number, point in found.items() if point is not None}

    def _answer_expansion(self) -> list[int]:
        return self._answer_points(inside=False)

    def _answer_contraction(self) -> list[int]:
        return self._answer_points(inside=True)

    def _offered_masks(self) -> dict[int, Mask]:
        """Contours by the number of the option that shows them."""
        found = {
            number: self._read_contours([option.view])
            for number, option in enumerate(self._step.options, start=1)
            if option.view
        }
        return {number: contours[0] for number, contours in found.items() if contours}

    def _choose_fitting(self, masks: Mapping[int, Mask]) -> list[int]:
        """The number of the mask that agrees best with the image."""
        numbers = list(masks)
        return [numbers[find_best_mask(self._estimate(), list(masks.values()))]] if masks else []

    def _answer_revision(self) -> list[int]:
        return self._choose_fitting(self._offered_masks())

    def _answer_distribution(self) -> list[int]:
        count = len(attributes.list_zones(self._final_mask(), self._base.thorax))
        return self._find_option(f"{min(max(count, 1), 4)} zone")

    def _answer_location(self) -> list[int]:
        mask, thorax = self._final_mask(), self._base.thorax
        numbers = []
        for n, option in enumerate(self._step.options, start=1):
            part = attributes.find_lung_part(option.text, thorax)
            if part is not None and attributes.measure_coverage(mask, part) >= ZONE_COVERED:
                numbers.append(n)
        return self._choose_or_none(numbers)

    def _answer_severity(self) -> list[int]:
        said = self._step.question.lower()
        side = next((side for side in SIDES if f"{side} lung" in said), "right")
        share = attributes.measure_lung_share(self._final_mask(), self._base.thorax, side)
        return self._find_option([words for words, least in _SEVERITIES if share >= least][-1])

    def _answer_comparison(self) -> list[int]:
        return self._find_option(
            _COMPARISONS[attributes.compare_sides(self._final_mask(), self._base.thorax)]
        )


def is_inside(mask: Mask, point: Point) -> bool:
    """Whether a point lies in a mask."""
    row, column = min(int(point[1]), mask.shape[0] - 1), min(int(point[0]), mask.shape[1] - 1)
    return bool(mask[row, column])
