"""The impression, most urgent finding first, and the recommendations."""

from collections.abc import Iterator, Sequence

from carina.phantom.reports.denials import PLEURA, AbsentFindings, write_denial_list, write_joint_denial
from carina.phantom.reports.findings_section import (
    is_absent,
    is_resolved,
    write_device,
    write_from_slots,
    write_joint_relation,
    write_resolved,
)
from carina.phantom.reports.grammar import join_items
from carina.phantom.reports.layout import DraftSentence, make_sentence
from carina.phantom.reports.mentions import (
    ReportContext,
    make_mention,
    make_since_filler,
    make_trend_statement,
    write_sentence,
)
from carina.phantom.reports.template import Phrase, Slots
from carina.studies.model import Device, Finding, Recommendation, Relation, Statement

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
"""Findings with which "no acute abnormality" is still true."""
MINOR = frozenset({"atelectasis", "cardiomegaly"})
"""Findings that an impression may omit if they are mild and there is another finding."""

ACTIONS = (
    "urgent clinical attention",
    "reposition device",
    "chest CT",
    "follow-up radiograph",
    "lateral view",
    "clinical correlation",
)
"""Actions, most urgent first."""


def write_impression(context: ReportContext) -> list[DraftSentence]:
    described = sorted(
        (finding for finding in context.study.findings if not is_absent(finding)),
        key=lambda finding: URGENCY.index(finding.name),
    )
    sentences = list(_write_opinion(context, described))
    sentences += _write_devices(context)
    if context.prior is not None:
        resolved = [finding for finding in context.study.findings if is_resolved(finding)]
        sentences += [
            make_sentence(write_resolved(context, finding))
            for finding in resolved
            if context.sampler.bernoulli(0.6)
        ]
    sentences += _write_normal(context, described)
    return sentences


def _write_opinion(context: ReportContext, described: list[Finding]) -> Iterator[DraftSentence]:
    since_filler = make_since_filler(context)
    if (
        since_filler is not None
        and described
        and _is_stable(context, described)
        and context.sampler.bernoulli(0.25)
    ):
        slots = Slots(
            fillers={"since": since_filler},
            base=tuple(make_trend_statement(finding) for finding in described),
        )
        yield make_sentence(write_from_slots(context, context.language.words.impression.stable, slots))
    important = _select_important(context, described)
    while important:
        if (joint := _find_relation(context, important)) is not None:
            relation, subject, target = joint
            yield make_sentence(write_joint_relation(context, relation, subject, target))
            important = [finding for finding in important if finding not in (subject, target)]
        elif len(important) >= 2 and context.sampler.bernoulli(0.25):
            yield make_sentence(_write_pair(context, important[0], important[1]))
            important = important[2:]
        else:
            yield make_sentence(_write_finding(context, important[0]))
            important = important[1:]


def _find_relation(
    context: ReportContext, important: list[Finding]
) -> tuple[Relation, Finding, Finding] | None:
    """A relation of the first finding to another important one; at random also None."""
    known = {finding.id: finding for finding in important}
    for relation in context.study.relations:
        ends = (relation.subject, relation.object)
        if important[0].id in ends and all(end in known for end in ends) and context.sampler.bernoulli(0.35):
            return relation, known[relation.subject], known[relation.object]
    return None


def _is_stable(context: ReportContext, described: list[Finding]) -> bool:
    study = context.study
    resolved = any(map(is_resolved, study.findings)) or any(map(is_resolved, study.devices))
    moved = any(device.trend != "unchanged" for device in study.devices if not is_absent(device))
    return not resolved and not moved and all(finding.trend == "unchanged" for finding in described)


def _select_important(context: ReportContext, described: list[Finding]) -> list[Finding]:
    kept = [
        finding
        for finding in described
        if finding.name not in MINOR or _is_important(context, finding) or context.sampler.bernoulli(0.6)
    ]
    return kept or described[:1]


def _is_important(context: ReportContext, finding: Finding) -> bool:
    """Whether the finding is more than mild, new or worse, so that no impression omits it."""
    rising = context.prior is not None and finding.trend in ("new", "worse")
    return rising or finding.severity in ("moderate", "severe")


def _write_finding(context: ReportContext, finding: Finding) -> Phrase:
    words = context.language.words
    if finding.certainty == "uncertain":
        templates, spare = words.impression.uncertain, words.hedges.fragments
    else:
        templates, spare = words.impression.present, words.findings[finding.name].fragments
    # The templates of the finding come first half of the time, so that impressions do not all read the same.
    first, second = (spare, templates) if context.sampler.bernoulli(0.5) else (templates, spare)
    phrase = write_sentence(context, first, finding) or write_sentence(context, second, finding)
    if phrase is None:
        raise LookupError(f"the wording has no impression template that fits {finding.name!r}")
    return phrase


