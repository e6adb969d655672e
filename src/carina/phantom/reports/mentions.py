"""What can be said about one finding or device: its slots, each with the words and the facts it states."""

from collections.abc import Callable
from dataclasses import dataclass

from carina.phantom.reports import places
from carina.phantom.reports.grammar import Noun, say_date
from carina.phantom.reports.measures import say_measure, sayable
from carina.phantom.reports.template import Draw, Frame, Said, Slots, merge, render
from carina.phantom.reports.wording import Grades, Language, Trends, TrendWords, Wording
from carina.studies.model import Device, Finding, Measure, Statement, Study
from carina.studies.vocabulary import Severity, Side, Trend

NAMING = frozenset({"noun", "np", "a_np", "the"})
"""Slots that name the thing, and with which the verbs of the frame agree."""


@dataclass(frozen=True, slots=True)
class Context:
    """What every writer of a report needs."""

    study: Study
    prior: Study | None
    language: Language
    draw: Draw
    date_format: str
    """How this report writes dates, for `strftime`."""


@dataclass(frozen=True, slots=True)
class Mention:
    """One thing, called by one noun for the length of a sentence."""

    slots: Slots
    plural: bool
    uncertain: bool


def mention(context: Context, thing: Finding | Device) -> Mention:
    return _mention_finding(context, thing) if isinstance(thing, Finding) else _mention_device(context, thing)


def say(context: Context, frames: tuple[Frame, ...], thing: Finding | Device) -> Said | None:
    """A sentence about one thing from one of the frames; None where no frame fits what is known."""
    slots = mention(context, thing).slots
    frame = context.draw.frame(frames, slots)
    if frame is None:
        return None
    if not frame.slots & NAMING:
        # The frame has a noun of its own, always a singular one: "haziness is seen, which has increased".
        _add_number(slots.fill, context, plural=False)
    return render(frame, slots, context.draw)


def since(context: Context) -> Callable[[], Said] | None:
    """The slot {since}; None without a prior."""
    prior, draw, words = context.prior, context.draw, context.language.words.comparison
    if prior is None:
        return None
    date = prior.date

    def fill() -> Said:
        frames = words.since if date else tuple(frame for frame in words.since if not frame.needs)
        text = draw.pick(frames).text
        if date and "{date}" in text:
            text = text.format(date=say_date(date, context.date_format))
        return Said(text, (Statement(kind="comparison", about=prior.id),))

    return fill


def _mention_finding(context: Context, finding: Finding) -> Mention:
    language, draw = context.language, context.draw
    words = language.words.findings[finding.name]
    named = [noun for look in finding.appearance for noun in words.looks.nouns.get(look, ())]
    noun = draw.pick(named or words.nouns)
    plural = _is_plural(finding, noun)
    base = Statement(kind="finding", about=finding.id, certainty=finding.certainty)
    slots = Slots(fill={}, base=(base,), always=_never_left_out(context, finding))
    fill = slots.fill
    _add_agreement(fill, context, noun, plural=plural)
    _add_location(fill, context, finding)
    grades = words.severity
    if finding.severity is not None and grades is not None:
        grade = finding.severity
        stated = (Statement(kind="finding", about=finding.id, severity=grade),)
        fill["severity"] = lambda: Said(draw.pick(_grade(grades, grade)), stated)
        fill["degree"] = lambda: Said(draw.pick(_grade(language.words.degree, grade)), stated)
    if finding.distribution is not None:
        spread = language.words.distribution[finding.distribution]
        fill["distribution"] = lambda: Said(draw.pick(spread))
    adjectives = [word for look in finding.appearance for word in words.looks.adjectives.get(look, ())]
    if adjectives:
        fill["look"] = lambda: Said(draw.pick(adjectives))
    clauses = [word for look in finding.appearance for word in words.looks.clauses.get(look, ())]
    if clauses:
        fill["with"] = lambda: Said(draw.pick(clauses))
    _add_measures(fill, context, finding)
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


def _never_left_out(context: Context, finding: Finding) -> frozenset[str]:
    """Families of slots that a sentence about the finding says wherever it can."""
    location = {"location"} if _has_namesake(context, finding) else set[str]()
    return frozenset(location | ({"severity"} if finding.severity == "severe" else set()))


def _has_namesake(context: Context, finding: Finding) -> bool:
    """Whether only its place tells the finding from another one of the same name."""
    return any(
        other.name == finding.name and other.id != finding.id and other.certainty != "absent"
        for other in context.study.findings
    )


