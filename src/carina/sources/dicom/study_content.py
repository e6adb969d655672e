"""The second pass: the pixels, masks and reports of one study, as the study that is written."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from carina.sources._source import Item, Repaired, Skipped, WithImages
from carina.sources.dicom import greyscale, header, structured_report
from carina.sources.dicom.attributes import Attributes, DicomObject, ObjectError
from carina.sources.dicom.burned_in import TextBox, fill_boxes, find_text
from carina.sources.dicom.concepts import Concept
from carina.sources.dicom.files import FileAt, read_object
from carina.sources.dicom.header import ImageHeader, Rules
from carina.sources.dicom.segmentation import SegmentMask, read_masks
from carina.sources.dicom.stored_values import decode_stored_values
from carina.sources.dicom.survey import COPY, StudyPlan
from carina.sources.dicom.text_check import IdentifyingWords, is_identifying, list_identifying_words
from carina.store.errors import CarinaError
from carina.studies.assessment import find_denied_sides
from carina.studies.model import (
    Anatomy,
    Annotation,
    Assessed,
    Device,
    Finding,
    Image,
    Location,
    Report,
    ReportSection,
    Study,
)
from carina.studies.pixels import display_image, encode_png
from carina.studies.region import Region
from carina.studies.sides import find_region_side
from carina.studies.vocabulary import SECTIONS, SIDES, Certainty, Section

NAME: Final = "dicom"
MASK_SIZE: Final = "mask of another size"
LOST_IMAGE: Final = "mask of an image that was skipped"
UNKNOWN_ALGORITHM: Final = "segment of unknown origin"
NOT_LOOKED_FOR: Final = "text not looked for"
NO_REPORTS: Final = "no structured report"
BY_HEADER_ALONE: Final = "no text, by the header alone"
MASKED_TEXT: Final = "text masked"
CONFLICT: Final = "contradiction"
IDENTIFYING_TEXT: Final = "names or dates in report text"


_FROM_WEAK_TO_STRONG: Final = ("absent", "uncertain", "present")
"""Of statements that contradict each other, the strongest is recorded, as `carina.studies.certainty_of` reads them."""


@dataclass(frozen=True)
class _Statement:
    """What a structured report states about a finding, and where it drew it."""

    concept: Concept
    certainty: Certainty
    location: Location | None
    tracking: bytes
    annotations: tuple[Annotation, ...]
    is_by_program: bool


@dataclass
class _Contents:
    """What is being collected of one study."""

    images: list[Image] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    keys: dict[str, tuple[Image, ImageHeader]] = field(default_factory=dict)
    """Images by keyed name of the instance."""
    findings: list[Finding] = field(default_factory=list)
    devices: list[Device] = field(default_factory=list)
    anatomy: list[Anatomy] = field(default_factory=list)
    drawn: dict[tuple[bytes | int, ...], list[tuple[Image, SegmentMask]]] = field(default_factory=dict)
    """Masks of each segment. A segment that is tracked over several objects is one."""
    tracked: dict[tuple[bytes, bytes], int] = field(default_factory=dict)
    """By tracking UID and name, the place in `findings` of what a mask shows."""
    statements: list[_Statement] = field(default_factory=list)
    """Of structured reports."""
    unclear: set[str] = field(default_factory=set)
    """Names of which a structured report says something that is not understood."""
    disputed: set[str] = field(default_factory=set)
    """Names of which nothing is known, because the objects contradict each other or are not understood."""
    texts: defaultdict[Section, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Of structured reports."""
    words: IdentifyingWords = field(default_factory=IdentifyingWords)
    """Words of names, ids and addresses, which must not be in a text."""
    defects: Counter[str] = field(default_factory=Counter)
    skipped: list[Item] = field(default_factory=list)

    def skip(self, file: FileAt, error: ObjectError) -> None:
        self.skipped.append(Skipped(place=file.place, reason=error.reason, kind=error.kind))


