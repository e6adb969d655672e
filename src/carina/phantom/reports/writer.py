"""Write the report of a study from its truth: the sections in reading order, and the evidence of every fact.

The report depends only on the study, its prior and the random generator. What is stated is decided in this package;
how it is worded is in the wording files.
"""

import msgspec
import numpy as np

from carina.phantom.reports import preamble
from carina.phantom.reports.denials import write_denials
from carina.phantom.reports.findings_section import write_devices, write_findings, write_relations
from carina.phantom.reports.impression import write_impression, write_recommendations
from carina.phantom.reports.layout import (
    DraftSentence,
    Organ,
    SectionBuilder,
    Style,
    lay_out_numbered_list,
    lay_out_paragraph,
    lay_out_with_headings,
)
from carina.phantom.reports.mentions import ReportContext
from carina.phantom.reports.template import Sampler
from carina.phantom.reports.wording import Headings, WordingName, load_wording
from carina.studies.model import Report, ReportSection, Sentence, Study

STYLES: dict[Style, float] = {"prose": 0.45, "terse": 0.25, "structured": 0.3}
ORGANS: tuple[Organ, ...] = ("lungs", "pleura", "heart", "bones")


def write_report(
    study: Study,
    *,
    prior: Study | None,
    rng: np.random.Generator,
    wording: WordingName,
    language: str = "en",
) -> Study:
    """Add indication, report, recommendations and evidence to a study.

    Trends are stated only if there is a `prior`.
    """
    wording_set, sampler = load_wording(language, wording), Sampler(rng)
    date_format = sampler.pick(wording_set.words.comparison.dates)
    context = ReportContext(
        study=study, prior=prior, language=wording_set, sampler=sampler, date_format=date_format
    )
    reason = preamble.write_indication(context)
    sections = [
        lay_out_paragraph("indication", [reason]),
        lay_out_paragraph("comparison", [preamble.write_comparison(context)]),
        lay_out_paragraph("technique", [preamble.write_technique(context)]),
        _write_findings_section(context),
        _write_impression_section(context),
    ]
    recommendations, sentences = write_recommendations(context)
    if sentences:
        sections.append(lay_out_paragraph("recommendation", sentences))
    report = _assemble_report(sections, language)
    written = msgspec.structs.replace(
        study, indication=reason.text, report=report, recommendations=recommendations
    )
    return _add_evidence(written, report)


def _write_findings_section(context: ReportContext) -> SectionBuilder:
    style = _pick_style(context)
    quality = list(preamble.write_quality(context))
    devices = list(write_devices(context, style))
    order = _pick_organ_order(context)
    sentences = [*write_findings(context, style), *write_relations(context, order)]
    denied = list(write_denials(context, style))
    if style == "structured":
        blocks = [("quality", quality), ("devices", devices)]
        blocks += [(organ, [each for each in sentences + denied if each.organ == organ]) for organ in order]
        # A relation between devices belongs to the devices.
        blocks[1][1].extend(each for each in sentences if each.organ == "devices")
        headings = context.language.words.headings
        named = [
            (context.sampler.pick(_get_headings(headings, organ)), block) for organ, block in blocks if block
        ]
        return lay_out_with_headings("findings", named)
    ordered = [each for organ in order for each in sentences + denied if each.organ == organ]
    ordered = [*[each for each in sentences if each.organ == "devices"], *ordered]
    # Devices come first in intensive care reports and last in others; both are common.
    body = [*devices, *ordered] if context.sampler.bernoulli(0.5) else [*ordered, *devices]
    separator = "\n" if style == "terse" else " "
    return lay_out_paragraph("findings", quality + body, separator=separator)


def _pick_style(context: ReportContext) -> Style:
    name = context.sampler.pick_weighted({str(style): weight for style, weight in STYLES.items()})
    return next(style for style in STYLES if style == name)


def _pick_organ_order(context: ReportContext) -> tuple[Organ, ...]:
    return ORGANS if context.sampler.bernoulli(0.7) else ("heart", "lungs", "pleura", "bones")


def _get_headings(headings: Headings, organ: str) -> tuple[str, ...]:
    words: tuple[str, ...] = getattr(headings, organ)
    return words


def _write_impression_section(context: ReportContext) -> SectionBuilder:
    sentences: list[DraftSentence] = write_impression(context)
    if len(sentences) > 1 and context.sampler.bernoulli(0.5):
        return lay_out_numbered_list("impression", sentences)
    return lay_out_paragraph("impression", sentences)


def _assemble_report(sections: list[SectionBuilder], language: str) -> Report:
    texts: list[ReportSection] = []
    sentences: list[Sentence] = []
    for section in sections:
        text, spans = section.build()
        texts.append(text)
        sentences += spans
    return Report(sections=tuple(texts), sentences=tuple(sentences), language=language)


def _add_evidence(study: Study, report: Report) -> Study:
    """Add to every finding, device, relation and recommendation the sentences that state it."""
    sentence_indices: dict[tuple[str, str], list[int]] = {}
    for index, sentence in enumerate(report.sentences):
        for statement in sentence.states:
            sentence_indices.setdefault((statement.kind, statement.about), []).append(index)

    def list_evidence(kind: str, about: str) -> tuple[int, ...]:
        return tuple(sentence_indices.get((kind, about), ()))

    replace = msgspec.structs.replace
    return replace(
        study,
        findings=tuple(replace(each, evidence=list_evidence("finding", each.id)) for each in study.findings),
        devices=tuple(replace(each, evidence=list_evidence("device", each.id)) for each in study.devices),
        relations=tuple(
            replace(each, evidence=list_evidence("relation", each.id)) for each in study.relations
        ),
        recommendations=tuple(
            replace(each, evidence=list_evidence("recommendation", each.id)) for each in study.recommendations
        ),
    )
