"""Yes, no and uncertain: three answers, none of which stands for another."""

from carina.cases import Step
from carina.cases.model import Label
from carina.run.records import Scores


def score_label(step: Step, label: Label | None) -> Scores:
    """Right where it is the label of the key."""
    correct = label is not None and label == step.key.label
    return Scores(correct=correct, score=float(correct))
