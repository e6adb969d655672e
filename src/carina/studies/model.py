"""The Study: what was imaged, and what experts found in it.

Plain frozen records with no behaviour beyond looking things up. A study is complete in itself: images are
named by key (a path relative to the set's image root), regions lie on an image by that key, and every fact
that a report sentence states points to a finding, device, relation or recommendation of the same study by id.
"""

import datetime
from typing import Any, Final, Literal

import msgspec

from carina.studies.region import Region
from carina.studies.vocabulary import (
    Certainty,
    Distribution,
    Drawn,
    RelationKind,
    Scope,
    Section,
    Severity,
    Sex,
    Side,
    Split,
    Trend,
    View,
)


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Base of all records: immutable, and strict about unknown fields.

    Records consist of immutable parts and are never part of a reference cycle, so the garbage collector skips them.
    `kw_only` is not inherited; each record states it.
    """


class Origin(Record, frozen=True, kw_only=True):
    """Who derived a finding from text or worded a question, and whether a person has reviewed it since."""

    method: Literal["rule", "llm", "human", "import"] = "rule"
    """Rules, a language model, a person, or the benchmark of somebody else."""
    model: str | None = None
    """Name of the language model, where it was one."""
    review: Literal["none", "accepted", "rewritten", "rejected"] = "none"
    """What a reviewer has decided."""
    note: str | None = None
    """What the reviewer has written about it."""


class Quality(Record, frozen=True, kw_only=True):
    """Technical adequacy of one image; None where a source does not say."""

    rotation: Literal["none", "left", "right"] | None = None
    """Side towards which the patient is rotated."""
    rotation_degrees: float | None = None
    inspiration: Literal["adequate", "poor"] | None = None
    posterior_ribs: int | None = None
    """Number of posterior ribs seen above the right hemidiaphragm."""
    exposure: Literal["adequate", "over", "under"] | None = None
    cut_off: tuple[str, ...] | None = None
    """Anatomy that should be in the image and is cut off; () where coverage is complete."""


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
    rescale: tuple[float, float] | None = None
    """Slope and intercept that turn stored values into the values that a window speaks of (DICOM Rescale Slope and
    Rescale Intercept); None for slope 1 and intercept 0."""
    window: tuple[float, float] | None = None
    """Centre and width of the values to display, after rescaling (DICOM Window Center and Window Width, function
    LINEAR); None for the whole range of the stored bits."""
    spacing_mm: tuple[float, float] | None = None
    """Size of a pixel at the detector: between rows, between columns."""
    sha256: str | None = None
    """SHA-256 of the bytes of the file, in hex."""
    quality: Quality | None = None


class Annotation(Record, frozen=True, kw_only=True):
    """A region that one annotator drew on one image."""

    image: str
    region: Region
    drawn: Drawn
    annotator: str
    automatic: bool = False
    """Whether a program drew it: never expert truth."""
    instruction: str | None = None
    """The words by which the source asks for the region, where it has such words."""
    conspicuity: float | None = None
    """Contrast-to-noise ratio of the region against its surround, where it is known."""
    threshold: float | None = None
    """Share of the maximal projected thickness at which a phantom mask was cut."""


class SalientPoint(Record, frozen=True, kw_only=True):
    """A point that a reader marked as the one that shows a finding best, in pixels of an image. It is no region."""

    image: str
    x: float
    y: float
    annotator: str


class Measure(Record, frozen=True, kw_only=True):
    """A measured quantity: `Measure(name="cardiothoracic ratio", value=0.57, unit="1")`."""

    name: str
    value: float
    unit: str


class Location(Record, frozen=True, kw_only=True):
    """A location in the terms of a report, computed from regions where there are any."""

    side: Side | None = None
    zones: tuple[str, ...] = ()
    """Names from `vocabulary.ZONES`."""
    parts: tuple[str, ...] = ()
    """Names from `vocabulary.LUNG_PARTS` and `vocabulary.COSTOPHRENIC_ANGLES`."""
    site: str | None = None
    """A more exact site: "right 6th rib"."""


class Finding(Record, frozen=True, kw_only=True):
    """One abnormality: present, absent (searched for and not found), or uncertain (hedged)."""

    id: str
    name: str
    certainty: Certainty
    label: str | None = None
    """Its name in the source, where that differs."""
    location: Location | None = None
    severity: Severity | None = None
    distribution: Distribution | None = None
    trend: Trend | None = None
    """Against the prior study; `resolved` goes with certainty `absent`."""
    appearance: tuple[str, ...] = ()
    """Terms for its appearance: "air bronchograms", "plate-like", "calcified". An absent finding that has one is absent
    with this appearance only: "no acute fracture" does not say that there is no old one."""
    measures: tuple[Measure, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    comparisons: tuple[Annotation, ...] = ()
    """What readers drew whom the source compares with its truth, such as the human benchmark of CheXlocalize: never
    part of the truth, and of use only for the human ceiling. An empty region: the reader looked and drew nothing."""
    points: tuple[SalientPoint, ...] = ()
    """Points that readers marked as most salient, beside or instead of a region."""
    evidence: tuple[int, ...] = ()
    """Indices of the report sentences that state it."""
    stated_by: tuple[str, ...] = ()
    """Readers of `Study.assessed.readers` who state that it is present, whether or not they drew it."""


class Tip(Record, frozen=True, kw_only=True):
    """Position of the tip of a device on an image, in pixels."""

    image: str
    x: float
    y: float


class Device(Record, frozen=True, kw_only=True):
    """A tube, line or implant."""

    id: str
    name: str
    certainty: Certainty
    label: str | None = None
    """Its name in the source, where that differs."""
    side: Side | None = None
    position: Literal["adequate", "malpositioned"] | None = None
    site: str | None = None
    """Position of its tip in words: "4.1 cm above the carina"."""
    trend: Trend | None = None
    measures: tuple[Measure, ...] = ()
    tips: tuple[Tip, ...] = ()
    annotations: tuple[Annotation, ...] = ()
    comparisons: tuple[Annotation, ...] = ()
    """What readers drew whom the source compares with its truth, as of findings."""
    points: tuple[SalientPoint, ...] = ()
    """Points that readers marked as most salient, as of findings."""
    evidence: tuple[int, ...] = ()


class Anatomy(Record, frozen=True, kw_only=True):
    """One named structure on one image."""

    name: str
    image: str
    region: Region
    annotator: str
    automatic: bool = False
    """Whether a program drew it: never expert truth."""
    drawn: Drawn = "mask"
    """How it was marked. A box is not an outline: `Study.anatomy_on` leaves it out."""
    quality: float | None = None
    """Quality of an automatic mask, 0 to 1, where its source estimates it, such as CheXmask's mean Dice."""


