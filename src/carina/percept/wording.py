"""The texts of the questions, as functions of the lesion; the order of options is chosen elsewhere."""

from collections.abc import Sequence
from typing import Final

from carina.percept.anatomy import LEVELS
from carina.percept.lesions import Lesion

YES_NO: Final = {"yes": "Yes", "no": "No"}
NONE: Final = "None"
NONE_OF_REGIONS: Final = "None of the above (options 1-3)"
ORDINALS: Final = ("1st mask", "2nd mask", "3rd mask", "4th mask")
ZONE_COUNTS: Final = {"1": "1 zone", "2": "2 zones", "3": "3 zones", "4+": "4 zones or more"}
SEVERITIES: Final = {"low": "less than 1/3", "mid": "1/3 to less than 2/3", "high": "2/3 or more"}
COMPARISONS: Final = {
    "similar": "similar in both lungs",
    "left": "larger in the left lung",
    "right": "larger in the right lung",
    "one": "in one lung only",
}
_PARTS: Final = {"medial": "medial half", "lateral": "lateral half", "peripheral": "periphery"}


def with_options(question: str, options: Sequence[str]) -> str:
    """The question with its numbered options below it."""
    return "\n".join([question, "Options:", *(f"({n}) {text}" for n, text in enumerate(options, start=1))])


def detection(lesion: Lesion) -> str:
    return f"Is {lesion.phrase} visible on this chest X-ray?"


def contour_evaluation(lesion: Lesion) -> str:
    aside = f" Leave aside where the {lesion.noun} lies over the heart." if lesion.in_lungs else ""
    return (
        f"The coloured area on this chest X-ray is a proposed contour of the {lesion.noun}. "
        f"Does the contour need a major revision?{aside}"
    )


def points_context(lesion: Lesion) -> str:
    return (
        f"The proposed contour of the {lesion.noun} is shown again with numbered, coloured points. Some of them lie "
        "where the contour is wrong, others where it is right."
    )


def expansion(lesion: Lesion) -> str:
    return (
        f"Towards which points must the contour be expanded, so that it takes in all of the {lesion.noun}? "
        "Choose every point that applies, or None."
    )


def contraction(lesion: Lesion) -> str:
    return (
        f"At which points must the contour be contracted, because it covers more than the {lesion.noun}? "
        "Choose every point that applies, or None."
    )


def revision(lesion: Lesion) -> str:
    return f"After all revisions that are needed, which of these masks is the contour of the {lesion.noun}?"


def distribution(lesion: Lesion) -> str:
    return (
        "Divide each lung into an upper, a mid and a lower zone, each a third of its height: six zones in all. "
        f"In how many of them does the {lesion.noun} cover at least a fifth of the zone?"
    )


def location(lesion: Lesion) -> str:
    return (
        f"Which of these regions hold the {lesion.noun}, that is, have at least a fifth of their area covered by it? "
        "The periphery is the outer rim of a lung along the chest wall, the costophrenic angle its lowest part. "
        "Left and right are the patient's. Choose every region that applies."
    )


def severity(lesion: Lesion, side: str) -> str:
    return f"How much of the patient's {side} lung does the {lesion.noun} occupy, not counting the heart?"


def comparison(lesion: Lesion) -> str:
    return (
        f"How do the two lungs compare in the size of the {lesion.noun}? If it lies in one lung only, choose "
        "that; else one side is larger if it is at least 1.5 times the other. Left and right are the patient's."
    )


def region(name: str) -> str:
    """A region as a reader would say it: "lateral half of the right mid zone"."""
    side, _, rest = name.partition(" ")
    level, _, part = rest.partition(" ")
    return f"{_PARTS[part]} of the {side} {level} zone" if level in LEVELS else name
