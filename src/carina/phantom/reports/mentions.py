"""Mentions of one finding or device: its slots, each with text and the facts that the text states."""

from collections.abc import Callable
from dataclasses import dataclass

from carina.phantom.reports import attributes
from carina.phantom.reports.grammar import Noun, format_date
from carina.phantom.reports.template import (
    Fillers,
    Phrase,
    Sampler,
    Slots,
    Template,
    merge_statements,
    render_template,
)
from carina.phantom.reports.wording import Language, SeverityWords, TrendGroup, TrendWords, Wording
from carina.studies.model import Device, Finding, Measure, Statement, Study
from carina.studies.vocabulary import Severity, Side, Trend

NAMING = frozenset({"noun", "np", "a_np", "the"})
"""Slots that name the thing; the verbs of a template agree with them in number."""


@dataclass(frozen=True, slots=True)
class ReportContext:
    """What every function that writes a part of a report needs."""

    study: Study
    prior: Study | None
    language: Language
    sampler: Sampler
    date_format: str
    """Format of dates in this report, for `strftime`."""


@dataclass(frozen=True, slots=True)
class Mention:
    """The slots of one thing, with one noun for a whole sentence."""

    slots: Slots
    plural: bool
    uncertain: bool


def make_mention(context: ReportContext, thing: Finding | Device) -> Mention:
    return _mention_finding(context, thing) if isinstance(thing, Finding) else _mention_device(context, thing)


def write_sentence(
    context: ReportContext, templates: tuple[Template, ...], thing: Finding | Device
) -> Phrase | None:
    """Write a sentence about one thing from one of the templates; None if no template fits what is known."""
    slots = make_mention(context, thing).slots
    template = context.sampler.pick_template(templates, slots)
    if template is None:
        return None
    if not template.slots & NAMING:
        # The template has its own noun, always singular: "haziness is seen, which has increased".
        _add_number(slots.fillers, context, plural=False)
    return render_template(template, slots, context.sampler)


def make_since_filler(context: ReportContext) -> Callable[[], Phrase] | None:
    """Make the filler of the slot {since}; None without a prior study."""
    prior, sampler, words = context.prior, context.sampler, context.language.words.comparison
    if prior is None:
        return None
    date = prior.date

    def fill_since() -> Phrase:
        templates = words.since if date else Slots().select_fitting(words.since)
        text = sampler.pick(templates).text
        if date and "{date}" in text:
            text = text.format(date=format_date(date, context.date_format))
        return Phrase(text, (Statement(kind="comparison", about=prior.id),))

    return fill_since


def _mention_finding(context: ReportContext, finding: Finding) -> Mention:
    language, sampler = context.language, context.sampler
    words = language.words.findings[finding.name]
    named = [noun for appearance in finding.appearance for noun in words.appearance.nouns.get(appearance, ())]
    noun = sampler.pick(named or words.nouns)
    plural = _is_plural(finding, noun)
    base = Statement(kind="finding", about=finding.id, certainty=finding.certainty)
    slots = Slots(base=(base,), required_families=_list_required_families(context, finding))
    fillers = slots.fillers
    _add_agreement(fillers, context, noun, plural=plural)
    _add_location(fillers, context, finding)
    grades = words.severity
    if finding.severity is not None and grades is not None:
        grade = finding.severity
        stated = (Statement(kind="finding", about=finding.id, severity=grade),)
        fillers["severity"] = lambda: Phrase(sampler.pick(_get_severity_words(grades, grade)), stated)
        fillers["degree"] = lambda: Phrase(
            sampler.pick(_get_severity_words(language.words.degree, grade)), stated
        )
    if finding.distribution is not None:
        spread = language.words.distribution[finding.distribution]
        fillers["distribution"] = lambda: Phrase(sampler.pick(spread))
    adjectives = [
        word for appearance in finding.appearance for word in words.appearance.adjectives.get(appearance, ())
    ]
    if adjectives:
        fillers["appearance"] = lambda: Phrase(sampler.pick(adjectives))
    clauses = [
        word for appearance in finding.appearance for word in words.appearance.clauses.get(appearance, ())
    ]
    if clauses:
        fillers["with"] = lambda: Phrase(sampler.pick(clauses))
    _add_measures(fillers, context, finding)
    _add_trend(slots, context, finding)
    common = language.common
    uncertain = finding.certainty == "uncertain"
    _add_phrases(
        slots,
        context,
        phrase=common.phrases[finding.name],
        reference=common.references[finding.name],
        bare=plural or noun.mass,
        uncertain=uncertain,
    )
    return Mention(slots=slots, plural=plural, uncertain=uncertain)


