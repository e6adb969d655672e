"""The facts of trek cases and steps that its gates read.

Gates read rows instead of `TrekStepFacts`: a conversation that is not sound may have a fact twice or in a wrong form,
and millions of steps are read.
"""

from typing import Final

from carina.cases.facts import stored_name
from carina.cases.model import Case, Step
from carina.trek.facts import FOR_BALANCE, StudyTime, TrekCaseFacts, TrekStepFacts

_TARGET: Final = stored_name(TrekStepFacts, "targets")
_TRUTH: Final = stored_name(TrekStepFacts, "truth")
_LISTED: Final = stored_name(TrekStepFacts, "listed")
_VIEW: Final = stored_name(TrekStepFacts, "view")
_NEGATIVE: Final = stored_name(TrekStepFacts, "negative")
_QUOTE: Final = stored_name(TrekStepFacts, "quotes")
_QUOTING_SLOTS: Final = frozenset({"findings", "phrase"})
"""Slots of questions that take a section or a sentence of the report."""
_NOT_ASKED: Final = stored_name(TrekCaseFacts, "not_asked")
_LOOKED_FOR: Final = stored_name(TrekCaseFacts, "looked_for")
_ORDER: Final = stored_name(StudyTime, "order")
_DATE: Final = stored_name(StudyTime, "date")


def knows_only_what_is_recorded(case: Case, kind: str) -> bool:
    """Whether the case states that nothing of a kind is known but what its study records."""
    return any(fact.name == _LOOKED_FOR and fact.about == kind and fact.text == "none" for fact in case.facts)


def first_target(step: Step) -> tuple[str, str]:
    """Kind and name of the first target of a step; twice "" where none is stated."""
    for fact in step.facts:
        if fact.name == _TARGET:
            return fact.about, fact.text or ""
    return "", ""


def target_kinds(step: Step) -> set[str]:
    """Kinds of all targets of a step: "finding", "device", "region", ..."""
    return {fact.about for fact in step.facts if fact.name == _TARGET}


def truths(step: Step) -> list[str]:
    """What the step holds as true: "present", "absent" or "uncertain" for each finding or device."""
    return texts_of(step, _TRUTH)


def truths_by_id(step: Step) -> list[tuple[str, str | None]]:
    """As `truths`, each after the id of its finding or device."""
    return [(fact.about, fact.text) for fact in step.facts if fact.name == _TRUTH]


def is_recorded_uncertain(step: Step) -> bool:
    """Whether the step records something as uncertain."""
    return any(fact.name == _TRUTH and fact.text == "uncertain" for fact in step.facts)


def attribute_values(step: Step) -> list[str]:
    """Stored values of the attribute that the step asks for, such as its severity."""
    return texts_of(step, step.task)


def listed_names(step: Step) -> list[str]:
    """Names that the right list of a step must hold."""
    return texts_of(step, _LISTED)


def projections(step: Step) -> set[str]:
    """Stored projections of the images: "PA", "AP", "lateral"."""
    return {view.strip() for text in texts_of(step, _VIEW) for view in text.split(",")}


def negative_origin(step: Step) -> str | None:
    """How a negative answer was obtained: "stated", "sibling" or "sampled"."""
    return next((fact.text for fact in step.facts if fact.name == _NEGATIVE), None)


def is_sampled_negative(step: Step) -> bool:
    """Whether the step asks about an absent finding that no report states as absent."""
    return any(fact.name == _NEGATIVE and fact.text != "stated" for fact in step.facts)


def has_structured_truth(step: Step) -> bool:
    """Whether the step states more than its target."""
    return any(fact.name != _TARGET for fact in step.facts)


def has_fact(step: Step, name: str) -> bool:
    """Whether a fact of the step has this name, or is about a thing of this kind."""
    return any(name in (fact.name, fact.about) for fact in step.facts)


def quoted_texts(step: Step) -> list[str]:
    """Texts of the step that are a report's own words: sections that cite sentences, phrases, and marked quotes."""
    slots = [slot.value for slot in step.slots if slot.name in _QUOTING_SLOTS]
    return [*quotes_of_report(step), *slots]


def quotes_of_report(step: Step) -> list[str]:
    """Texts of the answer that are a report's own words."""
    sections = [section.text for section in step.key.sections] if step.evidence else []
    return [*texts_of(step, _QUOTE), *sections]


def tasks_not_asked(case: Case) -> set[str]:
    """Tasks of which the conversation states that questions are not asked, because their key is not known."""
    return {fact.about for fact in case.facts if fact.name == _NOT_ASKED and fact.text != FOR_BALANCE}


def study_orders(case: Case) -> dict[str, float | None]:
    """Role of a study ("reference", "current", "later") -> its number in the patient's studies."""
    return {fact.about: fact.value for fact in case.facts if fact.name == _ORDER}


def study_dates(case: Case) -> dict[str, str | None]:
    """Role of a study -> its date as text."""
    return {fact.about: fact.text for fact in case.facts if fact.name == _DATE}


def texts_of(step: Step, name: str) -> list[str]:
    """Texts of all facts with this name."""
    return [fact.text for fact in step.facts if fact.name == name and fact.text]
