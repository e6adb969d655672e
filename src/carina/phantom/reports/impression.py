"""The impression: what matters, most urgent first, in few words."""

from collections.abc import Iterator, Sequence

from carina.phantom.reports.body import (
    is_gone,
    is_there,
    say_device,
    say_joint,
    say_resolved,
    say_slots,
)
from carina.phantom.reports.denials import PLEURA, Deniable, say_list, say_panel
from carina.phantom.reports.line import Line, line
from carina.phantom.reports.mentions import Context, mention, say, since, trend_said
from carina.phantom.reports.template import Said, Slots
from carina.studies.model import Finding, Relation

URGENCY = (
    "pneumothorax",
    "mass",
    "pneumonia",
    "consolidation",
    "edema",
    "nodule",
    "pleural effusion",
    "fracture",
    "lung opacity",
    "atelectasis",
    "cardiomegaly",
)
CHRONIC = frozenset({"cardiomegaly"})
"""Findings beside which "no acute abnormality" is still true."""
MINOR = frozenset({"atelectasis", "cardiomegaly"})
"""Findings that an impression may leave out when something else is there and they are mild."""


def impression(context: Context) -> list[Line]:
    there = sorted(
        (finding for finding in context.study.findings if is_there(finding)),
        key=lambda finding: URGENCY.index(finding.name),
    )
    lines = list(_opinion(context, there))
    lines += _devices(context)
    if context.prior is not None:
        gone = [finding for finding in context.study.findings if is_gone(finding)]
        lines += [line(say_resolved(context, finding)) for finding in gone if context.draw.chance(0.6)]
    lines += _all_clear(context, there)
    return lines


def _opinion(context: Context, there: list[Finding]) -> Iterator[Line]:
    told = since(context)
    if told is not None and there and _is_stable(context, there) and context.draw.chance(0.25):
        slots = Slots(fill={"since": told}, base=tuple(trend_said(finding) for finding in there))
        yield line(say_slots(context, context.language.words.impression.stable, slots))
    important = _important(context, there)
    while important:
        if (joint := _related(context, important)) is not None:
            relation, subject, target = joint
            yield line(say_joint(context, relation, subject, target))
            important = [finding for finding in important if finding not in (subject, target)]
        elif len(important) >= 2 and context.draw.chance(0.25):
            yield line(_say_pair(context, important[0], important[1]))
            important = important[2:]
        else:
            yield line(_say_one(context, important[0]))
            important = important[1:]


def _related(context: Context, important: list[Finding]) -> tuple[Relation, Finding, Finding] | None:
    """A relation of the first finding to another one that is still to be said; by chance none."""
    known = {finding.id: finding for finding in important}
    for relation in context.study.relations:
        ends = (relation.subject, relation.object)
        if important[0].id in ends and all(end in known for end in ends) and context.draw.chance(0.35):
            return relation, known[relation.subject], known[relation.object]
    return None


def _is_stable(context: Context, there: list[Finding]) -> bool:
    study = context.study
    gone = any(map(is_gone, study.findings)) or any(map(is_gone, study.devices))
    moved = any(device.trend != "unchanged" for device in study.devices if is_there(device))
    return not gone and not moved and all(finding.trend == "unchanged" for finding in there)


def _important(context: Context, there: list[Finding]) -> list[Finding]:
    kept = [
        finding
        for finding in there
        if finding.name not in MINOR or _matters(context, finding) or context.draw.chance(0.6)
    ]
    return kept or there[:1]


def _matters(context: Context, finding: Finding) -> bool:
    """More than mild, or on the rise: no impression leaves it out."""
    rising = context.prior is not None and finding.trend in ("new", "worse")
    return rising or finding.severity in ("moderate", "severe")


def _say_one(context: Context, finding: Finding) -> Said:
    words = context.language.words
    if finding.certainty == "uncertain":
        frames, spare = words.impression.uncertain, words.hedges.fragments
    else:
        frames, spare = words.impression.present, words.findings[finding.name].fragments
    # The finding's own short forms first by half, so that no shared frame becomes the mark of an impression.
    first, second = (spare, frames) if context.draw.chance(0.5) else (frames, spare)
    said = say(context, first, finding) or say(context, second, finding)
    if said is None:
        raise LookupError(f"the wording has no impression for {finding.name}")
    return said


def _say_pair(context: Context, first: Finding, second: Finding) -> Said:
    fill = {
        "first": mention(context, first).slots.fill["hedged"],
        "second": mention(context, second).slots.fill["hedged"],
    }
    return say_slots(context, context.language.words.impression.pair, Slots(fill=fill))


def _devices(context: Context) -> Iterator[Line]:
    for device in context.study.devices:
        if is_gone(device):
            if context.prior is not None and context.draw.chance(0.3):
                yield line(say_resolved(context, device))
        elif not is_there(device):
            continue
        elif device.position == "malpositioned" or (device.trend == "new" and context.draw.chance(0.35)):
            yield line(say_device(context, device, "prose"))


def _all_clear(context: Context, there: Sequence[Finding]) -> Iterator[Line]:
    words, deniable = context.language.words.denials, Deniable(context)
    misplaced = any(
        device.position == "malpositioned" for device in context.study.devices if is_there(device)
    )
    rising = context.prior is not None and any(finding.trend in ("new", "worse") for finding in there)
    calm = all(finding.name in CHRONIC for finding in there) and not misplaced and not rising
    if calm and deniable.all_of(words.no_acute.denies):
        bare = not there and not any(is_there(device) for device in context.study.devices)
        normal = bare and deniable.all_of(words.normal_chest.denies) and context.draw.chance(0.3)
        yield line(say_panel(context, deniable, words.normal_chest if normal else words.no_acute))
    elif (names := deniable.among(PLEURA)) and context.draw.chance(0.2):
        yield line(say_list(context, deniable, names))
