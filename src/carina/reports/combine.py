"""Combine what was drawn, what was labelled and what the report says about one study.

| what is known of a finding | what becomes of it |
|---|---|
| recorded, and the report says nothing else | the record; the report adds its place, severity, trend and sentences |
| only in the report | as the report states it |
| recorded as present or uncertain, and the report denies it, or what it is a kind of | a conflict |
| recorded on one side, and the report denies it on the other alone | the record, and the denial beside it |
| recorded as uncertain, and the report states it plainly | a conflict |
| recorded as absent, or looked for and not recorded, and the report states it, even as possible | a conflict |
| recorded on one side, drawn or not, and the report states it only on the other | a conflict |

By default nobody asks about a finding that is in conflict. Where it is asked about, the record that is trusted more
counts: what was drawn, then a label, then the text, unless another order is given.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeVar, get_args

import msgspec

from carina.reports.facts import ReportFacts
from carina.reports.lexicon import lexicon
from carina.reports.read import read_report, with_report_truth
from carina.store.errors import CarinaError
from carina.studies.assessment import (
    UNNAMED,
    Kind,
    certainty_of,
    drop_partial_denials,
)
from carina.studies.lookalikes import is_clearly_absent
from carina.studies.model import (
    Device,
    Finding,
    Location,
    Recommendation,
    Relation,
    Report,
    Statement,
    Study,
)
from carina.studies.sides import find_drawn_side
from carina.studies.terms import ancestors
from carina.studies.vocabulary import BodySide, Certainty

Thing = TypeVar("Thing", Finding, Device)
AnyThing = TypeVar("AnyThing", bound=Finding | Device)
Evidence = Literal["drawing", "label", "text"]
TRUST: Final[tuple[Evidence, ...]] = get_args(Evidence)
"""What counts more comes first."""
DEFAULT_TRUST: Final = "drawing,label,text"
"""The same as an option."""
OnConflict = Literal["skip", "ask"]
"""Whether a finding about which the records contradict each other is left out, or asked about."""
LANGUAGE: Final = "en"
"""The language that rules read; a report in another one adds and contradicts nothing."""
IN_CONFLICT: Final = "the report contradicts what is recorded"
"""Why builds do not ask about a finding or device."""

replace = msgspec.structs.replace


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """A finding or device about which a study's records contradict its report."""

    study: str
    kind: Kind
    name: str
    recorded: str
    """What is recorded: "drawn", "labelled present", "labelled uncertain", "labelled absent", "looked for and not
    recorded"; with the side, where the report states another."""
    stated: Certainty
    """What the report says."""
    sentence: str
    """The first sentence that says so."""
    side: BodySide | None = None
    """The side on which the report states it, where it is recorded on the other; else None."""

    @property
    def report(self) -> str:
        """What the report says, in words: "absent", "on the left"."""
        return self.stated if self.side is None else f"on the {self.side}"

    @property
    def origin(self) -> Evidence:
        """What kind of record contradicts the report."""
        return "drawing" if self.recorded.startswith(_DRAWN) else "label"

    @property
    def is_recorded_present(self) -> bool:
        """Whether the finding is recorded as present."""
        return self.stated == "absent" or self.side is not None

    @property
    def summary(self) -> str:
        """What contradicts what, to count by: "drawn, but denied in the report"."""
        stated = _STATED[self.stated] if self.side is None else self.report
        return f"{self.recorded}, but {stated} in the report"


_DRAWN: Final = "drawn"
_STATED: Final[Mapping[Certainty, str]] = {"present": "stated", "uncertain": "possible", "absent": "denied"}


@dataclass(frozen=True)
class CombinedStudy:
    """A study with what its report states, and the conflicts that were found."""

    study: Study
    conflicts: tuple[Conflict, ...] = ()
    is_report_overruled: bool = False
    """Whether the study keeps something that its report contradicts, so that the report as a whole is no truth."""

    @property
    def names_in_conflict(self) -> frozenset[str]:
        """Names of findings and devices about which the records contradict each other."""
        return frozenset(conflict.name for conflict in self.conflicts)


