"""What a report says, as records of `carina.studies.model`."""

from typing import Literal

from carina.studies.model import Device, Finding, Recommendation, Record, Relation, Report


class Comparison(Record, frozen=True, kw_only=True):
    """Whether the report names an earlier study, and the sentences that do."""

    prior: Literal["named", "none"]
    """`none` where the report says that there is nothing to compare with."""
    evidence: tuple[int, ...]


class Reading(Record, frozen=True, kw_only=True):
    """A report read: every fact linked to its sentences, and every sentence to its facts."""

    report: Report
    """Sections and sentences with their `states`."""
    findings: tuple[Finding, ...] = ()
    devices: tuple[Device, ...] = ()
    relations: tuple[Relation, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    comparison: Comparison | None = None
    """None where the report is silent on earlier studies."""
