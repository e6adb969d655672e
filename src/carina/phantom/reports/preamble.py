"""What precedes the findings: indication, comparison, technique, and remarks on technical quality."""

from collections.abc import Iterator, Mapping

from carina.phantom.reports.findings_section import is_absent, make_agreement_fillers, write_from_slots
from carina.phantom.reports.grammar import format_date, join_items
from carina.phantom.reports.layout import DraftSentence, make_sentence
from carina.phantom.reports.mentions import ReportContext
from carina.phantom.reports.template import Fillers, Phrase, Slots, Template
from carina.studies.model import Image, Measure, Quality, Statement
from carina.studies.vocabulary import Side

BASE_REASONS: Mapping[str, float] = {
    "infection": 1.0,
    "dyspnea": 1.2,
    "chest pain": 1.0,
    "trauma": 0.4,
    "heart failure": 0.4,
    "malignancy": 0.4,
    "routine": 0.8,
}
"""Weights of reasons for imaging; a finding only adds to them, so that the indication does not reveal it."""

REASONS_OF: Mapping[str, Mapping[str, float]] = {
    "atelectasis": {"dyspnea": 0.5},
    "cardiomegaly": {"heart failure": 1.0, "dyspnea": 0.5},
    "consolidation": {"infection": 2.0},
    "edema": {"heart failure": 1.5, "dyspnea": 1.5},
    "fracture": {"trauma": 3.0},
    "lung opacity": {"infection": 1.0, "dyspnea": 0.5},
    "mass": {"malignancy": 1.5},
    "nodule": {"malignancy": 1.0, "routine": 0.5},
    "pleural effusion": {"heart failure": 0.7, "dyspnea": 1.0},
    "pneumothorax": {"chest pain": 1.5, "trauma": 0.7, "dyspnea": 0.7},
}


def write_indication(context: ReportContext) -> DraftSentence:
    templates = context.language.words.indications[context.sampler.pick_weighted(_weigh_reasons(context))]
    fillers: Fillers = {}
    study = context.study
    if study.age is not None and study.sex is not None:
        patient = f"{study.age}-year-old {context.language.common.people[study.sex]}"
        fillers["patient"] = lambda: Phrase(patient)
    return make_sentence(write_from_slots(context, templates, Slots(fillers=fillers)))


def _weigh_reasons(context: ReportContext) -> dict[str, float]:
    names = {finding.name for finding in context.study.findings if not is_absent(finding)}
    if "pneumonia" in names:
        return {"infection": 1.0}
    weights = dict(BASE_REASONS)
    for name in sorted(names):
        for reason, more in REASONS_OF.get(name, {}).items():
            weights[reason] += more
    devices = {device.name for device in context.study.devices if device.certainty == "present"}
    if devices:
        weights["support"] = 2.0
        weights["routine"] = 0.0
    if "endotracheal tube" in devices:
        weights["intubated"] = 3.0
    if context.prior is not None:
        weights["follow-up"] = 1.0
    return weights


def write_comparison(context: ReportContext) -> DraftSentence:
    words, prior, sampler = context.language.words.comparison, context.prior, context.sampler
    if prior is None:
        return make_sentence(Phrase(sampler.pick(words.none)))
    base = (Statement(kind="comparison", about=prior.id),)
    if prior.date is None:
        return make_sentence(write_from_slots(context, words.undated, Slots(base=base)))
    date = format_date(prior.date, context.date_format)
    return make_sentence(
        write_from_slots(context, words.dated, Slots(fillers={"date": lambda: Phrase(date)}, base=base))
    )


def write_technique(context: ReportContext) -> DraftSentence:
    words, images = context.language.words.technique, context.study.images
    views = " ".join(sorted({image.view for image in images}, key=("PA", "AP", "lateral", "unknown").index))
    # The view is a fact about the image, so it is stored as a statement on quality.
    base = tuple(Statement(kind="quality", about=image.key) for image in images)
    return make_sentence(write_from_slots(context, words.views.get(views, words.other), Slots(base=base)))


def write_quality(context: ReportContext) -> Iterator[DraftSentence]:
    """Write a remark on every defect; in some reports without a defect, that the quality is adequate."""
    images = [image for image in context.study.images if image.quality is not None]
    has_defect = False
    for image in images:
        for phrase in _write_defects(context, image):
            has_defect = True
            yield make_sentence(phrase, "quality")
    known = images and all(_is_assessed(image.quality) for image in images)
    if known and not has_defect and context.sampler.bernoulli(0.15):
        base = tuple(Statement(kind="quality", about=image.key) for image in images)
        yield make_sentence(
            write_from_slots(context, context.language.words.quality.adequate, Slots(base=base)), "quality"
        )


def _is_assessed(quality: Quality | None) -> bool:
    return quality is not None and None not in (quality.rotation, quality.inspiration, quality.exposure)


def _write_defects(context: ReportContext, image: Image) -> Iterator[Phrase]:
    words, quality = context.language.words.quality, image.quality
    if quality is None:
        return
    if quality.rotation in ("left", "right"):
        side = quality.rotation
        stated = (Statement(kind="quality", about=image.key, side=side),)
        yield _write_remark(context, image, words.rotation, {"side": lambda: Phrase(side, stated)})
    if quality.inspiration == "poor":
        yield _write_remark(context, image, words.inspiration, _make_rib_fillers(image))
    if quality.exposure in ("over", "under"):
        yield _write_remark(context, image, words.over if quality.exposure == "over" else words.under, {})
    if quality.cut_off:
        yield _write_remark(
            context, image, words.cut_off, _make_part_fillers(context, image, quality.cut_off)
        )


def _make_rib_fillers(image: Image) -> Fillers:
    count = image.quality.posterior_ribs if image.quality else None
    if count is None:
        return {}
    measure = Measure(name="posterior ribs", value=count, unit="1")
    stated = (Statement(kind="quality", about=image.key, measure=measure),)
    return {"ribs": lambda: Phrase(str(count), stated)}


def _make_part_fillers(context: ReportContext, image: Image, parts: tuple[str, ...]) -> Fillers:
    common = context.language.common
    text = join_items([f"{common.definite} {part}" for part in parts], common.conjunctions["and"])
    sides: set[Side] = {side for side in ("right", "left") for part in parts if part.startswith(side)}
    side: Side | None = "bilateral" if len(sides) == 2 else next(iter(sides), None)
    stated = (Statement(kind="quality", about=image.key, side=side),)
    plural = len(parts) > 1 or text.endswith("s")
    return {
        "parts": lambda: Phrase(text, stated),
        **make_agreement_fillers(context, number=1 if plural else 0),
    }


def _write_remark(
    context: ReportContext, image: Image, templates: tuple[Template, ...], fillers: Fillers
) -> Phrase:
    if len(context.study.images) > 1:
        views = context.language.words.quality.views["lateral" if image.view == "lateral" else "frontal"]
        fillers = {**fillers, "view": lambda: Phrase(context.sampler.pick(views))}
    return write_from_slots(
        context, templates, Slots(fillers=fillers, base=(Statement(kind="quality", about=image.key),))
    )
