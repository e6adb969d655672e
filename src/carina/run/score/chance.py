"""How often a blind draw is right."""

from typing import Final, get_args

from carina.cases import Step
from carina.cases.model import Label
from carina.run.parse.choices import says_none

_LABELS: Final = len(get_args(Label))


def offers_uncertain(step: Step) -> bool:
    """Whether "uncertain" is among the answers that may be drawn: it is for every yes/no question.

    Only some questions name it, and it is the key of those that do not about as often. A draw of yes or no would never
    be right there, so that its chance would hang on the key.
    """
    return step.format == "yes_no"


def chance(step: Step) -> float | None:
    """Exact probability that a uniform draw among the admissible answers is right, whatever the key is.

    A single choice is drawn among its options. Of several options every non-empty set may be drawn, and "none of them"
    only by itself. A yes/no question has three answers, uncertain among them (`offers_uncertain`). Boxes and words
    cannot be drawn: None.
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
