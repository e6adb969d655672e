"""`builtin/random`: a random choice among the admissible answers, which gives the chance level."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Final

from carina.cases import Box, Step
from carina.cases.messages import box_text
from carina.cases.model import Label
from carina.models import ImageReader, Reply
from carina.runs.parse.choices import says_none
from carina.runs.prompts import NORMAL_REPORT, SPOKEN_LABELS
from carina.runs.records import Turn
from carina.runs.score.chance import offers_uncertain
from carina.store.seeding import shares

_MOST_LISTED: Final = 12
"""Options of which all sets are listed; closed sets of published answers have up to 70."""
_LABELS: Final[tuple[Label, ...]] = ("yes", "no", "uncertain")


class RandomAnswers:
    """Chooses one of the admissible answers with equal probability; the same one for the same seed, case and step."""

    name = "builtin/random"
    batch = 64

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def answer(self, turns: Sequence[Turn], images: ImageReader) -> list[Reply]:
        """Random answers; the images are not used."""
        del images
        return [Reply(text=self._choose(turn), stop="stop") for turn in turns]

    def _choose(self, turn: Turn) -> str:
        step, share = turn.step, shares(self._seed, "random", turn.case, turn.step.id)
        if step.format == "choice":
            return f"Answer: {', '.join(map(str, _choose_options(step, share)))}"
        if step.format == "yes_no":
            labels = _LABELS if offers_uncertain(step) else _LABELS[:2]
            return SPOKEN_LABELS[labels[int(share() * len(labels))]]
        if step.format == "boxes":
            left, right = sorted((share() * 100, share() * 100))
            top, bottom = sorted((share() * 100, share() * 100))
            corners = (round(left, 2), round(top, 2), round(right, 2) + 0.01, round(bottom, 2) + 0.01)
            return box_text(Box(image="", xyxy=corners, frame="percent"))
        return NORMAL_REPORT


def _choose_options(step: Step, share: Callable[[], float]) -> Sequence[int]:
    """Numbers of the options of one admissible answer."""
    if not step.multiple or len(step.options) <= _MOST_LISTED:
        sets = _admissible(step)
        return sets[int(share() * len(sets))]
    # So many sets that they cannot be listed: each option by itself, and again where none is chosen. Whether "none"
    # alone is drawn, one of about 2 to the power of the number of options, makes no difference.
    others = [n for n, option in enumerate(step.options, start=1) if not says_none(option.text)]
    while not (chosen := [n for n in others if share() < 0.5]):
        pass
    return chosen


def _admissible(step: Step) -> list[tuple[int, ...]]:
    """Sets of option numbers that could be right: one number, any set without "none", or "none" alone."""
    numbers = range(1, len(step.options) + 1)
    if not step.multiple:
        return [(number,) for number in numbers]
    none = [n for n in numbers if says_none(step.options[n - 1].text)]
    others = [n for n in numbers if n not in none]
    sets = [chosen for size in range(1, len(others) + 1) for chosen in combinations(others, size)]
    return sets + [(number,) for number in none]
