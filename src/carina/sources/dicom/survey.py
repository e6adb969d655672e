"""The first pass over an archive: the attributes of every object, put together to studies and patients."""

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from carina.sources._source import Skipped
from carina.sources.dicom import structured_report
from carina.sources.dicom.attributes import Attributes, ObjectError, Tag
from carina.sources.dicom.files import DIRECTORY_CLASS, FileAt, read_object
from carina.sources.dicom.header import (
    ISSUER_ASSUMED,
    OLD_AGE,
    SEVERAL_ISSUERS,
    ImageHeader,
    PatientId,
    Rules,
    name_patient,
    name_study,
    read_image_header,
    shift_date,
)
from carina.sources.dicom.privacy import DatedAge, choose_ages, may_be_old
from carina.sources.dicom.segmentation import SEGMENTATIONS, find_referenced_images

ORDER_UNKNOWN: Final = "unknown order"
COPY: Final = ("copy", "an object before it has the same SOP instance UID")
"""Kind and reason of an object that is skipped because another one is used in its place."""


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    """A study before its pixels are decoded."""

    id: str
    patient: str
    """The name that is written."""
    images: tuple[ImageHeader, ...]
    dates: Mapping[str, datetime.date | None]
    """Dates that are written, by keyed name of the instance."""
    copies: Mapping[str, tuple[ImageHeader, ...]]
    """By keyed name of the instance, other objects of it; they count where the first cannot be decoded."""
    masks: tuple[FileAt, ...]
    reports: tuple[FileAt, ...]
    rules: Rules
    age: int | None = None
    """The age that is written."""
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
    copies: dict[str, list[ImageHeader]] = field(default_factory=dict)
    """The same, of other objects of an instance."""
    masks: list[tuple[FileAt, list[str]]] = field(default_factory=list)
    """Segmentations, and the keyed names of the images that they refer to."""
    reports: dict[str, list[FileAt]] = field(default_factory=dict)
    """Structured reports by study."""
    patients: dict[str, PatientId] = field(default_factory=dict)
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
                study, reason = self._add_image(read_image_header(attributes, file, self.rules))
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

    def _add_image(self, image: ImageHeader) -> tuple[str, str]:
        """Add an image; returns its study, and why the object is not used, if it is a copy of one before it."""
        first = self.images.get(image.sop_name)
        if first is not None and first.study != image.study:
            raise ObjectError(*COPY)
        patient = self.patients.setdefault(image.study, image.patient)
        if patient.id != image.patient.id or not self._may_be_one_issuer(patient, image.patient):
            raise ObjectError("two patients", "objects before it say that the study is of another patient")
        if not patient.issuer:
            self.patients[image.study] = image.patient
        if first is not None:
            self.copies.setdefault(image.sop_name, []).append(image)
            return image.study, COPY[1]
        self.images[image.sop_name] = image
        return image.study, ""

    def _may_be_one_issuer(self, one: PatientId, other: PatientId) -> bool:
        """Whether ids are of one issuer, or one object does not say whose its id is."""
        is_same = one.issuer == other.issuer or not (one.issuer and other.issuer)
        return is_same or self.rules.use_issuer == "never"

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
        issuers: defaultdict[bytes, set[bytes]] = defaultdict(set)
        for patient in self.patients.values():
            issuers[patient.id].add(patient.issuer)
        by_patient: defaultdict[str, list[StudyPlan]] = defaultdict(list)
        for study in sorted(images):
            plan = self._plan(study, images[study], masks[study], issuers[self.patients[study].id])
            by_patient[plan.patient].append(plan)
        return [plan for name in sorted(by_patient) for plan in put_in_order(add_ages(by_patient[name]))]

    def _plan(
        self, study: str, images: list[ImageHeader], masks: list[FileAt], issuers: set[bytes]
    ) -> StudyPlan:
        """A study; `issuers` are all that occur with the id of its patient, with an empty one where it is missing."""
        ordered = sorted(images, key=lambda image: (image.position, image.file.number))
        known_by, defects = self._identify(self.patients[study], issuers)
        return StudyPlan(
            id=study,
            patient=name_patient(known_by, self.rules),
            dates={image.sop_name: shift_date(known_by, image.date, self.rules) for image in ordered},
            defects=defects,
            images=tuple(ordered),
            copies={
                name: tuple(self.copies[name]) for image in ordered if (name := image.sop_name) in self.copies
            },
            masks=tuple(masks),
            reports=tuple(self.reports.get(study, ())),
            rules=self.rules,
        )

    def _identify(self, patient: PatientId, issuers: set[bytes]) -> tuple[bytes, tuple[str, ...]]:
        """What a patient is known by, and the defects of that.

        A stated issuer always belongs to the id, so that the name of such a patient depends on nothing but both and the
        key. An id without issuer is of the only issuer that is stated for it; where there are several, or none, it
        stands for itself.
        """
        use = self.rules.use_issuer
        stated = issuers - {b""}
        is_ambiguous = len(issuers if use == "always" else stated) > 1
        defects = (SEVERAL_ISSUERS,) if is_ambiguous else ()
        if use == "never":
            return PatientId(patient.id).joined(), defects
        if use == "stated" and not patient.issuer and len(stated) == 1:
            return PatientId(patient.id, *stated).joined(), (ISSUER_ASSUMED,)
        return patient.joined(), defects


def survey(files: Iterable[FileAt], rules: Rules) -> Survey:
    """Read the attributes of all objects."""
    found = Survey(rules)
    for file in files:
        found.add(file)
    return found


def add_ages(studies: list[StudyPlan]) -> list[StudyPlan]:
    """The studies of a patient with the ages that are written, which none of them alone decides."""
    known = [_dated_age(plan) for plan in studies]
    defects = (OLD_AGE,) if may_be_old(known) else ()
    return [
        replace(plan, age=age, defects=(*plan.defects, *(defects if stated.years else ())))
        for plan, stated, age in zip(studies, known, choose_ages(known), strict=True)
    ]


def _dated_age(plan: StudyPlan) -> DatedAge:
    """The first date of a study, and all ages that its objects tell, copies and undecodable ones, too."""
    every = (image for first in plan.images for image in (first, *plan.copies.get(first.sop_name, ())))
    date = _moment(plan)[0]
    return DatedAge(
        datetime.date.fromisoformat(date) if date else None,
        tuple(dict.fromkeys(years for image in every for years in image.ages)),
    )


def put_in_order(studies: list[StudyPlan]) -> list[StudyPlan]:
    """The studies of a patient with their place in time.

    A study without a date has no place. Where two studies have the same date and time, or the same date and one has no
    time, nobody knows which came first: then no study of the patient has a place.
    """
    dated = sorted((plan for plan in studies if _moment(plan)[0]), key=_moment)
    undated = [plan for plan in studies if not _moment(plan)[0]]
    pairs = pairwise(dated)
    if any(_is_tie(_moment(one), _moment(other)) for one, other in pairs):
        tied = [replace(plan, defects=(*plan.defects, ORDER_UNKNOWN)) for plan in dated]
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
    return min(
        ((image.date.isoformat(), image.time) for image in plan.images if image.date), default=("", "")
    )


def _is_tie(one: tuple[str, str], other: tuple[str, str]) -> bool:
    return one[0] == other[0] and (one[1] == other[1] or not one[1] or not other[1])
