"""Words for histories, paths, answer formats and parsing results, as tables and figures show them."""

from collections.abc import Sequence
from typing import Final

from carina.pages.case_text import PATH_TITLES
from carina.pages.words import join_names
from carina.runs.records import Status

FORMATS: Final = {
    "yes_no": "Yes or no",
    "choice": "Choice",
    "boxes": "Boxes",
    "open": "Free text",
    "report": "Report",
    "map": "Map or point",
}
STATUSES: Final[dict[Status, str]] = {
    "ok": "parsed",
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
    "implicit": "wrong answers replaced by right ones when a new stage begins, as in CheXpercept",
    "hint": "the right answer given after a wrong one",
    "explicit": "the right answers given after a wrong one when a new stage begins, as in CheXpercept",
    "none": "each question by itself",
}
COMPARISONS: Final = {
    ("own", "gold"): ("own minus gold", "propagation, the cost of the model's own earlier errors"),
    ("own", "implicit"): ("own minus implicit", "propagation of errors from stage to stage"),
    ("own", "none"): ("own minus none", "the worth of the conversation so far"),
    ("hint", "own"): ("hint minus own", "the gain by hints after errors"),
    ("explicit", "own"): ("explicit minus own", "the gain by hints after stages with errors"),
}
"""Two histories of a model: which is subtracted from which, and what the difference shows."""
PATH_MEANINGS: Final = {
    "LF": "the lesion is absent; the case ends after detection",
    "RF": "the lesion is present, and the contour shown is good",
    "RR": "the lesion is present, and the contour shown is wrong",
}

_LONGEST_TITLE: Final = 60
"""Characters of the names that a title lists."""


def short_title(names: Sequence[str], subjects: Sequence[str]) -> str:
    """The names of one or two models, or how many there are and on which benchmarks."""
    listed = " and ".join(names)
    if len(names) == 1 or (len(names) == 2 and len(listed) <= _LONGEST_TITLE):
        return listed
    return f"{len(names)} models on {join_names(subjects)}"


def path_title(path: str) -> str:
    """The code of a path with its name: "RR (revision required)"."""
    return f"{path} ({PATH_TITLES[path]})" if path in PATH_TITLES else path
