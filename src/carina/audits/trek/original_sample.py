"""Figures of the original's sample (100 conversations), for comparison in `conversation-statistics`."""

from typing import Final

SOURCE: Final = "the original's sample"

FORMATS: Final = {"open": 0.486, "yes_no": 0.209, "choice": 0.125, "boxes": 0.180}
"""Reports count as open there."""
STAGES: Final = {1: 0.043, 2: 0.295, 3: 0.526, 4: 0.019, 5: 0.034, 6: 0.010, 7: 0.027, 8: 0.045}
HAS_STAGE: Final = {1: 0.96, 2: 1.00, 3: 0.98, 4: 0.28, 5: 0.67, 6: 0.27, 7: 0.70, 8: 1.00}
"""Share of conversations with the stage."""
TURNS: Final = {"mean": 26.06, "least": 3, "p25": 19, "median": 28, "p75": 32, "p95": 42, "most": 51}
QUESTION_WORDS: Final = {"mean": 22.9, "median": 20, "most": 129}
ANSWER_WORDS: Final = {"mean": 20.5, "median": 12, "p95": 76, "most": 177}
ANSWER_WORDS_BY_STAGE: Final = {1: 33, 2: 14, 3: 15, 4: 48, 5: 51, 6: 46, 7: 57, 8: 47}
ANSWER_SHARE: Final = {1: 0.070, 2: 0.204, 3: 0.395, 4: 0.045, 5: 0.085, 6: 0.023, 7: 0.075, 8: 0.103}
"""Share of all answer words, which is the weight of a stage in an unweighted loss."""
CONVERSATION_WORDS: Final = {"mean": 1133, "most": 2042}
OPTIONS: Final = {2: 0.51, 3: 0.19, 4: 0.16, 5: 0.11, 6: 0.02}
"""Options of a choice; 6 stands for all above 5."""
SEVERAL: Final = 0.06
IMAGES: Final = {"mean": 2.34, "current": 1.40, "most": 4}
LINKED: Final = 0.066
LABELS: Final = {
    "presence": 181 / 326,
    "device presence": 75 / 77,
    "any device": 31 / 70,
    "any abnormality": 42 / 69,
}
"""Share of yes among yes and no."""
SHUFFLED: Final = 0.39
INDICATION: Final = 0.012
"""Approximate; 25 to 40 turns of 2,606."""