def _mention_device(context: Context, device: Device) -> Mention:
    language, draw = context.language, context.draw
    noun = draw.pick(language.words.devices[device.name].nouns)
    slots = Slots(fill={}, base=(Statement(kind="device", about=device.id, certainty=device.certainty),))
    fill = slots.fill
    _add_agreement(fill, context, noun, plural=False)
    if device.side in ("right", "left"):
        side = device.side
        stated = (Statement(kind="device", about=device.id, side=side),)
        fill["side"] = lambda: Said(draw.pick(language.words.sides[side]), stated)
    if device.site:
        tip = _tip(device.site, language)
        measured = _measure_in(device.site, device.measures)
        tip_said = (Statement(kind="device", about=device.id, measure=measured),)
        fill["tip"] = lambda: Said(tip, tip_said)
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
    # A mask in several pieces makes a haze "opacities", but one nodule behind a rib stays one nodule.
    spread = finding.distribution == "multifocal" and finding.name not in ("nodule", "mass")
    return not noun.mass and (many or spread)


def _add_agreement(
    fill: dict[str, Callable[[], Said]], context: Context, noun: Noun, *, plural: bool
) -> None:
    article = "" if plural or noun.mass else context.language.common.article
    fill["noun"] = lambda: Said(noun.plural if plural else noun.singular)
    fill["a"] = lambda: Said(article)
    _add_number(fill, context, plural=plural)


def _add_number(fill: dict[str, Callable[[], Said]], context: Context, *, plural: bool) -> None:
    agreement, number = context.language.common.agreement, 1 if plural else 0
    fill["be"] = lambda: Said(agreement.be[number])
    fill["has"] = lambda: Said(agreement.has[number])
    fill["s"] = lambda: Said(agreement.s[number])


def _add_location(fill: dict[str, Callable[[], Said]], context: Context, finding: Finding) -> None:
    location, language, draw = finding.location, context.language, context.draw
    if location is None:
        return
    side = location.side
    sided = _side_said(finding.id, side)
    if side is not None and side != "midline":
        known = side
        fill["side"] = lambda: Said(draw.pick(language.words.sides[known]), sided)
        fill["flank"] = lambda: Said(places.flank(known, language, draw), sided)
        fill["place"] = fill["flank"]
        if _angles_seen(context, finding, known):
            fill["angles"] = lambda: Said(draw.pick(language.words.angles[known]), sided)
    if location.site:
        site = location.site
        fill["site"] = lambda: Said(site, sided if side and site.startswith(side) else ())
    zones = places.zones_of(location)
    if zones is None:
        return
    agreed = side if zones.side == side else None
    zoned = (Statement(kind="finding", about=finding.id, side=agreed, zones=zones.names),)
    fill["place"] = lambda: Said(places.place(zones, language, draw), zoned)
    fill["area"] = lambda: Said(places.area(zones, language, draw), zoned)
    if places.has_adjective(zones):
        fill["zone"] = lambda: Said(places.adjective(zones, language, draw), zoned)


def _side_said(about: str, side: Side | None) -> tuple[Statement, ...]:
    return (Statement(kind="finding", about=about, side=side),)


def _angles_seen(context: Context, finding: Finding, side: Side) -> bool:
    """Whether blunted angles can be told: the finding reaches them and the image shows them."""
    wanted = [f"{one} costophrenic angle" for one in ("right", "left") if side in (one, "bilateral")]
    cut = {part for image in context.study.images if image.quality for part in image.quality.cut_off or ()}
    parts = finding.location.parts if finding.location else ()
    return all(angle in parts and angle not in cut for angle in wanted)


def _add_measures(fill: dict[str, Callable[[], Said]], context: Context, finding: Finding) -> None:
    language, draw = context.language, context.draw
    words = language.words.measures
    pa = any(image.view == "PA" for image in context.study.images)
    measures = sayable(finding.measures, language, pa=pa)
    if _site_counts(finding):
        measures = tuple(measure for measure in measures if language.common.measures[measure.name] != "count")
    sizes = [(measure, words[measure.name].size) for measure in measures if words[measure.name].size]
    clauses = [(measure, words[measure.name].clause) for measure in measures if words[measure.name].clause]

    def say_one(options: list[tuple[Measure, tuple[Frame, ...]]]) -> Said:
        measure, frames = draw.pick(options)
        said = say_measure(measure, frames, language, draw)
        return Said(said.text, (Statement(kind="finding", about=finding.id, measure=said.measure),))

    if sizes:
        fill["size"] = lambda: say_one(sizes)
    if clauses:
        fill["measure"] = lambda: say_one(clauses)


