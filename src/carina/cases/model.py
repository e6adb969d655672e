"""The Case: what is asked about a study, as an ordered and branching list of steps.

One model serves every protocol: percept's branching examination, trek's conversation in eight stages, ground's single
probes. Records only. A case holds no pixels: a step names views, a view says what to draw on which image, and
`carina.cases.render` draws it. What is right stands apart from what is asked, in `Step.key`, `Step.facts` and
`Case.facts`, so that a case can be handed on without its answers (`without_keys`).
"""

from typing import Literal

import msgspec

from carina.studies.model import Record, ReportSection
from carina.studies.region import Region
from carina.studies.vocabulary import Sex, Split, View

Role = Literal["current", "reference"]
Format = Literal["choice", "yes_no", "open", "boxes", "report", "map"]
"""How a step is answered. `map` is a localisation map or a point, which only some models can give."""
Score = Literal["exact", "set", "boxes", "text", "map"]
"""How an answer is compared with the key: one option, a set of options, boxes or regions by overlap, words."""
Label = Literal["yes", "no", "uncertain"]
Frame = Literal["pixel", "percent", "unit", "thousand"]
"""Units of a box: pixels of the image, percent of its sides, shares of them, or thousandths."""


# ---- what is shown ------------------------------------------------------------------------------------------------


class CaseImage(Record, frozen=True, kw_only=True):
    """An image that the case shows, by key; what its study knows of it and a reader must judge is left out."""

    key: str
    """Path relative to the benchmark's image root, with forward slashes."""
    width: int
    height: int
    role: Role = "current"
    view: View = "unknown"
    bits: int = 8
    monochrome1: bool = False
    sha256: str | None = None
    finished: bool = False
    """A picture that somebody else has drawn, shown as its file stands."""


class CaseRegion(Record, frozen=True, kw_only=True):
    """A region of one of the case's images. Its name says nothing of its part in the case."""

    name: str
    image: str
    region: Region


class Overlay(Record, frozen=True, kw_only=True):
    """A region on a panel: filled, outlined, or both."""

    region: str
    """Name of a region of the case."""
    colour: str = "cyan"
    fill: float = 0.5
    """Opacity of the tint, 0 (none) to 1."""
    outline: int = 0
    """Width of the line in pixels of the picture; 0 for none."""


class Mark(Record, frozen=True, kw_only=True):
    """A numbered point on a panel, in pixels of its image (centre of the first pixel: 0.5, 0.5)."""

    x: float
    y: float
    colour: str
    text: str = ""


class Panel(Record, frozen=True, kw_only=True):
    """One image with what is drawn on it."""

    image: str
    overlays: tuple[Overlay, ...] = ()
    marks: tuple[Mark, ...] = ()
    crop: tuple[int, int, int, int] | None = None
    """x, y, width, height in pixels of the image."""
    caption: str = ""


class CaseView(Record, frozen=True, kw_only=True):
    """One picture as a model or a reader gets it: a panel, or several side by side."""

    id: str
    panels: tuple[Panel, ...]
    side: int | None = None
    """Longest side of each panel in the picture; None keeps the pixels of the image."""


# ---- what is right ------------------------------------------------------------------------------------------------


class Fact(Record, frozen=True, kw_only=True):
    """Something that a key rests on: a word, or a number with the range in which the key holds."""

    name: str
    about: str = ""
    """What it concerns within the case: a region, an option, an edit; the whole where empty."""
    text: str | None = None
    value: float | None = None
    low: float | None = None
    high: float | None = None


class Box(Record, frozen=True, kw_only=True):
    """A rectangle on an image of the case."""

    image: str
    xyxy: tuple[float, float, float, float]
    frame: Frame = "pixel"
    name: str = ""
    of: Literal["finding", "anatomy"] = "finding"


class Key(Record, frozen=True, kw_only=True):
    """The right answer, in every form that the step's format has."""

    options: tuple[str, ...] = ()
    """Ids of the right options."""
    kinds: tuple[str, ...] = ()
    """What each option is, in the order of the options: "key", or the kind of error that choosing it shows."""
    label: Label | None = None
    text: str | None = None
    boxes: tuple[Box, ...] = ()
    regions: tuple[str, ...] = ()
    """Names of regions of the case."""
    sections: tuple[ReportSection, ...] = ()


# ---- what is asked ------------------------------------------------------------------------------------------------


class Option(Record, frozen=True, kw_only=True):
    """One of the answers to choose from; numbered by its place in the list."""

    id: str
    text: str
    view: str | None = None
    """The view that shows it, where the option is a picture."""
    mark: str | None = None
    """Text of the mark that it names, where the option is a point."""


class Branch(Record, frozen=True, kw_only=True):
    """A step is reached when an earlier one is answered with one of these options."""

    step: str
    options: tuple[str, ...]


