"""trek's own gates: what a set of conversations would let a model score without looking, and what in it is wrong."""

import msgspec

from carina.cases.audit import Gate, Thresholds
from carina.trek.audit.balance import Balance
from carina.trek.audit.baselines import Baselines
from carina.trek.audit.chronology import Chronology
from carina.trek.audit.constraints import Constraints
from carina.trek.audit.form import Form
from carina.trek.audit.gating import Gating
from carina.trek.audit.hedged import Hedged
from carina.trek.audit.history import History
from carina.trek.audit.identifiers import Identifiers
from carina.trek.audit.keys import Keys
from carina.trek.audit.limits import Limits
from carina.trek.audit.negatives import Negatives
from carina.trek.audit.order import Order
from carina.trek.audit.repeats import Repeats
from carina.trek.audit.restated import Restated
from carina.trek.audit.seen import Seen
from carina.trek.audit.statistics import NAME as STATISTICS
from carina.trek.audit.statistics import Statistics
from carina.trek.audit.support import Support
from carina.trek.audit.templates import Templates
from carina.trek.audit.turns import Decoder
from carina.trek.audit.wording import Wording

__all__ = ["STATISTICS", "Limits", "trek_gates"]


def trek_gates(thresholds: Thresholds | None = None, *, limits: Limits | None = None) -> list[Gate]:
    """Fresh gates for trek cases; cases of other protocols pass them by.

    `limits` are trek's own; `thresholds`, where given, are what they have in common with other protocols.
    """
    chosen = limits or Limits()
    if thresholds is not None:
        chosen = msgspec.structs.replace(chosen, common=thresholds)
    decoder = Decoder()
    return [
        Form(chosen, decoder),
        Keys(chosen, decoder),
        Gating(chosen, decoder),
        Order(chosen, decoder),
        Chronology(chosen, decoder),
        Constraints(chosen, decoder),
        Wording(chosen, decoder),
        Repeats(chosen, decoder),
        Templates(chosen, decoder),
        Balance(chosen, decoder),
        Baselines(chosen, decoder),
        Negatives(chosen, decoder),
        Hedged(chosen, decoder),
        Seen(chosen, decoder),
        History(chosen, decoder),
        Restated(chosen, decoder),
        Support(chosen, decoder),
        Identifiers(chosen, decoder),
        Statistics(decoder),
    ]
