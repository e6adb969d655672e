"""How a step's options look to somebody who answers without looking at the pictures."""

from typing import NamedTuple

from carina.cases.model import Case, Step

NONE_ID = "none"
"""Id or kind of an option that excludes all others; it has its own place in the list."""


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
        right = frozenset(n - 1 for n in step.right)
        kinds = step.key.kinds if len(step.key.kinds) == len(step.options) else ()
        content = tuple(
            place
            for place, option in enumerate(step.options)
            if not (step.multiple and option.id == NONE_ID) and not (kinds and kinds[place] == NONE_ID)
        )
        found = Choices(tuple(folded(option.text) for option in step.options), right, content)
    elif step.format == "yes_no" and step.key.label in ("yes", "no"):
        found = Choices(("yes", "no"), frozenset({0 if step.key.label == "yes" else 1}), (0, 1))
    else:
        return None
    return found if found.right else None


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
    return " + ".join(fact.text for fact in step.facts if fact.name == "target" and fact.text)
