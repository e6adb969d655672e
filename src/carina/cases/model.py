"""The Case: the questions about a study, as an ordered and branching list of steps.

One model serves every protocol: percept's branching examination, trek's conversation in eight stages, ground's single
probes. Records only. A case holds no pixels: a step names views, a view states what to draw on which image, and
`carina.cases.render` renders it. Answer keys stand apart from questions, in `Step.key`, `Step.facts` and `Case.facts`,
so that a case can be passed on without its answers (`without_keys`).
"""

from typing import Literal

import msgspec

from carina.studies.model import Image, Origin, Record, ReportSection
from carina.studies.region import Region
from carina.studies.vocabulary import Sex, Split, View

Role = Literal["current", "reference"]
Format = Literal["choice", "yes_no", "open", "boxes", "report", "map"]
"""Form of the answer. `map` is a localisation map or a point, which only some models can give."""
Score = Literal["exact", "set", "boxes", "text", "map"]
"""How an answer is compared with the answer key: one option, a set of options, boxes or regions by overlap, text."""
Label = Literal["yes", "no", "uncertain"]
Frame = Literal["pixel", "percent", "unit", "thousand"]
"""Units of a box: pixels of the image, percent of its sides, shares of them, or thousandths."""


# ---- images and views ------------------------------------------------------------------------------------------------


class CaseImage(Record, frozen=True, kw_only=True):
    """An image that the case shows, by key, without what its study states and a reader has to judge."""

    key: str
    """Path relative to the benchmark's image root, with forward slashes."""
    width: int
    height: int
    role: Role = "current"
    view: View = "unknown"
    bits: int = 8
    monochrome1: bool = False
    rescale: tuple[float, float] | None = None
    """Slope and intercept, as in `carina.studies.Image`."""
    window: tuple[float, float] | None = None
    """Centre and width, as in `carina.studies.Image`."""
    sha256: str | None = None
    finished: bool = False
    """Whether it was rendered elsewhere; it is then shown unchanged."""


def case_image(image: Image, *, role: Role = "current") -> CaseImage:
    """Convert an image of a study to an image of a case.

    Args:
        image: The image.
        role: "current" for the study in question, "reference" for an image to compare it with.

    Returns:
        The image as cases record it.

    Example:
        >>> case_image(Image(key="a.png", view="PA", width=8, height=4), role="reference").role
        'reference'
    """
    return CaseImage(
        key=image.key,
        width=image.width,
        height=image.height,
        role=role,
        view=image.view,
        bits=image.bits,
        monochrome1=image.monochrome1,
        rescale=image.rescale,
        window=image.window,
        sha256=image.sha256,
    )


class CaseRegion(Record, frozen=True, kw_only=True):
    """A region of one of the case's images. Its name does not reveal its role in the case."""

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
    """Width of the line in pixels of the rendered image; 0 for none."""


class Mark(Record, frozen=True, kw_only=True):
    """A numbered point on a panel, in pixels of its image (centre of the first pixel: 0.5, 0.5)."""

    x: float
    y: float
    colour: str
    text: str = ""


class Panel(Record, frozen=True, kw_only=True):
    """One image with its overlays and marks."""

    image: str
    overlays: tuple[Overlay, ...] = ()
    marks: tuple[Mark, ...] = ()
    crop: tuple[int, int, int, int] | None = None
    """x, y, width, height in pixels of the image."""
    caption: str = ""


class CaseView(Record, frozen=True, kw_only=True):
    """One rendered image as a model or a reader sees it: a panel, or several side by side."""

    id: str
    panels: tuple[Panel, ...]
    side: int | None = None
    """Longest side of each panel in the rendered image, in pixels; None keeps the pixels of the image."""


# ---- answer keys ------------------------------------------------------------------------------------------------