def check_trust(trust: Sequence[str]) -> tuple[Evidence, ...]:
    """The order of trust, checked.

    Raises:
        CarinaError: It does not name "drawing", "label" and "text" once each.
    """
    if sorted(trust) != sorted(TRUST):
        raise CarinaError(f"trust {', '.join(trust)!r}: expected {', '.join(TRUST)} in any order, each once")
    return tuple(name for given in trust for name in TRUST if name == given)


def split_trust(text: str) -> tuple[Evidence, ...]:
    """The order of trust from names with commas between: "drawing,label,text"."""
    return check_trust([name.strip() for name in text.split(",")])


def combine_with_report(
    study: Study, *, on_conflict: OnConflict = "skip", trust: Sequence[Evidence] = TRUST
) -> CombinedStudy:
    """Combine the findings and devices that a study records with those that its report states.

    The report is read by rules, unless it was read before: then what its sentences state is compared with the records.

    Args:
        study: The study; one without a report in English is returned as it is.
        on_conflict: "skip" removes findings in conflict and names them in `assessed.disputed`, so that nothing is known
            of them; "ask" keeps what is trusted most.
        trust: "drawing", "label" and "text", the most trusted first.

    Returns:
        The study and its conflicts.

    Example:
        >>> from carina.studies import ReportSection
        >>> mass = Finding(id="f1", name="mass", certainty="present")
        >>> report = Report(sections=(ReportSection(name="findings", text="No mass. Small right effusion."),))
        >>> study = Study(id="s1", patient="p1", source="mine", images=(), findings=(mass,), report=report)
        >>> combined = combine_with_report(study)
        >>> [finding.name for finding in combined.study.findings], combined.study.assessed.disputed
        (['pleural effusion'], ('mass',))
        >>> [(conflict.summary, conflict.sentence) for conflict in combined.conflicts]
        [('labelled present, but denied in the report', 'No mass.')]
    """
    if study.report is None or study.report.language != LANGUAGE:
        return CombinedStudy(study)
    if _has_only_report(study):
        return CombinedStudy(with_report_truth(study))
    if is_report_read(study):
        conflicts = tuple(_find_stored_conflicts(study))
        if not conflicts or on_conflict == "ask":
            return CombinedStudy(study, conflicts, is_report_overruled=bool(conflicts))
        return CombinedStudy(_drop_names(study, {one.name for one in conflicts}), conflicts)
    facts = read_report(study.report, prior=study.prior)
    facts = replace(facts, findings=_place_explained(facts.findings, facts.relations))
    conflicts = tuple(_find_conflicts(study, facts))
    disputed = {one.name for one in conflicts} if on_conflict == "skip" else set[str]()
    is_overruled = on_conflict == "ask" and any(_is_trusted(one.origin, trust) for one in conflicts)
    return CombinedStudy(_merge(study, facts, disputed, trust), conflicts, is_report_overruled=is_overruled)


def _has_only_report(study: Study) -> bool:
    """Whether nothing is recorded that the report could add to or contradict."""
    assessed = study.assessed
    is_silent = assessed.text or (assessed.findings, assessed.devices) == ("unknown", "unknown")
    return is_silent and not (study.findings or study.devices)


def is_report_read(study: Study) -> bool:
    """Whether what the report of a study states is among its findings already, linked to the sentences."""
    if study.report is None:
        return False
    if any(sentence.states for sentence in study.report.sentences):
        return True
    # A report without sentences was labelled by another program, which did not say what each sentence states.
    return study.assessed.text and bool(study.report.sentences) and bool(study.findings or study.devices)


# ---- conflicts ------------------------------------------------------------------------------------------------------


