"""What an object says about its image, its study and its patient, in Carina's own words.

Every value is converted: to a word of a closed list, a number, a date, or a keyed name. No text of the object is passed
on.
"""

import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, cast, get_args

from carina.sources._record import printable
from carina.sources.dicom.attributes import Attributes, ObjectError, Tag
from carina.sources.dicom.burned_in import Handling, Looking
from carina.sources.dicom.files import FileAt
from carina.sources.dicom.privacy import Pseudonyms
from carina.sources.dicom.stored_values import read_form
from carina.studies.vocabulary import Sex, View

RADIOGRAPHS: Final = frozenset(
    (
        "1.2.840.10008.5.1.4.1.1.1",  # Computed Radiography
        "1.2.840.10008.5.1.4.1.1.1.1",  # Digital X-Ray, for presentation
        "1.2.840.10008.5.1.4.1.1.7",  # Secondary Capture: accepted where the modality is CR or DX
    )
)
FOR_PROCESSING: Final = "1.2.840.10008.5.1.4.1.1.1.1.1"
_MODALITIES: Final = frozenset(
    ("CT", "MR", "US", "MG", "NM", "PT", "XA", "RF", "OT", "SR", "PR", "KO", "ECG", "ES", "SC", "IO", "PX", "SM",
     "RTSTRUCT", "RTDOSE", "RTPLAN", "DOC", "REG")
)  # fmt: skip
"""Modalities that a message may name."""
_CHEST_WORDS: Final = frozenset(("CHEST", "THORAX", "LUNG", "LUNGS"))
_CHEST_CODES: Final = frozenset(("51185008", "T-D3000", "43799004", "T-D3050", "39607008", "T-28000"))
"""Chest, thorax, lung: SNOMED CT and SNOMED RT."""
_VIEW_WORDS: Final[dict[str, View]] = {
    "PA": "PA", "AP": "AP", "LL": "lateral", "RL": "lateral", "LAT": "lateral", "LATERAL": "lateral"
}  # fmt: skip
_VIEW_CODES: Final[dict[str, View]] = {
    "272479007": "PA", "R-10214": "PA", "399348003": "AP", "R-10206": "AP", "399067008": "lateral",
    "R-10232": "lateral",
    "399173006": "lateral", "R-10236": "lateral", "399198007": "lateral", "R-10228": "lateral",
}  # fmt: skip
"""Codes of PS3.16, CID 4010: SNOMED CT and SNOMED RT."""
_WIDEST_PIXEL: Final = 10.0
"""Millimetres; radiographs have pixels of 0.1 to 0.4."""
_AGE_UNITS: Final = {"D": 365.25, "W": 52.18, "M": 12.0, "Y": 1.0}
"""Units in a year."""

NO_PATIENT: Final = "no patient id"
SEVERAL_ISSUERS: Final = "patient id of several issuers"
ISSUER_ASSUMED: Final = "issuer of the patient id assumed"
NO_DATE: Final = "no date"
UNKNOWN_VIEW: Final = "unknown view"
UNKNOWN_BODY_PART: Final = "unknown body part"
BURNED_IN: Final = "burned-in text"
MIRRORED: Final = "mirrored or upside-down"
OLD_AGE: Final = "age of 90 or over"


UseIssuer: TypeAlias = Literal["stated", "always", "never"]
"""Whether the issuer of an id belongs to it: where it is stated or can be concluded, only where it is stated, never."""


@dataclass(frozen=True)
class PatientId:
    """The id of a patient, as the object states it."""

    id: bytes
    issuer: bytes = b""
    """Who gave the id; empty where the object does not say."""

    def joined(self) -> bytes:
        """Id and issuer in one. Different pairs never give the same: what separates them is replaced within them."""
        parts = (self.id, self.issuer) if self.issuer else (self.id,)
        return b"^^^".join(part.replace(b"%", b"%25").replace(b"^", b"%5E") for part in parts)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What the user allows."""

    names: Pseudonyms
    burned_in: Handling
    look_for_text: Looking
    unknown_body_part: Literal["skip", "keep"]
    use_issuer: UseIssuer
    keep_identifiers: bool
    report_text: bool
    looked_for: Literal["every", "unknown"] = "unknown"
    """What was looked for in every study."""


@dataclass(frozen=True, kw_only=True)
class ImageHeader:
    """What is known of one image before its pixels are decoded.

    The names of study and image are those that are written. Patient, date and ages are those of the object: a
    `StudyPlan` has what is written of them.
    """

    file: FileAt
    patient: PatientId
    study: str
    image: str
    """Name of the image file."""
    sop_name: str
    """Keyed name of the instance, by which masks refer to it."""
    date: datetime.date | None
    time: str
    """As the object states it, to put studies in order; never written."""
    position: tuple[int, int]
    """Numbers of the series and of the image in it."""
    view: View
    flip: tuple[bool, bool]
    """Whether columns and rows run against the usual display, with the patient's right on the left and head up."""
    spacing_mm: tuple[float, float] | None
    ages: tuple[int, ...]
    """All that the object says of the patient's age, in years: the stated age, and that by the date of birth."""
    sex: Sex | None
    burned_in: Literal["yes", "no", "unknown"]
    """What the header says of text in the image."""
    defects: tuple[str, ...] = field(default=())