class Fact(Record, frozen=True, kw_only=True):
    """A fact that an answer key rests on: a text, or a number with the range in which the key holds."""

    name: str
    about: str = ""
    """The part of the case that it concerns: a region, an option, an edit; the whole case where empty."""
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
    """The answer key of a step, in every form that its format has."""

    options: tuple[str, ...] = ()
    """Ids of the right options."""
    kinds: tuple[str, ...] = ()
    """For each option, in order: "key", or the kind of error that choosing it shows."""
    label: Label | None = None
    text: str | None = None
    boxes: tuple[Box, ...] = ()
    regions: tuple[str, ...] = ()
    """Names of regions of the case."""
    sections: tuple[ReportSection, ...] = ()


# ---- questions ------------------------------------------------------------------------------------------------


class Option(Record, frozen=True, kw_only=True):
    """One of the answers to choose from; its number is its place in the list."""

    id: str
    text: str
    view: str | None = None
    """Id of the view that shows it, where the option is an image."""
    mark: str | None = None
    """Text of the mark that it refers to, where the option is a point."""


class Branch(Record, frozen=True, kw_only=True):
    """A step is reached when an earlier one is answered with one of these options."""

    step: str
    options: tuple[str, ...]


class Constraints(Record, frozen=True, kw_only=True):
    """What the question demands of the form of the answer; the answer key complies with it."""

    max_words: int | None = None
    min_words: int | None = None
    answer_only: bool = False


class Slot(Record, frozen=True, kw_only=True):
    """A value that was filled into the wording of the question."""

    name: str
    value: str


class Evidence(Record, frozen=True, kw_only=True):
    """The report sentence that an answer key rests on."""

    report: Literal["current", "reference", "later"]
    sentence: int


class Step(Record, frozen=True, kw_only=True):
    """One question of a case."""

    id: str
    """Unique in the case: "3a", "t7"."""
    stage: int
    task: str
    format: Format
    question: str
    """The text that is sent, with the list of options."""
    multiple: bool = False
    """Whether several options may be right."""
    context: str | None = None
    """Text that is sent before the question."""
    options: tuple[Option, ...] = ()
    shows: tuple[str, ...] = ()
    """Ids of the views that this step adds to the conversation."""
    uses: tuple[str, ...] = ()
    """Ids of all views that are needed to answer it, whichever step added them."""
    score: Score = "exact"
    reached_by: tuple[Branch, ...] = ()
    """Conditions that must all hold. On the path of the case, the right answers lead here."""
    depends_on: tuple[str, ...] = ()
    """Earlier steps whose answers this one refers to."""
    restates: bool = False
    """Whether the question reveals the answer of another step."""
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
    """What the model learns about the patient."""

    indication: str | None = None
    age: int | None = None
    sex: Sex | None = None


class Case(Record, frozen=True, kw_only=True):
    """All questions about one study, in order.

    Example:
        >>> from carina import open_benchmark
        >>> case = open_benchmark("bench")["c-7db117ee228a361f"]
        >>> case.target, [step.stage for step in case.steps]
        ('cardiomegaly', [1, 2])
    """

    id: str
    """Does not reveal the answers."""
    protocol: str
    study: str
    patient: str | None
    """None where the source does not state it; intervals are then computed by case."""
    source: str
    split: Split | None = None
    target: str | None = None
    """The finding or the phrase that it is about."""
    path: str | None = None
    """The branch of the examination that the right answers lead along: "RR", "RF", "LF"."""
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
    """JSON of the published record that the case was read from, so that it can be written back."""

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
        """Target and path, by which cases are counted and reported together."""
        return "/".join(part for part in (self.target, self.path) if part) or self.protocol


def without_keys(case: Case) -> Case:
    """Remove the answers from a case, so that it can be given to a model under test, one step after the other.

    The path is removed too, and so are the branches that lead to a step and the regions that no view draws. The steps
    themselves still reveal the path: whoever sees all of them at once knows the first answers.

    Args:
        case: A case with its answers.

    Returns:
        The case without answers.

    Example:
        >>> from carina import open_benchmark
        >>> case = next(iter(open_benchmark("bench")))
        >>> case.steps[0].key.options, without_keys(case).steps[0].key.options
        (('yes',), ())
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
