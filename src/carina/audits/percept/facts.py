"""What percept's gates read: the facts of a case and its steps, and the rules the benchmark was built with.

Gates read rows instead of `PerceptStepFacts`: a case that is not sound may have a fact twice or in a wrong form.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from carina.audits.gate import AuditContext
from carina.cases.facts import stored_name
from carina.cases.model import Case, Step
from carina.percept.facts import PerceptCaseFacts, PerceptStepFacts
from carina.percept.rules import Rules
from carina.store.errors import BenchmarkError

ROLES: Final = ("truth", "shown", "revised")
"""Roles of regions that the gates measure."""
_ROLE: Final = stored_name(PerceptCaseFacts, "roles")
_NOT_ASKED: Final = stored_name(PerceptCaseFacts, "not_asked")


def all_region_roles(case: Case) -> dict[str, str | None]:
    """Region -> its role."""
    return {fact.about: fact.text for fact in case.facts if fact.name == _ROLE}


def tasks_not_asked(case: Case) -> set[str]:
    """Tasks for which the case states a reason why it has no step."""
    return {fact.about for fact in case.facts if fact.name == _NOT_ASKED and fact.text}


def zone_shares(step: Step) -> list[float]:
    """Share of each lung zone that the lesion covers."""
    return _values(step, "zone_ratios")


def severity_shares(step: Step) -> list[float]:
    """Share of the lungs that the lesion covers; one value in a sound case."""
    return _values(step, "share")


def side_shares(step: Step, side: str) -> list[float]:
    """Share of one lung that the lesion covers; one value in a sound case."""
    return _values(step, f"{side}_share")


def size_ratios(step: Step) -> list[float]:
    """Size of the lesion on one side over that on the other; one value in a sound case."""
    return _values(step, "size_ratio")


def region_shares(step: Step) -> Mapping[str, float | None]:
    """Option of a location question -> share of its region that the lesion covers."""
    return {fact.about: fact.value for fact in step.facts if fact.name == _name("region_ratios")}


def region_overlaps(step: Step) -> Mapping[str, float | None]:
    """Two options of a location question, separated by a space -> overlap of their regions."""
    return {fact.about: fact.value for fact in step.facts if fact.name == _name("region_overlaps")}


def _values(step: Step, field: str) -> list[float]:
    """Numbers of a field of `PerceptStepFacts`, as often as they are stored."""
    name = _name(field)
    return [fact.value for fact in step.facts if fact.name == name and fact.value is not None]


def _name(field: str) -> str:
    return stored_name(PerceptStepFacts, field)


def read_rules(context: AuditContext) -> Rules:
    """The acceptance rules that the benchmark states it was built with; the defaults where it states none.

    Raises:
        BenchmarkError: The stated rules are not percept's.
    """
    stated = context.options.get("rules", {})
    if isinstance(stated, dict):
        # The builder of another version may have had rules that no case can break.
        stated = {name: value for name, value in stated.items() if name in Rules.__struct_fields__}
    try:
        return msgspec.convert(stated, Rules)
    except msgspec.ValidationError as error:
        raise BenchmarkError(
            f"{context.directory or 'benchmark'}: options.rules of the manifest are not percept's: {error}"
        ) from error
