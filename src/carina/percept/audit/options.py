"""Gate: is the right option clearly apart from the others? Masks are compared anew; regions by the stated shares."""

from itertools import combinations

from carina.cases.audit import GateResult, Objections, defects
from carina.cases.audit.steps import NONE_ID
from carina.cases.model import Case
from carina.percept.audit.limits import Limits
from carina.percept.audit.parts import Decoder, Parts, iou, step_of


class Options:
    """Separation of the masks of 3c and of the regions of 4b."""

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._rules = limits.rules
        self.decoder = decoder
        self._objections = Objections(limits.common.worst)
        self._n = 0

    def see(self, case: Case) -> None:
        parts = self.decoder.parts(case)
        if parts is None:
            return
        masks, regions = step_of(case, "revision") is not None, step_of(case, "location") is not None
        self._n += masks or regions
        if masks:
            self._see_masks(case, parts)
        if regions:
            self._see_regions(case)

    def _see_masks(self, case: Case, parts: Parts) -> None:
        rules, masks = self._rules, {name: parts.masks[region] for name, region in parts.options.items()}
        if len(masks) != 4 or parts.key is None:
            self._objections.add(
                case.id, f"3c has {len(masks)} options with a mask, expected 4, one of them right", 9
            )
            return
        if parts.has("revised") and iou(masks[parts.key], parts.mask("revised")) < 1:
            self._objections.add(case.id, f"option {parts.key!r} is keyed but is not the revised contour", 9)
        for one, other in combinations(masks, 2):
            overlap = iou(masks[one], masks[other])
            most = rules.option_iou_key if parts.key in (one, other) else rules.option_iou
            if overlap > most + 1e-9:
                self._objections.add(
                    case.id,
                    f"options {one!r} and {other!r} overlap by {overlap:.3f}, expected at most {most:g}",
                    overlap,
                )
        for name, mask in masks.items():
            overlap = iou(mask, parts.mask("shown")) if parts.has("shown") else 0.0
            if overlap > rules.option_iou + 1e-9:
                what = "is" if overlap == 1 else f"overlaps by {overlap:.3f}"
                self._objections.add(
                    case.id, f"option {name!r} {what} the unrevised contour that is shown", overlap
                )

    def _see_regions(self, case: Case) -> None:
        step = step_of(case, "location")
        if step is None:
            return
        facts = {(fact.name, fact.about): fact.value for fact in step.facts}
        content = [option.id for option in step.options if option.id != NONE_ID]
        band, most = self._rules.region, self._rules.option_overlap
        for option in content:
            share = facts.get(("region ratio", option))
            right = option in step.key.options
            if share is None:
                self._objections.add(case.id, f"4b states no share of region {option!r}", 3)
            elif (right and share < band.high) or (not right and share > band.low):
                limit = f"at least {band.high:g}" if right else f"at most {band.low:g}"
                key = "right" if right else "wrong"
                self._objections.add(
                    case.id,
                    f"region {option!r} is {key} with a share of {share:.3f}, expected {limit}",
                    abs(share),
                )
        for one, other in combinations(content, 2):
            overlap = facts.get(("overlap", f"{one} {other}"), facts.get(("overlap", f"{other} {one}")))
            if overlap is None:
                self._objections.add(case.id, f"4b states no overlap of regions {one!r} and {other!r}", 3)
            elif overlap > most + 1e-9:
                self._objections.add(
                    case.id,
                    f"regions {one!r} and {other!r} overlap by {overlap:.3f}, expected at most {most:g}",
                    overlap,
                )

    def result(self) -> GateResult:
        rules = self._rules
        return defects(
            "options",
            self._n,
            self._objections,
            threshold=f"3c: overlap with the right mask at most {rules.option_iou_key:g}, with others and the shown "
            f"one {rules.option_iou:g}; 4b: regions share at most {rules.option_overlap:g}, right ones hold at least "
            f"{rules.region.high:g} of lesion and wrong ones at most {rules.region.low:g}",
            good="The right option differs from every other one by a margin.",
            bad="Some options cannot be told apart, so a right answer may be scored wrong; build these cases anew.",
            unit="cases with options",
        )