def read_study(plan: StudyPlan, number: int) -> list[Item]:
    """A study with its image files, and the objects of it that cannot be decoded."""
    contents = _Contents()
    for first in plan.images:
        for found in (first, *plan.copies.get(first.sop_name, ())):
            if first.sop_name in contents.keys:
                contents.skip(found.file, ObjectError(*COPY))
                continue
            try:
                _add_image(contents, found, plan.rules)
            except ObjectError as error:
                contents.skip(found.file, error)
    for file in plan.masks:
        try:
            _add_masks(contents, read_object(file), plan, file.number)
        except ObjectError as error:
            contents.skip(file, error)
    for drawn in contents.drawn.values():
        _add_segment(contents, drawn)
    for file in plan.reports:
        try:
            _add_report(contents, read_object(file, with_pixels=False).attributes, plan)
        except ObjectError as error:
            contents.skip(file, error)
    _add_statements(contents)
    if not contents.images:
        return contents.skipped
    contents.defects.update(plan.defects)
    used = [head for _, head in contents.keys.values()]
    report = _make_report(contents)
    study = Study(
        id=plan.id,
        patient=plan.patient,
        source=NAME,
        order=plan.order,
        prior=plan.prior,
        later=plan.later,
        date=next((date for head in used if (date := plan.dates[head.sop_name])), None),
        age=plan.age,
        sex=next((head.sex for head in used if head.sex), None),
        images=tuple(contents.images),
        assessed=Assessed(
            findings=plan.rules.looked_for,
            disputed=tuple(sorted(contents.disputed)),
            by_program=_list_by_program(contents),
        ),
        findings=tuple(contents.findings),
        devices=tuple(contents.devices),
        anatomy=tuple(contents.anatomy),
        report=report,
        indication=None if report is None else report.text("indication"),
    )
    item = (
        Repaired(record=study, number=number, defects=dict(contents.defects)) if contents.defects else study
    )
    return [WithImages(item=item, files=contents.files), *contents.skipped]


def _add_image(contents: _Contents, found: ImageHeader, rules: Rules) -> None:
    """Decode an image and encode it as PNG."""
    read = read_object(found.file)
    stored, form = decode_stored_values(read)
    grey = greyscale.make_grey_image(stored, form, read.attributes)
    treat_text(grey, found, rules)
    if rules.report_text:
        contents.words |= list_identifying_words(read.attributes)
    key = f"{found.study}/{found.image}.png"
    content = encode_png(_turn(grey.pixels, found.flip))
    contents.files[key] = content
    image = Image(
        key=key,
        view=found.view,
        width=form.columns,
        height=form.rows,
        bits=grey.bits,
        monochrome1=grey.monochrome1,
        rescale=grey.rescale,
        window=grey.window,
        spacing_mm=found.spacing_mm,
        sha256=hashlib.sha256(content).hexdigest(),
    )
    contents.images.append(image)
    contents.keys[found.sop_name] = (image, found)
    contents.defects.update((*found.defects, *grey.defects))


def treat_text(grey: greyscale.GreyImage, found: ImageHeader, rules: Rules) -> None:
    """Look for text in an image and cover it, as the user asks for.

    Raises:
        ObjectError: The image holds text, and is not to be used.
    """
    says = found.burned_in
    if rules.look_for_text == "never" or (says == "no" and rules.look_for_text == "unknown"):
        names = {"yes": header.BURNED_IN, "unknown": NOT_LOOKED_FOR, "no": BY_HEADER_ALONE}
        grey.defects.append(names[says])
        return
    boxes = _find_text_either_way(display_image(grey.pixels, grey), found.flip)
    if boxes and rules.burned_in == "skip":
        raise ObjectError(header.BURNED_IN, "there is text in the image")
    if not boxes and says == "yes":
        raise ObjectError(
            header.BURNED_IN, "the object says that text is burned into the image, and none was found"
        )
    if boxes:
        highest = 2**grey.bits - 1
        low, high = display_image(np.array([0, highest], np.uint16), grey)
        grey.pixels = fill_boxes(grey.pixels, boxes, 0 if low <= high else highest)
        grey.defects.append(MASKED_TEXT)