def _find_conflicts(study: Study, facts: ReportFacts) -> Iterable[Conflict]:
    for kind, stated in _by_kind(facts):
        named = _by_name(stated)
        for name, wider in _find_wider_names(study, kind):
            things = named.get(wider, [])
            if name in named or any(thing.certainty != "absent" for thing in things):
                continue
            denial = _find_denial(study, _named(study, kind, name), things)
            if denial is not None:
                yield _make_conflict(
                    study, kind, name, stated="absent", report=facts.report, evidence=denial.evidence
                )
        for name, things in named.items():
            found = _compare(study, kind, name, _named(study, kind, name), things)
            if found is not None:
                yield _describe_conflict(study, kind, name, found, facts.report)


class _Contradiction(NamedTuple):
    """What a report says against what is recorded."""

    stated: Certainty
    evidence: tuple[int, ...]
    """Indices of the sentences."""
    sides: "_OtherSides | None" = None
    """The two sides, where the report states the same on the other one."""


def _compare(
    study: Study,
    kind: Kind,
    name: str,
    own: Sequence[Finding | Device],
    stated: Sequence[Finding | Device],
) -> _Contradiction | None:
    """What a report states of one name against what is recorded of it; None where both can be right."""
    denial = _find_denial(study, own, stated)
    said = _strongest(thing.certainty for thing in stated)
    first = next(thing for thing in stated if thing.certainty == said)
    if name != UNNAMED[kind]:
        if denial is not None:
            return _Contradiction("absent", denial.evidence)
        certainties = {thing.certainty for thing in stated}
        is_denied = _find_denial(study, stated, own) is not None
        if is_denied or _contradict(_find_recorded(study, name, kind), certainties):
            return _Contradiction(said, first.evidence)
    sides = _find_other_sides(study, own, stated)
    return None if sides is None else _Contradiction(said, first.evidence, sides)


def _find_denial(
    study: Study, things: Iterable[Finding | Device], others: Sequence[Finding | Device]
) -> Finding | Device | None:
    """The one of some records of a name that denies another record of it as present or uncertain; None where none does.

    A denial of one side denies what lies on that side, and nothing that lies elsewhere or nobody knows where.

    Args:
        study: The study.
        things: Records that may be denied.
        others: Records that may deny them. Where one of them states the thing at the same place, it is not denied.
    """
    everywhere = [other for other in drop_partial_denials(others) if other.certainty == "absent"]
    for thing in things:
        if thing.certainty == "absent":
            continue
        side = _find_side(study, thing)
        sides = (None, side) if side else (None, *get_args(BodySide))
        if any(other.certainty != "absent" and _find_side(study, other) in sides for other in others):
            continue
        if everywhere:
            return everywhere[0]
        for other in others:
            is_same_side = side is not None and side == _find_side(study, other)
            zones = [_list_zones(one) for one in (thing, other)]
            if is_same_side and (not all(zones) or zones[0] & zones[1]):
                return other
    return None


def _list_zones(thing: Finding | Device) -> set[str]:
    return set(thing.location.zones) if isinstance(thing, Finding) and thing.location else set()


def _describe_conflict(
    study: Study, kind: Kind, name: str, found: _Contradiction, report: Report
) -> Conflict:
    conflict = _make_conflict(study, kind, name, stated=found.stated, report=report, evidence=found.evidence)
    if found.sides is None:
        return conflict
    recorded = f"{conflict.recorded.removesuffix(' present')} on the {found.sides.recorded}"
    return replace(conflict, recorded=recorded, side=found.sides.stated)


class _OtherSides(NamedTuple):
    """The side on which a finding is recorded, and the other one, on which the report states it."""

    recorded: BodySide
    stated: BodySide


def _find_other_sides(
    study: Study, own: Iterable[Finding | Device], stated: Iterable[Finding | Device]
) -> _OtherSides | None:
    """The two sides where a record and a report are about different ones; None where they are not, or nobody knows."""
    sides = []
    for things in (own, stated):
        found = {
            _find_side(study, thing)
            for thing in things
            if isinstance(thing, Finding) and thing.certainty != "absent"
        }
        if len(found) != 1:
            return None
        sides.append(found.pop())
    recorded, said = sides
    return None if recorded is None or said is None or recorded == said else _OtherSides(recorded, said)


