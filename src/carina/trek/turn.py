"""A question before its place in the conversation is known, and the draft that questions are added to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from carina.cases import Box, Evidence, Fact
from carina.cases.model import Format, Label
from carina.reports.conflicts import IN_CONFLICT
from carina.reports.unseen import find_unseen
from carina.studies.assessment import Kind
from carina.studies.model import ReportSection, Sentence
from carina.trek.language import Language, capitalise
from carina.trek.options import Quotas, TrekOptions
from carina.trek.sampling import Sampler
from carina.trek.subject import Subject
from carina.trek.survey import Survey
from carina.trek.wording import GAP, Pool, Template

FINDINGS_UNKNOWN: Final = "not every finding was looked for"
DEVICES_UNKNOWN: Final = "not every device was looked for"
NOT_SHOWN: Final = "the report says it only of what is not shown"
"""Why a question is not asked: the report names a finding only in comparison with an earlier study, or on another view.
"""
PRIOR_UNKNOWN: Final = "not everything was looked for in the prior study"


class Choice(msgspec.Struct, eq=False, gc=False):
    """One of the answers to choose from, before the options are ordered."""

    text: str
    right: bool = False
    none: bool = False
    """Whether it says that none of the others is right; such an option comes last."""


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
    """Its number in the conversation, from 1; 0 until the turns are ordered."""
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
    """Turns that must come before it, because its wording reveals their keys."""
    history: bool = False
    """Whether it cannot be understood without earlier turns."""
    images: tuple[int, ...] | None = None
    """Numbers of the current images it is about, from 0; None for all of them."""
    compares: bool = False
    """Whether it is about the reference images too."""


@dataclass(slots=True)
class ConversationDraft:
    """A conversation while its questions are made: its subject, and what earlier keys have revealed."""

    subject: Subject
    reference: Subject | None
    later: Subject | None
    sampler: Sampler
    words: Language
    survey: Survey
    options: TrekOptions
    quotas: Quotas = field(init=False)
    several: bool = field(init=False)
    """Whether more than one current image is shown."""
    called: Sequence[str] = field(init=False)
    """Phrases for the current images, of which one is picked for each question."""
    turns: list[Turn] = field(default_factory=list)
    presence: dict[str, Turn] = field(default_factory=dict)
    """By id of a finding or device, the turn whose key states whether it is present."""
    answered_kinds: set[Kind] = field(default_factory=set)
    """Kinds for which an earlier key states whether anything of the kind is present."""
    answered_places: set[str] = field(default_factory=set)
    """Ids of things whose location an earlier key reveals."""
    answered_sides: set[str] = field(default_factory=set)
    """Ids of things whose side an earlier key reveals."""
    has_place_answers: bool = False
    """Whether an earlier key reveals something about the locations of all findings."""
    not_asked: dict[tuple[str, str], int] = field(default_factory=dict)
    """By task and reason, the number of questions that are not asked."""

    def __post_init__(self) -> None:
        self.quotas = self.options.quotas
        self.several = len(self.subject.images) > 1
        self.called = self.words.wording.common["images"]["several" if self.several else "one"]

    def add_question(
        self,
        stage: int,
        task: str,
        variant: str,
        slots: Mapping[str, str] | None = None,
        *,
        facts: list[Fact],
    ) -> Turn:
        """Add a question in one of its wordings; the caller adds the key.

        Where `image` is among the slots and several images are shown, the wording says which one is meant.
        """
        pool = self.words.pools[stage, task, variant]
        filled = slots or {}
        templates = pool.on_one_image if self.several and "image" in filled else pool.questions
        template = templates[int(self.sampler.share() * len(templates))]
        if template.says_images and "images" not in filled:
            filled = {**filled, "images": self.images()}
        turn = Turn(
            stage,
            task,
            pool.format,
            pool,
            template,
            filled,
            _fill_sentence(self.words, template.text, filled),
            facts,
        )
        self.turns.append(turn)
        return turn

    def leave_out(self, task: str, reason: str, number: int = 1) -> None:
        """Note that questions are not asked, and why."""
        self.not_asked[task, reason] = self.not_asked.get((task, reason), 0) + number

    def is_complete(self, task: str, *kinds: Kind) -> bool:
        """Whether everything of these kinds that shows is known; otherwise a question that needs it is left out."""
        subject = self.subject
        unknown = next((kind for kind in kinds if not subject.is_complete(kind)), None)
        if unknown is not None and subject.study.assessed.disputed:
            self.leave_out(task, IN_CONFLICT if any(subject.disputed.values()) else NOT_SHOWN)
        elif unknown is not None:
            self.leave_out(task, FINDINGS_UNKNOWN if unknown == "finding" else DEVICES_UNKNOWN)
        return unknown is None

    def speaks_of_unseen(self, sentence: Sentence) -> bool:
        """Whether a sentence of the study's report speaks of what the conversation does not show."""
        report = self.subject.study.report
        if report is None:
            return False
        unseen = find_unseen(
            report.quote(sentence),
            views=[image.view for image in self.subject.images],
            has_prior=self.reference is not None,
            states_change=any(state.trend is not None for state in sentence.states),
        )
        return unseen is not None

    def fill_answer(self, turn: Turn, kind: str, slots: Mapping[str, str]) -> str:
        """An answer of this kind in one of its wordings; for a question with a blank, what belongs in the blank."""
        if turn.template.has_gap:
            return self.words.fill(turn.pool.answers[GAP][0], slots)
        texts = turn.pool.answers[kind]
        return _fill_sentence(self.words, texts[int(self.sampler.share() * len(texts))], slots)

    def fill_clause(self, stage: int, *path: str, slots: Mapping[str, str]) -> str:
        """A clause of a stage, selected by its keys in the wording file."""
        clauses = self.words.wording.phrases[stage]
        for name in path:
            clauses = clauses[name]
        return self.words.fill(str(self.sampler.pick(clauses)), slots)  # type: ignore[arg-type]

    def image(self, number: int) -> str:
        """One of the current images, as a phrase; number from 0."""
        if not self.several:
            return self.images()
        return str(self.words.wording.common["image"][self.subject.images[number].view])

    def images(self) -> str:
        """The current images, as a phrase."""
        return self.sampler.pick(self.called)


def _fill_sentence(words: Language, text: str, slots: Mapping[str, str]) -> str:
    """A sentence of the wording with its slots filled and a capital first letter."""
    said = words.fill(text, slots)
    return capitalise(said) if text[0] == "{" else said