def _find_text_either_way(shown: NDArray[np.uint8], flip: tuple[bool, bool]) -> list[TextBox]:
    """Boxes around text in an image as it is stored; of one that is turned, also those that can be read then."""
    boxes = find_text(shown)
    if not any(flip):
        return boxes
    columns, rows = flip
    height, width = shown.shape
    for left, top, right, bottom in find_text(_turn(shown, flip)):
        left, right = (width - right, width - left) if columns else (left, right)  # noqa: PLW2901
        top, bottom = (height - bottom, height - top) if rows else (top, bottom)  # noqa: PLW2901
        boxes.append(TextBox(left, top, right, bottom))
    return boxes


def _turn(pixels: Any, flip: tuple[bool, bool]) -> Any:  # noqa: ANN401 - an array of any type
    """An image or a mask in the usual display."""
    columns, rows = flip
    turned = pixels[:, ::-1] if columns else pixels
    return np.ascontiguousarray(turned[::-1] if rows else turned)


def _add_masks(contents: _Contents, found: DicomObject, plan: StudyPlan, file_number: int) -> None:
    """Collect the masks of a segmentation that belong to images of this study."""
    undecoded = {head.sop_name for head in plan.images} - contents.keys.keys()
    for mask in read_masks(found):
        if isinstance(mask, str):
            contents.defects[mask] += 1
            continue
        name = plan.rules.names.name("image", mask.image)
        if name in undecoded:
            contents.defects[LOST_IMAGE] += 1
        if name not in contents.keys:
            continue  # of another study: it gets this mask with its own images
        image, head = contents.keys[name]
        if (mask.region.width, mask.region.height) != (image.width, image.height):
            contents.defects[MASK_SIZE] += 1
            continue
        if any(head.flip):
            mask = replace(mask, region=Region.from_mask(_turn(mask.region.to_mask(), head.flip)))  # noqa: PLW2901
        key = (
            (mask.tracking, mask.segment.concept.name.encode())
            if mask.tracking
            else (file_number, mask.number)
        )
        contents.drawn.setdefault(key, []).append((image, mask))


def _add_segment(contents: _Contents, drawn: list[tuple[Image, SegmentMask]]) -> None:
    segment = drawn[0][1].segment
    concept = segment.concept
    # What may have been drawn by a program is never called the truth of a person.
    annotator, is_automatic = f"dicom-seg {segment.algorithm}", segment.algorithm in ("automatic", "unknown")
    if segment.algorithm == "unknown":
        contents.defects[UNKNOWN_ALGORITHM] += 1
    if concept.kind == "anatomy":
        contents.anatomy += [
            Anatomy(
                name=concept.name,
                image=image.key,
                region=mask.region,
                annotator=annotator,
                automatic=is_automatic,
            )
            for image, mask in drawn
        ]
        return
    annotations = tuple(
        Annotation(
            image=image.key, region=mask.region, drawn="mask", annotator=annotator, automatic=is_automatic
        )
        for image, mask in drawn
    )
    if drawn[0][1].tracking and concept.kind == "finding":
        contents.tracked[drawn[0][1].tracking, concept.name.encode()] = len(contents.findings)
    _add_finding(contents, concept, "present", annotations)


def _add_finding(
    contents: _Contents,
    concept: Concept,
    certainty: Certainty,
    annotations: tuple[Annotation, ...],
    location: Location | None = None,
) -> None:
    if concept.kind == "device":
        name = f"d{len(contents.devices) + 1}"
        side = None if location is None else location.side
        contents.devices.append(
            Device(id=name, name=concept.name, certainty=certainty, side=side, annotations=annotations)
        )
    else:
        name = f"f{len(contents.findings) + 1}"
        contents.findings.append(
            Finding(
                id=name, name=concept.name, certainty=certainty, location=location, annotations=annotations
            )
        )


# ---- structured reports ----------------------------------------------------------------------------------------------


