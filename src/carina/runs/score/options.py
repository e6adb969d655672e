"""Score choices and yes/no answers."""

from collections.abc import Collection

from carina.cases import Step
from carina.cases.model import Label
from carina.runs.records import Scores


def score_options(step: Step, chosen: Collection[str] | None) -> Scores:
    """Score chosen options: right only where exactly the right ones were chosen.

    Args:
        step: A step of the format "choice".
        chosen: Ids of the chosen options; None for an answer that names none of them clearly.
    """
    right = frozenset(step.key.options)
    picked = frozenset(chosen or ())
    correct = chosen is not None and bool(right) and picked == right
    if not step.multiple:
        return Scores(correct=correct, score=float(correct))
    return Scores(correct=correct, score=float(correct), overlap=jaccard(picked, right), f1=f1(picked, right))


def score_label(step: Step, label: Label | None) -> Scores:
    """Score a yes/no answer: yes, no and uncertain are three labels, none of which stands for another."""
    correct = label is not None and label == step.key.label
    return Scores(correct=correct, score=float(correct))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard index of two sets; 0 for two empty ones, since nothing was answered."""
    both = len(one | other)
    return len(one & other) / both if both else 0.0


def f1(one: frozenset[str], other: frozenset[str]) -> float:
    """Harmonic mean of precision and recall, whichever of the two is the truth."""
    both = len(one) + len(other)
    return 2 * len(one & other) / both if both else 0.0
