"""The findings section: everything that is there, hedged where uncertain, with its change since the prior."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from carina.phantom.reports.grammar import join
from carina.phantom.reports.line import Line, Organ, Style, line
from carina.phantom.reports.mentions import Context, mention, say, since, trend_said, trend_words
from carina.phantom.reports.template import Frame, Said, Slots, merge, render
from carina.phantom.reports.wording import DeviceWords, SharedDeviceWords
from carina.studies.model import Device, Finding, Relation, Statement

ORGAN_OF: dict[str, Organ] = {
    "cardiomegaly": "heart",
    "fracture": "bones",
    "pleural effusion": "pleura",
    "pneumothorax": "pleura",
}


CHANGES = frozenset({"new", "worse", "improved"})
"""Trends that no report leaves unsaid."""


def organ_of(finding: Finding) -> Organ:
    return ORGAN_OF.get(finding.name, "lungs")


def is_there(thing: Finding | Device) -> bool:
    """Present or uncertain: something to describe."""
    return thing.certainty != "absent"


def is_gone(thing: Finding | Device) -> bool:
    """Resolved or removed since the prior."""
    return thing.certainty == "absent" and thing.trend == "resolved"


def describe_findings(context: Context, style: Style) -> Iterator[Line]:
    for finding in context.study.findings:
        if is_there(finding):
            yield from _describe_finding(context, finding, style)
    for finding in context.study.findings:
        if is_gone(finding) and context.prior is not None:
            yield line(say_resolved(context, finding), organ_of(finding))


def _describe_finding(context: Context, finding: Finding, style: Style) -> Iterator[Line]:
    words = context.language.words
    group = words.hedges if finding.certainty == "uncertain" else words.findings[finding.name]
    short = style == "terse" or (style == "template" and context.draw.chance(0.5))
    frames = group.fragments if short else group.sentences
    said = say(context, frames, finding) or say(context, group.fragments + group.sentences, finding)
    if said is None:
        # Nothing but the name is known, as with a source's bare label.
        frames = words.impression.uncertain if finding.certainty == "uncertain" else words.impression.present
        said = _must(say(context, frames, finding))
    yield line(said, organ_of(finding))
    if finding.trend is not None and not tells_trend(said) and _must_tell(context, finding):
        change = say_trend(context, finding)
        if change is not None:
            yield line(change, organ_of(finding))


def tells_trend(said: Said) -> bool:
    return any(state.trend for state in said.states)


def _must_tell(context: Context, thing: Finding | Device) -> bool:
    """A change is always told; that nothing has changed nearly always."""
    return thing.trend in CHANGES or context.draw.chance(0.85)


def say_trend(context: Context, finding: Finding) -> Said | None:
    """A sentence of its own for the change; None without a prior."""
    if context.prior is None or finding.trend is None:
        return None
    words = trend_words(context.language.words.trends, finding.trend)
    said = None if words is None else say(context, words.sentences, finding)
    return None if said is None else Said(said.text, merge((*said.states, trend_said(finding))))


def say_resolved(context: Context, thing: Finding | Device) -> Said:
    words = context.language.words
    if isinstance(thing, Device):
        frames = words.device.removed
    else:
        still = any(other.name == thing.name and is_there(other) for other in context.study.findings)
        frames = words.resolved.other if still else words.resolved.whole
    said = _must(say(context, frames, thing))
    return Said(said.text, merge((*said.states, trend_said(thing))))


def describe_devices(context: Context, style: Style) -> Iterator[Line]:
    devices = [device for device in context.study.devices if is_there(device)]
    adequate = [
        device
        for device in devices
        if device.position == "adequate"
        and device.certainty == "present"
        and not (context.prior is not None and device.trend in CHANGES)
    ]
    if len(adequate) >= 2 and context.draw.chance(0.3):
        yield line(_say_group(context, adequate), "devices")
        devices = [device for device in devices if device not in adequate]
    for device in devices:
        said = say_device(context, device, style)
        yield line(said, "devices")
        if context.prior is not None and not tells_trend(said) and device.trend in CHANGES:
            yield line(_say_change(context, device), "devices")
    for device in context.study.devices:
        if is_gone(device) and context.prior is not None:
            yield line(say_resolved(context, device), "devices")


def _say_change(context: Context, device: Device) -> Said:
    words = context.language.words.device
    frames = {"new": words.change_new, "worse": words.change_worse, "improved": words.change_improved}
    said = _must(say(context, frames[device.trend or "new"], device))
    return Said(said.text, merge((*said.states, trend_said(device))))


def say_device(context: Context, device: Device, style: Style) -> Said:
    own, shared = context.language.words.devices[device.name], context.language.words.device
    frames, told = _device_frames(context, device, own, shared, style)
    said = say(context, frames, device) or _must(say(context, _plain(device, shared), device))
    return Said(said.text, merge((*said.states, trend_said(device)))) if told else said


def _device_frames(
    context: Context, device: Device, own: DeviceWords, shared: SharedDeviceWords, style: Style
) -> tuple[tuple[Frame, ...], bool]:
    """Frames that fit the device's state, and whether they tell its trend by themselves."""
    if device.certainty == "uncertain":
        return shared.uncertain, False
    if device.position == "malpositioned":
        return own.malpositioned + shared.malpositioned, False
    if context.prior is not None and device.trend in ("new", "unchanged") and context.draw.chance(0.6):
        return (shared.new if device.trend == "new" else shared.unchanged), True
    if style == "terse" and context.draw.chance(0.6):
        return shared.fragments, False
    if device.position == "adequate":
        return own.adequate + shared.adequate, False
    return shared.plain, False