def _list_required_families(context: ReportContext, finding: Finding) -> frozenset[str]:
    """Families of slots that a sentence about the finding uses wherever it can."""
    location = {"location"} if _has_namesake(context, finding) else set[str]()
    return frozenset(location | ({"severity"} if finding.severity == "severe" else set()))


def _has_namesake(context: ReportContext, finding: Finding) -> bool:
    """Whether only its location distinguishes the finding from another one of the same name."""
    return any(
        other.name == finding.name and other.id != finding.id and other.certainty != "absent"
        for other in context.study.findings
    )


def _mention_device(context: ReportContext, device: Device) -> Mention:
    language, sampler = context.language, context.sampler
    noun = sampler.pick(language.words.devices[device.name].nouns)
    slots = Slots(base=(Statement(kind="device", about=device.id, certainty=device.certainty),))
    fillers = slots.fillers
    _add_agreement(fillers, context, noun, plural=False)
    if device.side in ("right", "left"):
        side = device.side
        stated = (Statement(kind="device", about=device.id, side=side),)
        fillers["side"] = lambda: Phrase(sampler.pick(language.words.sides[side]), stated)
    if device.site:
        tip = _format_tip(device.site, language)
        measured = _find_measure_in_site(device.site, device.measures)
        tip_statement = (Statement(kind="device", about=device.id, measure=measured),)
        fillers["tip"] = lambda: Phrase(tip, tip_statement)
    _add_trend(slots, context, device)
    uncertain = device.certainty == "uncertain"
    phrase = language.common.device_phrase
    _add_phrases(slots, context, phrase=phrase, reference=phrase, bare=False, uncertain=uncertain)
    return Mention(slots=slots, plural=False, uncertain=uncertain)


def _is_plural(finding: Finding, noun: Noun) -> bool:
    if not noun.singular:
        return True
    location = finding.location
    many = location is not None and (
        location.side == "bilateral" or (location.site is not None and location.site.endswith("ribs"))
    )
    # A haze in several pieces is written as "opacities", but a nodule that a rib divides is one nodule.
    spread = finding.distribution == "multifocal" and finding.name not in ("nodule", "mass")
    return not noun.mass and (many or spread)


def _add_agreement(fillers: Fillers, context: ReportContext, noun: Noun, *, plural: bool) -> None:
    article = "" if plural or noun.mass else context.language.common.article
    fillers["noun"] = lambda: Phrase(noun.plural if plural else noun.singular)
    fillers["a"] = lambda: Phrase(article)
    _add_number(fillers, context, plural=plural)


def _add_number(fillers: Fillers, context: ReportContext, *, plural: bool) -> None:
    agreement, number = context.language.common.agreement, 1 if plural else 0
    fillers["be"] = lambda: Phrase(agreement.be[number])
    fillers["has"] = lambda: Phrase(agreement.has[number])
    fillers["s"] = lambda: Phrase(agreement.s[number])