class Relation(Record, frozen=True, kw_only=True):
    """`subject` causes / accompanies / suggests `object`: ids of findings or devices of the same study."""

    id: str
    subject: str
    kind: RelationKind
    object: str
    evidence: tuple[int, ...] = ()


class Recommendation(Record, frozen=True, kw_only=True):
    """A recommended next step, and the findings it refers to."""

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
    """One section of a report, such as the findings or the impression."""

    name: Section
    text: str


class Report(Record, frozen=True, kw_only=True):
    """Sections in reading order; sentences index into them."""

    sections: tuple[ReportSection, ...]
    sentences: tuple[Sentence, ...] = ()
    language: str = "en"
    is_excerpt: bool = False
    """Whether it holds only some sentences or phrases of the report, so that it is no example of a report."""

    def text(self, name: str) -> str | None:
        """The text of one section, or None where the report has no such section."""
        return next((section.text for section in self.sections if section.name == name), None)

    def quote(self, sentence: Sentence) -> str:
        """The words of one sentence."""
        text = self.text(sentence.section)
        if text is None:
            raise KeyError(f"the report has no section {sentence.section!r}")
        return text[sentence.start : sentence.end]


class Assessed(Record, frozen=True, kw_only=True):
    """What was looked for in a study.

    What was looked for and is not recorded is absent. Of everything else nothing is known, unless it is recorded;
    `carina.studies.certainty_of` answers it for one name.
    """

    findings: Scope = "unknown"
    """Which findings were looked for: every one that shows, those of a closed list, or nobody says."""
    devices: Scope = "unknown"
    """Which devices were looked for, in the same way."""
    listed: tuple[str, ...] = ()
    """Names of the findings and devices of the closed list, where either is "listed"."""
    text: bool = False
    """Whether the report was read, by a person or a program, so that what it states is among the findings."""
    readers: tuple[str, ...] = ()
    """Readers who looked at the images, each alone, for every finding that was looked for: one who neither states nor
    draws a finding calls it absent. Empty where the source does not say who looked."""
    disputed: tuple[str, ...] = ()
    """Names of findings and devices of which nothing is known, although they may have been looked for: statements about
    them contradict each other, in what is recorded or between that and the report; or a name that is recorded is not
    known, and may be a misspelling of this one."""
    by_program: tuple[str, ...] = ()
    """Names of findings and devices of which only a program says whether they are present, such as labels that were
    mined from the report; what a person drew is known from that person all the same."""


