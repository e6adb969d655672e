"""What a report says against what is recorded of the same study."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar, get_args

import msgspec

from carina.reports.facts import ReportFacts
from carina.reports.lexicon import lexicon
from carina.reports.trust import Evidence
from carina.studies.assessment import UNNAMED, Kind, certainty_of, drop_partial_denials
from carina.studies.lookalikes import is_clearly_absent
from carina.studies.model import Device, Finding, Location, Relation, Report, Statement, Study
from carina.studies.sides import find_drawn_side
from carina.studies.terms import ancestors
from carina.studies.vocabulary import BodySide, Certainty

AnyThing = TypeVar("AnyThing", bound=Finding | Device)
IN_CONFLICT: Final = "what is recorded of it is disputed"
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


def find_conflicts(study: Study, facts: ReportFacts) -> Iterable[Conflict]:
    """Conflicts of records with what was read from the report."""
    for kind, stated in _by_kind(facts):
        named = group_by_name(stated)
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
            found = compare(study, kind, name, _named(study, kind, name), things)
            if found is not None:
                yield _describe_conflict(study, kind, name, found, facts.report)


class _Contradiction(NamedTuple):
    """What a report says against what is recorded."""

    stated: Certainty
    evidence: tuple[int, ...]
    """Indices of the sentences."""
    sides: "_OtherSides | None" = None
    """The two sides, where the report states the same on the other one."""


def compare(
    study: Study,
    kind: Kind,
    name: str,
    own: Sequence[Finding | Device],
    stated: Sequence[Finding | Device],
) -> _Contradiction | None:
    """What a report states of one name against what is recorded of it; None where both can be right."""
    denial = _find_denial(study, own, stated)
    said = strongest(thing.certainty for thing in stated)
    first = next(thing for thing in stated if thing.certainty == said)
    if name != UNNAMED[kind]:
        if denial is not None:
            return _Contradiction("absent", denial.evidence)
        certainties = {thing.certainty for thing in stated}
        is_denied = _find_denial(study, stated, own) is not None
        if is_denied or contradict(find_recorded(study, name, kind), certainties):
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


def place_explained(findings: tuple[Finding, ...], relations: Iterable[Relation]) -> tuple[Finding, ...]:
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


def find_stored_conflicts(study: Study) -> Iterable[Conflict]:
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
    explained = {one.id: one.location for one in place_explained(study.findings, study.relations)}
    for kind, things in _by_kind(study):
        for name, own in group_by_name(things).items():
            stated = [
                _restate(one, index, state, explained.get(one.id))
                for one in own
                for index, state in said.get(one.id, ())
            ]
            # What was not drawn may be what the report itself states.
            records = [one for one in own if one.annotations] or own
            found = compare(study, kind, name, records, stated) if stated else None
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


def find_recorded(study: Study, name: str, kind: Kind) -> Certainty | None:
    """What is recorded of a name. That it was looked for in the report itself does not contradict the report.

    Nor does a kind of it: what the report says of wider names is compared by `_find_wider_names`.
    """
    recorded = certainty_of(study, name, kind=kind)
    if _named(study, kind, name):
        return recorded
    return None if study.assessed.text or recorded != "absent" else recorded


def _by_kind(holder: Study | ReportFacts) -> tuple[tuple[Kind, tuple[Finding | Device, ...]], ...]:
    return ("finding", holder.findings), ("device", holder.devices)


def group_by_name(things: Iterable[AnyThing]) -> dict[str, list[AnyThing]]:
    """Findings or devices by their names, in the order of the first of each."""
    named: dict[str, list[AnyThing]] = {}
    for thing in things:
        named.setdefault(thing.name, []).append(thing)
    return named


def strongest(certainties: Iterable[Certainty]) -> Certainty:
    """Present before uncertain, and uncertain before absent."""
    given = set(certainties)
    return "present" if "present" in given else "uncertain" if "uncertain" in given else "absent"


def contradict(recorded: Certainty | None, stated: Collection[Certainty]) -> bool:
    """Whether a record and a report cannot both be right, where the report denies nothing that is recorded.

    A hedge in the report does not contradict a finding, but a plain statement contradicts a record in doubt.
    """
    if recorded == "uncertain":
        return "present" in stated and "uncertain" not in stated
    return recorded == "absent" and strongest(stated) != "absent"


def _make_conflict(
    study: Study, kind: Kind, name: str, *, stated: Certainty, report: Report, evidence: Sequence[int]
) -> Conflict:
    own = _named(study, kind, name)
    if any(thing.annotations for thing in own):
        recorded = _DRAWN
    elif own:
        recorded = f"labelled {strongest(thing.certainty for thing in own)}"
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
