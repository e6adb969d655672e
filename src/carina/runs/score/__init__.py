"""Score answers (options, labels, boxes and free text) against the key of their step."""

from collections.abc import Collection

import msgspec

from carina.cases import Case, Step
from carina.cases.model import Label
from carina.runs.records import ParsedAnswer, Scores
from carina.runs.score.boxes import score_boxes
from carina.runs.score.chance import chance, offers_uncertain
from carina.runs.score.form import keeps_form
from carina.runs.score.text import score_text

__all__ = ["chance", "offers_uncertain", "score"]

_END_OF_REASONING = "</think>"


def score(case: Case, step: Step, parsed: ParsedAnswer, raw: str) -> Scores:
    """Score one answer against the key of its step.

    Args:
        case: The case of the step.
        step: The step, with its key.
        parsed: What the answer says. One that could not be parsed scores 0 in every format.
        raw: The answer as it was received.

    Raises:
        BenchmarkError: The step has no key.
    """
    is_parsed = parsed.status == "ok"
    answer = parsed.text if parsed.text is not None else raw.rpartition(_END_OF_REASONING)[2]
    scores: Scores
    if step.format == "choice":
        scores = score_options(step, parsed.options if is_parsed else None)
    elif step.format == "yes_no":
        scores = score_label(step, parsed.label if is_parsed else None)
    elif step.format in ("boxes", "map"):
        scores = score_boxes(case, step, parsed.boxes if is_parsed else None)
    else:
        scores = score_text(case, step, answer if is_parsed else "")
    has_form = keeps_form(step, parsed, answer)
    return scores if has_form is None else msgspec.structs.replace(scores, obeyed=has_form)


def score_options(step: Step, chosen: Collection[str] | None) -> Scores:
    """Score chosen options: correct only if exactly the right options are chosen.

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
    """Score a yes/no answer: correct only if the label (yes, no or uncertain) equals that of the key."""
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
