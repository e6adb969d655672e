"""Gate: does the right option differ clearly from the others? Masks are compared again, regions by stated shares."""

from itertools import combinations

from carina.audits.answer_options import NONE_ID
from carina.audits.gate import NoLimits, gate
from carina.audits.percept.base import MaskGate
from carina.audits.percept.facts import region_overlaps, region_shares
from carina.audits.percept.masks import CaseMasks, iou, step_of
from carina.audits.result import GateResult
from carina.cases.model import Case


@gate(
    "option-separation",
    title="Separation of options",
    meaning="The right option differs from every other one by a margin.",
    protocols=("percept",),
    order=230,
)
class OptionSeparation(MaskGate[NoLimits]):
    """Differences between the masks of step 3c and between the regions of step 4b."""

    def examine(self, case: Case, masks: CaseMasks) -> None:
        has_masks, has_regions = step_of(case, "revision") is not None, step_of(case, "location") is not None
        self._n += has_masks or has_regions
        if has_masks:
            self._compare_masks(case, masks)
        if has_regions:
            self._compare_regions(case)

    def _compare_masks(self, case: Case, decoded: CaseMasks) -> None:
        rules, masks = self._rules, {name: decoded.masks[region] for name, region in decoded.options.items()}
        if len(masks) != 4 or decoded.key is None:
            self._objections.add(
                case.id, f"step 3c has {len(masks)} options with a mask, expected 4, one of them right", 9
            )
            return
        if decoded.has("revised") and iou(masks[decoded.key], decoded.mask("revised")) < 1:
            self._objections.add(
                case.id, f"option {decoded.key!r} is the key but is not the revised contour", 9
            )
        for one, other in combinations(masks, 2):
            overlap = iou(masks[one], masks[other])
            most = rules.option_iou_key if decoded.key in (one, other) else rules.option_iou
            if overlap > most + 1e-9:
                self._objections.add(
                    case.id,
                    f"options {one!r} and {other!r} overlap by {overlap:.3f}, expected at most {most:g}",
                    overlap,
                )
        for name, mask in masks.items():
            overlap = iou(mask, decoded.mask("shown")) if decoded.has("shown") else 0.0
            if overlap > rules.option_iou + 1e-9:
                what = "is" if overlap == 1 else f"overlaps by {overlap:.3f}"
                self._objections.add(
                    case.id, f"option {name!r} {what} the unrevised contour that is shown", overlap
                )

    def _compare_regions(self, case: Case) -> None:
        step = step_of(case, "location")
        if step is None:
            return
        shares, overlaps = region_shares(step), region_overlaps(step)
        content = [option.id for option in step.options if option.id != NONE_ID]
        band, most = self._rules.region, self._rules.option_overlap
        for option in content:
            share = shares.get(option)
            is_right = option in step.key.options
            if share is None:
                self._objections.add(case.id, f"step 4b states no share of region {option!r}", 3)
            elif (is_right and share < band.high) or (not is_right and share > band.low):
                limit = f"at least {band.high:g}" if is_right else f"at most {band.low:g}"
                key = "right" if is_right else "wrong"
                self._objections.add(
                    case.id,
                    f"region {option!r} is {key} with a share of {share:.3f}, expected {limit}",
                    abs(share),
                )
        for one, other in combinations(content, 2):
            overlap = overlaps.get(f"{one} {other}", overlaps.get(f"{other} {one}"))
            if overlap is None:
                self._objections.add(
                    case.id, f"step 4b states no overlap of regions {one!r} and {other!r}", 3
                )
            elif overlap > most + 1e-9:
                self._objections.add(
                    case.id,
                    f"regions {one!r} and {other!r} overlap by {overlap:.3f}, expected at most {most:g}",
                    overlap,
                )

    def result(self) -> GateResult:
        rules = self._rules
        return self.report_defects(
            self._n,
            self._objections,
            threshold=f"step 3c: overlap with the right mask at most {rules.option_iou_key:g}, with other masks and "
            f"the shown one {rules.option_iou:g}; step 4b: regions overlap by at most {rules.option_overlap:g}, the "
            f"lesion covers at least {rules.region.high:g} of right and at most {rules.region.low:g} of wrong ones",
            good="The right option differs from every other one by a margin.",
            bad="Some options are too similar, so a right answer may be scored as wrong; rebuild these cases.",
            unit="cases with options",
        )