def _find_side(study: Study, thing: Finding | Device) -> BodySide | None:
    """The one side on which a finding or device is, as it is stated or drawn; None where it is on both or that is
    unknown."""
    drawn = {find_drawn_side(study, annotation) for annotation in thing.annotations}
    if len(drawn) == 1 and (side := drawn.pop()) is not None:
        return side
    named = {thing.side} if isinstance(thing, Device) else _list_stated_sides(thing.location)
    return next((side for side in get_args(BodySide) if named == {side}), None)


def _list_stated_sides(location: Location | None) -> set[str]:
    if location is None:
        return set()
    return {location.side} if location.side else {zone.partition(" ")[0] for zone in location.zones}


def _place_explained(findings: tuple[Finding, ...], relations: Iterable[Relation]) -> tuple[Finding, ...]:
    """Findings that lie where something is that is said to be one of them.

    In "opacity at the right base consistent with effusion", the effusion lies at the right base.
    """
    by_id = {finding.id: finding for finding in findings}
    for relation in relations:
        sign, meant = by_id.get(relation.subject), by_id.get(relation.object)
        if relation.kind != "suggests" or sign is None or meant is None or meant.location is not None:
            continue
        if not is_clearly_absent(sign.name, frozenset({meant.name})):
            by_id[meant.id] = replace(meant, location=sign.location)
    return tuple(by_id.values())


def _find_wider_names(study: Study, kind: Kind) -> Iterable[tuple[str, str]]:
    """What is recorded by a name that reports are not read for, and what a report that denies it denies."""
    known = lexicon().names
    things: tuple[Finding | Device, ...] = study.findings if kind == "finding" else study.devices
    for name in dict.fromkeys(thing.name for thing in things):
        if name not in known:
            wider = next((wider for wider in ancestors(name) if wider in known), None)
            if wider is not None:
                yield name, wider


def _find_stored_conflicts(study: Study) -> Iterable[Conflict]:
    """Conflicts of records with the statements that the sentences of a report hold about them."""
    report = study.report
    if report is None:
        return
    said: dict[str, list[tuple[int, Statement]]] = {}
    for index, sentence in enumerate(report.sentences):
        for state in sentence.states:
            if state.kind in ("finding", "device") and state.certainty is not None:
                said.setdefault(state.about, []).append((index, state))
    if not said:
        return
    explained = {one.id: one.location for one in _place_explained(study.findings, study.relations)}
    for kind, things in _by_kind(study):
        for name, own in _by_name(things).items():
            stated = [
                _restate(one, index, state, explained.get(one.id))
                for one in own
                for index, state in said.get(one.id, ())
            ]
            # What was not drawn may be what the report itself states.
            records = [one for one in own if one.annotations] or own
            found = _compare(study, kind, name, records, stated) if stated else None
            if found is not None:
                yield _describe_conflict(study, kind, name, found, report)


def _restate(
    thing: Finding | Device, index: int, state: Statement, explained: Location | None
) -> Finding | Device:
    """What one sentence states of a finding or device; with the place of what it explains where it names none."""
    certainty = state.certainty or thing.certainty
    if isinstance(thing, Device):
        return Device(id=thing.id, name=thing.name, certainty=certainty, side=state.side, evidence=(index,))
    place = Location(side=state.side, zones=state.zones)
    return Finding(
        id=thing.id,
        name=thing.name,
        certainty=certainty,
        location=explained if place == Location() and certainty != "absent" else place,
        evidence=(index,),
    )


def _find_recorded(study: Study, name: str, kind: Kind) -> Certainty | None:
    """What is recorded of a name. That it was looked for in the report itself does not contradict the report.

    Nor does a kind of it: what the report says of wider names is compared by `_find_wider_names`.
    """
    recorded = certainty_of(study, name, kind=kind)
    if _named(study, kind, name):
        return recorded
    return None if study.assessed.text or recorded != "absent" else recorded


def _by_kind(holder: Study | ReportFacts) -> tuple[tuple[Kind, tuple[Finding | Device, ...]], ...]:
    return ("finding", holder.findings), ("device", holder.devices)