def _add_report(contents: _Contents, attributes: Attributes, plan: StudyPlan) -> None:
    """Add the coded findings of a structured report, and its text where that is asked for."""
    is_automatic = structured_report.is_by_device(attributes)
    for found in structured_report.read_findings(attributes):
        if isinstance(found, str):
            contents.defects[found] += 1
            continue
        if found.certainty is None or _is_device_denied_in_part(found):
            contents.unclear.add(found.concept.name)
            continue
        annotations = tuple(_draw_outlines(contents, found.outlines, plan, is_automatic=is_automatic))
        contents.statements.append(
            _Statement(
                found.concept, found.certainty, found.location, found.tracking, annotations, is_automatic
            )
        )
    if not structured_report.has_text(attributes):
        return
    if not plan.rules.report_text:
        contents.defects[structured_report.DROPPED_TEXT] += 1
        return
    persons = structured_report.list_person_names(attributes)
    words = contents.words | list_identifying_words(attributes, persons)
    texts = {section: _clean(text) for section, text in structured_report.read_texts(attributes).items()}
    if any(is_identifying(text, words) for text in texts.values()):
        contents.defects[IDENTIFYING_TEXT] += 1
        return
    for section, text in texts.items():
        contents.texts[section].append(text)


def _is_device_denied_in_part(found: structured_report.CodedFinding) -> bool:
    """Whether a device is absent at a place that a `Device` cannot name: no more than a side."""
    if found.concept.kind != "device" or found.certainty != "absent" or found.location is None:
        return False
    return found.location != Location(side=found.location.side) or found.location.side == "midline"


def _clean(text: str) -> str:
    """A text without signs that cannot be seen, which could stand within a name."""
    spaced = (sign if sign == "\n" or not sign.isspace() else " " for sign in text)
    return "".join(sign for sign in spaced if sign.isprintable() or sign == "\n")


def _add_statements(contents: _Contents) -> None:
    """Add what the reports state together. Names about which they contradict each other or the masks are disputed.

    The result does not depend on the order of the reports: of contradicting statements the strongest is recorded.
    """
    drawn: list[Finding | Device] = [*contents.findings, *contents.devices]
    stated: list[Finding | Device] = [*drawn, *map(_make_record, contents.statements)]
    # Those that say where come first, so that one that does not say it repeats them, whatever the order of the reports.
    for one in sorted(contents.statements, key=lambda one: one.location is None):
        record = _make_record(one)
        if any(_overrules(contents, other, record) for other in stated if other.name == record.name):
            contents.defects[CONFLICT] += 1
            contents.disputed.add(record.name)
        elif not _complete_drawn(contents, one) and not _is_repeated(contents, one):
            _add_finding(contents, one.concept, one.certainty, one.annotations, one.location)
    contents.disputed |= contents.unclear - {record.name for record in stated}


def _list_by_program(contents: _Contents) -> tuple[str, ...]:
    """Names that only programs state; masks say themselves who drew them."""
    people = {one.concept.name for one in contents.statements if not one.is_by_program}
    return tuple(sorted({one.concept.name for one in contents.statements} - people))


def _make_record(one: _Statement) -> Finding | Device:
    """A statement as it is recorded, but for its id."""
    if one.concept.kind == "device":
        side = None if one.location is None else one.location.side
        return Device(
            id="", name=one.concept.name, certainty=one.certainty, side=side, annotations=one.annotations
        )
    return Finding(
        id="",
        name=one.concept.name,
        certainty=one.certainty,
        location=one.location,
        annotations=one.annotations,
    )


def _overrules(contents: _Contents, strong: Finding | Device, weak: Finding | Device) -> bool:
    """Whether a statement contradicts a weaker one: they are about the same place, or may be."""
    ranks = [_FROM_WEAK_TO_STRONG.index(record.certainty) for record in (strong, weak)]
    if ranks[0] <= ranks[1]:
        return False
    sides = [_sides_of(contents, record) for record in (strong, weak)]
    if weak.certainty != "absent":
        return not (sides[0] and sides[1]) or bool(sides[0] & sides[1])
    denied = find_denied_sides(weak)
    if denied.issuperset(SIDES) or denied & sides[0]:
        return True
    place = _location_of(weak)
    return place is not None and place == _location_of(strong)