class Constraints(Record, frozen=True, kw_only=True):
    """What the question demands of the form of the answer; the key obeys it."""

    max_words: int | None = None
    min_words: int | None = None
    answer_only: bool = False


class Slot(Record, frozen=True, kw_only=True):
    """A value that the wording was filled with."""

    name: str
    value: str


class Evidence(Record, frozen=True, kw_only=True):
    """The report sentence that says so."""

    report: Literal["current", "reference", "later"]
    sentence: int


class Origin(Record, frozen=True, kw_only=True):
    """Who worded a step, and whether somebody has looked at it since."""

    method: Literal["rule", "llm", "human", "import"] = "rule"
    model: str | None = None
    review: Literal["none", "accepted", "rewritten", "rejected"] = "none"
    note: str | None = None


class Step(Record, frozen=True, kw_only=True):
    """One question of a case."""

    id: str
    """Unique in the case: "3a", "t7"."""
    stage: int
    task: str
    format: Format
    question: str
    """The words as they are sent, the list of options included."""
    multiple: bool = False
    """Whether several options may be right."""
    context: str | None = None
    """What is said before the question."""
    options: tuple[Option, ...] = ()
    shows: tuple[str, ...] = ()
    """Ids of the views that enter the conversation with this step."""
    uses: tuple[str, ...] = ()
    """Ids of all views without which it cannot be answered, whenever they entered."""
    score: Score = "exact"
    reached_by: tuple[Branch, ...] = ()
    """All must hold. On the path of the case the right answers lead here."""
    depends_on: tuple[str, ...] = ()
    """Earlier steps whose answers this one refers to."""
    restates: bool = False
    """Whether the question tells the answer of another step."""
    constraints: Constraints = Constraints()
    template: str | None = None
    slots: tuple[Slot, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    origin: Origin = Origin()
    key: Key = Key()
    facts: tuple[Fact, ...] = ()

    def option(self, option_id: str) -> Option:
        """The option with this id."""
        return next(option for option in self.options if option.id == option_id)

    @property
    def right(self) -> tuple[int, ...]:
        """Numbers of the right options, from 1."""
        return tuple(n for n, option in enumerate(self.options, start=1) if option.id in self.key.options)


class Context(Record, frozen=True, kw_only=True):
    """What a reader is told of the patient."""

    indication: str | None = None
    age: int | None = None
    sex: Sex | None = None


class Case(Record, frozen=True, kw_only=True):
    """Everything that is asked about one study, in order."""

    id: str
    """Says nothing of the answers."""
    protocol: str
    study: str
    patient: str | None
    """None where the source does not tell; intervals are then by case."""
    source: str
    split: Split | None = None
    target: str | None = None
    """What it is about: the lesion, or the phrase."""
    path: str | None = None
    """Which branch of the examination its truth leads along: "RR", "RF", "LF"."""
    order: Literal["staged", "shuffled"] = "staged"
    reference_study: str | None = None
    later_study: str | None = None
    context: Context = Context()
    images: tuple[CaseImage, ...]
    regions: tuple[CaseRegion, ...] = ()
    views: tuple[CaseView, ...] = ()
    steps: tuple[Step, ...]
    facts: tuple[Fact, ...] = ()
    extra: str | None = None
    """JSON of the published record that the case was read from, kept to be written back."""

    def image(self, key: str) -> CaseImage:
        """The image with this key."""
        return next(image for image in self.images if image.key == key)

    def view(self, view_id: str) -> CaseView:
        """The view with this id."""
        return next(view for view in self.views if view.id == view_id)

    def region(self, name: str) -> CaseRegion:
        """The region with this name."""
        return next(region for region in self.regions if region.name == name)

    def step(self, step_id: str) -> Step:
        """The step with this id."""
        return next(step for step in self.steps if step.id == step_id)

    @property
    def cell(self) -> str:
        """Cases that are counted and reported together."""
        return "/".join(part for part in (self.target, self.path) if part) or self.protocol


def without_keys(case: Case) -> Case:
    """The case as it may be handed to somebody who is examined, one step after the other.

    The path is a key too, and so are the branches that lead to a step and what no view draws. Which steps a case has
    still tells its path: who sees them all at once knows the first answers.
    """
    bare = tuple(
        msgspec.structs.replace(step, key=Key(), facts=(), evidence=(), reached_by=(), depends_on=())
        for step in case.steps
    )
    drawn = {overlay.region for view in case.views for panel in view.panels for overlay in panel.overlays}
    return msgspec.structs.replace(
        case,
        steps=bare,
        regions=tuple(region for region in case.regions if region.name in drawn),
        facts=(),
        path=None,
        extra=None,
    )
