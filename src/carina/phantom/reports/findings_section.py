"""The findings section: findings, devices and relations, hedged if uncertain, with changes since the prior study."""

from collections.abc import Iterator, Sequence
from functools import partial

from carina.phantom.reports.grammar import join_items
from carina.phantom.reports.layout import DraftSentence, Organ, Style, make_sentence
from carina.phantom.reports.mentions import (
    ReportContext,
    add_trend_statement,
    get_trend_words,
    make_mention,
    make_since_filler,
    make_trend_statement,
    write_sentence,
)
from carina.phantom.reports.template import Fillers, Phrase, Slots, Template, render_template
from carina.phantom.reports.wording import DeviceWords, SharedDeviceWords
from carina.studies.model import Device, Finding, Relation, Statement

ORGAN_OF: dict[str, Organ] = {
    "cardiomegaly": "heart",
    "fracture": "bones",
    "pleural effusion": "pleura",
    "pneumothorax": "pleura",
}
CHANGES = frozenset({"new", "worse", "improved"})
"""Trends that every report states."""


def get_organ(finding: Finding) -> Organ:
    return ORGAN_OF.get(finding.name, "lungs")


def is_absent(thing: Finding | Device) -> bool:
    return thing.certainty == "absent"


def is_resolved(thing: Finding | Device) -> bool:
    """Whether a finding has resolved or a device was removed since the prior study."""
    return thing.certainty == "absent" and thing.trend == "resolved"


def write_findings(context: ReportContext, style: Style) -> Iterator[DraftSentence]:
    for finding in context.study.findings:
        if not is_absent(finding):
            yield from _write_finding(context, finding, style)
    for finding in context.study.findings:
        if is_resolved(finding) and context.prior is not None:
            yield make_sentence(write_resolved(context, finding), get_organ(finding))


def _write_finding(context: ReportContext, finding: Finding, style: Style) -> Iterator[DraftSentence]:
    words = context.language.words
    group = words.hedges if finding.certainty == "uncertain" else words.findings[finding.name]
    short = style == "terse" or (style == "structured" and context.sampler.bernoulli(0.5))
    templates = group.fragments if short else group.sentences
    phrase = write_sentence(context, templates, finding) or write_sentence(
        context, group.fragments + group.sentences, finding
    )
    if phrase is None:
        # Only the name is known, as from a data set with labels alone.
        templates = (
            words.impression.uncertain if finding.certainty == "uncertain" else words.impression.present
        )
        phrase = _require_phrase(write_sentence(context, templates, finding))
    yield make_sentence(phrase, get_organ(finding))
    if finding.trend is not None and not has_trend_statement(phrase) and _is_trend_due(context, finding):
        change = write_trend(context, finding)
        if change is not None:
            yield make_sentence(change, get_organ(finding))


def has_trend_statement(phrase: Phrase) -> bool:
    return any(statement.trend for statement in phrase.statements)


def _is_trend_due(context: ReportContext, thing: Finding | Device) -> bool:
    """Whether to state the trend: changes always, "unchanged" nearly always."""
    return thing.trend in CHANGES or context.sampler.bernoulli(0.85)


def write_trend(context: ReportContext, finding: Finding) -> Phrase | None:
    """Write a separate sentence for the trend; None without a prior study."""
    if context.prior is None or finding.trend is None:
        return None
    words = get_trend_words(context.language.words.trends, finding.trend)
    phrase = None if words is None else write_sentence(context, words.sentences, finding)
    return None if phrase is None else add_trend_statement(phrase, finding)


def write_resolved(context: ReportContext, thing: Finding | Device) -> Phrase:
    words = context.language.words
    if isinstance(thing, Device):
        templates = words.device.removed
    else:
        still = any(other.name == thing.name and not is_absent(other) for other in context.study.findings)
        templates = words.resolved.other if still else words.resolved.whole
    return add_trend_statement(_require_phrase(write_sentence(context, templates, thing)), thing)


