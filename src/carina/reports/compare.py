"""Compare two reports: F1 of the entities that both state, with negation, side, place, severity and trend.

| an entity of the reference | counts |
|---|---|
| present or uncertain | as one that a candidate must state |
| absent | only where the candidate states it as present, or where the reference states nothing but absences |

Two entities of the same name match with a credit from 0 to 1. Another certainty, the other side, disjoint zones, the
other trend, the other position of a device: credit 0. A severity that differs, and attributes of the reference that the
candidate leaves out, lower the credit. What the reference does not say cannot be judged, so it costs nothing, with one
exception: a comparison with a prior study that the reference does not have is an invention.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

import msgspec

from carina.reports.answers import denies_findings
from carina.reports.facts import Entity, EntityKind, ReportFacts
from carina.reports.read import read_report
from carina.studies.model import Record, Report
from carina.studies.vocabulary import SIDES

NAME_WEIGHT: Final = 2.0
"""What the name of an entity weighs in a match, beside 1 for each attribute of the reference. A choice: a finding
without any of its attributes is worth at least a third."""
COMPARED: Final[tuple[EntityKind, ...]] = ("finding", "device")
"""Kinds of entities that count in the comparison of two reports."""
PRIOR_STUDY: Final = Entity(kind="comparison", name="prior study", compared=True)


class EntityMatch(Record, frozen=True, kw_only=True):
    """An entity of the candidate beside the one of the reference that it speaks of."""

    candidate: Entity
    reference: Entity
    credit: float
    """From 0, where the two contradict each other, to 1."""
    differences: tuple[str, ...] = ()
    """Attributes of the reference that the candidate states differently or not at all, such as ("side", "severity")."""


class ReportScore(Record, frozen=True, kw_only=True):
    """How well a candidate states the entities of a reference, and which ones it does not."""

    f1: float | None
    """Harmonic mean of precision and recall; None where the reference states no entity that can be compared."""
    precision: float | None
    recall: float | None
    matched: tuple[EntityMatch, ...] = ()
    contradicted: tuple[EntityMatch, ...] = ()
    """Entities of the same name that contradict each other: another certainty, side, place, trend or prior study."""
    missed: tuple[Entity, ...] = ()
    """Entities of the reference that the candidate does not mention."""
    invented: tuple[Entity, ...] = ()
    """Entities of the candidate that the reference does not have."""

    def __str__(self) -> str:
        lines = [f"entity F1 {self.f1:.3f}" if self.f1 is not None else "no entities to compare"]
        lines += [_format_match("matched", match) for match in self.matched]
        lines += [_format_match("contradicted", match) for match in self.contradicted]
        lines += [f"  missed        {entity}" for entity in self.missed]
        lines += [f"  invented      {entity}" for entity in self.invented]
        return "\n".join(lines)


def _format_match(title: str, match: EntityMatch) -> str:
    beside = f" for {match.reference} ({', '.join(match.differences)})" if match.differences else ""
    return f"  {title:<13} {match.candidate}{beside}"


def compare_reports(
    candidate: str | Report | ReportFacts,
    reference: str | Report | ReportFacts,
    *,
    kinds: Collection[EntityKind] = COMPARED,
    has_prior: bool | None = None,
) -> ReportScore:
    """Score a report against a reference by the entities that both state.

    Args:
        candidate: The report to score: text, a `Report`, or what `read_report` returned.
        reference: The report that counts as right.
        kinds: Kinds of entities that count: "finding", "device", "recommendation", "relation".
        has_prior: Whether there is a prior study. None: there is one if the reference speaks of one. Where there is
            none, statements of the candidate that compare with one are inventions.

    Returns:
        F1, precision and recall, with the entities that match, contradict each other, are missed, or are invented.

    Example:
        >>> score = compare_reports("Small right pleural effusion.", "Small left pleural effusion.")
        >>> print(score)
        entity F1 0.000
          contradicted  mild right pleural effusion for mild left pleural effusion (side)
    """
    stated, right = _read_facts(candidate), _read_facts(reference)
    prior = right.compares if has_prior is None else has_prior
    entities = [entity for entity in stated.entities if entity.kind in kinds]
    invented = [] if prior or not stated.compares else [PRIOR_STUDY]
    return compare_entities(
        [*entities, *invented],
        [entity for entity in right.entities if entity.kind in kinds],
        has_prior=prior,
        says_nothing_abnormal=_make_denial_check(stated.report),
    )


def _read_facts(report: str | Report | ReportFacts) -> ReportFacts:
    return report if isinstance(report, ReportFacts) else read_report(report)


def _make_denial_check(report: Report) -> Callable[[], bool]:
    return lambda: any(denies_findings(section.text) for section in report.sections)


def compare_entities(
    candidate: Iterable[Entity],
    reference: Iterable[Entity],
    *,
    has_prior: bool = True,
    says_nothing_abnormal: Callable[[], bool] = lambda: False,
) -> ReportScore:
    """Score entities against those of a reference; see `compare_reports`.

    Args:
        candidate: Entities of the text to score.
        reference: Entities that count as right.
        has_prior: Whether a comparison with a prior study can be right.
        says_nothing_abnormal: Whether the candidate says in general that nothing is abnormal; called only where the
            reference states nothing but absences.

    Returns:
        The score, with the entities that match, contradict, are missed and are invented.

    Example:
        >>> edema, mass = Entity(kind="finding", name="edema"), Entity(kind="finding", name="mass")
        >>> score = compare_entities([edema], [edema, mass])
        >>> score.precision, score.recall
        (1.0, 0.5)
    """
    stated, right = tuple(candidate), tuple(reference)
    wanted = [entity for entity in right if entity.certainty != "absent"]
    claimed = [entity for entity in stated if entity.certainty != "absent"]
    if not wanted:
        return _compare_absences(stated, right, claimed, says_nothing_abnormal)
    denied = [
        entity
        for entity in stated
        if entity.certainty == "absent" and any(_is_denied_by(entity, other) for other in wanted)
    ]
    matches, missed, invented = _align([*claimed, *denied], wanted, has_prior=has_prior)
    matched = tuple(match for match in matches if match.credit > 0)
    contradicted = tuple(match for match in matches if match.credit == 0)
    credit = sum(match.credit for match in matched)
    recall = credit / (len(matches) + len(missed))
    precision = credit / (len(matches) + len(invented)) if matches or invented else 0.0
    return ReportScore(
        f1=2 * precision * recall / (precision + recall) if credit else 0.0,
        precision=precision,
        recall=recall,
        matched=matched,
        contradicted=contradicted,
        missed=tuple(missed),
        invented=tuple(invented),
    )


def _is_denied_by(denial: Entity, other: Entity) -> bool:
    """Whether a denial is about what another entity states: of the same name, and not only of another place."""
    if (denial.kind, denial.name) != (other.kind, other.name):
        return False
    sides = {denial.side, other.side} - {None, "bilateral"}
    is_elsewhere = denial.zones and other.zones and set(denial.zones).isdisjoint(other.zones)
    return len(sides) < 2 and not is_elsewhere


def _compare_absences(
    candidate_entities: tuple[Entity, ...],
    reference_entities: tuple[Entity, ...],
    claimed: list[Entity],
    says_nothing_abnormal: Callable[[], bool],
) -> ReportScore:
    """Score against a reference that states only absences.

    A candidate is right if it claims no finding and denies at least one of these. That a finding
    has resolved is a claim about the prior study, which is right only where the reference says so, too.
    """
    if not reference_entities:
        return ReportScore(f1=None, precision=None, recall=None, invented=tuple(claimed))
    absent = {(entity.kind, entity.name): entity for entity in reference_entities}
    matched: list[EntityMatch] = []
    contradicted: list[EntityMatch] = []
    invented: list[Entity] = []
    for entity in candidate_entities:
        reference = absent.get((entity.kind, entity.name))
        resolved = entity.trend == "resolved" and (reference is None or reference.trend != "resolved")
        if reference is None:
            invented += [entity] if entity in claimed or resolved else []
        elif entity.certainty != "absent" or resolved:
            difference = "trend" if resolved else "certainty"
            contradicted.append(
                EntityMatch(candidate=entity, reference=reference, credit=0.0, differences=(difference,))
            )
        else:
            matched.append(EntityMatch(candidate=entity, reference=reference, credit=1.0))
    agrees = not contradicted and not invented and (bool(matched) or says_nothing_abnormal())
    return ReportScore(
        f1=float(agrees),
        precision=float(agrees),
        recall=float(agrees),
        matched=tuple(matched),
        contradicted=tuple(contradicted),
        missed=() if agrees or matched or contradicted else reference_entities,
        invented=tuple(invented),
    )


# ---- matching -------------------------------------------------------------------------------------------------------


def _align(
    stated: list[Entity], wanted: list[Entity], *, has_prior: bool
) -> tuple[list[EntityMatch], list[Entity], list[Entity]]:
    """Matches of entities with the same name, best first; what is left over of the reference and of the candidate."""
    groups: dict[tuple[str, str], tuple[list[Entity], list[Entity]]] = {}
    for number, entities in enumerate((stated, wanted)):
        for entity in entities:
            groups.setdefault((entity.kind, entity.name), ([], []))[number].append(entity)
    matches: list[EntityMatch] = []
    missed: list[Entity] = []
    invented: list[Entity] = []
    for group in groups.values():
        ours, theirs = _split_by_side(*group), _split_by_side(*reversed(group))
        pairs = [_match(one, other, has_prior=has_prior) for one in ours for other in theirs]
        for match in sorted(pairs, key=lambda pair: -pair.credit):
            if _remove(ours, match.candidate, theirs, match.reference):
                matches.append(match)
        missed += theirs
        invented += ours
    return matches, missed, invented


def _remove(ours: list[Entity], one: Entity, theirs: list[Entity], other: Entity) -> bool:
    """Remove both entities of a pair, if both are still to be matched."""
    places = [
        next((place for place, entity in enumerate(entities) if entity is wanted), None)
        for entities, wanted in ((ours, one), (theirs, other))
    ]
    if places[0] is None or places[1] is None:
        return False
    del ours[places[0]], theirs[places[1]]
    return True


def _split_by_side(entities: list[Entity], others: list[Entity]) -> list[Entity]:
    """A bilateral finding as one on each side, where the other report speaks of one side of it."""
    found: list[Entity] = []
    for entity in entities:
        if entity.side != "bilateral" or not any(other.side in SIDES for other in others):
            found.append(entity)
            continue
        for side in SIDES:
            zones = tuple(zone for zone in entity.zones if zone.startswith(side))
            found.append(msgspec.structs.replace(entity, side=side, zones=zones))
    return found


def _match(candidate: Entity, reference: Entity, *, has_prior: bool) -> EntityMatch:
    """Credit of a pair with the same name: 0 for a contradiction, else the weighted share of what agrees."""
    contradictions = [
        name for name, found in _contradictions(candidate, reference, has_prior=has_prior) if found
    ]
    if contradictions:
        return EntityMatch(
            candidate=candidate, reference=reference, credit=0.0, differences=tuple(contradictions)
        )
    agreements = dict(_agreements(candidate, reference))
    credit = (NAME_WEIGHT + sum(agreements.values())) / (NAME_WEIGHT + len(agreements))
    differences = tuple(name for name, agreement in agreements.items() if agreement < 1)
    return EntityMatch(candidate=candidate, reference=reference, credit=credit, differences=differences)


def _contradictions(candidate: Entity, reference: Entity, *, has_prior: bool) -> Iterator[tuple[str, bool]]:
    yield "certainty", candidate.certainty != reference.certainty
    yield "side", _differ(candidate.side, reference.side)
    yield (
        "place",
        bool(candidate.zones and reference.zones and set(candidate.zones).isdisjoint(reference.zones)),
    )
    yield "trend", _differ(candidate.trend, reference.trend)
    yield "position", _differ(candidate.position, reference.position)
    yield "prior study", candidate.compared and not has_prior


def _differ(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


def _agreements(candidate: Entity, reference: Entity) -> Iterator[tuple[str, float]]:
    """Attributes that the reference states, with the agreement of the candidate from 0 to 1."""
    for name in ("side", "severity", "trend", "position"):
        value = getattr(reference, name)
        if value is not None:
            yield name, float(getattr(candidate, name) == value)
    if reference.zones:
        shared = len(set(candidate.zones) & set(reference.zones))
        yield "place", 2 * shared / (len(candidate.zones) + len(reference.zones))