def _write_pair(context: ReportContext, first: Finding, second: Finding) -> Phrase:
    fillers = {
        "first": make_mention(context, first).slots.fillers["hedged"],
        "second": make_mention(context, second).slots.fillers["hedged"],
    }
    return write_from_slots(context, context.language.words.impression.pair, Slots(fillers=fillers))


def _write_devices(context: ReportContext) -> Iterator[DraftSentence]:
    for device in context.study.devices:
        if is_resolved(device):
            if context.prior is not None and context.sampler.bernoulli(0.3):
                yield make_sentence(write_resolved(context, device))
        elif is_absent(device):
            continue
        elif device.position == "malpositioned" or (
            device.trend == "new" and context.sampler.bernoulli(0.35)
        ):
            yield make_sentence(write_device(context, device, "prose"))


def _write_normal(context: ReportContext, described: Sequence[Finding]) -> Iterator[DraftSentence]:
    words, absent = context.language.words.denials, AbsentFindings(context)
    misplaced = any(
        device.position == "malpositioned" for device in context.study.devices if not is_absent(device)
    )
    rising = context.prior is not None and any(finding.trend in ("new", "worse") for finding in described)
    is_calm = all(finding.name in CHRONIC for finding in described) and not misplaced and not rising
    if is_calm and absent.has_all(words.no_acute.denies):
        bare = not described and not any(not is_absent(device) for device in context.study.devices)
        normal = bare and absent.has_all(words.normal_chest.denies) and context.sampler.bernoulli(0.3)
        yield make_sentence(
            write_joint_denial(context, absent, words.normal_chest if normal else words.no_acute)
        )
    elif (names := absent.select(PLEURA)) and context.sampler.bernoulli(0.2):
        yield make_sentence(write_denial_list(context, absent, names))


def write_recommendations(context: ReportContext) -> tuple[tuple[Recommendation, ...], list[DraftSentence]]:
    """The recommendations that findings and devices require, with one sentence each."""
    due: dict[str, list[Finding | Device]] = {}
    for thing, action in _list_actions(context):
        due.setdefault(action, []).append(thing)
    recommendations: list[Recommendation] = []
    sentences: list[DraftSentence] = []
    for action in ACTIONS:
        if action in due:
            about = tuple(thing.id for thing in due[action])
            recommendation = Recommendation(id=f"r{len(recommendations) + 1}", action=action, about=about)
            recommendations.append(recommendation)
            sentences.append(make_sentence(_write_recommendation(context, recommendation, due[action])))
    return tuple(recommendations), sentences


def _list_actions(context: ReportContext) -> Iterator[tuple[Finding | Device, str]]:
    for device in context.study.devices:
        if not is_absent(device) and device.position == "malpositioned":
            yield device, "reposition device"
    for finding in context.study.findings:
        if is_absent(finding):
            continue
        if finding.name == "pneumothorax" and "tension" in finding.appearance:
            yield finding, "urgent clinical attention"
        elif finding.name == "nodule" and "calcified" in finding.appearance:
            continue  # a granuloma needs no follow-up
        elif finding.name in ("nodule", "mass"):
            yield finding, "chest CT"
        elif finding.name in ("pneumonia", "consolidation") and finding.certainty == "present":
            yield finding, "follow-up radiograph"
        elif finding.certainty == "uncertain":
            if context.sampler.bernoulli(0.5):
                yield finding, _pick_clarification(context)
        elif finding.name == "pneumothorax" and finding.severity == "severe":
            yield finding, "urgent clinical attention"


def _pick_clarification(context: ReportContext) -> str:
    """What would clarify an uncertain finding; a lateral view only if there is none."""
    weights = {"lateral view": 1.0, "chest CT": 0.5, "clinical correlation": 1.0}
    if any(image.view == "lateral" for image in context.study.images):
        del weights["lateral view"]
    return context.sampler.pick_weighted(weights)


def _write_recommendation(
    context: ReportContext, recommendation: Recommendation, things: list[Finding | Device]
) -> Phrase:
    named = [make_mention(context, thing).slots.fillers["the"]() for thing in things]
    text = join_items([phrase.text for phrase in named], context.language.common.conjunctions["and"])
    statements = tuple(statement for phrase in named for statement in phrase.statements)
    base = (Statement(kind="recommendation", about=recommendation.id),)
    templates = context.language.words.recommendations[recommendation.action]
    return write_from_slots(
        context, templates, Slots(fillers={"target": lambda: Phrase(text, statements)}, base=base)
    )
