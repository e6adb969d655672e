"""The Study: what was imaged, and what experts say is there.

Plain frozen records with no behaviour beyond looking things up. A study is complete in itself: images are
named by key (a path relative to the set's image root), regions lie on an image by that key, and every fact
that a report sentence states points to a finding, device, relation or recommendation of the same study by id.
"""

import datetime
from typing import Literal

import msgspec

from carina.studies.region import Region
from carina.studies.vocabulary import (
    Certainty,
    Distribution,
    Drawn,
    RelationKind,
    Section,
    Severity,
    Sex,
    Side,
    Split,
    Trend,
    View,
)


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Common settings of all records: immutable and strict about unknown fields (kw_only is not inherited).

    What is made of immutable parts is never part of a cycle, so nobody needs to look for one.
    """


class Quality(Record, frozen=True, kw_only=True):
    """Technical adequacy of one image; None where a source does not say."""

    rotation: Literal["none", "left", "right"] | None = None
    """Side towards which the patient is turned."""
    rotation_degrees: float | None = None
    inspiration: Literal["adequate", "poor"] | None = None
    posterior_ribs: int | None = None
    """Number of posterior ribs seen above the right hemidiaphragm."""
    exposure: Literal["adequate", "over", "under"] | None = None
    cut_off: tuple[str, ...] | None = None
    """Anatomy that should be in the image and is not; () when coverage is complete."""


class Image(Record, frozen=True, kw_only=True):
    """One radiograph, by key; its pixels stay in the file."""

    key: str
    """Path relative to the image root of the study set, with forward slashes."""
    view: View
    width: int
    height: int
    bits: int = 8
    monochrome1: bool = False
    """True where a high stored value is dark (DICOM MONOCHROME1)."""
    spacing_mm: tuple[float, float] | None = None
    """Size of a pixel at the detector: between rows, between columns."""
    sha256: str | None = None
    """Of the file's bytes."""
    quality: Quality | None = None


class Annotation(Record, frozen=True, kw_only=True):
    """A region that one annotator drew on one image."""

    image: str
    region: Region
    drawn: Drawn
    annotator: str
    conspicuity: float | None = None
    """Contrast-to-noise ratio of the region against its surround, where it is known."""
    threshold: float | None = None
    """Share of the maximal projected thickness at which a phantom mask was cut."""


class Measure(Record, frozen=True, kw_only=True):
    """A quantity behind a word: `Measure(name="cardiothoracic ratio", value=0.57, unit="1")`."""

    name: str
    value: float
    unit: str


class Location(Record, frozen=True, kw_only=True):
    """Where, in the words of a report, computed from regions where there are any."""

    side: Side | None = None
    zones: tuple[str, ...] = ()
    """Names from `vocabulary.ZONES`."""
    parts: tuple[str, ...] = ()
    """Names from `vocabulary.LUNG_PARTS` and `vocabulary.COSTOPHRENIC_ANGLES`."""
    site: str | None = None
    """Anything finer: "right 6th rib"."""


class Finding(Record, frozen=True, kw_only=True):
    """One abnormality: present, absent (looked for and not there), or uncertain (hedged)."""

    id: str
    name: str
    certainty: Certainty
    location: Location | None = None
    severity: Severity | None = None
    distribution: Distribution | None = None
    trend: Trend | None = None
    """Against the prior study; `resolved` goes with certainty `absent`."""
    appearance: tuple[str, ...] = ()
    """Words for how it looks: "air bronchograms", "plate-like", "calcified"."""
    measures: tuple[Measure, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    evidence: tuple[int, ...] = ()
    """Indices of the report sentences that state it."""


class Tip(Record, frozen=True, kw_only=True):
    """Where the end of a device lies on an image, in pixels."""

    image: str
    x: float
    y: float


class Device(Record, frozen=True, kw_only=True):
    """A tube, line or implant."""

    id: str
    name: str
    certainty: Certainty
    side: Side | None = None
    position: Literal["adequate", "malpositioned"] | None = None
    site: str | None = None
    """Where its tip lies, in words: "4.1 cm above the carina"."""
    trend: Trend | None = None
    measures: tuple[Measure, ...] = ()
    tips: tuple[Tip, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    evidence: tuple[int, ...] = ()


class Anatomy(Record, frozen=True, kw_only=True):
    """One named structure on one image."""

    name: str
    image: str
    region: Region
    annotator: str


class Relation(Record, frozen=True, kw_only=True):
    """`subject` causes / accompanies / suggests `object`: ids of findings or devices of the same study."""

    id: str
    subject: str
    kind: RelationKind
    object: str
    evidence: tuple[int, ...] = ()


class Recommendation(Record, frozen=True, kw_only=True):
    """What should be done next, and because of what."""

    id: str
    action: str
    """A short key: "follow-up radiograph", "chest CT", "reposition device", "clinical correlation"."""
    about: tuple[str, ...] = ()
    """Ids of the findings or devices that call for it."""
    evidence: tuple[int, ...] = ()


class Statement(Record, frozen=True, kw_only=True):
    """One fact that a report sentence states; only the fields that the sentence really says are filled."""

    kind: Literal["finding", "device", "relation", "recommendation", "quality", "comparison"]
    about: str
    """Id of the finding, device, relation or recommendation; image key for quality; prior's id for comparison."""
    certainty: Certainty | None = None
    side: Side | None = None
    zones: tuple[str, ...] = ()
    severity: Severity | None = None
    trend: Trend | None = None
    measure: Measure | None = None


class Sentence(Record, frozen=True, kw_only=True):
    """A span of a report section, and the facts it states."""

    section: Section
    start: int
    end: int
    """Python string offsets into the section's text, end exclusive."""
    states: tuple[Statement, ...] = ()


class ReportSection(Record, frozen=True, kw_only=True):
    name: Section
    text: str


class Report(Record, frozen=True, kw_only=True):
    """Sections in reading order; sentences index into them."""

    sections: tuple[ReportSection, ...]
    sentences: tuple[Sentence, ...] = ()
    language: str = "en"

    def text(self, name: str) -> str | None:
        """The text of one section, or None where the report has no such section."""
        return next((section.text for section in self.sections if section.name == name), None)

    def quote(self, sentence: Sentence) -> str:
        """The words of one sentence."""
        text = self.text(sentence.section)
        if text is None:
            raise KeyError(f"the report has no section {sentence.section!r}")
        return text[sentence.start : sentence.end]


class Study(Record, frozen=True, kw_only=True):
    """Everything known of one examination of one patient."""

    id: str
    patient: str
    source: str
    order: int
    """Position among the patient's studies in time, from 0: the only thing that says what is earlier."""
    date: datetime.date | None = None
    """May be shifted for privacy; consistent within a patient."""
    prior: str | None = None
    later: str | None = None
    """Ids of the neighbours in time. A set may be part of a larger one and not hold the study named here."""
    split: Split | None = None
    age: int | None = None
    sex: Sex | None = None
    indication: str | None = None
    images: tuple[Image, ...]
    findings: tuple[Finding, ...] = ()
    devices: tuple[Device, ...] = ()
    anatomy: tuple[Anatomy, ...] = ()
    relations: tuple[Relation, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    report: Report | None = None

    def image(self, key: str) -> Image:
        """The image with this key."""
        for image in self.images:
            if image.key == key:
                return image
        raise KeyError(f"study {self.id} has no image {key!r}")

    def anatomy_on(self, key: str) -> dict[str, Region]:
        """Anatomy by name on one image."""
        return {structure.name: structure.region for structure in self.anatomy if structure.image == key}