def write_devices(context: ReportContext, style: Style) -> Iterator[DraftSentence]:
    devices = [device for device in context.study.devices if not is_absent(device)]
    adequate = [
        device
        for device in devices
        if device.position == "adequate"
        and device.certainty == "present"
        and not (context.prior is not None and device.trend in CHANGES)
    ]
    if len(adequate) >= 2 and context.sampler.bernoulli(0.3):
        yield make_sentence(_write_device_group(context, adequate), "devices")
        devices = [device for device in devices if device not in adequate]
    for device in devices:
        phrase = write_device(context, device, style)
        yield make_sentence(phrase, "devices")
        if context.prior is not None and not has_trend_statement(phrase) and device.trend in CHANGES:
            yield make_sentence(_write_device_change(context, device), "devices")
    for device in context.study.devices:
        if is_resolved(device) and context.prior is not None:
            yield make_sentence(write_resolved(context, device), "devices")


def _write_device_change(context: ReportContext, device: Device) -> Phrase:
    words = context.language.words.device
    templates = {"new": words.change_new, "worse": words.change_worse, "improved": words.change_improved}
    phrase = _require_phrase(write_sentence(context, templates[device.trend or "new"], device))
    return add_trend_statement(phrase, device)


def write_device(context: ReportContext, device: Device, style: Style) -> Phrase:
    own, shared = context.language.words.devices[device.name], context.language.words.device
    templates, has_trend = _select_device_templates(context, device, own, shared, style)
    phrase = write_sentence(context, templates, device) or _require_phrase(
        write_sentence(context, _select_plain_templates(device, shared), device)
    )
    return add_trend_statement(phrase, device) if has_trend else phrase


def _select_device_templates(
    context: ReportContext, device: Device, own: DeviceWords, shared: SharedDeviceWords, style: Style
) -> tuple[tuple[Template, ...], bool]:
    """Templates that fit the device, and whether their text already states its trend."""
    if device.certainty == "uncertain":
        return shared.uncertain, False
    if device.position == "malpositioned":
        return own.malpositioned + shared.malpositioned, False
    if context.prior is not None and device.trend in ("new", "unchanged") and context.sampler.bernoulli(0.6):
        return (shared.new if device.trend == "new" else shared.unchanged), True
    if style == "terse" and context.sampler.bernoulli(0.6):
        return shared.fragments, False
    if device.position == "adequate":
        return own.adequate + shared.adequate, False
    return shared.plain, False


def _select_plain_templates(device: Device, shared: SharedDeviceWords) -> tuple[Template, ...]:
    return shared.malpositioned if device.position == "malpositioned" else shared.plain


def _write_device_group(context: ReportContext, devices: list[Device]) -> Phrase:
    """Write one sentence about several devices."""
    words = context.language.words.device
    since_filler = make_since_filler(context)
    unchanged = since_filler is not None and all(device.trend == "unchanged" for device in devices)
    named = [make_mention(context, device).slots.fillers["the"]() for device in devices]
    statements = [statement for phrase in named for statement in phrase.statements]
    if unchanged:
        statements += [make_trend_statement(device) for device in devices]
    names = join_items([phrase.text for phrase in named], context.language.common.conjunctions["and"])
    fillers: Fillers = {"list": lambda: Phrase(names, tuple(statements)), **make_agreement_fillers(context)}
    if since_filler is not None:
        fillers["since"] = since_filler
    templates = words.group_unchanged if unchanged else words.group_adequate
    return write_from_slots(context, templates, Slots(fillers=fillers))


def make_agreement_fillers(context: ReportContext, prefix: str = "", *, number: int = 1) -> Fillers:
    """The slots be, has and s for a subject that is plural (number=1) or singular (number=0)."""
    forms = context.language.common.agreement
    words = {"be": forms.be[number], "has": forms.has[number], "s": forms.s[number]}
    return {f"{prefix}{slot}": partial(Phrase, word) for slot, word in words.items()}