def refuse_other_objects(attributes: Attributes) -> None:
    """Refuse what is not a radiograph for presentation.

    Raises:
        ObjectError: With the modality as its kind, where that is a known one.
    """
    modality, sop_class = attributes.text(Tag.MODALITY), attributes.text(Tag.SOP_CLASS)
    is_raw = attributes.text(Tag.PRESENTATION_INTENT) == "FOR PROCESSING"
    if sop_class == FOR_PROCESSING or (modality in ("DX", "CR") and is_raw):
        raise ObjectError("for processing", "the image is raw data for processing, not for presentation")
    if modality not in ("DX", "CR") or sop_class not in RADIOGRAPHS:
        if modality in _MODALITIES:
            raise ObjectError(
                f"modality {modality}", f"the object is of modality {modality}, expected DX or CR"
            )
        raise ObjectError("other modality", "the object is not a radiograph of modality DX or CR")


def read_image_header(attributes: Attributes, file: FileAt, rules: Rules) -> ImageHeader:
    """Read what is kept of an object.

    Raises:
        ObjectError: It is not a radiograph of the chest that may be used.
    """
    refuse_other_objects(attributes)
    defects: list[str] = []
    _check_body_part(attributes, rules, defects)
    burned_in = _read_burned_in(attributes)
    if burned_in == "yes" and rules.burned_in == "skip":
        raise ObjectError(BURNED_IN, "the object says that text is burned into the image")
    read_form(attributes)
    patient, study_id, sop_id = _read_ids(attributes, defects)
    date = _read_date(attributes)
    if date is None:
        defects.append(NO_DATE)
    view = _read_view(attributes)
    if view == "unknown":
        defects.append(UNKNOWN_VIEW)
    flip = _read_flip(attributes, view)
    if any(flip):
        defects.append(MIRRORED)
    sop_name = rules.names.name("image", sop_id)
    kept = _plain_uid(sop_id) if rules.keep_identifiers else None
    return ImageHeader(
        file=file,
        patient=patient,
        study=name_study(study_id, rules),
        image=kept or sop_name,
        sop_name=sop_name,
        date=date,
        time=_read_time(attributes),
        position=(attributes.whole(Tag.SERIES_NUMBER) or 0, attributes.whole(Tag.INSTANCE_NUMBER) or 0),
        view=view,
        flip=flip,
        spacing_mm=_read_spacing(attributes),
        ages=tuple(_read_ages(attributes, date)),
        sex=_read_sex(attributes),
        burned_in=burned_in,
        defects=tuple(defects),
    )


def name_study(uid: bytes, rules: Rules) -> str:
    """What a study is called in the study set."""
    kept = _plain_uid(uid) if rules.keep_identifiers else None
    return kept or rules.names.name("study", uid)


def name_patient(patient: bytes, rules: Rules) -> str:
    """What a patient is called in the study set."""
    return (
        printable(patient.decode("latin-1"))
        if rules.keep_identifiers
        else rules.names.name("patient", patient)
    )


def shift_date(patient: bytes, date: datetime.date | None, rules: Rules) -> datetime.date | None:
    """The date that is written."""
    return date if date is None or rules.keep_identifiers else rules.names.shift(patient, date)


def _read_ids(attributes: Attributes, defects: list[str]) -> tuple[PatientId, bytes, bytes]:
    """Ids of patient, study and instance. A patient without an id is one for each study."""
    study, sop = attributes.raw(Tag.STUDY_INSTANCE), attributes.raw(Tag.SOP_INSTANCE)
    if not study or not sop:
        raise ObjectError("no id", "the object states no study instance UID or no SOP instance UID")
    patient = attributes.raw(Tag.PATIENT_ID)
    if not patient:
        defects.append(NO_PATIENT)
        return PatientId(study), study, sop
    return PatientId(patient, attributes.raw(Tag.PATIENT_ID_ISSUER)), study, sop


