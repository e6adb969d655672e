"""One answer against the key of its step, in the way of its format."""

import msgspec

from carina.cases import Case, Step
from carina.run.records import Parsed, Scores
from carina.run.score.boxes import score_boxes
from carina.run.score.constraints import obeyed
from carina.run.score.labels import score_label
from carina.run.score.options import score_options
from carina.run.score.texts import score_text

_REASONED = "</think>"


def score(case: Case, step: Step, parsed: Parsed, raw: str) -> Scores:
    """How good an answer is; `raw` is what was sent, `parsed` what it says.

    An answer that could not be parsed scores 0 in every format. `BenchmarkError` where the step has no key.
    """
    understood = parsed.status == "ok"
    said = parsed.text if parsed.text is not None else raw.rpartition(_REASONED)[2]
    scores: Scores
    if step.format == "choice":
        scores = score_options(step, parsed.options if understood else None)
    elif step.format == "yes_no":
        scores = score_label(step, parsed.label if understood else None)
    elif step.format in ("boxes", "map"):
        scores = score_boxes(case, step, parsed.boxes if understood else None)
    else:
        scores = score_text(case, step, said if understood else "")
    kept = obeyed(step, parsed, said)
    return scores if kept is None else msgspec.structs.replace(scores, obeyed=kept)
