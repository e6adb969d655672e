"""Gate: do the attribute keys follow from the shares that the case states, away from every cut-off?"""

from typing import Final

from carina.audits.gate import NoLimits, gate
from carina.audits.percept.base import MaskGate
from carina.audits.percept.facts import severity_shares, side_shares, size_ratios, zone_shares
from carina.audits.percept.masks import CaseMasks, step_of
from carina.audits.result import GateResult
from carina.cases.model import Case, Step
from carina.percept.rules import Rules

_CUTS: Final = (1 / 3, 2 / 3)


@gate(
    "attribute-keys",
    title="Attribute keys",
    meaning="Every attribute key follows from the stated shares, and no share lies on a cut-off.",
    protocols=("percept",),
    order=240,
)
class AttributeKeys(MaskGate[NoLimits]):
    """Distribution, severity and comparison; `option-separation` examines location."""

    def examine(self, case: Case, masks: CaseMasks) -> None:  # noqa: ARG002 - attributes need no mask
        steps = [(task, step_of(case, task)) for task in ("distribution", "severity", "comparison")]
        self._n += any(step is not None for _, step in steps)
        for task, step in steps:
            if step is None:
                continue
            key = _EXPECTED_KEYS[task](step, self._rules)
            if (key,) != step.key.options:
                self._objections.add(
                    case.id,
                    f"step {step.id!r} has the key {', '.join(step.key.options)!r}, its shares give: {key}",
                )

    def result(self) -> GateResult:
        rules = self._rules
        return self.report_defects(
            self._n,
            self._objections,
            threshold=f"zones outside {rules.region.low:g} to {rules.region.high:g}, severity "
            f"{rules.severity_margin:g} from 1/3 and 2/3, presence outside {rules.presence.low:g} to "
            f"{rules.presence.high:g}, size ratio outside {rules.ratio.low:g} to {rules.ratio.high:g}",
            good="Every attribute key follows from its shares, and no share lies on a cut-off.",
            bad="Some attribute keys do not follow from their shares, or lie on a cut-off; rebuild these cases.",
            unit="cases with attributes",
        )


def _expected_distribution(step: Step, rules: Rules) -> str:
    shares = zone_shares(step)
    grey = [share for share in shares if rules.region.low < share < rules.region.high]
    if not shares:
        return "no zone is stated"
    zones = sum(share >= rules.region.high for share in shares)
    # From four zones on, one more does not change the key.
    if grey and zones < 4:
        return f"a zone on the cut-off ({grey[0]:.3f})"
    return "no zone" if not zones else str(zones) if zones < 4 else "4+"


def _expected_severity(step: Step, rules: Rules) -> str:
    shares = severity_shares(step)
    if len(shares) != 1:
        return "no share is stated"
    if any(abs(shares[0] - cut) < rules.severity_margin - 1e-9 for cut in _CUTS):
        return f"a share on the cut-off ({shares[0]:.3f})"
    return ("low", "mid", "high")[sum(shares[0] > cut for cut in _CUTS)]


def _expected_comparison(step: Step, rules: Rules) -> str:
    sides = {side: side_shares(step, side) for side in ("right", "left")}
    if any(len(values) != 1 for values in sides.values()):
        return "no share of a side is stated"
    shares = {side: values[0] for side, values in sides.items()}
    if any(rules.presence.low < share < rules.presence.high for share in shares.values()):
        return "the presence in a lung on the cut-off"
    holding = [side for side, share in shares.items() if share >= rules.presence.high]
    if len(holding) < 2:
        return "one" if holding else "no lung"
    return _expected_larger_side(step, rules)


def _expected_larger_side(step: Step, rules: Rules) -> str:
    """The key for a lesion in both lungs."""
    ratios = size_ratios(step)
    if len(ratios) != 1:
        return "no size ratio is stated"
    # Stated as the larger over the smaller side, or as right over left.
    ratio = max(ratios[0], 1 / ratios[0]) if ratios[0] > 0 else 0.0
    if rules.ratio.low < ratio < rules.ratio.high:
        return f"a size ratio on the cut-off ({ratio:.2f})"
    if ratio <= rules.ratio.low:
        return "similar"
    # A lung may be smaller than the other, so a larger share need not be a larger lesion; a clear ratio decides.
    key = step.key.options[0] if step.key.options else ""
    return key if key in ("left", "right") else "one side larger"


_EXPECTED_KEYS: Final = {
    "distribution": _expected_distribution,
    "severity": _expected_severity,
    "comparison": _expected_comparison,
}
