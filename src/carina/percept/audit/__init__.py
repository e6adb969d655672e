"""percept's own gates: what its masks, points and options say, measured anew from the stored regions."""

from carina.cases.audit import Gate, Thresholds
from carina.percept.audit.attributes import Attributes
from carina.percept.audit.contours import Contours
from carina.percept.audit.limits import Limits
from carina.percept.audit.options import Options
from carina.percept.audit.parts import Decoder
from carina.percept.audit.paths import Paths
from carina.percept.audit.points import Points
from carina.percept.audit.shortcuts import Shortcuts
from carina.percept.rules import Rules

__all__ = ["Limits", "percept_gates"]


def percept_gates(thresholds: Thresholds | None = None, *, rules: Rules | None = None) -> list[Gate]:
    """Fresh gates for percept cases. `rules` are those that the benchmark was built by."""
    limits = Limits(rules=rules or Rules(), common=thresholds or Thresholds())
    decoder = Decoder(limits.rules.frame)
    return [
        Paths(limits),
        Contours(limits, decoder),
        Points(limits, decoder),
        Options(limits, decoder),
        Attributes(limits, decoder),
        Shortcuts(limits, decoder),
    ]
