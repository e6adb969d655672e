"""`builtin/anchored`: the reader, which takes the earlier answers of a percept conversation as true.

A wrong earlier answer makes later answers wrong, and a right one makes them easier, whatever the image shows. In other
protocols it answers as the reader does.
"""

from collections.abc import Sequence

import numpy as np

from carina.cases import Step
from carina.runs.builtin.reader.model import Reader
from carina.runs.builtin.reader.percept import GetReading, PerceptReader, Point, is_inside
from carina.runs.builtin.reader.settled_answers import SettledAnswers, read_settled_answers
from carina.runs.records import Turn
from carina.studies.region import Mask


class AnchoredReader(Reader):
    """The reader, which takes the answers of earlier turns as true."""

    name = "builtin/anchored"

    def _make_percept_reader(
        self, turn: Turn, finding: str, views: Sequence[str], get_reading: GetReading
    ) -> PerceptReader:
        return _AnchoredPerceptReader(
            turn.step, finding, views, get_reading, read_settled_answers(turn.messages)
        )


class _AnchoredPerceptReader(PerceptReader):
    """Answers percept steps consistently with the answers of earlier turns."""

    def __init__(
        self, step: Step, finding: str, views: Sequence[str], get_reading: GetReading, settled: SettledAnswers
    ) -> None:
        super().__init__(step, finding, views, get_reading)
        self._settled = settled

    def _answer_evaluation(self) -> list[int]:
        # Where there is no lesion, any contour is wrong.
        return (
            self._choose_yes_no(yes=True)
            if self._settled.has_lesion is False
            else super()._answer_evaluation()
        )

    def _answer_expansion(self) -> list[int]:
        if self._settled.has_lesion is False or self._settled.needs_revision is False:
            return self._choose_or_none([])
        return super()._answer_expansion()

    def _answer_contraction(self) -> list[int]:
        if self._settled.has_lesion is False:
            return self._choose_or_none(
                [number for number, point in self._offered_points().items() if self._is_in_proposal(point)]
            )
        if self._settled.needs_revision is False:
            return self._choose_or_none([])
        found = super()._answer_contraction()
        if (
            self._settled.needs_revision
            and self._settled.expand == frozenset()
            and found == self._choose_or_none([])
        ):
            # The contour is wrong and not too small, so it is too large: choose the point least like the lesion.
            estimate = self._estimate()
            scores = {
                n: estimate.at(point)
                for n, point in self._offered_points().items()
                if self._is_in_proposal(point)
            }
            return [min(scores, key=lambda number: scores[number])] if scores else found
        return found

    def _is_in_proposal(self, point: Point) -> bool:
        proposal = self._proposal()
        return proposal is not None and is_inside(proposal, point)

    def _answer_revision(self) -> list[int]:
        masks, proposal = self._offered_masks(), self._proposal()
        if not masks:
            return []
        if self._settled.has_lesion is False:
            return [min(masks, key=lambda number: np.count_nonzero(masks[number]))]
        if self._settled.needs_revision is False and proposal is not None:
            return [max(masks, key=lambda number: _overlap(masks[number], proposal))]
        wanted = self._required_points(proposal)
        kept = {
            number: sum(is_inside(mask, point) == inside for point, inside in wanted)
            for number, mask in masks.items()
        }
        most = max(kept.values())
        return self._choose_fitting({number: mask for number, mask in masks.items() if kept[number] == most})

    def _required_points(self, proposal: Mask | None) -> list[tuple[Point, bool]]:
        """Points with whether the right mask contains them, according to earlier answers."""
        expand, contract = self._settled.expand, self._settled.contract
        if proposal is None or expand is None or contract is None:
            return []
        return [
            (
                point,
                _names_colour(colour, expand)
                or (is_inside(proposal, point) and not _names_colour(colour, contract)),
            )
            for colour, point in self._find_marks().items()
        ]

    def _final_mask(self) -> Mask:
        proposal = self._proposal()
        if self._settled.has_lesion is False:
            return np.zeros(self._base.shape, bool)
        chosen = self._read_contours([self._settled.mask]) if self._settled.mask is not None else []
        if chosen:
            return chosen[0]
        return (
            proposal
            if self._settled.needs_revision is False and proposal is not None
            else super()._final_mask()
        )


def _names_colour(colour: str, points: frozenset[str]) -> bool:
    return any(colour in point for point in points)


def _overlap(one: Mask, other: Mask) -> float:
    either = np.count_nonzero(one | other)
    return np.count_nonzero(one & other) / either if either else 1.0
