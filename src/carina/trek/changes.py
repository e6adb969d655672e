"""Changes between two studies of a patient: as the later study states them, else from the truth of both."""

from dataclasses import dataclass
from typing import Final

from carina.cases import Evidence
from carina.studies.vocabulary import Trend
from carina.trek.interned import cite
from carina.trek.subject import Subject, Thing, trend_between

_CONTRADICTIONS: Final = frozenset(
    {("worse", "improved"), ("improved", "worse"), ("unchanged", "worse"), ("unchanged", "improved")}
)
"""A stored trend and one by grades that can't both be right; within one grade something may well get worse."""


@dataclass(slots=True)
class Change:
    """The change of one finding or device."""

    trend: Trend
    name: str
    kind: str
    id: str
    """In the later study, where what has gone is recorded as absent."""
    now: Thing | None
    before: Thing | None
    later_sentences: tuple[int, ...] = ()

    @property
    def kind_of_answer(self) -> str:
        """Devices are placed and removed, findings come and go."""
        return f"{self.trend}_device" if self.kind == "device" else self.trend

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Sentences of both reports, where the later study is the current one."""
        marks = cite("current", self.later_sentences)
        return marks if self.before is None else marks + cite("reference", self.before.evidence)


def tells_all(changes: list[Change], before: Subject, now: Subject) -> bool:
    """Whether the course of everything in either study is among the changes."""
    told = {change.name for change in changes}
    return all(thing.name in told for thing in (*before.things, *now.things))


def changes_between(before: Subject, now: Subject) -> list[Change]:
    """Changes of findings and devices with a unique name, in the order of the later study; then resolved ones."""
    if not before.things and not now.things:
        return []
    earlier = {thing.name: thing for thing in before.things if thing.alone}
    # A stored trend is against the study that was the prior one then, which a set may lack.
    stored = now.study.prior in (None, before.study.id)
    crowded = {thing.name for thing in (*before.things, *now.things) if not thing.alone}
    changes: list[Change] = []
    for thing in now.things:
        if thing.name in crowded:
            continue
        old = earlier.get(thing.name)
        told = thing.trend if stored else None
        by_grade = trend_between(thing, old)
        if (told, by_grade) in _CONTRADICTIONS:
            continue
        trend = told or by_grade
        if trend is None or trend == "resolved" or (trend == "new") != (old is None):
            continue
        if told is None and trend == "new" and thing.name not in _looked_for(before):
            continue
        changes.append(Change(trend, thing.name, thing.kind, thing.id, thing, old, thing.evidence))
    there = {thing.name for thing in now.things} | crowded
    gone = [old for old in before.things if old.name not in there and old.alone and old.is_present]
    if not gone:
        return changes
    stated = now.resolved if stored else {}
    # Without a word about it, what is no longer there has gone only if the later study looked for it.
    looked_for = _looked_for(now)
    for old in gone:
        if old.name in stated:
            record = stated[old.name]
            changes.append(Change("resolved", old.name, old.kind, record.id, None, old, record.evidence))
        elif old.name in looked_for:
            changes.append(Change("resolved", old.name, old.kind, looked_for[old.name], None, old))
    return changes


def _looked_for(subject: Subject) -> dict[str, str]:
    """By name, the ids of what a study records as absent."""
    return {
        missing.name: missing.id
        for missing in (*subject.absent_findings, *subject.absent_devices)
        if missing.id
    }
