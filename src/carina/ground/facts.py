"""Facts of ground: what the keys of its probes rest on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from carina.cases.facts import FactRecord, LesionFacts, Stored
from carina.cases.reader_scores import ReaderFacts


@dataclass(frozen=True, kw_only=True)
class GroundCaseFacts(LesionFacts):
    """Facts of a probe; a negative probe has only the phrase and the lungs."""

    phrase: Annotated[str | None, Stored("phrase")] = None
    """The words to be found on the image: the name of the finding, or a sentence of a report."""
    pieces: Annotated[float | None, Stored("pieces")] = None
    """How many separate areas there are to find."""
    drawn: Annotated[str | None, Stored("drawn")] = None
    """How the region was drawn: "mask", "polygon" or "box"; the coarsest of several."""
    drawn_by: Annotated[str | None, Stored("drawn by")] = None
    """`BY_PROGRAM` where no person drew the region; nothing where people did."""
    stated_by: Annotated[str | None, Stored("stated by")] = None
    """`BY_PROGRAM` where only a program says whether the finding is present; nothing where a person says so."""
    annotators: Annotated[float | None, Stored("annotators")] = None
    """How many annotators drew it."""
    fusion: Annotated[str | None, Stored("fusion")] = None
    """How regions of several readers became one, in words; "one annotator" where there was one."""
    reader: Annotated[str | None, Stored("reader")] = None
    """The reader whose region is the truth, where each reader has a probe."""
    side: Annotated[str | None, Stored("side")] = None
    """Side of the patient: "right", "left" or "bilateral"."""
    agreement: Annotated[float | None, Stored("agreement")] = None
    """Mean overlap (IoU) of two annotators."""
    looks_like: Annotated[tuple[str, ...], Stored("looks like")] = ()
    """Other findings of the same study that look the same."""
    readers: Mapping[str, ReaderFacts] = field(default_factory=dict)
    """By reader, how the reader does against the others or the truth; empty where the source has one reader."""

    stored_order: ClassVar = (
        "phrase",
        "roles",
        "area",
        "share_of_image",
        "pieces",
        "drawn",
        "drawn_by",
        "stated_by",
        "annotators",
        "fusion",
        "reader",
        "side",
        "agreement",
        "conspicuity",
        "looks_like",
        "readers",
    )


@dataclass(frozen=True, kw_only=True)
class GroundStepFacts(FactRecord):
    """The steps of a probe have no facts of their own."""
