"""One question before it has its place in a conversation, and the examiner who puts questions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from carina.cases import Box, Evidence, Fact
from carina.cases.model import Format, Label
from carina.studies.model import ReportSection
from carina.trek.draw import Draw
from carina.trek.language import Language, capitalised
from carina.trek.options import Quotas, TrekOptions
from carina.trek.subject import Kind, Subject
from carina.trek.survey import Survey
from carina.trek.wording import GAP, Pool, Template


class Choice(msgspec.Struct, eq=False, gc=False):
    """One of the answers to choose from, before it has its place."""

    text: str
    right: bool = False
    none: bool = False
    """Whether it says that none of the others is right; stands last."""


class Turn(msgspec.Struct, eq=False, gc=False):
    """A question with its key."""

    stage: int
    task: str
    format: Format
    pool: Pool
    template: Template
    slots: Mapping[str, str]
    core: str
    """The question proper, without lead-ins, options and instructions."""
    facts: list[Fact]
    number: int = 0
    """In the conversation, from 1, once it has its place there."""
    answer: str = ""
    label: Label | None = None
    choices: Sequence[Choice] = ()
    multiple: bool = False
    boxes: tuple[Box, ...] = ()
    sections: tuple[ReportSection, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    restates: bool = False
    depends: Sequence["Turn"] = ()
    after: Sequence["Turn"] = ()
    """Turns that must come before it in any order, lest its wording tell their keys."""
    history: bool = False
    """Whether it can't be understood without earlier turns."""
    images: tuple[int, ...] | None = None
    """Numbers of the current images it is about, from 0; None for all of them."""
    compares: bool = False
    """Whether it is about the reference images too."""


@dataclass(slots=True)
class Examiner:
    """Puts the questions of one conversation."""

    subject: Subject
    reference: Subject | None
    later: Subject | None
    draw: Draw
    words: Language
    survey: Survey
    options: TrekOptions
    quotas: Quotas = field(init=False)
    several: bool = field(init=False)
    """Whether more than one current image is shown."""
    called: Sequence[str] = field(init=False)
    """Phrases for the current images."""
    turns: list[Turn] = field(default_factory=list)
    presence: dict[str, Turn] = field(default_factory=dict)
    """By id of a finding or device, the turn that settled whether it is there."""
    kinds_told: set[Kind] = field(default_factory=set)
    """Kinds of which an earlier key has told whether there is anything."""
    known_places: set[str] = field(default_factory=set)
    """Ids of things whose place an earlier key has told."""
    sides_told: set[str] = field(default_factory=set)
    """Ids of things whose side an earlier key has told."""
    places_told: bool = False
    """Whether an earlier key has told something of the places of all findings."""

    def __post_init__(self) -> None:
        self.quotas = self.options.quotas
        self.several = len(self.subject.images) > 1
        self.called = self.words.wording.common["images"]["several" if self.several else "one"]

    def ask(
        self,
        stage: int,
        task: str,
        variant: str,
        slots: Mapping[str, str] | None = None,
        *,
        facts: list[Fact],
    ) -> Turn:
        """A question in one of its wordings; the caller adds the key.

        Where `image` is among the slots and several images are shown, the wording says which one is meant.
        """
        pool = self.words.pools[stage, task, variant]
        filled = slots or {}
        templates = pool.on_one_image if self.several and "image" in filled else pool.questions
        template = templates[int(self.draw.share() * len(templates))]
        if template.says_images and "images" not in filled:
            filled = {**filled, "images": self.images()}
        turn = Turn(stage, task, pool.format, pool, template, filled, _said(template.text, filled), facts)
        self.turns.append(turn)
        return turn

    def say(self, turn: Turn, kind: str, slots: Mapping[str, str]) -> str:
        """An answer of this kind in one of its wordings; where the question leaves a blank, what stands in it."""
        if turn.template.has_gap:
            return turn.pool.answers[GAP][0].format_map(slots)
        texts = turn.pool.answers[kind]
        return _said(texts[int(self.draw.share() * len(texts))], slots)

    def clause(self, stage: int, *path: str, slots: Mapping[str, str]) -> str:
        """A clause of a stage, by what it says."""
        clauses = self.words.wording.phrases[stage]
        for name in path:
            clauses = clauses[name]
        return str(self.draw.pick(clauses)).format_map(slots)  # type: ignore[arg-type]

    def image(self, number: int) -> str:
        """One of the current images, as a phrase; number from 0."""
        if not self.several:
            return self.images()
        return str(self.words.wording.common["image"][self.subject.images[number].view])

    def images(self) -> str:
        """The current images, as a phrase."""
        return self.draw.pick(self.called)


def _said(text: str, slots: Mapping[str, str]) -> str:
    """A sentence of the wording with its slots filled: only one that begins with a slot may lack its capital."""
    said = text.format_map(slots)
    return capitalised(said) if text[0] == "{" else said
