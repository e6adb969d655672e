"""The second pass: the pixels, masks and reports of one study, as the study that is written."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
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
from carina.studies.model import (
    Anatomy,
    Annotation,
    Assessed,
    Device,
    Finding,
    Image,
    Report,
    ReportSection,
    Study,
)
from carina.studies.pixels import display_image, encode_png
from carina.studies.region import Region
from carina.studies.vocabulary import SECTIONS, Certainty, Section

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
    tracking: bytes
    annotations: tuple[Annotation, ...]


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
        assessed=Assessed(findings=plan.rules.looked_for, disputed=tuple(sorted(contents.disputed))),
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
    _add_finding(contents, concept, "present", annotations)


def _add_finding(
    contents: _Contents, concept: Concept, certainty: Certainty, annotations: tuple[Annotation, ...]
) -> None:
    if concept.kind == "device":
        name = f"d{len(contents.devices) + 1}"
        contents.devices.append(
            Device(id=name, name=concept.name, certainty=certainty, annotations=annotations)
        )
    else:
        name = f"f{len(contents.findings) + 1}"
        contents.findings.append(
            Finding(id=name, name=concept.name, certainty=certainty, annotations=annotations)
        )


# ---- structured reports ----------------------------------------------------------------------------------------------


def _add_report(contents: _Contents, attributes: Attributes, plan: StudyPlan) -> None:
    """Add the coded findings of a structured report, and its text where that is asked for."""
    is_automatic = structured_report.is_by_device(attributes)
    for found in structured_report.read_findings(attributes):
        if isinstance(found, str):
            contents.defects[found] += 1
            continue
        if found.certainty is None:
            contents.unclear.add(found.concept.name)
            continue
        annotations = tuple(_draw_outlines(contents, found.outlines, plan, is_automatic=is_automatic))
        contents.statements.append(_Statement(found.concept, found.certainty, found.tracking, annotations))
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


def _clean(text: str) -> str:
    """A text without signs that cannot be seen, which could stand within a name."""
    spaced = (sign if sign == "\n" or not sign.isspace() else " " for sign in text)
    return "".join(sign for sign in spaced if sign.isprintable() or sign == "\n")


def _add_statements(contents: _Contents) -> None:
    """Add what the reports state together. Names about which they contradict each other or the masks are disputed.

    The result does not depend on the order of the reports: of contradicting statements the strongest is recorded.
    """
    things: list[Finding | Device] = [*contents.findings, *contents.devices]
    stated = [(thing.name, thing.certainty) for thing in things]
    stated += [(one.concept.name, one.certainty) for one in contents.statements]
    strongest: dict[str, Certainty] = {}
    for name, certainty in sorted(stated, key=lambda entry: _FROM_WEAK_TO_STRONG.index(entry[1])):
        strongest[name] = certainty
    for one in contents.statements:
        if one.certainty != strongest[one.concept.name]:
            contents.defects[CONFLICT] += 1
            contents.disputed.add(one.concept.name)
        elif not _is_repeated(contents, one):
            _add_finding(contents, one.concept, one.certainty, one.annotations)
    contents.disputed |= contents.unclear - strongest.keys()


def _is_repeated(contents: _Contents, one: _Statement) -> bool:
    """Whether a mask or a statement before says the same."""
    things: list[Finding | Device] = [*contents.findings, *contents.devices]
    is_tracked = (one.tracking, one.concept.name.encode()) in contents.drawn
    is_named = any(thing.name == one.concept.name for thing in things)
    return is_tracked or (is_named and not one.annotations)


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
