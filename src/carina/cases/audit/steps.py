"""How a step's options look to somebody who answers without looking at the pictures."""

from functools import lru_cache
from typing import Final, NamedTuple

from carina.cases.model import Case, Step

NONE_ID = "none"
"""Id or kind of an option that excludes all others; it has its own place in the list."""
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
_NAMED: Final = frozenset({"finding", "device", "region", "anatomy"})
"""Kinds of targets whose names are not answers themselves, as the name of a view is."""


class Choices(NamedTuple):
    """The options of a step: what can be chosen freely, and what excludes everything else."""

    texts: tuple[str, ...]
    """Folded texts of all options, in order."""
    right: frozenset[int]
    """Places of the right options, from 0."""
    content: tuple[int, ...]
    """Places of all options but "none of them"."""


def choices(step: Step) -> Choices | None:
    """The step as a choice; None for steps that are answered otherwise or have no key."""
    if step.options:
        right = _places(step.right)
        content = tuple(place for place in range(len(step.options)) if not excludes(step, place))
        found = Choices(tuple(folded(option.text) for option in step.options), right, content)
    elif step.format == "yes_no" and step.key.label in ("yes", "no"):
        found = Choices(("yes", "no"), _places((1,) if step.key.label == "yes" else (2,)), (0, 1))
    else:
        return None
    return found if found.right else None


def excludes(step: Step, place: int) -> bool:
    """Whether an option says that no other is right: by its kind, by its id, or, if it is the key, by its words."""
    option, kinds = step.options[place], step.key.kinds
    if len(kinds) == len(step.options):
        if kinds[place] == NONE_ID:
            return True
        if kinds[place] == "key" and option.text.lower().startswith(_NONE_WORDS):
            return True
    return step.multiple and option.id == NONE_ID


@lru_cache(maxsize=1024)
def _places(numbers: tuple[int, ...]) -> frozenset[int]:
    """From 0. The same few sets are kept with thousands of questions."""
    return frozenset(number - 1 for number in numbers)


@lru_cache(maxsize=16384)
def folded(text: str) -> str:
    """Without case, and with single blanks."""
    return " ".join(text.lower().split())


def task_of(step: Step) -> str:
    """Steps that are counted together: "3 expansion". The same asked with and without options is not the same."""
    return f"{step.stage} {step.task}, yes or no" if step.format == "yes_no" else f"{step.stage} {step.task}"


def target_of(case: Case, step: Step) -> str:
    """What a step is about: the case's target, or what the step itself says that it probes."""
    if case.target is not None:
        return case.target
    names = (fact.text for fact in step.facts if fact.name == "target" and fact.about in _NAMED and fact.text)
    return " + ".join(sorted(names))
