"""Facts of ground: what the keys of its probes rest on."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from carina.cases.facts import FactRecord, LesionFacts, Stored


@dataclass(frozen=True, kw_only=True)
class GroundCaseFacts(LesionFacts):
    """Facts of a probe; a negative probe has only the phrase and the lungs."""

    phrase: Annotated[str | None, Stored("phrase")] = None
    """The words to be found on the image: the name of the finding, or a sentence of a report."""
    pieces: Annotated[float | None, Stored("pieces")] = None
    """How many separate areas there are to find."""
    drawn: Annotated[str | None, Stored("drawn")] = None
    """How the region was drawn: "mask", "polygon" or "box"; the coarsest of several."""
    annotators: Annotated[float | None, Stored("annotators")] = None
    """How many annotators drew it."""
    fusion: Annotated[str | None, Stored("fusion")] = None
    """How regions of several annotators were joined; "one annotator" where there was one."""
    side: Annotated[str | None, Stored("side")] = None
    """Side of the patient: "right", "left" or "bilateral"."""
    agreement: Annotated[float | None, Stored("agreement")] = None
    """Mean overlap (IoU) of two annotators."""
    looks_like: Annotated[tuple[str, ...], Stored("looks like")] = ()
    """Other findings of the same study that look the same."""

    stored_order: ClassVar = (
        "phrase",
        "roles",
        "area",
        "share_of_image",
        "pieces",
        "drawn",
        "annotators",
        "fusion",
        "side",
        "agreement",
        "conspicuity",
        "looks_like",
    )


@dataclass(frozen=True, kw_only=True)
class GroundStepFacts(FactRecord):
    """The steps of a probe have no facts of their own."""