def _add_location(fillers: Fillers, context: ReportContext, finding: Finding) -> None:
    location, language, sampler = finding.location, context.language, context.sampler
    if location is None:
        return
    side = location.side
    side_statement = _make_side_statement(finding.id, side)
    if side is not None and side != "midline":
        known = side
        fillers["side"] = lambda: Phrase(sampler.pick(language.words.sides[known]), side_statement)
        fillers["flank"] = lambda: Phrase(attributes.write_flank(known, language, sampler), side_statement)
        fillers["place"] = fillers["flank"]
        if _has_visible_angles(context, finding, known):
            fillers["angles"] = lambda: Phrase(sampler.pick(language.words.angles[known]), side_statement)
    if location.site:
        site = location.site
        fillers["site"] = lambda: Phrase(site, side_statement if side and site.startswith(side) else ())
    zones = attributes.get_zones(location)
    if zones is None:
        return
    agreed = side if zones.side == side else None
    zone_statement = (Statement(kind="finding", about=finding.id, side=agreed, zones=zones.names),)
    fillers["place"] = lambda: Phrase(attributes.write_place(zones, language, sampler), zone_statement)
    fillers["area"] = lambda: Phrase(attributes.write_area(zones, language, sampler), zone_statement)
    if attributes.has_adjective(zones):
        fillers["zone"] = lambda: Phrase(attributes.write_adjective(zones, language, sampler), zone_statement)


def _make_side_statement(about: str, side: Side | None) -> tuple[Statement, ...]:
    return (Statement(kind="finding", about=about, side=side),)


def _has_visible_angles(context: ReportContext, finding: Finding, side: Side) -> bool:
    """Whether blunting of the angles is visible: the finding reaches them and the image includes them."""
    wanted = [f"{one} costophrenic angle" for one in ("right", "left") if side in (one, "bilateral")]
    cut = {part for image in context.study.images if image.quality for part in image.quality.cut_off or ()}
    parts = finding.location.parts if finding.location else ()
    return all(angle in parts and angle not in cut for angle in wanted)


def _add_measures(fillers: Fillers, context: ReportContext, finding: Finding) -> None:
    language, sampler = context.language, context.sampler
    words = language.words.measures
    pa = any(image.view == "PA" for image in context.study.images)
    measures = attributes.select_reportable_measures(finding.measures, language, pa=pa)
    if _has_numbered_site(finding):
        measures = tuple(measure for measure in measures if language.common.measures[measure.name] != "count")
    sizes = [(measure, words[measure.name].size) for measure in measures if words[measure.name].size]
    clauses = [(measure, words[measure.name].clause) for measure in measures if words[measure.name].clause]

    def write_one(options: list[tuple[Measure, tuple[Template, ...]]]) -> Phrase:
        measure, templates = sampler.pick(options)
        phrase = attributes.write_measure(measure, templates, language, sampler)
        return Phrase(phrase.text, (Statement(kind="finding", about=finding.id, measure=phrase.measure),))

    if sizes:
        fillers["size"] = lambda: write_one(sizes)
    if clauses:
        fillers["measure"] = lambda: write_one(clauses)


def _has_numbered_site(finding: Finding) -> bool:
    """Whether the site names each rib, so that their number would be a repetition."""
    site = finding.location.site if finding.location else None
    return site is not None and any(character.isdigit() for character in site)


def _add_trend(slots: Slots, context: ReportContext, thing: Finding | Device) -> None:
    """Add words of comparison, only if there is a prior study."""
    since_filler = make_since_filler(context)
    if since_filler is None or thing.trend is None:
        return
    slots.fillers["since"] = since_filler
    tails = _get_trend_clauses(context.language.words, thing)
    if not tails:
        return
    sampler = context.sampler

    slots.fillers["tail"] = lambda: add_trend_statement(
        render_template(sampler.pick(tails), slots, sampler), thing
    )
    words = get_trend_words(context.language.words.trends, thing.trend)
    # An uncertain finding has its change in a clause: "a decreased effusion cannot be excluded" is not idiomatic.
    doubtful = thing.certainty == "uncertain" and thing.trend in ("worse", "improved")
    if words is not None and not doubtful:
        slots.fillers["trend"] = lambda: Phrase(
            sampler.pick(words.adjectives), (make_trend_statement(thing),)
        )


