"""The plan of a phantom patient, from which anatomy, lesions, devices and reports are made.

A plan holds decisions, not geometry: which lesion, on which side, how large, in which study. A lesion has the same
key in all studies of a patient, so its position and shape stay the same while its extent changes.
"""

import datetime
from dataclasses import dataclass
from typing import Literal

from carina.studies.vocabulary import Certainty, RelationKind, Sex, Side, Trend, View

Level = Literal["upper", "mid", "lower"]

# Beyond these an image is technically inadequate.
ROTATED_DEGREES = 4.0
POOR_INSPIRATION = 0.35
MISEXPOSED_STOPS = 0.8


@dataclass(frozen=True, kw_only=True)
class LesionPlan:
    """One lesion in one study."""

    key: str
    """The same in all studies of the patient ("l1"); seeds the lesion's position and shape."""
    name: str
    """A name from `vocabulary.FINDINGS`."""
    side: Side
    level: Level | None = None
    """For lesions in a part of the lung."""
    form: str = ""
    """Variant of appearance; see `placement.FORM_WEIGHTS` for the forms of each finding."""
    extent: float
    """Size from 0 (smallest) to 1 (largest); severity follows from the resulting geometry."""
    density: float
    """Contrast from 0.3 (subtle) to 1 (obvious)."""
    certainty: Certainty = "present"
    trend: Trend | None = None


@dataclass(frozen=True, kw_only=True)
class DevicePlan:
    """One device in one study."""

    key: str
    name: str
    side: Side
    adequate: bool
    depth: float
    """Position of the tip in the range of adequate (or malpositioned) ones, 0-1."""
    trend: Trend | None = None


@dataclass(frozen=True, kw_only=True)
class RelationPlan:
    subject: str
    kind: RelationKind
    object: str
    """Keys of lesions or devices."""


@dataclass(frozen=True, kw_only=True)
class Technique:
    """How one image was taken."""

    view: View
    rotation_degrees: float
    """Turn about the long axis; positive turns the patient's front to their left."""
    inspiration: float
    """0 (full expiration) to 1 (full inspiration)."""
    exposure: float
    """Stops from the ideal exposure; positive is overexposed."""
    cut_off: Literal["right", "left"] | None = None
    """Side whose costophrenic angle lies outside the image."""

    @property
    def is_rotated(self) -> bool:
        return abs(self.rotation_degrees) > ROTATED_DEGREES

    @property
    def is_poorly_inspired(self) -> bool:
        return self.inspiration < POOR_INSPIRATION

    @property
    def is_misexposed(self) -> bool:
        return abs(self.exposure) > MISEXPOSED_STOPS

    @property
    def has_defect(self) -> bool:
        """Whether the image has at least one technical defect."""
        return self.is_rotated or self.is_poorly_inspired or self.is_misexposed or self.cut_off is not None


@dataclass(frozen=True, kw_only=True)
class ResolvedItem:
    """A lesion or device of the prior study that is no longer present."""

    key: str
    name: str


@dataclass(frozen=True, kw_only=True)
class StudyPlan:
    id: str
    order: int
    date: datetime.date
    age: int
    supine: bool
    techniques: tuple[Technique, ...]
    lesions: tuple[LesionPlan, ...]
    devices: tuple[DevicePlan, ...]
    relations: tuple[RelationPlan, ...]
    resolved_lesions: tuple[ResolvedItem, ...]
    """Lesions of the prior study that have resolved."""
    removed_devices: tuple[ResolvedItem, ...]
    """Devices of the prior study that have been removed."""
    ecg_leads: bool


@dataclass(frozen=True, kw_only=True)
class PatientPlan:
    id: str
    index: int
    sex: Sex
    height_cm: float
    bmi: float
    cardiothoracic_ratio: float
    """Without cardiomegaly, at full inspiration."""
    studies: tuple[StudyPlan, ...]
