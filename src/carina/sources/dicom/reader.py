"""The reader of a hospital's own DICOM: chest radiographs and their segmentations into studies.

Two passes: the first reads the attributes of every object and puts images, studies and patients together; the second
decodes the pixels, study by study, in the workers of the import.
"""

import csv
import hashlib
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from msgspec import Meta

from carina.sources._record import SourceError
from carina.sources._source import Item, Repaired, Skipped, Stream, WithImages, source
from carina.sources.dicom import greyscale, header, segmentation, structured_report
from carina.sources.dicom.attributes import Attributes, DicomObject, ObjectError, Tag, check_extra
from carina.sources.dicom.burned_in import (
    fill_boxes,
    find_text,
    has_text_detector,
    name_text_detector,
    require_text_detector,
)
from carina.sources.dicom.concepts import Concept
from carina.sources.dicom.files import DIRECTORY_CLASS, FileAt, list_files, read_object
from carina.sources.dicom.header import ImageHeader, Rules, name_study, read_image_header
from carina.sources.dicom.privacy import (
    METHOD_OF_CLEAN_PIXELS,
    METHODS,
    METHODS_WITH_IDENTIFIERS,
    Pseudonyms,
    default_key_file,
    load_key,
    write_private,
)
from carina.sources.dicom.segmentation import SEGMENTATIONS, SegmentMask, find_referenced_images, read_masks
from carina.sources.dicom.stored_values import decode_stored_values
from carina.sources.dicom.text_check import is_identifying, list_identifying_words
from carina.store.errors import CarinaError
from carina.studies.model import Anatomy, Annotation, Device, Finding, Image, Report, ReportSection, Study
from carina.studies.pixels import display_image, encode_png
from carina.studies.region import Region
from carina.studies.vocabulary import SECTIONS, Certainty, Section

NAME: Final = "dicom"
ORDER_UNKNOWN: Final = "unknown order"
MASK_SIZE: Final = "mask of another size"
LOST_IMAGE: Final = "mask of an image that was skipped"
NOT_LOOKED_FOR: Final = "text not looked for"
MASKED_TEXT: Final = "text masked"
CONFLICT: Final = "contradiction"
IDENTIFYING_TEXT: Final = "names or dates in report text"
_FORMAT: Final = "2"
"""Version of what is decided here; a change makes an interrupted import start again."""

DEFECTS: Final = {
    NOT_LOOKED_FOR: "the header does not say whether text is burned into the image, and nothing has looked for it: "
    "used; look at the images",
    header.BURNED_IN: "text is burned into the image: used, as asked for",
    MASKED_TEXT: "text in the image was covered",
    header.OLD_AGE: "recorded as 90",
    header.NO_PATIENT: "the study counts as one patient of its own",
    header.NO_DATE: "the study has no place among those of the patient",
    header.UNKNOWN_VIEW: "the view is recorded as unknown",
    header.UNKNOWN_BODY_PART: "used as an image of the chest, as asked for",
    header.MIRRORED: "image and masks were turned to the usual display",
    greyscale.NO_WINDOW: "the range of the values that occur is displayed",
    greyscale.BAD_WINDOW: "the window was ignored, and the range of the values that occur is displayed",
    greyscale.CONTRADICTION: "the presentation LUT shape decided, not the photometric interpretation",
    ORDER_UNKNOWN: "studies of the patient have the same date and time: none of them has a prior or follow-up study",
    segmentation.UNKNOWN_SEGMENT: "the segment has no name that Carina knows: left out",
    MASK_SIZE: "the mask was left out",
    LOST_IMAGE: "the mask was left out",
    structured_report.UNKNOWN_FINDING: "a structured report has a finding that Carina does not know: left out",
    structured_report.UNKNOWN_OUTLINE: "a structured report has an outline that is not a closed line: left out",
    CONFLICT: "a structured report contradicts a mask, or itself: the first statement counts, masks before reports",
    structured_report.DROPPED_TEXT: "the text of a structured report was left out; --report-text keeps it",
    IDENTIFYING_TEXT: "the text of a structured report holds a name, a number or a date: left out",
}


