"""What runs, histories, stages, paths, formats and classes of answers are called on the page and in its figures."""

from typing import Final

from carina.run.records import RunInfo, Status
from carina.show.case_stages import stage_title
from carina.show.case_words import PATHS

_STAGES: Final = {1: "Detection", 2: "Contour check", 3: "Revision", 4: "Attributes"}
"""Of percept; the pages of cases call them by number."""
FORMATS: Final = {
    "yes_no": "Yes or no",
    "choice": "Choice",
    "boxes": "Boxes",
    "open": "Open answer",
    "report": "Report",
    "map": "Map or point",
}
STATUSES: Final[dict[Status, str]] = {
    "ok": "read",
    "refusal": "refused",
    "truncated": "cut off",
    "no_answer": "no answer found",
    "out_of_range": "no such option",
    "too_many": "too many options",
    "ambiguous": "ambiguous",
}
HISTORIES: Final = {
    "own": "own answers in the history",
    "gold": "wrong answers replaced by right ones",
    "hint": "the truth told after a wrong answer",
    "none": "each question by itself",
}
COMPARISONS: Final = {
    ("own", "gold"): ("own less gold", "propagation, what its own earlier errors cost"),
    ("own", "none"): ("own less none", "what the conversation so far is worth"),
    ("hint", "own"): ("hint less own", "what it gains by being told of its errors"),
}
"""Two histories of a model: what is taken from what, and what that shows."""
PATH_MEANINGS: Final = {
    "LF": "the lesion is not there; the case ends after detection",
    "RF": "the lesion is there, and the contour shown is good",
    "RR": "the lesion is there, and the contour shown is wrong",
}
TEXT_SCORES: Final = {
    "bertscore": "BERTScore",
    "chexbert_f1": "CheXbert F1",
    "radgraph_entity_f1": "RadGraph entity F1",
    "radgraph_f1": "RadGraph F1",
}
"""Scores of answers in words that a run has only where the models for them were at hand."""
BLIND: Final = ("builtin/majority", "builtin/random")
"""Models that never look at a picture."""
ORACLE: Final = "builtin/oracle"
"""Knows the keys: it proves the benchmark and the scoring, and competes with nobody."""


def stage_name(protocol: str, stage: int) -> str:
    """The title of a stage."""
    return _STAGES[stage] if protocol == "percept" and stage in _STAGES else stage_title(protocol, stage)


def path_name(path: str) -> str:
    """A path by its code and in words."""
    return f"{path} ({PATHS[path]})" if path in PATHS else path


def model_name(info: RunInfo) -> str:
    """A model as the page calls it: blind runs of a seeing model are told apart from seeing ones."""
    return f"{info.model} (blind)" if info.blind and info.model not in BLIND else info.model


def is_baseline(info: RunInfo) -> bool:
    """Whether its answers owe nothing to the pictures."""
    return info.blind or info.model in BLIND


def is_oracle(info: RunInfo) -> bool:
    return info.model == ORACLE