def _plain_uid(uid: bytes) -> str | None:
    """A UID that can be the name of a file."""
    text = uid.decode("latin-1")
    return text if re.fullmatch(r"[0-9][0-9.]{0,63}", text) else None


def _check_body_part(attributes: Attributes, rules: Rules, defects: list[str]) -> None:
    code = attributes.first(Tag.ANATOMIC_REGION).text(Tag.CODE_VALUE)
    word = attributes.text(Tag.BODY_PART).upper()
    if word in _CHEST_WORDS or (not word and code in _CHEST_CODES):
        return
    if word or code:
        raise ObjectError("body part", "the image does not show the chest")
    if rules.unknown_body_part == "skip":
        raise ObjectError(
            "unknown body part",
            "the object does not say which part of the body it shows (--unknown-body-part keep uses it)",
        )
    defects.append(UNKNOWN_BODY_PART)


def _read_burned_in(attributes: Attributes) -> Literal["yes", "no", "unknown"]:
    match attributes.text(Tag.BURNED_IN).upper():
        case "YES":
            return "yes"
        case "NO":
            return "no"
        case _:
            return "unknown"


# ---- single values ---------------------------------------------------------------------------------------------------


def _read_view(attributes: Attributes) -> View:
    word = attributes.text(Tag.VIEW_POSITION).upper()
    if word in _VIEW_WORDS:
        return _VIEW_WORDS[word]
    code = attributes.first(Tag.VIEW_CODE).text(Tag.CODE_VALUE)
    if code in _VIEW_CODES:
        return _VIEW_CODES[code]
    row = attributes.text(Tag.PATIENT_ORIENTATION)
    return "lateral" if row[:1] in ("A", "P") and not word and not code else "unknown"


def _read_flip(attributes: Attributes, view: View) -> tuple[bool, bool]:
    """From the patient orientation: the directions of rows and columns."""
    directions = attributes.texts(Tag.PATIENT_ORIENTATION)
    if len(directions) != 2:
        return False, False
    row, column = (direction[:1] for direction in directions)
    if row in ("H", "F") or column in ("L", "R", "A", "P"):
        raise ObjectError("rotated", "the patient lies on the side in the image")
    return view != "lateral" and row == "R", column == "H"


def _read_spacing(attributes: Attributes) -> tuple[float, float] | None:
    for tag in (Tag.IMAGER_PIXEL_SPACING, Tag.PIXEL_SPACING):
        numbers = attributes.numbers(tag)
        if (
            numbers is not None
            and len(numbers) == 2
            and all(0 < number <= _WIDEST_PIXEL for number in numbers)
        ):
            return numbers[0], numbers[1]
    return None


def _read_date(attributes: Attributes) -> datetime.date | None:
    for tag in (Tag.STUDY_DATE, Tag.ACQUISITION_DATE, Tag.CONTENT_DATE):
        found = _parse_date(attributes.text(tag))
        if found is not None:
            return found
    return None


def _parse_date(text: str) -> datetime.date | None:
    match = re.fullmatch(r"([0-9]{4})\.?([0-9]{2})\.?([0-9]{2})", text)
    try:
        return datetime.date(*map(int, match.groups())) if match else None
    except ValueError:
        return None


def _read_time(attributes: Attributes) -> str:
    text = attributes.text(Tag.STUDY_TIME).replace(":", "")
    return text if re.fullmatch(r"[0-9]{2,6}(\.[0-9]{1,6})?", text) else ""


def _read_ages(attributes: Attributes, date: datetime.date | None) -> Iterator[int]:
    """The stated age, then that on the day of the study, in whole years."""
    match = re.fullmatch(r"([0-9]{1,3})([DWMY])", attributes.text(Tag.AGE))
    if match:
        yield int(int(match[1]) / _AGE_UNITS[match[2]])
    birth = _parse_date(attributes.text(Tag.BIRTH_DATE))
    if birth is not None and date is not None and birth <= date:
        yield date.year - birth.year - ((date.month, date.day) < (birth.month, birth.day))


def _read_sex(attributes: Attributes) -> Sex | None:
    text = attributes.text(Tag.SEX)
    return cast(Sex, text) if text in get_args(Sex) else None
