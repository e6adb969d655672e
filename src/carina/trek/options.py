"""Options of `build_trek`, checked."""

from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from carina.cases.building import check_choice
from carina.reports.trust import TRUST, Evidence, OnConflict, check_trust
from carina.store.errors import CarinaError
from carina.studies.vocabulary import Split
from carina.trek.wording import languages

BoxUnit = Literal["pixel", "percent", "thousand"]
"""Units of boxes that questions and answers may use."""
FRAMES: Final[tuple[BoxUnit, ...]] = get_args(BoxUnit)
PART_SIZE: Final = 1024
"""Conversations in one part of a benchmark."""


@dataclass(frozen=True, kw_only=True)
class Quotas:
    """Average numbers and shares of questions, where a study has enough to ask about."""

    view: float = 0.5
    """Questions about the projection in each conversation."""
    quality: float = 0.7
    named: int = 12
    """Most findings and devices that are asked about by name, yes or no."""
    uncertain: float = 0.2
    """Largest share, about, of the questions by name with the answer "uncertain": reports hedge more often than an
    image leaves a question open."""
    choices: float = 0.25
    """Share of the present findings and devices that are asked about among options instead of by name."""
    lists: float = 1.3
    """Questions for a list of findings or devices in each conversation."""
    others: float = 0.25
    vignette: float = 0.25
    """Share of findings that are asked about by a vignette instead of each attribute."""
    attributes: float = 0.93
    """Share of known attributes that are asked about."""
    described: float = 0.5
    """Share of findings and devices that are described as a whole after their attributes."""
    zones: float = 0.8
    """Share of studies with findings that are asked whether a zone is clear."""
    regions: float = 0.9
    """Questions for the content of a region in each conversation."""
    box_share: float = 0.22
    """Questions for boxes, as a share of all other questions."""
    relations: float = 1.6
    """Questions about relations, in studies that store one."""
    comparison: float = 1.33
    """Questions of comparison, in studies with a prior study."""
    outlook: float = 0.6
    """Share of studies with a follow-up study that are asked about the expected course."""
    two_report_turns: float = 0.17


@dataclass(frozen=True, kw_only=True)
class TrekOptions:
    """Options of `build_trek`, checked."""

    seed: int = 0
    shuffled: float = 0.0
    """Share of conversations with their questions in random order, as far as questions do not depend on each other."""
    frame: BoxUnit = "percent"
    """Units of boxes in questions and answers."""
    most_images: int = 2
    """Most images of a study to show, of the current and of the prior study each."""
    indication: float = 0.25
    """Share of conversations that state the indication once."""
    split: str | None = None
    language: str = "en"
    extractor: str = "rules"
    """How findings are read where a study has only report text: `rules`, or `model:NAME`; where it has findings too,
    rules read the text."""
    paraphrase: str | None = None
    """Model that rewords questions, as `model:NAME`; each question is checked to keep its key."""
    on_conflict: OnConflict = "skip"
    trust: tuple[Evidence, ...] = TRUST
    """What counts more where the report contradicts what is recorded, if that is asked about."""
    quotas: Quotas = field(default_factory=Quotas)
    part_size: int = PART_SIZE
    """Conversations in a part of the benchmark."""

    def __post_init__(self) -> None:
        if not 0 <= self.shuffled <= 1:
            raise CarinaError(f"shuffled {self.shuffled}: expected a share of conversations, 0 to 1")
        if not 0 <= self.indication <= 1:
            raise CarinaError(f"indication {self.indication}: expected a share of conversations, 0 to 1")
        check_choice("frame", self.frame, FRAMES)
        if self.most_images < 1:
            raise CarinaError(f"most_images {self.most_images}: expected at least 1 image of each study")
        if self.part_size < 1:
            raise CarinaError(f"part_size {self.part_size}: expected at least 1 conversation")
        check_choice("on_conflict", self.on_conflict, get_args(OnConflict))
        check_trust(self.trust)
        check_choice("split", self.split, get_args(Split))
        if self.language not in languages():
            raise CarinaError(
                f"language {self.language!r}: there is no wording for it; choose from {', '.join(languages())}"
            )
        if self.extractor != "rules" and not self.extractor.startswith("model:"):
            raise CarinaError(f"extractor {self.extractor!r}: expected 'rules' or 'model:NAME'")
        if self.paraphrase is not None and not self.paraphrase.startswith("model:"):
            raise CarinaError(f"paraphrase {self.paraphrase!r}: expected 'model:NAME'")
