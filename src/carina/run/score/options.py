"""Chosen options against the right ones: all or nothing, with the overlap of sets beside it."""

from collections.abc import Collection

from carina.cases import Step
from carina.run.records import Scores


def score_options(step: Step, chosen: Collection[str] | None) -> Scores:
    """Right only where exactly the right options were chosen; None for an answer that names none of them clearly."""
    right = frozenset(step.key.options)
    picked = frozenset(chosen or ())
    correct = chosen is not None and bool(right) and picked == right
    if not step.multiple:
        return Scores(correct=correct, score=float(correct))
    return Scores(correct=correct, score=float(correct), overlap=jaccard(picked, right), f1=f1(picked, right))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """What two sets share of all that is in them; 0 for two empty ones, since nothing was answered."""
    both = len(one | other)
    return len(one & other) / both if both else 0.0


def f1(one: frozenset[str], other: frozenset[str]) -> float:
    """Harmonic mean of precision and recall, whichever of the two is the truth."""
    both = len(one) + len(other)
    return 2 * len(one & other) / both if both else 0.0
