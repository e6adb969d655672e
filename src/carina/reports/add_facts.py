"""Adds what the report of a study states to what is recorded of it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

import msgspec

from carina.reports.conflicts import compare, contradict, find_recorded, group_by_name, strongest
from carina.reports.facts import ReportFacts
from carina.reports.trust import Evidence, is_trusted
from carina.studies.assessment import Kind, drop_partial_denials
from carina.studies.model import Device, Finding, Recommendation, Relation, Report, Statement, Study

Thing = TypeVar("Thing", Finding, Device)

replace = msgspec.structs.replace


class _Ids:
    """New ids for what the report states, and the records that each is about."""

    def __init__(self, study: Study) -> None:
        self._used = _list_ids(study)
        self.records: dict[str, tuple[str, ...]] = {}
        """By id in the report, the ids of the records."""

    def add(self, stated: str) -> str:
        """A new id for something that only the report states."""
        number = 1
        while f"{stated[0]}{number}" in self._used:
            number += 1
        fresh = f"{stated[0]}{number}"
        self._used.add(fresh)
        self.records[stated] = (fresh,)
        return fresh


def _list_ids(study: Study) -> set[str]:
    facts: list[Finding | Device | Relation | Recommendation] = [*study.findings, *study.devices]
    facts += [*study.relations, *study.recommendations]
    return {fact.id for fact in facts}


def add_facts(study: Study, facts: ReportFacts, disputed: set[str], trust: Sequence[Evidence]) -> Study:
    """A study with what its report states, without disputed names; of contradictions, what is trusted more counts."""
    ids = _Ids(study)
    findings = _merge_things(
        study.findings, facts.findings, kind="finding", ids=ids, disputed=disputed, trust=trust, study=study
    )
    devices = _merge_things(
        study.devices, facts.devices, kind="device", ids=ids, disputed=disputed, trust=trust, study=study
    )
    relations = study.relations or tuple(_merge_relations(facts.relations, ids))
    recommendations = study.recommendations or tuple(_merge_recommendations(facts.recommendations, ids))
    merged = replace(
        study,
        findings=findings,
        devices=devices,
        relations=relations,
        recommendations=recommendations,
        report=_rename(facts.report, ids),
        assessed=replace(study.assessed, text=True),
    )
    return drop_names(merged, disputed)


def _merge_things(
    records: tuple[Thing, ...],
    stated: tuple[Thing, ...],
    *,
    kind: Kind,
    ids: _Ids,
    disputed: set[str],
    trust: Sequence[Evidence],
    study: Study,
) -> tuple[Thing, ...]:
    """Records with what the report adds to them, then what only the report states."""
    merged: list[Thing] = []
    by_name, own_by_name = group_by_name(stated), group_by_name(records)
    for name, own in own_by_name.items():
        if name not in disputed:
            merged += _merge_name(own, by_name.pop(name, []), kind=kind, ids=ids, trust=trust, study=study)
    for name, said in by_name.items():
        silent = None if name in own_by_name else find_recorded(study, name, kind)
        is_denied = contradict(silent, {thing.certainty for thing in said})
        if name in disputed or (is_denied and is_trusted("label", trust)):
            continue
        merged += [replace(thing, id=ids.add(thing.id)) for thing in said]
    return tuple(merged)


def _merge_name(
    own: Sequence[Thing],
    stated: Sequence[Thing],
    *,
    kind: Kind,
    ids: _Ids,
    trust: Sequence[Evidence],
    study: Study,
) -> list[Thing]:
    """Records of one name, with what the report states of the same name."""
    if not stated:
        return list(own)
    origin: Evidence = "drawing" if any(thing.annotations for thing in own) else "label"
    if compare(study, kind, own[0].name, own, stated) is not None:
        return (
            list(own)
            if is_trusted(origin, trust)
            else [replace(thing, id=ids.add(thing.id)) for thing in stated]
        )
    if not drop_partial_denials(own):
        return list(own) + [replace(thing, id=ids.add(thing.id)) for thing in stated]
    whole: tuple[Thing, ...] = drop_partial_denials(stated)
    # What is denied at one place stays a record of its own, beside what is recorded of the whole or of another place.
    denials = [replace(thing, id=ids.add(thing.id)) for thing in stated if thing not in whole]
    return _fill_in_all(own, whole, ids) + denials


def _fill_in_all(own: Sequence[Thing], stated: Sequence[Thing], ids: _Ids) -> list[Thing]:
    """Records of one name with what the report adds to them; nothing that is recorded changes."""
    if not stated:
        return list(own)
    recorded, said = (strongest(thing.certainty for thing in things) for things in (own, stated))
    there, said_there = (
        [thing for thing in things if thing.certainty == strongest]
        for things, strongest in ((own, recorded), (stated, said))
    )
    if len(said_there) > 1:
        # Each sentence is about a part of what is recorded, and nobody knows which.
        return list(own)
    text = said_there[0]
    ids.records[text.id] = tuple(thing.id for thing in there)
    merged = []
    for thing in own:
        if thing not in there:
            merged.append(thing)
        elif len(there) > 1:
            merged.append(replace(thing, evidence=text.evidence))
        else:
            merged.append(replace(_fill_in(thing, text), evidence=text.evidence))
    return merged


_FILLED_IN: Final = (
    "location",
    "severity",
    "distribution",
    "trend",
    "appearance",
    "side",
    "position",
    "site",
)


def _fill_in(thing: Thing, stated: Thing) -> Thing:
    """A record with the attributes that only the report states."""
    fields = thing.__struct_fields__
    lacking = {
        name: getattr(stated, name) for name in _FILLED_IN if name in fields and not getattr(thing, name)
    }
    return replace(thing, **lacking)


def _merge_relations(stated: Iterable[Relation], ids: _Ids) -> Iterable[Relation]:
    for one in stated:
        ends = [ids.records.get(end, ()) for end in (one.subject, one.object)]
        if all(len(end) == 1 for end in ends):
            yield replace(one, id=ids.add(one.id), subject=ends[0][0], object=ends[1][0])


def _merge_recommendations(stated: Iterable[Recommendation], ids: _Ids) -> Iterable[Recommendation]:
    for one in stated:
        about = tuple(record for name in one.about for record in ids.records.get(name, ()))
        yield replace(one, id=ids.add(one.id), about=about)


def _rename(report: Report, ids: _Ids) -> Report:
    """The report whose sentences state facts of the study, by the ids that they have there."""

    def restate(state: Statement) -> Iterable[Statement]:
        if state.kind in _NO_FACT:
            return (state,)
        return [replace(state, about=record) for record in ids.records.get(state.about, ())]

    return _change_statements(report, restate)


def _keep_statements(report: Report, kept: set[str]) -> Report:
    """The report without statements about what the study does not have."""
    return _change_statements(
        report, lambda state: [state] if state.kind in _NO_FACT or state.about in kept else []
    )


def _change_statements(report: Report, change: Callable[[Statement], Iterable[Statement]]) -> Report:
    sentences = tuple(
        replace(sentence, states=tuple(new for state in sentence.states for new in change(state)))
        for sentence in report.sentences
    )
    return replace(report, sentences=sentences)


_NO_FACT: Final = ("quality", "comparison")
"""Kinds of statements that are not about a fact of the study."""


def drop_names(study: Study, names: set[str]) -> Study:
    """A study whose report was read, without what is in conflict."""
    findings = tuple(one for one in study.findings if one.name not in names)
    devices = tuple(one for one in study.devices if one.name not in names)
    things: list[Finding | Device] = [*findings, *devices]
    kept = {thing.id for thing in things}
    relations = tuple(one for one in study.relations if {one.subject, one.object} <= kept)
    kept |= {relation.id for relation in relations} | {advice.id for advice in study.recommendations}
    return replace(
        study,
        findings=findings,
        devices=devices,
        relations=relations,
        recommendations=tuple(
            replace(one, about=tuple(about for about in one.about if about in kept))
            for one in study.recommendations
        ),
        report=study.report and _keep_statements(study.report, kept),
        assessed=replace(study.assessed, disputed=tuple(sorted({*study.assessed.disputed, *names}))),
    )
