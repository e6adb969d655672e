"""From a study's truth to its report: the sections in reading order, and evidence back on every fact.

A pure function of the study, its prior and the random generator. What is said is decided here and in the
neighbouring modules; how it is said lies in the wording files.
"""

import msgspec
import numpy as np

from carina.phantom.reports import opening
from carina.phantom.reports.advice import recommend
from carina.phantom.reports.body import describe_devices, describe_findings, describe_relations
from carina.phantom.reports.denials import deny
from carina.phantom.reports.impression import impression
from carina.phantom.reports.line import Line, Organ, SectionText, Style, headed, numbered, paragraph
from carina.phantom.reports.mentions import Context
from carina.phantom.reports.template import Draw
from carina.phantom.reports.wording import Headings, WordingName, load_wording
from carina.studies.model import Report, ReportSection, Sentence, Study

STYLES: dict[Style, float] = {"prose": 0.45, "terse": 0.25, "template": 0.3}
ORGANS: tuple[Organ, ...] = ("lungs", "pleura", "heart", "bones")


def write_report(
    study: Study,
    *,
    prior: Study | None,
    rng: np.random.Generator,
    wording: WordingName,
    language: str = "en",
) -> Study:
    """The study with indication, report, recommendations, and evidence on all that the report states.

    Words of comparison are used only with a `prior`; trends without one are left unsaid.
    """
    spoken, draw = load_wording(language, wording), Draw(rng)
    date_format = draw.pick(spoken.words.comparison.dates)
    context = Context(study=study, prior=prior, language=spoken, draw=draw, date_format=date_format)
    reason = opening.indication(context)
    sections = [
        paragraph("indication", [reason]),
        paragraph("comparison", [opening.comparison(context)]),
        paragraph("technique", [opening.technique(context)]),
        _findings(context),
        _impression(context),
    ]
    recommendations, lines = recommend(context)
    if lines:
        sections.append(paragraph("recommendation", lines))
    report = _bind(sections, language)
    written = msgspec.structs.replace(
        study, indication=reason.text, report=report, recommendations=recommendations
    )
    return _with_evidence(written, report)


def _findings(context: Context) -> SectionText:
    style = _style(context)
    quality = list(opening.quality(context))
    devices = list(describe_devices(context, style))
    order = _organ_order(context)
    lines = [*describe_findings(context, style), *describe_relations(context, order)]
    denied = list(deny(context, style))
    if style == "template":
        blocks = [("quality", quality), ("devices", devices)]
        blocks += [(organ, [each for each in lines + denied if each.organ == organ]) for organ in order]
        # A relation between devices stands with the devices.
        blocks[1][1].extend(each for each in lines if each.organ == "devices")
        headings = context.language.words.headings
        named = [(context.draw.pick(_heading(headings, organ)), block) for organ, block in blocks if block]
        return headed("findings", named)
    ordered = [each for organ in order for each in lines + denied if each.organ == organ]
    ordered = [*[each for each in lines if each.organ == "devices"], *ordered]
    # Tubes come first on an intensive care unit and last elsewhere; both are common.
    body = [*devices, *ordered] if context.draw.chance(0.5) else [*ordered, *devices]
    separator = "\n" if style == "terse" else " "
    return paragraph("findings", quality + body, separator=separator)


def _style(context: Context) -> Style:
    name = context.draw.weighted({str(style): weight for style, weight in STYLES.items()})
    return next(style for style in STYLES if style == name)


def _organ_order(context: Context) -> tuple[Organ, ...]:
    return ORGANS if context.draw.chance(0.7) else ("heart", "lungs", "pleura", "bones")


def _heading(headings: Headings, organ: str) -> tuple[str, ...]:
    words: tuple[str, ...] = getattr(headings, organ)
    return words


def _impression(context: Context) -> SectionText:
    lines: list[Line] = impression(context)
    if len(lines) > 1 and context.draw.chance(0.5):
        return numbered("impression", lines)
    return paragraph("impression", lines)


def _bind(sections: list[SectionText], language: str) -> Report:
    texts: list[ReportSection] = []
    sentences: list[Sentence] = []
    for section in sections:
        text, spans = section.done()
        texts.append(text)
        sentences += spans
    return Report(sections=tuple(texts), sentences=tuple(sentences), language=language)


def _with_evidence(study: Study, report: Report) -> Study:
    """Every finding, device, relation and recommendation with the sentences that state it."""
    places: dict[tuple[str, str], list[int]] = {}
    for index, sentence in enumerate(report.sentences):
        for state in sentence.states:
            places.setdefault((state.kind, state.about), []).append(index)

    def evidence(kind: str, about: str) -> tuple[int, ...]:
        return tuple(places.get((kind, about), ()))

    replace = msgspec.structs.replace
    return replace(
        study,
        findings=tuple(replace(each, evidence=evidence("finding", each.id)) for each in study.findings),
        devices=tuple(replace(each, evidence=evidence("device", each.id)) for each in study.devices),
        relations=tuple(replace(each, evidence=evidence("relation", each.id)) for each in study.relations),
        recommendations=tuple(
            replace(each, evidence=evidence("recommendation", each.id)) for each in study.recommendations
        ),
    )
