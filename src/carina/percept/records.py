"""Records of one analysed lesion: everything that a case on any path is assembled from.

These are plain records that can be passed between processes and kept on disk until a benchmark is complete. Points are
in pixels of the image, as (x, y); the centre of the first pixel is (0.5, 0.5).
"""

import msgspec

from carina.cases import CaseImage
from carina.percept.attributes import Comparison, Severity
from carina.percept.deform import Operation
from carina.studies.region import Region
from carina.studies.vocabulary import Split


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """The study that is asked about, and its frontal image."""

    study: str
    patient: str
    source: str
    split: Split | None
    image: CaseImage


class ContourEdit(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the contour that the model must find; the revision is its opposite."""

    operation: Operation
    place: str
    point: tuple[float, float]
    area: int
    share: float
    thickness: float
    displacement: float
    """Lengths in pixels of the image."""
    contour_distance: float
    """Distance of the point to the shown contour."""


class DistractorPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A point where no revision is needed."""

    point: tuple[float, float]
    inside: bool
    nearest_change: float
    contour_distance: float


class MaskChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A mask to choose from."""

    region: Region
    kind: str
    """"key" for the right mask, else what is wrong with it."""
    features: tuple[float, ...]
    """What its contour looks like; as `MaskOption.features`."""
    area: int
    change: int
    """Pixels that differ from the right mask."""
    as_shown: int
    """Of these, pixels that are as in the shown contour."""


class LocationChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Regions for the location question."""

    right: tuple[str, ...]
    wrong: tuple[str, ...]
    overlaps: tuple[tuple[str, str, float], ...]
    """For every two regions, the share of the smaller one that lies in the other."""


class AttributeTruth(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of the attribute questions, and the shares that they rest on."""

    zones: dict[str, float]
    regions: dict[str, float]
    lungs: dict[str, float]
    sizes: dict[str, int]
    affected: tuple[str, ...]
    distribution: str | None
    """Key of the distribution question; None where it is not asked, as of the others."""
    severity: dict[str, Severity]
    comparison: Comparison | None
    outside_share: float
    locations: dict[int, LocationChoice]
    """By number of right regions, for the numbers that the lesion allows."""
    not_asked: dict[str, str]
    """By task ("distribution"), why it is not asked."""


class LesionAnalysis(msgspec.Struct, frozen=True, kw_only=True, tag="analysis"):
    """A lesion that can be asked about on either of its paths."""

    subject: Subject
    target: str
    area: int
    share: float
    """Share of the image that the lesion covers."""
    scale: float
    """Pixels of the image for each pixel of the frame that the rules refer to."""
    truth: Region
    provenance: str
    """Where the truth comes from."""
    reviewed: bool
    """Whether an expert has drawn or approved the truth."""
    conspicuity: float | None
    """Contrast-to-noise ratio of the lesion, where the source states it."""
    revised: Region
    """The truth as a careful reader might have drawn it."""
    agreement: float
    """IoU of `revised` with the truth."""
    shown: Region
    """The contour after the edits."""
    deformer: str
    """Name of the deformer."""
    overlap: float
    """IoU of the shown contour with the truth."""
    edits: tuple[ContourEdit, ...]
    points: tuple[DistractorPoint, ...]
    shown_area: int
    shown_change: int
    """Pixels in which the shown contour differs from `revised`."""
    shown_features: tuple[float, ...]
    """What the shown contour looks like; `FEATURES` of it."""
    masks: tuple[MaskChoice, ...]
    """The right mask, then wrong ones with one wrong state each; once chosen, the four masks of a question."""
    squares: tuple[tuple[int, int], ...]
    """Every two wrong masks that make a set of four with the right one and with both wrong states at once."""
    attributes: AttributeTruth | None
    """None for lesions that the protocol does not describe."""


class Skipped(msgspec.Struct, frozen=True, kw_only=True, tag="skipped"):
    """A lesion of a study that cannot be asked about, and why."""

    study: str
    target: str
    reason: str
    detail: str


Outcome = LesionAnalysis | Skipped