class Study(Record, frozen=True, kw_only=True):
    """Everything that is known about one examination of one patient.

    Example:
        >>> image = Image(key="a.png", view="PA", width=2048, height=2048)
        >>> effusion = Finding(id="f1", name="pleural effusion", certainty="present")
        >>> study = Study(id="s1", patient="p1", source="mine", images=(image,), findings=(effusion,))
        >>> [finding.name for finding in study.findings]
        ['pleural effusion']
    """

    id: str
    patient: str
    source: str
    order: int | None = None
    """Position among the patient's studies in time, from 0; None where the source does not say. Where neither order nor
    date is known, prior and follow-up are unknown too."""
    date: datetime.date | None = None
    """Date of the examination. It may be shifted for privacy, consistently within a patient."""
    prior: str | None = None
    """Id of the study before; None where there is none or it is unknown. The set need not hold that study."""
    later: str | None = None
    """Id of the study after, in the same way."""
    split: Split | None = None
    age: int | None = None
    sex: Sex | None = None
    indication: str | None = None
    images: tuple[Image, ...]
    assessed: Assessed = Assessed()
    """What was looked for: what was looked for and is not recorded is absent."""
    findings: tuple[Finding, ...] = ()
    devices: tuple[Device, ...] = ()
    anatomy: tuple[Anatomy, ...] = ()
    relations: tuple[Relation, ...] = ()
    recommendations: tuple[Recommendation, ...] = ()
    report: Report | None = None

    def __reduce__(self) -> Any:  # noqa: ANN401 - as pickle takes it
        # Studies go between processes by the million: four times as fast as one object after another.
        try:
            return _decode_study, (_STUDY_ENCODER.encode(self),)
        except UnicodeEncodeError:  # a text with half of a surrogate pair, which pickle can write
            return super().__reduce__()

    def image(self, key: str) -> Image:
        """The image with this key."""
        for image in self.images:
            if image.key == key:
                return image
        raise KeyError(f"study {self.id} has no image {key!r}")

    def anatomy_on(self, key: str) -> dict[str, Region]:
        """Outlined anatomy by name on one image; structures that are only marked by a box are left out."""
        return {
            structure.name: structure.region
            for structure in self.anatomy
            if structure.image == key and structure.drawn != "box"
        }


_STUDY_ENCODER: Final = msgspec.msgpack.Encoder()
_STUDY_DECODER: Final = msgspec.msgpack.Decoder(Study)


def _decode_study(content: bytes) -> Study:
    return _STUDY_DECODER.decode(content)