def _record_options(path: Path, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the manifest says: no path, no name, and the codes of PS3.15 for what was done."""
    names = _load_names(options["key_file"], out=None)
    files = "\n".join(f"{file.size} {file.name}" for file in list_files(path))
    methods = dict(METHODS)
    if options["keep_identifiers"]:
        methods = {code: METHODS[code] for code in ("113103", "113104", "113105", "113108")}
        methods = {**methods, **METHODS_WITH_IDENTIFIERS}
    looks = options["look_for_text"] if options["burned_in"] != "keep" else "never"
    if looks == "always":
        methods |= METHOD_OF_CLEAN_PIXELS
    if options["report_text"]:
        del methods["113105"]
    return {
        "key": names.key_id,
        "objects": names.digest("objects", f"{_FORMAT}\n{files}".encode("utf-8", "surrogatepass")),
        "burned_in": options["burned_in"],
        "look_for_text": looks,
        "text_detector": "none" if looks == "never" else name_text_detector(),
        "report_text": options["report_text"],
        "unknown_body_part": options["unknown_body_part"],
        "identifiers": "kept" if options["keep_identifiers"] else "keyed hashes",
        "patient_identity_removed": "NO" if options["keep_identifiers"] else "YES",
        "deidentification_methods": [f"{code} {meaning}" for code, meaning in sorted(methods.items())],
    }


@source(
    name=NAME,
    title="Chest radiographs of a hospital, as DICOM files",
    needs="a folder, a DICOMDIR or a zip archive of DICOM files; the extra dicom, and ocr to look for text in images.",
    tree="""
    ARCHIVE/                 any names, any depth; or one DICOMDIR, or one zip archive
      PATIENT/STUDY/IM1.dcm  DX or CR for presentation, of the chest: an image
      PATIENT/STUDY/SEG.dcm  segmentation that refers to the image: masks
      PATIENT/STUDY/SR.dcm   structured report of the study: coded findings
    """,
    licence="That of your hospital: Carina brings no data.",
    truth=("masks", "labels", "priors"),
    image_root="out",
    inputs=lambda _path: {},
    record_options=_record_options,
    defects=DEFECTS,
)
def read_dicom(
    path: Path,
    *,
    out: Path,
    key_file: Annotated[
        Path | None,
        Meta(
            description="File of the key for pseudonyms and date shifts; created where it is missing, refused within "
            "the output. By default dicom.key in your folder of settings for carina."
        ),
    ] = None,
    burned_in: Annotated[
        Literal["skip", "mask", "keep"],
        Meta(
            description="What to do with images that hold text, by their header or by what is found in the pixels. "
            "skip: leave them out. mask: cover the text with black. keep: use them as they are, and look for nothing. "
            "Markers such as L, R or PORTABLE are no text."
        ),
    ] = "skip",
    look_for_text: Annotated[
        Literal["unknown", "always", "never"],
        Meta(
            description="Which images to look at for text, with the extra ocr, which takes one or two seconds an "
            "image. unknown: those whose header does not say that there is none. always: all. Images that nothing has "
            "looked at are counted."
        ),
    ] = "unknown",
    unknown_body_part: Annotated[
        Literal["skip", "keep"],
        Meta(
            description="What to do with images whose header does not say which part of the body they show."
        ),
    ] = "skip",
    report_text: Annotated[
        bool,
        Meta(
            description="Keep the text of structured reports in which no name, number or date is found. The check "
            "cannot find a name that is in no header: read the texts before you share them."
        ),
    ] = False,
    keep_identifiers: Annotated[
        bool,
        Meta(
            description="Keep ids and dates as they are. The study set then names patients: do not share it."
        ),
    ] = False,
    file_table: Annotated[
        Path | None,
        Meta(
            description="CSV file to write that tells which file each object number and study stands for. It "
            "identifies patients, and is refused within the output."
        ),
    ] = None,
) -> Stream:
    """Studies in the order of their patients' names, then the objects that are skipped."""
    check_extra()
    names = _load_names(key_file, out)
    if burned_in == "mask" and look_for_text == "never":
        raise SourceError("--burned-in mask: text must be looked for: leave out --look-for-text never")
    if burned_in == "mask":
        require_text_detector("--burned-in mask")
    elif look_for_text == "always" and burned_in != "keep":
        require_text_detector("--look-for-text always")
    rules = Rules(
        names=names,
        burned_in=burned_in,
        look_for_text=look_for_text,
        unknown_body_part=unknown_body_part,
        keep_identifiers=keep_identifiers,
        report_text=report_text,
    )
    found = survey(list_files(path), rules)
    if file_table is not None:
        _write_file_table(file_table, found, out)
    for number, plan in enumerate(found.plans(), start=1):
        yield partial(_read_study, plan, number)
    yield from found.skipped


def _load_names(key_file: Path | None, out: Path | None) -> Pseudonyms:
    return load_key(key_file or default_key_file(), out)


def _write_file_table(path: Path, found: "Survey", out: Path) -> None:
    if path.resolve().is_relative_to(out.resolve()):
        raise SourceError(
            f"{path}: the table of files names patients and lies in {out}, which may be shared: keep it elsewhere "
            "(--file-table)"
        )
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(("object", "file", "study", "reason"))
    table.writerows(found.rows)
    try:
        write_private(path, text.getvalue(), is_new=False)
    except OSError as error:
        raise SourceError(f"{path}: the table of files cannot be written: {error.strerror}") from error


# ---- first pass ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """A study before its pixels are decoded."""

    id: str
    patient: str
    images: tuple[ImageHeader, ...]
    masks: tuple[FileAt, ...]
    reports: tuple[FileAt, ...]
    rules: Rules
    order: int | None = None
    prior: str | None = None
    later: str | None = None
    defects: tuple[str, ...] = ()


@dataclass
class Survey:
    """The objects of a source, put together."""

    rules: Rules
    images: dict[str, ImageHeader] = field(default_factory=dict)
    """By keyed name of the instance."""
    masks: list[tuple[FileAt, list[str]]] = field(default_factory=list)
    """Segmentations, and the keyed names of the images that they refer to."""
    reports: dict[str, list[FileAt]] = field(default_factory=dict)
    """Structured reports by study."""
    patients: dict[str, str] = field(default_factory=dict)
    """Patients by study."""
    skipped: list[Skipped] = field(default_factory=list)
    rows: list[tuple[int, str, str, str]] = field(default_factory=list)
    """Of the list of files."""

    def add(self, file: FileAt) -> None:
        """Read the attributes of an object."""
        study = reason = ""
        try:
            found = read_object(file, with_pixels=False)
            if found.media_class == DIRECTORY_CLASS:
                return
            attributes = found.attributes
            sop_class = attributes.text(Tag.SOP_CLASS)
            if sop_class in SEGMENTATIONS:
                self._add_masks(file, find_referenced_images(attributes))
            elif sop_class in structured_report.REPORTS:
                study = self._add_report(file, attributes)
            else:
                study = self._add_image(read_image_header(attributes, file, self.rules))
        except ObjectError as error:
            self.skip(file, error)
            reason = error.reason
        self.rows.append((file.number, file.name, study, reason))

    def skip(self, file: FileAt, error: ObjectError) -> None:
        """Count an object that is not used."""
        self.skipped.append(Skipped(place=file.place, reason=error.reason, kind=error.kind))

    def _add_masks(self, file: FileAt, images: Iterable[bytes]) -> None:
        names = [self.rules.names.name("image", uid) for uid in images]
        if not names:
            raise ObjectError("segmentation", "the segmentation refers to no image")
        self.masks.append((file, names))

    def _add_report(self, file: FileAt, attributes: Attributes) -> str:
        uid = attributes.raw(Tag.STUDY_INSTANCE)
        if not uid:
            raise ObjectError("structured report", "the structured report states no study instance UID")
        study = name_study(uid, self.rules)
        self.reports.setdefault(study, []).append(file)
        return study

    def _add_image(self, image: ImageHeader) -> str:
        if image.sop_name in self.images:
            raise ObjectError("copy", "an object before it has the same SOP instance UID")
        if self.patients.setdefault(image.study, image.patient) != image.patient:
            raise ObjectError("two patients", "objects before it say that the study is of another patient")
        self.images[image.sop_name] = image
        return image.study

    def plans(self) -> list[StudyPlan]:
        """The studies, patient by patient, in order of time; segmentations without an image are skipped."""
        images: defaultdict[str, list[ImageHeader]] = defaultdict(list)
        masks: defaultdict[str, list[FileAt]] = defaultdict(list)
        for image in self.images.values():
            images[image.study].append(image)
        for file, names in self.masks:
            studies = dict.fromkeys(self.images[name].study for name in names if name in self.images)
            if not studies:
                error = ObjectError("segmentation", "the image that the segmentation refers to is not used")
                self.skip(file, error)
            for study in studies:
                masks[study].append(file)
        for study, files in self.reports.items():
            if study not in images:
                error = ObjectError(
                    "structured report", "no image of the study of the structured report is used"
                )
                for file in files:
                    self.skip(file, error)
        by_patient: defaultdict[str, list[str]] = defaultdict(list)
        for study in images:
            by_patient[self.patients[study]].append(study)
        plans: list[StudyPlan] = []
        for patient in sorted(by_patient):
            made = [self._plan(study, images[study], masks[study]) for study in sorted(by_patient[patient])]
            plans += put_in_order(made)
        return plans

    def _plan(self, study: str, images: list[ImageHeader], masks: list[FileAt]) -> StudyPlan:
        ordered = sorted(images, key=lambda image: (image.position, image.file.number))
        return StudyPlan(
            id=study,
            patient=self.patients[study],
            images=tuple(ordered),
            masks=tuple(masks),
            reports=tuple(self.reports.get(study, ())),
            rules=self.rules,
        )


def survey(files: Iterable[FileAt], rules: Rules) -> Survey:
    """Read the attributes of all objects."""
    found = Survey(rules)
    for file in files:
        found.add(file)
    return found


def put_in_order(studies: list[StudyPlan]) -> list[StudyPlan]:
    """The studies of a patient with their place in time.

    A study without a date has no place. Where two studies have the same date and time, or the same date and one has no
    time, nobody knows which came first: then no study of the patient has a place.
    """
    dated = sorted((plan for plan in studies if _moment(plan)[0]), key=_moment)
    undated = [plan for plan in studies if not _moment(plan)[0]]
    pairs = pairwise(dated)
    if any(_is_tie(_moment(one), _moment(other)) for one, other in pairs):
        tied = [replace(plan, defects=(ORDER_UNKNOWN,)) for plan in dated]
        return tied + undated
    ordered = [
        replace(
            plan,
            order=at,
            prior=dated[at - 1].id if at else None,
            later=dated[at + 1].id if at + 1 < len(dated) else None,
        )
        for at, plan in enumerate(dated)
    ]
    return ordered + undated


def _moment(plan: StudyPlan) -> tuple[str, str]:
    """Date and time of the first image that has a date."""
    return min((image.moment for image in plan.images if image.moment[0]), default=("", ""))


def _is_tie(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return one[0] == other[0] and (one[1] == other[1] or not one[1] or not other[1])


# ---- second pass -----------------------------------------------------------------------------------------------------


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
    texts: defaultdict[Section, list[str]] = field(default_factory=lambda: defaultdict(list))
    """Of structured reports."""
    words: set[str] = field(default_factory=set)
    """Words of names, ids and addresses, which must not be in a text."""
    defects: Counter[str] = field(default_factory=Counter)
    skipped: list[Item] = field(default_factory=list)

    def skip(self, file: FileAt, error: ObjectError) -> None:
        self.skipped.append(Skipped(place=file.place, reason=error.reason, kind=error.kind))


def _read_study(plan: StudyPlan, number: int) -> list[Item]:
    """A study with its image files, and the objects of it that cannot be decoded."""
    contents = _Contents()
    for found in plan.images:
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
        date=next((head.date for head in used if head.date), None),
        age=next((head.age for head in used if head.age is not None), None),
        sex=next((head.sex for head in used if head.sex), None),
        images=tuple(contents.images),
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
    if rules.burned_in == "keep" or rules.look_for_text == "never" or not has_text_detector():
        grey.defects += {"yes": [header.BURNED_IN], "unknown": [NOT_LOOKED_FOR], "no": []}[says]
        return
    if says == "no" and rules.look_for_text != "always":
        return
    boxes = find_text(display_image(grey.pixels, grey))
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
    annotator, is_automatic = f"dicom-seg {segment.algorithm}", segment.algorithm == "automatic"
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
        annotations = tuple(_draw_outlines(contents, found.outlines, plan, is_automatic=is_automatic))
        if not _is_repeated(contents, found, annotations):
            _add_finding(contents, found.concept, found.certainty, annotations)
    if not structured_report.has_text(attributes):
        return
    if not plan.rules.report_text:
        contents.defects[structured_report.DROPPED_TEXT] += 1
        return
    persons = structured_report.list_person_names(attributes)
    words = contents.words | list_identifying_words(attributes, persons)
    texts = structured_report.read_texts(attributes)
    if any(is_identifying(text, words) for text in texts.values()):
        contents.defects[IDENTIFYING_TEXT] += 1
        return
    for section, text in texts.items():
        contents.texts[section].append("".join(sign for sign in text if sign.isprintable() or sign == "\n"))


def _is_repeated(
    contents: _Contents, found: structured_report.CodedFinding, annotations: tuple[Annotation, ...]
) -> bool:
    """Whether a mask or a report before says the same, or the contrary, which is counted."""
    things: list[Finding | Device] = [*contents.findings, *contents.devices]
    same = [thing for thing in things if thing.name == found.concept.name]
    if any(thing.certainty != found.certainty for thing in same):
        contents.defects[CONFLICT] += 1
        return True
    is_tracked = (found.tracking, found.concept.name.encode()) in contents.drawn
    return is_tracked or (bool(same) and not annotations)


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