def _plain(device: Device, shared: SharedDeviceWords) -> tuple[Frame, ...]:
    return shared.malpositioned if device.position == "malpositioned" else shared.plain


def _say_group(context: Context, devices: list[Device]) -> Said:
    """Several devices in one sentence."""
    words = context.language.words.device
    told = since(context)
    unchanged = told is not None and all(device.trend == "unchanged" for device in devices)
    named = [mention(context, device).slots.fill["the"]() for device in devices]
    states = [state for said in named for state in said.states]
    if unchanged:
        states += [trend_said(device) for device in devices]
    names = join([said.text for said in named], context.language.common.conjunctions["and"])
    fill: dict[str, Callable[[], Said]] = {
        "list": lambda: Said(names, tuple(states)),
        **plural_forms(context),
    }
    if told is not None:
        fill["since"] = told
    frames = words.group_unchanged if unchanged else words.group_adequate
    return say_slots(context, frames, Slots(fill=fill))


def plural_forms(context: Context, prefix: str = "", *, number: int = 1) -> dict[str, Callable[[], Said]]:
    """The slots be, has and s for a subject that is plural (number=1) or singular (number=0)."""
    forms = context.language.common.agreement
    words = {"be": forms.be[number], "has": forms.has[number], "s": forms.s[number]}
    return {f"{prefix}{slot}": partial(Said, word) for slot, word in words.items()}


def say_slots(context: Context, frames: tuple[Frame, ...], slots: Slots) -> Said:
    frame = context.draw.frame(frames, slots)
    if frame is None:
        raise LookupError(f"no frame fits the slots {sorted(slots.fill)}")
    return render(frame, slots, context.draw)


def describe_relations(context: Context, order: Sequence[Organ]) -> Iterator[Line]:
    """Each with the organ that comes last, where both of its things have been described."""
    findings = {finding.id: finding for finding in context.study.findings}
    for relation in context.study.relations:
        organs = [organ_of(findings[end]) for end in (relation.subject, relation.object) if end in findings]
        last = max(organs, key=order.index) if organs else "devices"
        yield line(say_relation(context, relation), last)


def say_relation(context: Context, relation: Relation) -> Said:
    things: dict[str, Finding | Device] = {finding.id: finding for finding in context.study.findings}
    things.update((device.id, device) for device in context.study.devices)
    subject, target = things[relation.subject], things[relation.object]
    words = context.language.words.relations
    base = (Statement(kind="relation", about=relation.id),)
    if isinstance(subject, Finding) == isinstance(target, Finding):
        frames = {"causes": words.causes, "accompanies": words.accompanies, "suggests": words.suggests}[
            relation.kind
        ]
        if relation.kind == "suggests" and target.certainty == "uncertain":
            frames = words.suggests_uncertain
        fill = _pair_slots(context, subject, target)
    else:
        frames = words.device_causes if relation.kind == "causes" else words.device_accompanies
        device, finding = (subject, target) if isinstance(subject, Device) else (target, subject)
        fill = {**_who(context, device, "device", "d_"), **_who(context, finding, "finding", "f_")}
    return say_slots(context, frames, Slots(fill=fill, base=base))


def say_joint(context: Context, relation: Relation, subject: Finding, target: Finding) -> Said:
    """Both findings and their relation at once: "Small effusion secondary to left basilar pneumonia."."""
    words = context.language.words.relations
    first, second = mention(context, subject).slots.fill, mention(context, target).slots.fill
    if relation.kind == "causes":
        frames, fill = words.joint_causes, {"first": first["hedged"], "second": second["hedged"]}
    elif relation.kind == "accompanies":
        frames, fill = words.joint_accompanies, {"first": first["hedged"], "second": second["hedged"]}
    elif target.certainty == "uncertain":
        frames = words.joint_suggests_uncertain
        fill = {"first": first["hedged"], "second": second["bare_kind"]}
    else:
        frames, fill = words.joint_suggests, {"first": first["hedged"], "second": second["bare_kind"]}
    base = (Statement(kind="relation", about=relation.id),)
    return say_slots(context, frames, Slots(fill=fill, base=base))


def _pair_slots(
    context: Context, subject: Finding | Device, target: Finding | Device
) -> dict[str, Callable[[], Said]]:
    fill = {**_who(context, subject, "subject", "s_"), **_who(context, target, "object", "o_")}
    # What something is a sign of is named without a place: the sign has told the place already.
    indefinite = mention(context, target)
    fill["a_object"] = indefinite.slots.fill["kind"]
    fill["plain_object"] = indefinite.slots.fill["plain_kind"]
    return fill


def _who(context: Context, thing: Finding | Device, name: str, prefix: str) -> dict[str, Callable[[], Said]]:
    named = mention(context, thing)
    return {
        name: named.slots.fill["the"],
        f"bare_{name}": named.slots.fill["bare"],
        **plural_forms(context, prefix, number=1 if named.plural else 0),
    }


def _must(said: Said | None) -> Said:
    if said is None:
        raise LookupError("the wording has no frame for a thing of which only the name is known")
    return said
