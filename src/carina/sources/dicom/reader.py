"""The reader of a hospital's own DICOM: chest radiographs and their segmentations into studies.

Two passes: the first reads the attributes of every object and puts images, studies and patients together; the second
decodes the pixels, study by study, in the workers of the import.
"""

import csv
import hashlib
import io
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
from msgspec import Meta

from carina.sources._record import SourceError
from carina.sources._source import Item, Repaired, Skipped, Stream, WithImages, source
from carina.sources.dicom import greyscale, header, segmentation
from carina.sources.dicom.attributes import DicomObject, ObjectError, Tag, check_extra
from carina.sources.dicom.files import DIRECTORY_CLASS, FileAt, list_files, read_object
from carina.sources.dicom.header import ImageHeader, Rules, read_image_header
from carina.sources.dicom.privacy import (
    METHODS,
    METHODS_WITH_IDENTIFIERS,
    Pseudonyms,
    default_key_file,
    load_key,
    write_private,
)
from carina.sources.dicom.segmentation import SegmentMask, find_referenced_images, read_masks
from carina.sources.dicom.stored_values import decode_stored_values
from carina.studies.model import Anatomy, Annotation, Device, Finding, Image, Study
from carina.studies.pixels import encode_png
from carina.studies.region import Region

NAME: Final = "dicom"
ORDER_UNKNOWN: Final = "unknown order"
MASK_SIZE: Final = "mask of another size"
LOST_IMAGE: Final = "mask of an image that was skipped"
_FORMAT: Final = "1"
"""Version of what is decided here; a change makes an interrupted import start again."""

DEFECTS: Final = {
    header.UNKNOWN_BURNED_IN: "the header does not say whether text is burned into the image: used; look at the images",
    header.BURNED_IN: "text is burned into the image: used, as asked for",
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
}


def _record_options(path: Path, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the manifest says: no path, no name, and the codes of PS3.15 for what was done."""
    names = _load_names(options["key_file"], out=None)
    files = "\n".join(f"{file.size} {file.name}" for file in list_files(path))
    methods = METHODS
    if options["keep_identifiers"]:
        methods = {code: METHODS[code] for code in ("113103", "113104", "113105", "113108")}
        methods = {**methods, **METHODS_WITH_IDENTIFIERS}
    return {
        "key": names.key_id,
        "objects": names.digest("objects", f"{_FORMAT}\n{files}".encode("utf-8", "surrogatepass")),
        "burned_in": options["burned_in"],
        "unknown_body_part": options["unknown_body_part"],
        "identifiers": "kept" if options["keep_identifiers"] else "keyed hashes",
        "patient_identity_removed": "NO" if options["keep_identifiers"] else "YES",
        "deidentification_methods": [f"{code} {meaning}" for code, meaning in sorted(methods.items())],
    }


@source(
    name=NAME,
    title="Chest radiographs of a hospital, as DICOM files",
    needs="a folder, a DICOMDIR or a zip archive of DICOM files.",
    licence="That of your hospital: Carina brings no data.",
    truth=("masks", "priors"),
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
        Literal["skip", "skip-unknown", "keep"],
        Meta(
            description="What to do with text in the image. skip: leave out images whose header says so, count those "
            "whose header does not say. skip-unknown: leave out both. keep: use all."
        ),
    ] = "skip",
    unknown_body_part: Annotated[
        Literal["skip", "keep"],
        Meta(
            description="What to do with images whose header does not say which part of the body they show."
        ),
    ] = "skip",
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
    rules = Rules(
        names=names,
        burned_in=burned_in,
        unknown_body_part=unknown_body_part,
        keep_identifiers=keep_identifiers,
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
    names: Pseudonyms
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
            if attributes.text(Tag.SOP_CLASS) == header.SEGMENTATION:
                self._add_masks(file, find_referenced_images(attributes))
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
            names=self.rules.names,
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
    defects: Counter[str] = field(default_factory=Counter)
    skipped: list[Item] = field(default_factory=list)

    def skip(self, file: FileAt, error: ObjectError) -> None:
        self.skipped.append(Skipped(place=file.place, reason=error.reason, kind=error.kind))


def _read_study(plan: StudyPlan, number: int) -> list[Item]:
    """A study with its image files, and the objects of it that cannot be decoded."""
    contents = _Contents()
    for found in plan.images:
        try:
            _add_image(contents, found)
        except ObjectError as error:
            contents.skip(found.file, error)
    for file in plan.masks:
        try:
            _add_masks(contents, read_object(file), plan, file.number)
        except ObjectError as error:
            contents.skip(file, error)
    for drawn in contents.drawn.values():
        _add_segment(contents, drawn)
    if not contents.images:
        return contents.skipped
    contents.defects.update(plan.defects)
    used = [head for _, head in contents.keys.values()]
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
    )
    item = (
        Repaired(record=study, number=number, defects=dict(contents.defects)) if contents.defects else study
    )
    return [WithImages(item=item, files=contents.files), *contents.skipped]


def _add_image(contents: _Contents, found: ImageHeader) -> None:
    """Decode an image and encode it as PNG."""
    read = read_object(found.file)
    stored, form = decode_stored_values(read)
    grey = greyscale.make_grey_image(stored, form, read.attributes)
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
        name = plan.names.name("image", mask.image)
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
        key = (mask.tracking, mask.segment.name.encode()) if mask.tracking else (file_number, mask.number)
        contents.drawn.setdefault(key, []).append((image, mask))


def _add_segment(contents: _Contents, drawn: list[tuple[Image, SegmentMask]]) -> None:
    segment = drawn[0][1].segment
    annotator, is_automatic = f"dicom-seg {segment.algorithm}", segment.algorithm == "automatic"
    if segment.kind == "anatomy":
        contents.anatomy += [
            Anatomy(
                name=segment.name,
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
    if segment.kind == "device":
        name = f"d{len(contents.devices) + 1}"
        contents.devices.append(
            Device(id=name, name=segment.name, certainty="present", annotations=annotations)
        )
    else:
        name = f"f{len(contents.findings) + 1}"
        contents.findings.append(
            Finding(id=name, name=segment.name, certainty="present", annotations=annotations)
        )