def _get_trend_clauses(words: Wording, thing: Finding | Device) -> tuple[Template, ...]:
    """Clauses that state a trend at the end of a sentence; none for resolved things."""
    if isinstance(thing, Device):
        tails = {
            "new": words.device.tail_new,
            "unchanged": words.device.tail_unchanged,
            "worse": words.device.tail_worse,
            "improved": words.device.tail_improved,
        }
        return tails.get(thing.trend or "", ())
    trend = get_trend_words(words.trends, thing.trend) if thing.trend else None
    return trend.tails if trend else ()


def make_trend_statement(thing: Finding | Device) -> Statement:
    """Make the statement that the thing has its trend."""
    if isinstance(thing, Finding):
        return Statement(kind="finding", about=thing.id, trend=thing.trend)
    return Statement(kind="device", about=thing.id, trend=thing.trend)


def add_trend_statement(phrase: Phrase, thing: Finding | Device) -> Phrase:
    """The phrase with the statement that the thing has its trend."""
    return Phrase(phrase.text, merge_statements((*phrase.statements, make_trend_statement(thing))))


def get_trend_words(trends: TrendGroup, trend: Trend) -> TrendWords | None:
    """The words for a trend; None for "resolved", which has its own sentences."""
    known = {
        "new": trends.new,
        "worse": trends.worse,
        "improved": trends.improved,
        "unchanged": trends.unchanged,
    }
    return known.get(trend)


def _add_phrases(
    slots: Slots,
    context: ReportContext,
    *,
    phrase: tuple[Template, ...],
    reference: tuple[Template, ...],
    bare: bool,
    uncertain: bool,
) -> None:
    """Add noun phrases: {np} and {a_np} without a hedge, the others with a hedge if the thing is uncertain."""
    sampler, common = context.sampler, context.language.common
    hedge = f"{sampler.pick(context.language.words.hedges.adjectives)} " if uncertain else ""
    article = "" if bare else f"{common.article} "

    def build(templates: tuple[Template, ...], before: str) -> Phrase:
        phrase = render_template(sampler.pick(slots.select_fitting(templates)), slots, sampler)
        return Phrase(before + phrase.text, phrase.statements)

    slots.fillers["np"] = lambda: build(phrase, "")
    slots.fillers["a_np"] = lambda: build(phrase, article)
    slots.fillers["the"] = lambda: build(reference, f"{common.definite} {hedge}")
    slots.fillers["kind"] = lambda: Phrase(f"{article}{hedge}{slots.fillers['noun']().text}", slots.base)
    slots.fillers["plain_kind"] = lambda: Phrase(f"{article}{slots.fillers['noun']().text}", slots.base)
    slots.fillers["bare_kind"] = lambda: Phrase(slots.fillers["noun"]().text, slots.base)
    slots.fillers["hedged"] = lambda: build(phrase, hedge)
    slots.fillers["bare"] = lambda: build(reference, hedge)


def _get_severity_words(grades: SeverityWords, severity: Severity) -> tuple[str, ...]:
    return {"mild": grades.mild, "moderate": grades.moderate, "severe": grades.severe}[severity]


def _format_tip(site: str, language: Language) -> str:
    """The site as a phrase that can follow "its tip": "4 cm above the carina", "in the stomach"."""
    first = site.split(" ", 1)[0].lower()
    if first[0].isdigit() or first in language.common.site_starts:
        return site
    bare = site.removeprefix(f"{language.common.definite} ")
    return f"{language.common.site_joint} {bare}"


def _find_measure_in_site(site: str, measures: tuple[Measure, ...]) -> Measure | None:
    """The measure that the text of the site contains, if any: "4.1 cm above the carina"."""
    numbers = {word for word in site.replace(",", " ").split() if word[0].isdigit()}
    return next((m for m in measures if {f"{m.value:g}", f"{m.value:.1f}", f"{m.value:.0f}"} & numbers), None)
