"""The options of a step, as a model without images gets them."""

from functools import lru_cache
from typing import Final, NamedTuple

from carina.cases.model import Step

NONE_ID = "none"
"""Id or kind of the option "none of these", which excludes all others and has a fixed place in the list."""
_NONE_WORDS: Final = (
    "none of",
    "none applies",
    "nothing on",
    "nothing of",
    "neither of",
    "neither this",
    "not any of",
    "no option",
    "no answer",
)


class Choices(NamedTuple):
    """The options of a step by their places, from 0."""

    texts: tuple[str, ...]
    """Texts of all options in order, in lower case with single spaces."""
    right: frozenset[int]
    """Places of the right options."""
    content: tuple[int, ...]
    """Places of all options except "none of these"."""


def read_choices(step: Step) -> Choices | None:
    """The options of a step; None for a step without options, unless it is a yes/no question, or without a key."""
    if step.options:
        right = _to_places(step.right)
        content = tuple(place for place in range(len(step.options)) if not is_none_option(step, place))
        choices = Choices(tuple(normalise(option.text) for option in step.options), right, content)
    elif step.format == "yes_no" and step.key.label in ("yes", "no"):
        choices = Choices(("yes", "no"), _to_places((1,) if step.key.label == "yes" else (2,)), (0, 1))
    else:
        return None
    return choices if choices.right else None


def is_none_option(step: Step, place: int) -> bool:
    """Whether an option says that no other is right: by its kind, by its id, or, if it is the key, by its words."""
    option, kinds = step.options[place], step.key.kinds
    if len(kinds) == len(step.options):
        if kinds[place] == NONE_ID:
            return True
        if kinds[place] == "key" and option.text.lower().startswith(_NONE_WORDS):
            return True
    return step.multiple and option.id == NONE_ID


@lru_cache(maxsize=1024)
def _to_places(numbers: tuple[int, ...]) -> frozenset[int]:
    """From 0. The same few sets are kept with thousands of questions."""
    return frozenset(number - 1 for number in numbers)


@lru_cache(maxsize=16384)
def normalise(text: str) -> str:
    """In lower case, with single spaces."""
    return " ".join(text.lower().split())


def task_of(step: Step) -> str:
    """The task under which a step is counted: "3 expansion". Yes/no questions are counted apart from choices."""
    return f"{step.stage} {step.task}, yes or no" if step.format == "yes_no" else f"{step.stage} {step.task}"
