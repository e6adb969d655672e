"""Gate: do the points mark the edits, all of them and nothing else? Recomputed from the masks."""

from itertools import combinations
from math import hypot

import numpy as np

from carina.cases.audit import GateResult, Objections, defects
from carina.cases.model import Case
from carina.percept.audit.limits import Limits
from carina.percept.audit.parts import Decoder, Parts, Point, distance, holds, pieces
from carina.studies.region import Mask


class Points:
    """Key points in what changed, distractors away from it, and room between all of them."""

    cost = 25.0

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._limits = limits
        self.decoder = decoder
        self._objections = Objections(limits.common.worst)
        self._n = 0

    def see(self, case: Case) -> None:
        parts = self.decoder.parts(case)
        if parts is None or case.path != "RR" or not parts.has("shown", "revised", "truth"):
            return
        self._n += 1
        shown, revised = parts.mask("shown"), parts.mask("revised")
        missing, excess = revised & ~shown, shown & ~revised
        for point in parts.points:
            if point.part == "distractor":
                self._see_distractor(parts, point, missing | excess)
            elif not holds(missing if point.part == "expansion" else excess, parts.window(point)):
                self._objections.add(
                    case.id, f"point {point.option!r} of {point.part} lies outside what must change there", 5
                )
        for part, changed in (("expansion", missing), ("contraction", excess)):
            self._see_pieces(parts, part, changed)
        gap = self._limits.rules.point_gap
        for one, other in combinations(parts.points, 2):
            apart = hypot(one.x - other.x, one.y - other.y) / parts.pixel
            if apart < gap - 1e-6:
                self._objections.add(
                    case.id,
                    f"points {one.option!r} and {other.option!r} are {apart:.0f} px apart, expected at least {gap:g}",
                    1 - apart / gap,
                )

    def _see_distractor(self, parts: Parts, point: Point, changed: Mask) -> None:
        gap = self._limits.rules.change_gap
        apart = distance(parts.window(point), changed) / parts.pixel
        # The builder may measure to the edge of a pixel and we to its centre.
        if apart < gap - 1:
            self._objections.add(
                parts.case.id,
                f"point {point.option!r} is wrong but {apart:.0f} px from a change, expected at least {gap:g}",
                1 - apart / gap,
            )

    def _see_pieces(self, parts: Parts, part: str, changed: Mask) -> None:
        """Every changed piece holds one key point, and is as large as an edit must be."""
        rules, limits, unit = self._limits.rules, self._limits, parts.pixel**2
        lesion = int(np.count_nonzero(parts.mask("truth")))
        least = max(rules.edit_area * unit, rules.edit_share * lesion) * (1 - limits.tolerance)
        points = [parts.window(point) for point in parts.points if point.part == part]
        for piece in pieces(changed, limits.least_piece * unit):
            area = int(np.count_nonzero(piece))
            inside = sum(holds(piece, point) for point in points)
            if inside != 1:
                self._objections.add(
                    parts.case.id,
                    f"a change of {area} px for {part} holds {inside} key points, expected 1",
                    4,
                )
            elif area < least:
                self._objections.add(
                    parts.case.id,
                    f"the change of {area} px for {part} is too small, expected at least {least:.0f}",
                    1 - area / least,
                )

    def result(self) -> GateResult:
        rules = self._limits.rules
        return defects(
            "points",
            self._n,
            self._objections,
            threshold="each key point in its change and each change with one; distractors "
            f"{rules.change_gap:g} px from any change, points {rules.point_gap:g} px apart; a change at least "
            f"{rules.edit_share:.0%} of the lesion and {rules.edit_area:g} px",
            good="The points mark every change once and nothing else.",
            bad="Some points do not mark what must change, so 3a or 3b is keyed wrongly; build these cases anew.",
            unit="cases with points",
        )
