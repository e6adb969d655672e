"""The facts of cases and steps that gates of every protocol read; those of one protocol are beside its gates."""

from typing import Final

from carina.cases.facts import LesionFacts
from carina.cases.model import Case, Step
from carina.trek.facts import TrekStepFacts

_NAMED_KINDS: Final = frozenset({"finding", "device", "region", "anatomy"})
"""Kinds of targets whose names are not answers themselves, as the name of a view would be."""


def target_of(case: Case, step: Step) -> str:
    """What a step asks about: the target of its case, or the names that its own facts state, sorted; "" for neither."""
    if case.target is not None:
        return case.target
    targets = TrekStepFacts.of(step).targets
    return " + ".join(
        sorted(target.name for target in targets if target.kind in _NAMED_KINDS and target.name)
    )


def region_roles(case: Case) -> dict[str, str]:
    """Region -> its role, such as "truth" or "shown", for the regions of which a role is stated."""
    return {region: role for region, role in LesionFacts.of(case).roles.items() if role}
