"""How often a blind draw is right."""

from carina.cases import Step
from carina.cases.audit.steps import excludes


def chance(step: Step) -> float | None:
    """Exact probability that a uniform draw among the admissible answers is right.

    A single choice is drawn among its options. Of several options every non-empty set may be drawn, and "none of them"
    only by itself. A yes/no question is drawn as yes or no, also where it allows for "uncertain": that is rarely the
    key, and nobody's guess. Boxes and words cannot be drawn: None.
    """
    if step.format == "yes_no":
        return 1 / 2
    if step.format != "choice" or not step.options:
        return None
    count = len(step.options)
    if not step.multiple:
        return 1 / count
    alone = sum(excludes(step, place) for place in range(count))
    sets: int = 2 ** (count - alone) - 1
    return 1 / (sets + alone)