def _by_name(things: Iterable[AnyThing]) -> dict[str, list[AnyThing]]:
    named: dict[str, list[AnyThing]] = {}
    for thing in things:
        named.setdefault(thing.name, []).append(thing)
    return named


def _strongest(certainties: Iterable[Certainty]) -> Certainty:
    """Present before uncertain, and uncertain before absent."""
    given = set(certainties)
    return "present" if "present" in given else "uncertain" if "uncertain" in given else "absent"


def _contradict(recorded: Certainty | None, stated: Collection[Certainty]) -> bool:
    """Whether a record and a report cannot both be right, where the report denies nothing that is recorded.

    A hedge in the report does not contradict a finding, but a plain statement contradicts a record in doubt.
    """
    if recorded == "uncertain":
        return "present" in stated and "uncertain" not in stated
    return recorded == "absent" and _strongest(stated) != "absent"


def _make_conflict(
    study: Study, kind: Kind, name: str, *, stated: Certainty, report: Report, evidence: Sequence[int]
) -> Conflict:
    own = _named(study, kind, name)
    if any(thing.annotations for thing in own):
        recorded = _DRAWN
    elif own:
        recorded = f"labelled {_strongest(thing.certainty for thing in own)}"
    else:
        recorded = "looked for and not recorded"
    quoted = report.quote(report.sentences[evidence[0]]).strip() if evidence else ""
    return Conflict(
        study=study.id,
        kind=kind,
        name=name,
        recorded=recorded,
        stated=stated,
        sentence=" ".join(quoted.split()),
    )


def _named(study: Study, kind: Kind, name: str) -> list[Finding | Device]:
    things: tuple[Finding | Device, ...] = study.findings if kind == "finding" else study.devices
    return [thing for thing in things if thing.name == name]


# ---- one study of both ----------------------------------------------------------------------------------------------


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


def _merge(study: Study, facts: ReportFacts, disputed: set[str], trust: Sequence[Evidence]) -> Study:
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
    return _drop_names(merged, disputed)


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
    by_name, own_by_name = _by_name(stated), _by_name(records)
    for name, own in own_by_name.items():
        if name not in disputed:
            merged += _merge_name(own, by_name.pop(name, []), kind=kind, ids=ids, trust=trust, study=study)
    for name, said in by_name.items():
        silent = None if name in own_by_name else _find_recorded(study, name, kind)
        is_denied = _contradict(silent, {thing.certainty for thing in said})
        if name in disputed or (is_denied and _is_trusted("label", trust)):
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
    if _compare(study, kind, own[0].name, own, stated) is not None:
        return (
            list(own)
            if _is_trusted(origin, trust)
            else [replace(thing, id=ids.add(thing.id)) for thing in stated]
        )
    if not drop_partial_denials(own):
        return list(own) + [replace(thing, id=ids.add(thing.id)) for thing in stated]
    whole: tuple[Thing, ...] = drop_partial_denials(stated)
    # What is denied at one place stays a record of its own, beside what is recorded of the whole or of another place.
    denials = [replace(thing, id=ids.add(thing.id)) for thing in stated if thing not in whole]
    return _fill_in_all(own, whole, ids=ids, is_trusted=_is_trusted(origin, trust)) + denials


def _fill_in_all(
    own: Sequence[Thing], stated: Sequence[Thing], *, ids: _Ids, is_trusted: bool
) -> list[Thing]:
    """Records of one name with what the report adds to them."""
    if not stated:
        return list(own)
    recorded, said = (_strongest(thing.certainty for thing in things) for things in (own, stated))
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
            certainty = recorded if is_trusted else said
            merged.append(replace(_fill_in(thing, text), certainty=certainty, evidence=text.evidence))
    return merged


def _is_trusted(origin: Evidence, trust: Sequence[Evidence]) -> bool:
    """Whether a kind of record is trusted more than the text."""
    return trust.index(origin) < trust.index("text")


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


def _drop_names(study: Study, names: set[str]) -> Study:
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
