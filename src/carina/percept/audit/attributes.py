"""Gate: do the attribute keys follow from the shares that the case states, away from every cut?"""

from carina.cases.audit import GateResult, Objections, defects
from carina.cases.model import Case, Step
from carina.percept.audit.limits import Limits
from carina.percept.audit.parts import Decoder, step_of
from carina.percept.rules import Rules

_CUTS = (1 / 3, 2 / 3)


class Attributes:
    """Distribution, severity and comparison; location is looked at with its options."""

    def __init__(self, limits: Limits, decoder: Decoder) -> None:
        self._rules = limits.rules
        self.decoder = decoder
        self._objections = Objections(limits.common.worst)
        self._n = 0

    def see(self, case: Case) -> None:
        if self.decoder.parts(case) is None:
            return
        steps = [(task, step_of(case, task)) for task in ("distribution", "severity", "comparison")]
        self._n += any(step is not None for _, step in steps)
        for task, step in steps:
            if step is None:
                continue
            key = _KEYED[task](step, self._rules)
            if (key,) != step.key.options:
                self._objections.add(
                    case.id,
                    f"step {step.id!r} is keyed {', '.join(step.key.options)!r}, its shares say: {key}",
                )

    def result(self) -> GateResult:
        rules = self._rules
        return defects(
            "attributes",
            self._n,
            self._objections,
            threshold=f"zones outside {rules.region.low:g} to {rules.region.high:g}, severity "
            f"{rules.severity_margin:g} from 1/3 and 2/3, presence outside {rules.presence.low:g} to "
            f"{rules.presence.high:g}, size ratio outside {rules.ratio.low:g} to {rules.ratio.high:g}",
            good="Every attribute key follows from its shares, and none lies on a cut.",
            bad="Some attribute keys do not follow from their shares or lie on a cut; build these cases anew.",
            unit="cases with attributes",
        )


def _values(step: Step, name: str) -> list[float]:
    return [fact.value for fact in step.facts if fact.name == name and fact.value is not None]


def _distribution(step: Step, rules: Rules) -> str:
    shares = _values(step, "zone ratio")
    grey = [share for share in shares if rules.region.low < share < rules.region.high]
    if not shares:
        return "no zone is stated"
    if grey:
        return f"a zone on the cut ({grey[0]:.3f})"
    zones = sum(share >= rules.region.high for share in shares)
    return "no zone" if not zones else str(zones) if zones < 4 else "4+"


def _severity(step: Step, rules: Rules) -> str:
    shares = _values(step, "share")
    if len(shares) != 1:
        return "no share is stated"
    if any(abs(shares[0] - cut) < rules.severity_margin - 1e-9 for cut in _CUTS):
        return f"a share on the cut ({shares[0]:.3f})"
    return ("low", "mid", "high")[sum(shares[0] > cut for cut in _CUTS)]


def _comparison(step: Step, rules: Rules) -> str:
    sides = {side: _values(step, f"{side} share") for side in ("right", "left")}
    if any(len(found) != 1 for found in sides.values()):
        return "no share of a side is stated"
    shares = {side: found[0] for side, found in sides.items()}
    if any(rules.presence.low < share < rules.presence.high for share in shares.values()):
        return "the presence in a lung on the cut"
    holding = [side for side, share in shares.items() if share >= rules.presence.high]
    if len(holding) < 2:
        return "one" if holding else "no lung"
    return _larger(step, rules)


def _larger(step: Step, rules: Rules) -> str:
    """For a lesion in both lungs."""
    ratios = _values(step, "size ratio")
    if len(ratios) != 1:
        return "no size ratio is stated"
    # Stated as the larger over the smaller side, or as right over left.
    ratio = max(ratios[0], 1 / ratios[0]) if ratios[0] > 0 else 0.0
    if rules.ratio.low < ratio < rules.ratio.high:
        return f"a size ratio on the cut ({ratio:.2f})"
    if ratio <= rules.ratio.low:
        return "similar"
    # A lung may be smaller than the other, so a larger share need not be a larger lesion; a clear ratio decides.
    chosen = step.key.options[0] if step.key.options else ""
    return chosen if chosen in ("left", "right") else "one side larger"


_KEYED = {"distribution": _distribution, "severity": _severity, "comparison": _comparison}
