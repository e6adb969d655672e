"""What is known of a study: truth is what someone looked for.

A finding or device is present, absent or uncertain where the study records it so. Where it is not recorded, it is
absent if it was looked for (`Study.assessed`), and otherwise nothing is known of it. What is recorded as absent on one
side, at one place or with one appearance only is not absent as a whole.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, TypeVar

from carina.studies.model import Device, Finding, Study
from carina.studies.terms import is_kind_of
from carina.studies.vocabulary import ABNORMALITY, ANY_DEVICE, DEVICES, SIDES, ZONES, Certainty, Scope

Kind = Literal["finding", "device"]
Thing = TypeVar("Thing", bound=Finding | Device)

UNNAMED: Final[Mapping[Kind, str]] = {"finding": ABNORMALITY, "device": ANY_DEVICE}
"""Names under which a source records that anything of a kind is present or absent, without saying what: a finding
`abnormality` that is absent is a normal image, a device `device` that is present is a device of unknown name."""

NOT_LOOKED_FOR: Final = "nobody looked for it"
"""Why builds do not ask about a finding or device, or do not take a study as a negative."""


NOT_MENTIONED: Final = "the report does not mention it"
"""The same where nothing is known of a study but what its report states."""


NOT_LABELLED: Final = "the labels, which were read from a report, do not name it"
"""The same where the report itself is not part of the source."""


def explain_unknown(study: Study, kind: Kind) -> str:
    """Why nothing is known of a finding or device that the study does not record."""
    if not study.assessed.text or scope_of(study, kind) != "unknown":
        return NOT_LOOKED_FOR
    return NOT_LABELLED if study.report is None else NOT_MENTIONED


def certainty_of(study: Study, name: str, *, kind: Kind | None = None) -> Certainty | None:
    """Find out whether a finding or device is present, absent or uncertain in a study.

    Args:
        study: The study.
        name: Name of the finding or device, as the study writes names. "abnormality" stands for any finding, "device"
            for any device.
        kind: "finding" or "device"; None for a device where the study records one of this name or it is one of
            `vocabulary.DEVICES`, and otherwise a finding.

    Returns:
        "present", "uncertain" or "absent"; None where nothing is known. Of several records of the same name, present
        takes precedence over uncertain, and uncertain over absent. A finding is present or uncertain where a kind of it
        is; where it is recorded as absent nevertheless, nothing is known. A record that is absent on one side, at one
        place or with one appearance does not count, unless both sides are denied.

    Example:
        >>> from carina.studies import Assessed
        >>> mass = Finding(id="f1", name="mass", certainty="present")
        >>> looked_for = Assessed(findings="listed", listed=("mass", "nodule"))
        >>> study = Study(id="s1", patient="p1", source="mine", images=(), findings=(mass,), assessed=looked_for)
        >>> [certainty_of(study, name) for name in ("mass", "nodule", "fracture", "pacemaker")]
        ['present', 'absent', None, None]
    """
    if name in study.assessed.disputed:
        return None
    kind = kind or _kind_of(study, name)
    records = drop_partial_denials(_records(study, kind))
    recorded = {record.certainty for record in records if record.name == name}
    is_known = bool(recorded) or is_looked_for(study, name, kind=kind)
    if name == UNNAMED[kind]:
        is_known = is_known and not study.assessed.disputed
        recorded = {record.certainty for record in records}
    if "present" in recorded:
        return "present"
    kinds = {record.certainty for record in records if is_kind_of(record.name, name)} - {"absent"}
    if kinds:
        return None if "absent" in recorded else "present" if "present" in kinds else "uncertain"
    if not is_known:
        return None
    return "uncertain" if "uncertain" in recorded else "absent"


def drop_partial_denials(records: Iterable[Thing]) -> tuple[Thing, ...]:
    """Findings or devices without those that are denied in part only, while the rest is not known: on one side, at one
    place, or with an appearance ("no acute fracture" leaves an old one open).

    Example:
        >>> from carina.studies import Location
        >>> left = Finding(id="f1", name="pleural effusion", certainty="absent", location=Location(side="left"))
        >>> right = Finding(id="f2", name="pleural effusion", certainty="absent", location=Location(side="right"))
        >>> len(drop_partial_denials([left])), len(drop_partial_denials([left, right]))
        (0, 2)
    """
    given = tuple(records)
    denied: dict[str, set[str]] = {}
    for record in given:
        if record.certainty == "absent" and find_denied_sides(record) != _EVERYWHERE:
            denied.setdefault(record.name, set()).update(find_denied_sides(record))
    if not denied:
        return given
    return tuple(
        record
        for record in given
        if record.certainty != "absent"
        or find_denied_sides(record) == _EVERYWHERE
        or denied[record.name] == _EVERYWHERE
    )


def find_denied_sides(record: Finding | Device) -> frozenset[str]:
    """The sides of the patient on which an absent finding or device is denied as a whole, not only at a place there or
    with one appearance."""
    if isinstance(record, Device):
        return frozenset({record.side}) if record.side in SIDES else _EVERYWHERE
    if record.appearance:
        return frozenset()
    location = record.location
    if location is None:
        return _EVERYWHERE
    if location.parts or location.site or (location.zones and set(location.zones) != set(ZONES)):
        return frozenset()
    if location.side == "midline":
        return frozenset()
    return frozenset({location.side}) if location.side in SIDES else _EVERYWHERE


_EVERYWHERE: Final = frozenset(SIDES)


def is_looked_for(study: Study, name: str, *, kind: Kind) -> bool:
    """Whether someone looked for a finding or device, so that it is absent where the study does not record it.

    Where a kind of it is present or uncertain, it is not absent.
    """
    if name in study.assessed.disputed:
        return False
    if any(
        record.certainty != "absent" and is_kind_of(record.name, name) for record in _records(study, kind)
    ):
        return False
    scope = scope_of(study, kind)
    listed = scope == "listed" and name in study.assessed.listed
    return scope == "every" or listed or _is_stated_absent(study, kind)


def names_looked_for(study: Study, kind: Kind) -> frozenset[str] | None:
    """Names of findings or devices that are absent where the study records neither them nor a kind of them; None for
    all names."""
    if is_complete(study, kind):
        return None
    listed = frozenset(study.assessed.listed if scope_of(study, kind) == "listed" else ())
    return listed.difference(study.assessed.disputed)


def absent_if_silent(study: Study, names: Collection[str], kind: Kind) -> frozenset[str]:
    """Those of some names that are absent where the study does not record them."""
    return frozenset(name for name in names if is_looked_for(study, name, kind=kind))


def is_complete(study: Study, kind: Kind) -> bool:
    """Whether all findings, or all devices, that show in a study are recorded by name, so that there are no others."""
    unnamed = (record for record in _records(study, kind) if record.name == UNNAMED[kind])
    if study.assessed.disputed or any(record.certainty != "absent" for record in unnamed):
        return False
    return scope_of(study, kind) == "every" or _is_stated_absent(study, kind)


def states_no_device(study: Study) -> bool | None:
    """Whether a study is known to show no device.

    Returns:
        True where every device was looked for and none is recorded, or the source states that there is none; False
        where one is present; None where it is not known.

    Example:
        >>> from carina.studies import Assessed
        >>> study = Study(id="s1", patient="p1", source="mine", images=())
        >>> print(states_no_device(study))
        None
        >>> states_no_device(Study(id="s1", patient="p1", source="mine", images=(), assessed=Assessed(devices="every")))
        True
    """
    return _ABSENT.get(certainty_of(study, UNNAMED["device"], kind="device"))


def states_no_abnormality(study: Study) -> bool | None:
    """Whether a study is known to show no abnormality. A closed list of which nothing is present does not say so.

    Returns:
        True where every finding was looked for and none is recorded, or the source states that there is none; False
        where a finding is present; None where it is not known, as with uncertain findings, and with a device, since an
        image with a device is not called normal.

    Example:
        >>> from carina.studies import Assessed
        >>> closed = Assessed(findings="listed", listed=("mass", "nodule"))
        >>> print(states_no_abnormality(Study(id="s1", patient="p1", source="mine", images=(), assessed=closed)))
        None
    """
    known = _ABSENT.get(certainty_of(study, UNNAMED["finding"], kind="finding"))
    has_device = any(device.certainty != "absent" for device in study.devices)
    return None if known and has_device else known


def is_stated_by_program(study: Study, name: str) -> bool:
    """Whether only a program says that a finding or device is present, uncertain or absent in a study.

    Example:
        >>> from carina.studies import Assessed
        >>> mined = Assessed(findings="listed", listed=("mass", "nodule"), by_program=("mass", "nodule"))
        >>> mass = Finding(id="f1", name="mass", certainty="present")
        >>> study = Study(id="s1", patient="p1", source="mine", images=(), findings=(mass,), assessed=mined)
        >>> is_stated_by_program(study, "nodule"), is_stated_by_program(study, "fracture")
        (True, False)
    """
    names = study.assessed.by_program
    if not names:
        return False
    every: tuple[Finding | Device, ...] = (*study.findings, *study.devices)
    if name in UNNAMED.values():
        kind: Kind = "finding" if name == UNNAMED["finding"] else "device"
        things: list[Finding | Device] = list(_records(study, kind))
    else:
        things = [thing for thing in every if thing.name == name or is_kind_of(thing.name, name)]
    stated = [thing for thing in things if thing.certainty != "absent"]
    stated = stated or [thing for thing in things if thing.name == name]
    if not stated:
        return name in names
    return all(thing.name in names and all(one.automatic for one in thing.annotations) for thing in stated)


def scope_of(study: Study, kind: Kind) -> Scope:
    """What was looked for of a kind: everything, the names of a closed list, or nobody says."""
    return study.assessed.findings if kind == "finding" else study.assessed.devices


_ABSENT: Final[Mapping[Certainty | None, bool]] = {"absent": True, "present": False}


def _records(study: Study, kind: Kind) -> tuple[Finding, ...] | tuple[Device, ...]:
    return study.findings if kind == "finding" else study.devices


def _kind_of(study: Study, name: str) -> Kind:
    is_device = name in DEVICES or name == UNNAMED["device"]
    return "device" if is_device or any(device.name == name for device in study.devices) else "finding"


def _is_stated_absent(study: Study, kind: Kind) -> bool:
    """Whether the source states that there is nothing of a kind; a closed list may have that as one of its names."""
    if study.assessed.disputed:
        return False
    records = drop_partial_denials(_records(study, kind))
    is_listed = scope_of(study, kind) == "listed" and UNNAMED[kind] in study.assessed.listed
    is_stated = is_listed or any(record.name == UNNAMED[kind] for record in records)
    return is_stated and all(record.certainty == "absent" for record in records)
