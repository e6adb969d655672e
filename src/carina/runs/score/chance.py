"""Probability that a random answer is right."""

from typing import Final, get_args

from carina.cases import Step
from carina.cases.model import Label
from carina.runs.parse.choices import says_none

_LABELS: Final = len(get_args(Label))


def offers_uncertain(step: Step) -> bool:
    """Whether a random answer may be "uncertain": it may for every yes/no question.

    Only some questions name "uncertain", but it is the key of the others about as often. If only yes and no were drawn,
    the probability would depend on the key.
    """
    return step.format == "yes_no"


def chance(step: Step) -> float | None:
    """Exact probability that a random answer is right, with all admissible answers equally likely.

    A single choice has its options. Several options have every non-empty set of them, with "none of them" only by
    itself. A yes/no question has yes, no and uncertain.

    Returns:
        None for boxes and words, of which no random answer can be drawn.
    """
    if offers_uncertain(step):
        return 1 / _LABELS
    if step.format != "choice" or not step.options:
        return None
    count = len(step.options)
    if not step.multiple:
        return 1 / count
    alone = sum(says_none(option.text) for option in step.options)
    sets: int = 2 ** (count - alone) - 1
    return 1 / (sets + alone)
