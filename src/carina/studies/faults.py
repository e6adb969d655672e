"""Find problems inside one study whose fields all have the right type.

References to records that do not exist, regions that do not fit their image, spans outside their text, and values that
are not numbers.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final

from carina.store.errors import RegionError
from carina.studies.model import (
    Device,
    Finding,
    Image,
    Measure,
    Recommendation,
    Relation,
    Report,
    Sentence,
    Study,
)
from carina.studies.pixels import MAX_PIXELS, Greyscale
from carina.studies.region import Region
from carina.studies.rle import MAX_SIDE

BITS: Final = range(1, 17)
"""Numbers of bits that a stored value may have."""

Fact = Finding | Device | Relation | Recommendation


def faults(study: Study) -> Iterator[str]:
    """Find the problems of a study, each with the name of the field."""
    if not study.id:
        yield "id: empty, expected a name that no other study has"
    if study.age is not None and study.age < 0:
        yield f"age: {study.age}, expected 0 or more"
    yield from _find_assessment_problems(study)
    yield from picture_faults(study)
    yield from _find_duplicates("images: key", [image.key for image in study.images])
    facts = _facts(study)
    ids = {fact.id for fact in facts}
    yield from _find_duplicates("id", [fact.id for fact in facts])
    for found in _findings_and_devices(study):
        yield from _find_bad_numbers(f"{found.name} {found.id!r}", found.measures)
        for drawn in (*found.annotations, *found.comparisons):
            for number in (drawn.conspicuity, drawn.threshold):
                if number is not None and not math.isfinite(number):
                    yield f"{found.name} {found.id!r}: an annotation on {drawn.image!r} holds the number {number}"
    for relation in study.relations:
        yield from _find_unknown_ids(f"relation {relation.id!r}", (relation.subject, relation.object), ids)
    for recommendation in study.recommendations:
        yield from _find_unknown_ids(f"recommendation {recommendation.id!r}", recommendation.about, ids)
    yield from _find_bad_evidence(study)
    if study.report:
        keys = {image.key for image in study.images}
        for sentence in study.report.sentences:
            yield from _find_sentence_problems(sentence, study.report, ids, keys)


def _find_assessment_problems(study: Study) -> Iterator[str]:
    assessed = study.assessed
    if assessed.listed and "listed" not in (assessed.findings, assessed.devices):
        yield (
            f"assessed.listed: names {len(assessed.listed)} findings or devices, but the scope of findings is "
            f"{assessed.findings!r} and that of devices is {assessed.devices!r}; expected 'listed' for one of them"
        )
    yield from _find_list_problems(assessed.listed)
    yield from _find_duplicates("assessed.by_program: name", assessed.by_program)
    yield from _find_duplicates("assessed.readers: reader", assessed.readers)
    for finding in study.findings:
        for reader in finding.stated_by:
            if reader not in assessed.readers:
                yield f"{finding.name} {finding.id!r}: stated by {reader!r}, who is not one of assessed.readers"


@lru_cache(maxsize=64)
def _find_list_problems(listed: tuple[str, ...]) -> tuple[str, ...]:
    """What is wrong with a list of names; one list serves all studies of a source."""
    problems = tuple(_find_duplicates("assessed.listed: name", listed))
    if all(map(str.strip, listed)):
        return problems
    return (*problems, "assessed.listed: an empty name, expected the name of a finding or device")


def picture_faults(study: Study) -> Iterator[str]:
    """Find the problems that prevent a study from being drawn: in images, regions and tips."""
    images = {image.key: image for image in study.images}
    for image in study.images:
        yield from (f"images: {image.key!r}{fault}" for fault in image_faults(image))
    for structure in study.anatomy:
        if wrong := _find_region_problem(structure.image, structure.region, images):
            yield f"anatomy {structure.name!r}: {wrong}"
        if structure.quality is not None and not 0 <= structure.quality <= 1:
            yield f"anatomy {structure.name!r}: quality {structure.quality}, expected 0 to 1"
    for found in _findings_and_devices(study):
        for annotation in (*found.annotations, *found.comparisons):
            if wrong := _find_region_problem(annotation.image, annotation.region, images):
                yield f"{found.name} {found.id!r}: {wrong}"
        for point in found.points:
            if point.image not in images or not (math.isfinite(point.x) and math.isfinite(point.y)):
                yield f"{found.name} {found.id!r}: point at ({point.x}, {point.y}) of image {point.image!r}"
    for device in study.devices:
        for tip in device.tips:
            if tip.image not in images or not (math.isfinite(tip.x) and math.isfinite(tip.y)):
                yield f"{device.name} {device.id!r}: tip at ({tip.x}, {tip.y}) of image {tip.image!r}"


def image_faults(image: Image) -> Iterator[str]:
    """Find what is wrong with the description of an image; builds leave out a study for it.

    0 x 0 pixels stand for an unknown size, of an image that was imported without its file.
    """
    if image.bits not in BITS or (min(image.width, image.height) < 1 and (image.width or image.height)):
        yield f" is {image.width} x {image.height} of {image.bits} bits"
    elif (image.width or image.height) and (wrong := size_fault(image.width, image.height)):
        yield f": {wrong}"
    if image.spacing_mm and not all(math.isfinite(length) and length > 0 for length in image.spacing_mm):
        yield f": spacing of {image.spacing_mm} mm, expected positive numbers"
    yield from (f": {fault}" for fault in greyscale_faults(image))


def is_sound_image(image: Image) -> bool:
    """Whether the size of an image is known, and nothing is wrong with its description."""
    return image.width > 0 and not any(True for _ in image_faults(image))


def size_fault(width: int, height: int) -> str | None:
    """What is wrong with the stated size of an image; None for a size that an image can have."""
    if width < 1 or height < 1:
        return f"{width} x {height} pixels, expected 1 x 1 or more"
    if max(width, height) > MAX_SIDE:
        return f"{width} x {height} pixels, expected sides of up to {MAX_SIDE:,} pixels"
    if width * height > MAX_PIXELS:
        return f"{width} x {height} pixels, more than the limit of {MAX_PIXELS:,}"
    return None


def greyscale_faults(image: Greyscale) -> Iterator[str]:
    """Find problems of the rescaling and the window of an image."""
    if image.rescale is not None and not (all(map(math.isfinite, image.rescale)) and image.rescale[0]):
        slope, intercept = image.rescale
        yield f"rescale: slope {slope} and intercept {intercept}, expected numbers and a slope other than 0"
    if image.window is not None and not (all(map(math.isfinite, image.window)) and image.window[1] >= 1):
        centre, width = image.window
        yield f"window: centre {centre} and width {width}, expected numbers and a width of 1 or more"


def _findings_and_devices(study: Study) -> list[Finding | Device]:
    return [*study.findings, *study.devices]


def _facts(study: Study) -> list[Fact]:
    return [*study.findings, *study.devices, *study.relations, *study.recommendations]


def _find_duplicates(what: str, names: Sequence[str]) -> Iterator[str]:
    if len(set(names)) == len(names):
        return
    for name, times in Counter(names).items():
        if times > 1:
            yield f"{what} {name!r} occurs {times} times"


def _find_region_problem(key: str, region: Region, images: dict[str, Image]) -> str | None:
    image = images.get(key)
    if image is None:
        return f"its region lies on image {key!r}, which the study does not have"
    if region.width != image.width or region.height != image.height:
        size = f"{region.width} x {region.height}"
        return f"its region is for an image of {size}, but {key!r} is {image.width} x {image.height}"
    try:
        region.validate()
    except RegionError as error:
        return f"its region on {key!r}: {error}"
    return None


def _find_bad_numbers(what: str, measures: Iterable[Measure]) -> Iterator[str]:
    for measure in measures:
        if not math.isfinite(measure.value):
            yield f"{what}: {measure.name} is {measure.value}"


def _find_unknown_ids(what: str, about: Iterable[str], ids: set[str]) -> Iterator[str]:
    for name in about:
        if name not in ids:
            yield f"{what}: refers to {name!r}, which the study does not have"


def _find_bad_evidence(study: Study) -> Iterator[str]:
    sentences = len(study.report.sentences) if study.report else 0
    for fact in _facts(study):
        for index in fact.evidence:
            if not 0 <= index < sentences:
                yield f"{fact.id!r}: its evidence is sentence {index} of {sentences}"


def _find_sentence_problems(
    sentence: Sentence, report: Report, ids: set[str], keys: set[str]
) -> Iterator[str]:
    text = report.text(sentence.section)
    span = f"sentence {sentence.start} to {sentence.end} of section {sentence.section!r}"
    if text is None or not 0 <= sentence.start <= sentence.end <= len(text):
        yield f"{span}: the section {'is missing' if text is None else f'has {len(text)} characters'}"
    for statement in sentence.states:
        if statement.measure is not None:
            yield from _find_bad_numbers(span, (statement.measure,))
        if statement.kind == "quality":
            yield from _find_unknown_ids(span, (statement.about,), keys)
        elif statement.kind != "comparison":
            yield from _find_unknown_ids(span, (statement.about,), ids)