def write_from_slots(context: ReportContext, templates: tuple[Template, ...], slots: Slots) -> Phrase:
    template = context.sampler.pick_template(templates, slots)
    if template is None:
        raise LookupError(f"the wording has no template for the slots {sorted(slots.fillers)}")
    return render_template(template, slots, context.sampler)


def write_relations(context: ReportContext, order: Sequence[Organ]) -> Iterator[DraftSentence]:
    """Write each relation with the later of its organs, when both findings have been described."""
    findings = {finding.id: finding for finding in context.study.findings}
    for relation in context.study.relations:
        organs = [get_organ(findings[end]) for end in (relation.subject, relation.object) if end in findings]
        last = max(organs, key=order.index) if organs else "devices"
        yield make_sentence(write_relation(context, relation), last)


def write_relation(context: ReportContext, relation: Relation) -> Phrase:
    things: dict[str, Finding | Device] = {finding.id: finding for finding in context.study.findings}
    things.update((device.id, device) for device in context.study.devices)
    subject, target = things[relation.subject], things[relation.object]
    words = context.language.words.relations
    base = (Statement(kind="relation", about=relation.id),)
    if isinstance(subject, Finding) == isinstance(target, Finding):
        templates = {"causes": words.causes, "accompanies": words.accompanies, "suggests": words.suggests}[
            relation.kind
        ]
        if relation.kind == "suggests" and target.certainty == "uncertain":
            templates = words.suggests_uncertain
        fillers = _make_pair_fillers(context, subject, target)
    else:
        templates = words.device_causes if relation.kind == "causes" else words.device_accompanies
        device, finding = (subject, target) if isinstance(subject, Device) else (target, subject)
        fillers = {
            **_make_party_fillers(context, device, "device", "d_"),
            **_make_party_fillers(context, finding, "finding", "f_"),
        }
    return write_from_slots(context, templates, Slots(fillers=fillers, base=base))


def write_joint_relation(
    context: ReportContext, relation: Relation, subject: Finding, target: Finding
) -> Phrase:
    """Write two findings and their relation: "Small effusion secondary to left basilar pneumonia."."""
    words = context.language.words.relations
    first, second = make_mention(context, subject).slots.fillers, make_mention(context, target).slots.fillers
    if relation.kind == "causes":
        templates, fillers = words.joint_causes, {"first": first["hedged"], "second": second["hedged"]}
    elif relation.kind == "accompanies":
        templates, fillers = words.joint_accompanies, {"first": first["hedged"], "second": second["hedged"]}
    elif target.certainty == "uncertain":
        templates = words.joint_suggests_uncertain
        fillers = {"first": first["hedged"], "second": second["bare_kind"]}
    else:
        templates, fillers = words.joint_suggests, {"first": first["hedged"], "second": second["bare_kind"]}
    base = (Statement(kind="relation", about=relation.id),)
    return write_from_slots(context, templates, Slots(fillers=fillers, base=base))


def _make_pair_fillers(
    context: ReportContext, subject: Finding | Device, target: Finding | Device
) -> Fillers:
    fillers = {
        **_make_party_fillers(context, subject, "subject", "s_"),
        **_make_party_fillers(context, target, "object", "o_"),
    }
    # The object has no location, because the subject has stated it.
    indefinite = make_mention(context, target)
    fillers["a_object"] = indefinite.slots.fillers["kind"]
    fillers["plain_object"] = indefinite.slots.fillers["plain_kind"]
    return fillers


def _make_party_fillers(context: ReportContext, thing: Finding | Device, name: str, prefix: str) -> Fillers:
    named = make_mention(context, thing)
    return {
        name: named.slots.fillers["the"],
        f"bare_{name}": named.slots.fillers["bare"],
        **make_agreement_fillers(context, prefix, number=1 if named.plural else 0),
    }


def _require_phrase(phrase: Phrase | None) -> Phrase:
    if phrase is None:
        raise LookupError("the wording has no template for a thing of which only the name is known")
    return phrase
