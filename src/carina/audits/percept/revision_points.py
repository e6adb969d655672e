"""Gate: do the points mark all edits of the contour, and nothing else? Recomputed from the masks."""

from itertools import combinations
from math import hypot
from typing import Annotated

import numpy as np
from msgspec import Meta

from carina.audits.gate import Limits, Share, gate
from carina.audits.percept.base import MaskGate
from carina.audits.percept.masks import CaseMasks, Point, components, contains, distance
from carina.audits.result import GateResult
from carina.cases.model import Case
from carina.studies.region import Mask


class RevisionPointsLimits(Limits, frozen=True):
    """Limits of `revision-points`."""

    min_area: Annotated[
        float,
        Meta(
            ge=0,
            description="Pixels (of the frame) from which a changed area is an edit, not a raster effect.",
        ),
    ] = 25.0
    area_tolerance: Annotated[
        Share,
        Meta(
            description="Share by which a recomputed area may be below the builder's, who measured before rounding."
        ),
    ] = 0.02


@gate(
    "revision-points",
    title="Points that mark the edits",
    meaning="The points mark every edit of the contour once, and nothing else.",
    limits=RevisionPointsLimits,
    protocols=("percept",),
    order=220,
)
class RevisionPoints(MaskGate[RevisionPointsLimits]):
    """Key points inside edits, distractors away from them, and enough distance between all points."""

    cost = 25.0

    def examine(self, case: Case, masks: CaseMasks) -> None:
        if case.path != "RR" or not masks.has("shown", "revised", "truth"):
            return
        self._n += 1
        shown, revised = masks.mask("shown"), masks.mask("revised")
        missing, excess = revised & ~shown, shown & ~revised
        for point in masks.points:
            if point.part == "distractor":
                self._check_distractor(masks, point, missing | excess)
            elif not contains(missing if point.part == "expansion" else excess, masks.window(point)):
                self._objections.add(
                    case.id,
                    f"point {point.option!r} of {point.part} lies outside the area that must change",
                    5,
                )
        for part, changed in (("expansion", missing), ("contraction", excess)):
            self._check_edits(masks, part, changed)
        gap = self._rules.point_gap
        for one, other in combinations(masks.points, 2):
            apart = hypot(one.x - other.x, one.y - other.y) / masks.pixel
            if apart < gap - 1e-6:
                self._objections.add(
                    case.id,
                    f"points {one.option!r} and {other.option!r} are {apart:.0f} px apart, expected at least {gap:g}",
                    1 - apart / gap,
                )

    def _check_distractor(self, masks: CaseMasks, point: Point, changed: Mask) -> None:
        gap = self._rules.change_gap
        apart = distance(masks.window(point), changed) / masks.pixel
        # The builder may measure to the edge of a pixel and we to its centre.
        if apart < gap - 1:
            self._objections.add(
                masks.case.id,
                f"point {point.option!r} is a distractor but {apart:.0f} px from a change, expected at least {gap:g}",
                1 - apart / gap,
            )

    def _check_edits(self, masks: CaseMasks, part: str, changed: Mask) -> None:
        """Every changed area contains one key point, and is as large as an edit must be."""
        rules, limits, unit = self._rules, self.limits, masks.pixel**2
        lesion = int(np.count_nonzero(masks.mask("truth")))
        least = max(rules.edit_area * unit, rules.edit_share * lesion) * (1 - limits.area_tolerance)
        points = [masks.window(point) for point in masks.points if point.part == part]
        for edit in components(changed, limits.min_area * unit):
            area = int(np.count_nonzero(edit))
            inside = sum(contains(edit, point) for point in points)
            if inside != 1:
                self._objections.add(
                    masks.case.id,
                    f"a change of {area} px for {part} contains {inside} key points, expected 1",
                    4,
                )
            elif area < least:
                self._objections.add(
                    masks.case.id,
                    f"the change of {area} px for {part} is too small, expected at least {least:.0f}",
                    1 - area / least,
                )

    def result(self) -> GateResult:
        rules = self._rules
        return self.report_defects(
            self._n,
            self._objections,
            threshold="each key point in its change and each change with one key point; distractors "
            f"{rules.change_gap:g} px from any change, points {rules.point_gap:g} px apart; a change at least "
            f"{rules.edit_share:.0%} of the lesion and {rules.edit_area:g} px",
            good="The points mark every change once, and nothing else.",
            bad="Some points do not mark what must change, so step 3a or 3b has a wrong key; rebuild these cases.",
            unit="cases with points",
        )
