"""The facts of a case that pages show in a place of their own. No other module of this package reads facts."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal

import msgspec

from carina.cases.facts import LesionFacts, stored_name
from carina.cases.model import Case, Fact, Step
from carina.percept.facts import EditFacts, PerceptCaseFacts
from carina.trek.facts import THINGS, StudyTime, TrekCaseFacts, TrekStepFacts

_EDIT_TITLES: Final = tuple(stored_name(EditFacts, field) for field in ("operation", "place", "mark"))
_CHRONOLOGY: Final = tuple(stored_name(StudyTime, field) for field in ("date", "order"))
"""Facts of a conversation that the page's header gives."""
_ROLE: Final = stored_name(LesionFacts, "roles")

StudyRole = Literal["current", "reference", "later"]


@dataclass(frozen=True, kw_only=True)
class ContourEdit:
    """One change that was made to a contour before it was shown."""

    name: str
    """ "edit 1"."""
    operation: str
    place: str
    mark: str
    """Text of the numbered point that marks it; empty where there is none."""
    details: tuple[Fact, ...]
    """Its other facts, without their common subject."""


def region_roles(case: Case) -> dict[str, str]:
    """Name of a region to its role in the case: "truth", "shown", "revised" or "option"."""
    return {region: role for region, role in LesionFacts.of(case).roles.items() if role}


def contour_edits(case: Case) -> tuple[ContourEdit, ...]:
    """The changes that were made to the shown contour, in order."""
    facts = _by_subject(case.facts)
    return tuple(
        ContourEdit(
            name=name,
            operation=edit.operation or "",
            place=edit.place or "",
            mark=edit.mark or "",
            details=tuple(
                msgspec.structs.replace(fact, about="")
                for fact in facts[name]
                if fact.name not in _EDIT_TITLES
            ),
        )
        for name, edit in PerceptCaseFacts.of(case).edits.items()
    )


def other_facts(case: Case) -> tuple[Fact, ...]:
    """Facts of a case that are neither roles of regions nor changes of a contour."""
    edits = PerceptCaseFacts.of(case).edits
    return tuple(fact for fact in case.facts if fact.name != _ROLE and fact.about not in edits)


def other_conversation_facts(case: Case) -> tuple[Fact, ...]:
    """Facts of a conversation that its header does not give."""
    return tuple(fact for fact in case.facts if fact.name not in _CHRONOLOGY)


def study_date(case: Case, role: StudyRole) -> str:
    """Date of a study of the case in ISO format; empty where it is unknown."""
    time = TrekCaseFacts.of(case).times.get(role)
    return (time.date or "") if time is not None else ""


def questioned_findings(case: Case) -> tuple[str, ...]:
    """Findings and devices that the questions are about, each once, in the order of the questions."""
    names = (name for step in case.steps for name in _step_targets(step))
    return tuple(dict.fromkeys(names))


def _step_targets(step: Step) -> list[str]:
    return [target.name for target in TrekStepFacts.of(step).targets if target.kind in THINGS and target.name]


def _by_subject(facts: Sequence[Fact]) -> dict[str, tuple[Fact, ...]]:
    """Facts by what they are about, in the order of first mention."""
    order = {about: place for place, about in enumerate(dict.fromkeys(fact.about for fact in facts))}
    ranked = sorted(facts, key=lambda fact: order[fact.about])
    return {about: tuple(members) for about, members in groupby(ranked, key=lambda fact: fact.about)}
