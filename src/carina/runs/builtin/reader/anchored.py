"""The reader, anchored: what the conversation has settled it takes as given, whatever the image says.

One wrong answer makes others wrong, as with a radiologist who believes an earlier report; right ones make later steps
easier. In examinations of lesions alone: elsewhere it answers as the reader does.
"""

from collections.abc import Sequence

import numpy as np

from carina.cases import Step
from carina.runs.builtin.reader.earlier import Earlier, earlier
from carina.runs.builtin.reader.examinee import Reader
from carina.runs.builtin.reader.percept import Examination, Look, Point, holds
from carina.runs.records import Turn
from carina.studies.region import Mask


class Anchored(Reader):
    """Looks at the pixels as the reader does, and believes what was said before."""

    name = "builtin/anchored"

    def _examination(self, turn: Turn, finding: str, views: Sequence[str], look: Look) -> Examination:
        return _Anchored(turn.step, finding, views, look, earlier(turn.messages))


class _Anchored(Examination):
    """An examination in which what is settled is not asked of the image again."""

    def __init__(self, step: Step, finding: str, views: Sequence[str], look: Look, settled: Earlier) -> None:
        super().__init__(step, finding, views, look)
        self._earlier = settled

    def _evaluation(self) -> list[int]:
        # Where there is no lesion, any contour is wrong.
        return self._yes(yes=True) if self._earlier.lesion is False else super()._evaluation()

    def _expansion(self) -> list[int]:
        if self._earlier.lesion is False or self._earlier.revise is False:
            return self._or_none([])
        return super()._expansion()

    def _contraction(self) -> list[int]:
        if self._earlier.lesion is False:
            return self._or_none([number for number, point in self._offered().items() if self._covers(point)])
        if self._earlier.revise is False:
            return self._or_none([])
        found = super()._contraction()
        if self._earlier.revise and self._earlier.expand == frozenset() and found == self._or_none([]):
            # It must be wrong somewhere, and is not too small: the point that looks least like the lesion.
            estimate = self._estimate()
            scores = {n: estimate.at(point) for n, point in self._offered().items() if self._covers(point)}
            return [min(scores, key=lambda number: scores[number])] if scores else found
        return found

    def _covers(self, point: Point) -> bool:
        shown = self._shown()
        return shown is not None and holds(shown, point)

    def _revision(self) -> list[int]:
        masks, shown = self._masks(), self._shown()
        if not masks:
            return []
        if self._earlier.lesion is False:
            return [min(masks, key=lambda number: np.count_nonzero(masks[number]))]
        if self._earlier.revise is False and shown is not None:
            return [max(masks, key=lambda number: _alike(masks[number], shown))]
        wanted = self._wanted(shown)
        kept = {
            number: sum(holds(mask, point) == inside for point, inside in wanted)
            for number, mask in masks.items()
        }
        most = max(kept.values())
        return self._fitting({number: mask for number, mask in masks.items() if kept[number] == most})

    def _wanted(self, shown: Mask | None) -> list[tuple[Point, bool]]:
        """Points that the right mask must hold or leave out, by what was said of them; the others are right already."""
        expand, contract = self._earlier.expand, self._earlier.contract
        if shown is None or expand is None or contract is None:
            return []
        return [
            (point, _named(colour, expand) or (holds(shown, point) and not _named(colour, contract)))
            for colour, point in self._marks().items()
        ]

    def _settled(self) -> Mask:
        shown = self._shown()
        if self._earlier.lesion is False:
            return np.zeros(self._base.shape, bool)
        chosen = self._contours([self._earlier.mask]) if self._earlier.mask is not None else []
        if chosen:
            return chosen[0]
        return shown if self._earlier.revise is False and shown is not None else super()._settled()


def _named(colour: str, points: frozenset[str]) -> bool:
    return any(colour in point for point in points)


def _alike(one: Mask, other: Mask) -> float:
    either = np.count_nonzero(one | other)
    return np.count_nonzero(one & other) / either if either else 1.0
