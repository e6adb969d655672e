"""Score answers: options, labels, boxes and words, each against the key of its step.

>>> score(case, step, parsed, raw)  # Scores
>>> chance(step)  # probability that a random answer is right; None where no answer can be drawn
"""

import msgspec

from carina.cases import Case, Step
from carina.runs.records import ParsedAnswer, Scores
from carina.runs.score.boxes import score_boxes
from carina.runs.score.chance import chance, offers_uncertain
from carina.runs.score.form import keeps_form
from carina.runs.score.options import score_label, score_options
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
    understood = parsed.status == "ok"
    answer = parsed.text if parsed.text is not None else raw.rpartition(_END_OF_REASONING)[2]
    scores: Scores
    if step.format == "choice":
        scores = score_options(step, parsed.options if understood else None)
    elif step.format == "yes_no":
        scores = score_label(step, parsed.label if understood else None)
    elif step.format in ("boxes", "map"):
        scores = score_boxes(case, step, parsed.boxes if understood else None)
    else:
        scores = score_text(case, step, answer if understood else "")
    kept = keeps_form(step, parsed, answer)
    return scores if kept is None else msgspec.structs.replace(scores, obeyed=kept)
