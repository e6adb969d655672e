"""Gate: does every shown contour need revision exactly if its key says so? Recomputed from the masks."""

import math

from carina.audits.gate import AuditContext, NoLimits, gate
from carina.audits.percept.base import MaskGate
from carina.audits.percept.masks import CaseMasks, drawn_region, iou, step_of
from carina.audits.result import GateResult, Row
from carina.cases.model import Case


class _Range:
    """Mean, lowest and highest of values that are not kept."""

    def __init__(self) -> None:
        self.n, self.total = 0, 0.0
        self.low, self.high = math.inf, -math.inf

    def add(self, value: float) -> None:
        self.n += 1
        self.total += value
        self.low, self.high = min(self.low, value), max(self.high, value)


@gate(
    "contour-overlap",
    title="Overlap of shown contours",
    meaning="Every shown contour is as accurate, or as inaccurate, as its key says.",
    protocols=("percept",),
    order=210,
)
class ContourOverlap(MaskGate[NoLimits]):
    """Overlap of shown and revised contours with the truth."""

    cost = 20.0

    def __init__(self, context: AuditContext, limits: NoLimits) -> None:
        super().__init__(context, limits)
        self._shown = {"RF": _Range(), "RR": _Range()}

    def examine(self, case: Case, masks: CaseMasks) -> None:
        if case.path is None:
            return
        for fault in masks.faults:
            self._objections.add(case.id, fault, 9)
        rules = self._rules
        overlap = iou(masks.mask("shown"), masks.mask("truth")) if masks.has("shown", "truth") else 0.0
        self._shown[case.path].add(overlap)
        if case.path == "RF" and overlap < rules.good_iou:
            self._objections.add(
                case.id,
                f"the contour that needs no revision overlaps the truth by {overlap:.3f}, expected at least "
                f"{rules.good_iou:g}",
                rules.good_iou - overlap,
            )
        if case.path == "RR" and not rules.revise_low <= overlap <= rules.revise_high:
            self._objections.add(
                case.id,
                f"the contour that needs revision overlaps the truth by {overlap:.3f}, expected {rules.revise_low:g} "
                f"to {rules.revise_high:g}",
                max(rules.revise_low - overlap, overlap - rules.revise_high),
            )
        if masks.has("revised", "truth"):
            overlap = iou(masks.mask("revised"), masks.mask("truth"))
            if overlap < rules.good_iou:
                self._objections.add(
                    case.id,
                    f"the revised contour overlaps the truth by {overlap:.3f}, expected at least {rules.good_iou:g}",
                    rules.good_iou - overlap,
                )
        self._check_views(case, masks)

    def _check_views(self, case: Case, masks: CaseMasks) -> None:
        """The verdict step shows the contour it asks about, and no view shows the truth."""
        views = {view.id: view for view in case.views}
        step = step_of(case, "contour evaluation")
        if step is not None and masks.has("shown"):
            regions = [drawn_region(views[view]) for view in step.shows if view in views]
            if regions != [masks.names["shown"]]:
                self._objections.add(
                    case.id, f"step {step.id!r} does not show the contour that it asks about", 8
                )
        truth = masks.names.get("truth")
        if truth is None or masks.names.get("shown") == truth or masks.names.get("revised") == truth:
            return
        for view in case.views:
            if truth in {overlay.region for panel in view.panels for overlay in panel.overlays}:
                self._objections.add(case.id, f"view {view.id!r} shows the true contour", 8)

    def result(self) -> GateResult:
        rules = self._rules
        rows = tuple(
            Row(
                name=f"{path}: mean overlap of the shown contour",
                n=shown.n,
                value=shown.total / shown.n,
                low=shown.low,
                high=shown.high,
                note="the interval is the range",
            )
            for path, shown in self._shown.items()
            if shown.n
        )
        return self.report_defects(
            sum(shown.n for shown in self._shown.values()),
            self._objections,
            threshold=f"overlap with the truth: RR {rules.revise_low:g} to {rules.revise_high:g}, RF and the revised "
            f"contour at least {rules.good_iou:g}",
            good="Every shown contour is as accurate, or as inaccurate, as its key says.",
            bad="Some contours are not what their key says, so the verdict cannot be scored; rebuild these cases.",
            unit="cases with contours",
            rows=rows,
        )
