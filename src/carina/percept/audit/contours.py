"""Gate: does every shown contour need the revision that its key says? Recomputed from the masks."""

import math

from carina.cases.audit import GateResult, Objections, Row, defects
from carina.cases.model import Case
from carina.percept.audit.limits import Limits
from carina.percept.audit.parts import Decoder, Parts, drawn, iou, step_of


class _Range:
    """Mean, least and greatest of values that are not kept."""

    def __init__(self) -> None:
        self.n, self.total = 0, 0.0
        self.low, self.high = math.inf, -math.inf

    def add(self, value: float) -> None:
        self.n += 1
        self.total += value
        self.low, self.high = min(self.low, value), max(self.high, value)


class Contours:
    """Overlap of what is shown with the truth."""

    cost = 20.0

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._rules = limits.rules
        self.decoder = decoder
        self._objections = Objections(limits.common.worst)
        self._shown = {"RF": _Range(), "RR": _Range()}

    def see(self, case: Case) -> None:
        parts = self.decoder.parts(case)
        if parts is None or case.path is None:
            return
        for fault in parts.faults:
            self._objections.add(case.id, fault, 9)
        rules = self._rules
        overlap = iou(parts.mask("shown"), parts.mask("truth")) if parts.has("shown", "truth") else 0.0
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
        if parts.has("revised", "truth"):
            overlap = iou(parts.mask("revised"), parts.mask("truth"))
            if overlap < rules.good_iou:
                self._objections.add(
                    case.id,
                    f"the revised contour overlaps the truth by {overlap:.3f}, expected at least {rules.good_iou:g}",
                    rules.good_iou - overlap,
                )
        self._see_views(case, parts)

    def _see_views(self, case: Case, parts: Parts) -> None:
        """The verdict is about the shown contour, and the truth is seen nowhere."""
        views = {view.id: view for view in case.views}
        step = step_of(case, "contour evaluation")
        if step is not None and parts.has("shown"):
            seen = [drawn(views[view]) for view in step.shows if view in views]
            if seen != [parts.names["shown"]]:
                self._objections.add(
                    case.id, f"step {step.id!r} does not show the contour that it is about", 8
                )
        truth = parts.names.get("truth")
        if truth is None or parts.names.get("shown") == truth or parts.names.get("revised") == truth:
            return
        for view in case.views:
            if truth in {overlay.region for panel in view.panels for overlay in panel.overlays}:
                self._objections.add(case.id, f"view {view.id!r} draws the truth", 8)

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
        return defects(
            "contours",
            sum(shown.n for shown in self._shown.values()),
            self._objections,
            threshold=f"overlap with the truth: RR {rules.revise_low:g} to {rules.revise_high:g}, RF and the revised "
            f"contour at least {rules.good_iou:g}",
            good="Every shown contour is as good or as wrong as its key says.",
            bad="Some contours are not what their key says, so the verdict cannot be scored; build these cases anew.",
            unit="cases with contours",
            rows=rows,
        )
