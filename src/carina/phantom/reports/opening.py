"""What comes before the findings: why the study was made, with what it is compared, how it was taken."""

from collections.abc import Callable, Iterator, Mapping

from carina.phantom.reports.body import is_there, plural_forms, say_slots
from carina.phantom.reports.grammar import join, say_date
from carina.phantom.reports.line import Line, line
from carina.phantom.reports.mentions import Context
from carina.phantom.reports.template import Frame, Said, Slots
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
"""Why any chest is imaged; a finding only shifts these weights, so that the reason does not give it away."""

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


def indication(context: Context) -> Line:
    frames = context.language.words.indications[context.draw.weighted(_reasons(context))]
    fill: dict[str, Callable[[], Said]] = {}
    study = context.study
    if study.age is not None and study.sex is not None:
        patient = f"{study.age}-year-old {context.language.common.people[study.sex]}"
        fill["patient"] = lambda: Said(patient)
    return line(say_slots(context, frames, Slots(fill=fill)))


def _reasons(context: Context) -> dict[str, float]:
    names = {finding.name for finding in context.study.findings if is_there(finding)}
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


def comparison(context: Context) -> Line:
    words, prior, draw = context.language.words.comparison, context.prior, context.draw
    if prior is None:
        return line(Said(draw.pick(words.none)))
    base = (Statement(kind="comparison", about=prior.id),)
    if prior.date is None:
        return line(say_slots(context, words.undated, Slots(fill={}, base=base)))
    date = say_date(prior.date, context.date_format)
    return line(say_slots(context, words.dated, Slots(fill={"date": lambda: Said(date)}, base=base)))


def technique(context: Context) -> Line:
    words, images = context.language.words.technique, context.study.images
    views = " ".join(sorted({image.view for image in images}, key=("PA", "AP", "lateral", "unknown").index))
    # Which view an image is counts as a fact about the image, so it is kept as a statement on quality.
    base = tuple(Statement(kind="quality", about=image.key) for image in images)
    return line(say_slots(context, words.views.get(views, words.other), Slots(fill={}, base=base)))


def quality(context: Context) -> Iterator[Line]:
    """Remarks on every defect; now and then a remark where there is none."""
    images = [image for image in context.study.images if image.quality is not None]
    found = False
    for image in images:
        for said in _defects(context, image):
            found = True
            yield line(said, "quality")
    known = images and all(_is_assessed(image.quality) for image in images)
    if known and not found and context.draw.chance(0.15):
        base = tuple(Statement(kind="quality", about=image.key) for image in images)
        yield line(
            say_slots(context, context.language.words.quality.adequate, Slots(fill={}, base=base)), "quality"
        )


def _is_assessed(quality: Quality | None) -> bool:
    return quality is not None and None not in (quality.rotation, quality.inspiration, quality.exposure)


def _defects(context: Context, image: Image) -> Iterator[Said]:
    words, quality = context.language.words.quality, image.quality
    if quality is None:
        return
    if quality.rotation in ("left", "right"):
        side = quality.rotation
        stated = (Statement(kind="quality", about=image.key, side=side),)
        yield _remark(context, image, words.rotation, {"side": lambda: Said(side, stated)})
    if quality.inspiration == "poor":
        yield _remark(context, image, words.inspiration, _ribs(image))
    if quality.exposure in ("over", "under"):
        yield _remark(context, image, words.over if quality.exposure == "over" else words.under, {})
    if quality.cut_off:
        yield _remark(context, image, words.cut_off, _parts(context, image, quality.cut_off))


def _ribs(image: Image) -> dict[str, Callable[[], Said]]:
    count = image.quality.posterior_ribs if image.quality else None
    if count is None:
        return {}
    measure = Measure(name="posterior ribs", value=count, unit="1")
    stated = (Statement(kind="quality", about=image.key, measure=measure),)
    return {"ribs": lambda: Said(str(count), stated)}


def _parts(context: Context, image: Image, parts: tuple[str, ...]) -> dict[str, Callable[[], Said]]:
    common = context.language.common
    text = join([f"{common.definite} {part}" for part in parts], common.conjunctions["and"])
    sides: set[Side] = {side for side in ("right", "left") for part in parts if part.startswith(side)}
    side: Side | None = "bilateral" if len(sides) == 2 else next(iter(sides), None)
    stated = (Statement(kind="quality", about=image.key, side=side),)
    plural = len(parts) > 1 or text.endswith("s")
    return {"parts": lambda: Said(text, stated), **plural_forms(context, number=1 if plural else 0)}


def _remark(
    context: Context, image: Image, frames: tuple[Frame, ...], fill: dict[str, Callable[[], Said]]
) -> Said:
    if len(context.study.images) > 1:
        views = context.language.words.quality.views["lateral" if image.view == "lateral" else "frontal"]
        fill = {**fill, "view": lambda: Said(context.draw.pick(views))}
    return say_slots(context, frames, Slots(fill=fill, base=(Statement(kind="quality", about=image.key),)))