def _sides_of(contents: _Contents, record: Finding | Device) -> frozenset[str]:
    """The sides of the patient on which something lies, as it is stated or drawn; none where they are not known."""
    location = _location_of(record)
    stated = None if location is None else location.side
    if stated:
        return frozenset(SIDES) if stated == "bilateral" else frozenset((stated,))
    images = {image.key: image for image in contents.images}
    drawn = {find_region_side(images[one.image], one.region) for one in record.annotations}
    return frozenset(side for side in drawn if side) if None not in drawn else frozenset()


def _location_of(record: Finding | Device) -> Location | None:
    if isinstance(record, Finding):
        return record.location
    return Location(side=record.side) if record.side else None


def _complete_drawn(contents: _Contents, one: _Statement) -> bool:
    """Whether a report says where a finding lies that a mask shows, by its tracking UID: the finding gets the place."""
    number = contents.tracked.get((one.tracking, one.concept.name.encode()))
    if number is None:
        return False
    drawn = contents.findings[number]
    places = {
        other.location
        for other in contents.statements
        if other.location and (other.tracking, other.concept.name) == (one.tracking, one.concept.name)
    }
    sides = [_sides_of(contents, drawn), _sides_of(contents, _make_record(one))]
    if all(sides) and sides[0].isdisjoint(sides[1]):
        contents.defects[CONFLICT] += 1
        contents.disputed.add(drawn.name)
    elif one.location and len(places) > 1:  # the same whatever the order of the reports
        contents.defects[structured_report.UNKNOWN_SITE] += 1
    elif one.location:
        contents.findings[number] = structs.replace(drawn, location=one.location)
    return True


def _is_repeated(contents: _Contents, one: _Statement) -> bool:
    """Whether a mask or a statement before says the same."""
    if (one.tracking, one.concept.name.encode()) in contents.drawn:
        return True
    things: list[Finding | Device] = [*contents.findings, *contents.devices]
    record = _make_record(one)
    alike = [thing for thing in things if (thing.name, thing.certainty) == (record.name, record.certainty)]
    if one.annotations or not alike:
        return False
    if _location_of(record) in map(_location_of, alike):
        return True
    if record.certainty == "absent":
        return False
    sides = _sides_of(contents, record)
    is_drawn = any(thing.annotations and sides == _sides_of(contents, thing) for thing in alike)
    return _location_of(record) is None or bool(sides and is_drawn)


def _draw_outlines(
    contents: _Contents, outlines: Iterable[structured_report.Outline], plan: StudyPlan, *, is_automatic: bool
) -> Iterator[Annotation]:
    """The regions within outlines, on the images of the study."""
    for outline in outlines:
        name = plan.rules.names.name("image", outline.image)
        if name not in contents.keys:
            contents.defects[LOST_IMAGE] += 1
            continue
        image, head = contents.keys[name]
        try:
            region = Region.from_polygons([outline.points], height=image.height, width=image.width)
        except CarinaError:  # a point that is no number, or far away
            contents.defects[structured_report.UNKNOWN_OUTLINE] += 1
            continue
        if any(head.flip):
            region = Region.from_mask(_turn(region.to_mask(), head.flip))
        if region.is_empty:
            contents.defects[structured_report.UNKNOWN_OUTLINE] += 1
            continue
        yield Annotation(
            image=image.key, region=region, drawn="polygon", annotator="dicom-sr", automatic=is_automatic
        )


def _make_report(contents: _Contents) -> Report | None:
    sections = tuple(
        ReportSection(name=name, text="\n".join(contents.texts[name]))
        for name in SECTIONS
        if contents.texts.get(name)
    )
    return Report(sections=sections) if sections else None