def _site_counts(finding: Finding) -> bool:
    """Whether the site names each rib, so that their number would be said twice."""
    site = finding.location.site if finding.location else None
    return site is not None and any(character.isdigit() for character in site)


def _add_trend(slots: Slots, context: Context, thing: Finding | Device) -> None:
    """Words of comparison: only with a prior, whatever the truth says of a trend."""
    told = since(context)
    if told is None or thing.trend is None:
        return
    slots.fill["since"] = told
    stated = trend_said(thing)
    tails = _tails(context.language.words, thing)
    if not tails:
        return
    draw = context.draw

    def tail() -> Said:
        said = render(draw.pick(tails), slots, draw)
        return Said(said.text, merge((*said.states, stated)))

    slots.fill["tail"] = tail
    words = trend_words(context.language.words.trends, thing.trend)
    # Nobody writes "a decreased effusion cannot be excluded": a doubt takes its change as a tail.
    doubtful = thing.certainty == "uncertain" and thing.trend in ("worse", "improved")
    if words is not None and not doubtful:
        slots.fill["trend"] = lambda: Said(draw.pick(words.adjectives), (stated,))


def _tails(words: Wording, thing: Finding | Device) -> tuple[Frame, ...]:
    """Clauses that end a sentence with its trend; none for what has gone."""
    if isinstance(thing, Device):
        tails = {
            "new": words.device.tail_new,
            "unchanged": words.device.tail_unchanged,
            "worse": words.device.tail_worse,
            "improved": words.device.tail_improved,
        }
        return tails.get(thing.trend or "", ())
    trend = trend_words(words.trends, thing.trend) if thing.trend else None
    return trend.tails if trend else ()


def trend_said(thing: Finding | Device) -> Statement:
    """That the thing has its trend."""
    if isinstance(thing, Finding):
        return Statement(kind="finding", about=thing.id, trend=thing.trend)
    return Statement(kind="device", about=thing.id, trend=thing.trend)


def trend_words(trends: Trends, trend: Trend) -> TrendWords | None:
    """None for `resolved`, which has sentences of its own."""
    known = {
        "new": trends.new,
        "worse": trends.worse,
        "improved": trends.improved,
        "unchanged": trends.unchanged,
    }
    return known.get(trend)


def _add_phrases(
    slots: Slots,
    context: Context,
    *,
    phrase: tuple[Frame, ...],
    reference: tuple[Frame, ...],
    bare: bool,
    uncertain: bool,
) -> None:
    """Whole noun phrases: {np} and {a_np} as they are, the others with their own hedge where one is due."""
    draw, common = context.draw, context.language.common
    hedge = f"{draw.pick(context.language.words.hedges.adjectives)} " if uncertain else ""
    article = "" if bare else f"{common.article} "

    def build(frames: tuple[Frame, ...], before: str) -> Said:
        able = [frame for frame in frames if all(need in slots.fill for need in frame.needs)]
        said = render(draw.pick(able), slots, draw)
        return Said(before + said.text, said.states)

    slots.fill["np"] = lambda: build(phrase, "")
    slots.fill["a_np"] = lambda: build(phrase, article)
    slots.fill["the"] = lambda: build(reference, f"{common.definite} {hedge}")
    slots.fill["kind"] = lambda: Said(f"{article}{hedge}{slots.fill['noun']().text}", slots.base)
    slots.fill["plain_kind"] = lambda: Said(f"{article}{slots.fill['noun']().text}", slots.base)
    slots.fill["bare_kind"] = lambda: Said(slots.fill["noun"]().text, slots.base)
    slots.fill["hedged"] = lambda: build(phrase, hedge)
    slots.fill["bare"] = lambda: build(reference, hedge)


def _grade(grades: Grades, severity: Severity) -> tuple[str, ...]:
    return {"mild": grades.mild, "moderate": grades.moderate, "severe": grades.severe}[severity]


def _tip(site: str, language: Language) -> str:
    """The site as words that can follow "its tip": "4 cm above the carina", "in the stomach"."""
    first = site.split(" ", 1)[0].lower()
    if first[0].isdigit() or first in language.common.site_starts:
        return site
    bare = site.removeprefix(f"{language.common.definite} ")
    return f"{language.common.site_joint} {bare}"


def _measure_in(site: str, measures: tuple[Measure, ...]) -> Measure | None:
    """The measure that the site's words give, if any: "4.1 cm above the carina"."""
    numbers = {word for word in site.replace(",", " ").split() if word[0].isdigit()}
    return next(
        (m for m in measures if {f"{m.value:g}", f"{m.value:.1f}", f"{m.value:.0f}"} & numbers),
        None,
    )
