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
"""Pairs of a stored trend and a trend by grades that contradict each other; a change within one grade is possible."""

LASTING: Final = frozenset(
    {
        "emphysema",
        "granuloma",
        "hernia",
        "hiatal hernia",
        "pleural thickening",
        "fibrosis",
        "scarring",
        "scoliosis",
    }
)
"""Findings that do not go away: a report that does not repeat one does not say that it has resolved."""


@dataclass(slots=True)
class Change:
    """The change of one finding or device."""

    trend: Trend
    name: str
    kind: str
    id: str
    """Id in the later study, in which a resolved finding may be recorded as absent; its name where it is not."""
    now: Thing | None
    before: Thing | None
    later_sentences: tuple[int, ...] = ()

    @property
    def kind_of_answer(self) -> str:
        """The kind of answer: devices are placed and removed, findings appear and resolve."""
        return f"{self.trend}_device" if self.kind == "device" else self.trend

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Sentences of both reports, where the later study is the current one."""
        marks = cite("current", self.later_sentences)
        return marks if self.before is None else marks + cite("reference", self.before.evidence)


def covers_all_changes(changes: list[Change], before: Subject, now: Subject) -> bool:
    """Whether the changes include everything that is in either study."""
    told = {change.name for change in changes}
    return all(thing.name in told for thing in (*before.things, *now.things))


def find_changes(before: Subject, now: Subject) -> list[Change]:
    """Changes of findings and devices with a unique name, in the order of the later study; then resolved ones."""
    if not before.things and not now.things:
        return []
    earlier = {thing.name: thing for thing in before.things if thing.alone}
    # A stored trend compares with the prior study of that time, which the set may not contain.
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
        if told is None and trend == "new" and thing.name not in _find_absent(before):
            continue
        changes.append(Change(trend, thing.name, thing.kind, thing.id, thing, old, thing.evidence))
    there = {thing.name for thing in now.things} | crowded
    gone = [old for old in before.things if old.name not in there and old.alone and old.is_present]
    if not gone:
        return changes
    stated = now.resolved if stored else {}
    # A finding that the later study does not mention has resolved only if it was looked for.
    looked_for = _find_absent(now)
    for old in gone:
        if old.name in stated:
            record = stated[old.name]
            changes.append(Change("resolved", old.name, old.kind, record.id, None, old, record.evidence))
        elif old.name in looked_for:
            changes.append(Change("resolved", old.name, old.kind, looked_for[old.name], None, old))
    return changes


def _find_absent(subject: Subject) -> dict[str, str]:
    """By name, the ids of what is absent in a study; the name where it was looked for and is not recorded.

    A text that says of a list of findings that there is none leaves out what lasts: it means nothing acute.
    """
    left_out = LASTING if subject.study.assessed.text else frozenset()
    return {
        missing.name: missing.id or missing.name
        for missing in (*subject.absent_findings, *subject.absent_devices)
        if missing.id or missing.name not in left_out
    }
