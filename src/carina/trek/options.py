"""What decides the conversations, beside the studies."""

from dataclasses import dataclass, field
from typing import Final, get_args

from carina.cases.model import Frame
from carina.errors import CarinaError
from carina.studies.vocabulary import Split
from carina.trek.wording import languages

FRAMES: Final = ("pixel", "percent", "thousand")


@dataclass(frozen=True, kw_only=True)
class Quotas:
    """How much is asked, on average, where there is enough to ask about."""

    view: float = 0.5
    """Questions about the projection, a conversation."""
    quality: float = 0.7
    named: int = 12
    """At most so many findings and devices asked about by name, yes or no."""
    choices: float = 0.25
    """Share of the present findings and devices that are asked about among options instead of by name."""
    lists: float = 1.3
    """Open lists of what there is, a conversation."""
    others: float = 0.25
    vignette: float = 0.25
    """Share of things that are asked about by a vignette instead of attribute by attribute."""
    attributes: float = 0.93
    """Share of known attributes that are asked about."""
    described: float = 0.5
    """Share of things that are described as a whole after their attributes."""
    zones: float = 0.8
    """Share of studies with findings in which a zone is asked about, whether it is clear."""
    regions: float = 0.9
    """Named regions whose content is asked for, a conversation."""
    box_share: float = 0.22
    """Boxes, as a share of all other questions."""
    relations: float = 1.6
    """Where a relation is stored."""
    comparison: float = 1.33
    """Where there is a reference study."""
    outlook: float = 0.6
    """Share of studies with a later one that are asked about the course."""
    two_report_turns: float = 0.17


@dataclass(frozen=True, kw_only=True)
class TrekOptions:
    """What decides the conversations, beside the studies."""

    seed: int = 0
    shuffled: float = 0.0
    """Share of conversations whose turns are asked in random order, as far as turns don't depend on each other."""
    frame: Frame = "percent"
    """Units of boxes in questions and answers."""
    most_images: int = 2
    """Images shown of a study, the current and the reference one each."""
    indication: float = 0.25
    """Share of conversations in which the indication is told once."""
    split: str | None = None
    language: str = "en"
    extractor: str = "rules"
    """How report text becomes findings where a set has only text: `rules`, or `model:<name>`."""
    paraphrase: str | None = None
    """`model:<name>` rewords questions, each checked to keep its key."""
    quotas: Quotas = field(default_factory=Quotas)
    part_size: int = 1024
    """Conversations in a part of the benchmark."""

    def __post_init__(self) -> None:
        if not 0 <= self.shuffled <= 1:
            raise CarinaError(f"the share of shuffled conversations is {self.shuffled}, expected 0 to 1")
        if not 0 <= self.indication <= 1:
            raise CarinaError(
                f"the share of conversations with an indication is {self.indication}, expected 0 to 1"
            )
        if self.frame not in FRAMES:
            raise CarinaError(f"unknown box convention {self.frame!r}; expected one of {', '.join(FRAMES)}")
        if self.most_images < 1:
            raise CarinaError(f"a conversation shows at least one image a study, not {self.most_images}")
        if self.part_size < 1:
            raise CarinaError(f"a part holds at least one conversation, not {self.part_size}")
        if self.split is not None and self.split not in get_args(Split):
            raise CarinaError(f"unknown split {self.split!r}; expected one of {', '.join(get_args(Split))}")
        if self.language not in languages():
            raise CarinaError(
                f"no wording in the language {self.language!r}; there is {', '.join(languages())}"
            )
        if self.extractor != "rules" and not self.extractor.startswith("model:"):
            raise CarinaError(f"unknown extractor {self.extractor!r}; expected `rules` or `model:<name>`")
        if self.paraphrase is not None and not self.paraphrase.startswith("model:"):
            raise CarinaError(f"unknown paraphraser {self.paraphrase!r}; expected `model:<name>`")
