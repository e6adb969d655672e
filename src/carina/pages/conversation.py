"""The page of one conversation: a case that is one thread of questions about plain images, turn by turn.

    content = load_conversation(benchmark, case, Views(benchmark))
    html = render_conversation(content)

Knows formats of questions, not protocols. Cases with branches, drawn masks or options that are images are laid out by
`carina.pages.case`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from carina.cases.boxes import pixel_box
from carina.cases.draw import HUES, Size, colour_of
from carina.cases.model import Box, Case, CaseImage, CaseView, Evidence, Step
from carina.cases.protocol import find_protocol, stage_title
from carina.pages.case import CaseLinks, Choice, check_case, header_values
from carina.pages.case_facts import other_conversation_facts
from carina.pages.case_text import (
    AnswerPiece,
    answer_limits,
    describe_answer_format,
    describe_wording,
    find_corners,
    option_kind_title,
    split_answer,
    split_question,
)
from carina.pages.fact_table import FactTable, subject_names, tabulate_facts
from carina.pages.figures import BoxOutline, Figure, PixelStore, make_figure
from carina.pages.frame import render_page
from carina.pages.sets import CaseSet, RenderedViews
from carina.pages.words import format_number
from carina.store.counts import format_count
from carina.studies import SourceInfo

_ROLE_TITLES: Final = {"current": "Current", "reference": "Reference"}
_QUESTIONED_BOX: Final = "the box in question"
_UNITS: Final = {
    "pixel": "pixels",
    "percent": "percent of width and height",
    "unit": "shares of width and height",
    "thousand": "thousandths of width and height",
}


@dataclass(frozen=True, kw_only=True)
class TurnLink:
    """A turn to jump to."""

    id: str
    anchor: str


@dataclass(frozen=True, kw_only=True)
class ConversationImage:
    """An image of the conversation and its role."""

    figure: Figure
    """Its title is "Current" or "Reference 2"; it does not give the projection, which a question may ask for."""
    role: str
    projection: str
    """Belongs to the answer key; empty where it is unknown."""
    since: TurnLink
    """The turn that shows it first."""


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One question and its answer."""

    step: Step
    anchor: str
    stem: str
    limits: tuple[str, ...]
    """Limits on the form of the answer, each in a few words."""
    answer_format: str
    depends_on: tuple[TurnLink, ...]
    """Earlier turns that the question refers to."""
    choices: tuple[Choice, ...]
    answer: tuple[AnswerPiece, ...]
    """Empty where a label, options or sections give the whole answer."""
    unit: str
    """Unit of the corners of its boxes."""
    key_figures: tuple[Figure, ...]
    """Images with the boxes of the answer key."""
    questioned_figure: Figure | None
    """The image with the box that the question gives in numbers."""
    evidence: tuple[str, ...]
    origin: str
    facts: FactTable


@dataclass(frozen=True, kw_only=True)
class TurnGroup:
    """Consecutive turns of one stage; without a stage where the order is shuffled."""

    stage: int | None
    title: str
    anchor: str
    continued: bool
    """Whether the stage began before new images were shown."""
    turns: tuple[Turn, ...]


@dataclass(frozen=True, kw_only=True)
class ImageSpan:
    """The turns from one that shows new images to the next such turn, with all images shown by then."""

    images: tuple[ConversationImage, ...]
    new: frozenset[str]
    """Ids of the figures that are shown here first."""
    groups: tuple[TurnGroup, ...]

    @property
    def has_comparison(self) -> bool:
        """Whether images of two studies can be compared."""
        return len({image.role for image in self.images}) > 1


@dataclass(frozen=True, kw_only=True)
class StageEntry:
    """A stage of the conversation, where it begins, and its number of turns."""

    stage: int
    title: str
    anchor: str
    turns: int


@dataclass(frozen=True, kw_only=True)
class ConversationContent:
    """What the page of a conversation is made from."""

    case: Case
    sources: Sequence[SourceInfo]
    spans: tuple[ImageSpan, ...]
    pixels: PixelStore

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All turns in order."""
        return tuple(turn for span in self.spans for group in span.groups for turn in group.turns)


def is_conversation(case: Case) -> bool:
    """Test whether a case is one thread of questions about plain images: no branches, overlays or regions as keys.

    A single question is one where the protocol declares that its cases are conversations.

    Args:
        case: A case of any protocol.

    Returns:
        True if `load_conversation` lays it out, False if `load_case` does.

    Example:
        >>> from carina import open_benchmark
        >>> [is_conversation(next(iter(open_benchmark(name)))) for name in ("conversations", "bench")]
        [True, False]
    """
    return (
        (find_protocol(case.protocol).is_conversation or len(case.steps) > 1)
        and all(_is_plain(view) for view in case.views)
        and not any(step.reached_by or step.key.regions or step.format == "map" for step in case.steps)
        and not any(option.view or option.mark for step in case.steps for option in step.options)
    )


def load_conversation(cases: CaseSet, case: Case, views: RenderedViews) -> ConversationContent:
    """Render the images of a conversation, and lay out its turns.

    Args:
        cases: Benchmark that holds the conversation.
        case: The conversation.
        views: Renders the images that the turns show.

    Returns:
        The content of the page, for `render_conversation`.

    Raises:
        BenchmarkError: The case is inconsistent.

    Example:
        >>> from carina.cases import Views, open_benchmark
        >>> bench = open_benchmark("conversations")
        >>> len(load_conversation(bench, bench["trek-p000000-s2"], Views(bench)).spans)
        2
    """
    check_case(case)
    pixels: PixelStore = {}
    images = _conversation_images(views, case, pixels)
    turns = [_turn(case, place, images) for place in range(len(case.steps))]
    starts = [place for place, step in enumerate(case.steps) if step.shows] or [0]
    starts[0] = 0
    spans: list[ImageSpan] = []
    stages_so_far: set[int] = set()
    for start, end in zip(starts, [*starts[1:], len(turns)], strict=True):
        shown = {view for step in case.steps[:end] for view in step.shows}
        new = {view for step in case.steps[start:end] for view in step.shows}
        spans.append(
            ImageSpan(
                images=tuple(image for view, image in images.items() if view in shown),
                new=frozenset(images[view].figure.id for view in new),
                groups=_turn_groups(case, turns[start:end], stages_so_far),
            )
        )
    return ConversationContent(case=case, sources=cases.manifest.sources, spans=tuple(spans), pixels=pixels)


def render_conversation(content: ConversationContent, links: CaseLinks | None = None) -> str:
    """Render the page of a conversation as HTML.

    Args:
        content: What `load_conversation` returned.
        links: Addresses of the index and of neighbouring pages.

    Returns:
        A whole page.

    Example:
        >>> from carina.cases import Views, open_benchmark
        >>> bench = open_benchmark("conversations")
        >>> html = render_conversation(load_conversation(bench, bench["trek-p000000-s2"], Views(bench)))
        >>> "<title>trek-p000000-s2 · Carina</title>" in html
        True
    """
    case = content.case
    stages = stage_entries(case)
    turns = f"{len(case.steps)} in {format_count(len(stages), 'stage')}"
    figures = {image.figure.id: image.figure for span in content.spans for image in span.images}
    values: dict[str, object] = {
        **header_values(case, content.sources, links),
        "counts": {"Turns": turns + (", shuffled" if case.order == "shuffled" else "")},
        "stages": stages,
        "spans": content.spans,
        "facts": tabulate_facts(other_conversation_facts(case), subject_names(case)),
        "figures": list(figures.values()),
    }
    return render_page(
        "conversation.html.j2",
        values,
        title=case.id,
        styles=("case.css", "conversation.css"),
        scripts=("answers.js", "conversation.js"),
    )


def stage_entries(case: Case) -> tuple[StageEntry, ...]:
    """Every stage that the case has, in order."""
    entries = []
    for stage in sorted({step.stage for step in case.steps}):
        places = [place for place, step in enumerate(case.steps, start=1) if step.stage == stage]
        # In a shuffled conversation a stage has no heading to jump to.
        anchor = f"stage-{stage}" if case.order == "staged" else f"step-{places[0]}"
        title = stage_title(case.protocol, stage)
        entries.append(StageEntry(stage=stage, title=title, anchor=anchor, turns=len(places)))
    return tuple(entries)


def describe_evidence(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """ "current report, sentences 4 and 7", numbered from 1 as on the page of the study."""
    by_report: dict[str, set[int]] = {}
    for item in evidence:
        by_report.setdefault(item.report, set()).add(item.sentence + 1)
    return tuple(
        f"{report} report, {_sentence_list(sorted(numbers))}" for report, numbers in by_report.items()
    )


def _sentence_list(numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"sentence {numbers[0]}"
    return f"sentences {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def _is_plain(view: CaseView) -> bool:
    panel = view.panels[0]
    return len(view.panels) == 1 and not (panel.overlays or panel.marks or panel.crop)


def _conversation_images(views: RenderedViews, case: Case, store: PixelStore) -> dict[str, ConversationImage]:
    """View to image, in the order of the case's views."""
    since = {
        view: TurnLink(id=step.id, anchor=f"step-{place}")
        for place, step in enumerate(case.steps, start=1)
        for view in step.shows
    }
    shown = [view for view in case.views if view.id in since]
    roles = [_case_image(case, view).role for view in shown]
    images = {}
    for place, view in enumerate(shown):
        image = _case_image(case, view)
        number = f" {roles[: place + 1].count(image.role)}" if roles.count(image.role) > 1 else ""
        title = f"{_ROLE_TITLES[image.role]}{number}"
        images[view.id] = ConversationImage(
            figure=make_figure(
                views.array(case, view.id),
                store,
                id=f"view-{place + 1}",
                title=title,
                alt=f"{title} {'image' if image.finished else 'chest radiograph'}.",
            ),
            role=image.role,
            projection="" if image.view == "unknown" else image.view,
            since=since[view.id],
        )
    return images


def _case_image(case: Case, view: CaseView) -> CaseImage:
    return case.image(view.panels[0].image)


def _turn_groups(case: Case, turns: Sequence[Turn], stages_so_far: set[int]) -> tuple[TurnGroup, ...]:
    """Turns by stage; all in one group where the order is shuffled, because stages then change at every turn."""
    if case.order == "shuffled":
        anchor = f"from-{turns[0].anchor}"
        return (TurnGroup(stage=None, title="", anchor=anchor, continued=False, turns=tuple(turns)),)
    groups = []
    for stage, grouped in groupby(turns, key=lambda turn: turn.step.stage):
        members = tuple(grouped)
        continued = stage in stages_so_far
        groups.append(
            TurnGroup(
                stage=stage,
                title=stage_title(case.protocol, stage),
                anchor=f"stage-{stage}-{members[0].anchor}" if continued else f"stage-{stage}",
                continued=continued,
                turns=members,
            )
        )
        stages_so_far.add(stage)
    return tuple(groups)


def _turn(case: Case, place: int, images: dict[str, ConversationImage]) -> Turn:
    step = case.steps[place]
    question = split_question(step)
    anchors = {earlier.id: f"step-{at}" for at, earlier in enumerate(case.steps, start=1)}
    return Turn(
        step=step,
        anchor=f"step-{place + 1}",
        stem=question.stem,
        limits=(*(["several may be right"] if step.multiple else []), *answer_limits(step)),
        answer_format=describe_answer_format(step),
        depends_on=tuple(TurnLink(id=name, anchor=anchors[name]) for name in step.depends_on),
        choices=_choices(step, question.labels),
        answer=_answer(step),
        unit=", ".join(dict.fromkeys(_UNITS[box.frame] for box in step.key.boxes)),
        key_figures=_boxed_figures(case, images, step.key.boxes),
        questioned_figure=_questioned_figure(case, step, images),
        evidence=describe_evidence(step.evidence),
        origin=describe_wording(step.origin),
        facts=tabulate_facts(step.facts, subject_names(case, step)),
    )


def _choices(step: Step, labels: Sequence[str]) -> tuple[Choice, ...]:
    kinds = step.key.kinds if len(step.key.kinds) == len(step.options) else ("",) * len(step.options)
    return tuple(
        Choice(
            number=number,
            label=label,
            option=option,
            is_right=option.id in step.key.options,
            kind="" if kind in ("key", "distractor") else option_kind_title(kind),
        )
        for number, (option, label, kind) in enumerate(zip(step.options, labels, kinds, strict=True), start=1)
    )


def _answer(step: Step) -> tuple[AnswerPiece, ...]:
    key = step.key
    text = (key.text or "").strip()
    if step.options or key.sections or (key.label and text.rstrip(".").lower() == key.label):
        return ()
    return split_answer(text)


def _questioned_figure(case: Case, step: Step, images: dict[str, ConversationImage]) -> Figure | None:
    """The image with the box that a question gives in numbers, where the image and the unit are certain.

    A case does not store that box: the corners stand in the text, the image is the only one that the question uses,
    and the unit is that of all boxes in the answer keys of the case.
    """
    corners = find_corners(step.question)
    frames = {box.frame for other in case.steps for box in other.key.boxes}
    if step.key.boxes or corners is None or len(step.uses) != 1 or len(frames) != 1:
        return None
    image = _case_image(case, case.view(step.uses[0]))
    box = Box(image=image.key, xyxy=corners, frame=frames.pop(), name=_QUESTIONED_BOX)
    x0, y0, x1, y1 = pixel_box(box, Size(width=image.width, height=image.height))
    if not (0 <= x0 < x1 <= image.width and 0 <= y0 < y1 <= image.height):
        return None
    return next(iter(_boxed_figures(case, images, [box])), None)


def _boxed_figures(
    case: Case, images: dict[str, ConversationImage], wanted: Sequence[Box]
) -> tuple[Figure, ...]:
    """Images with boxes on them; a box on an image that no view shows appears only by its corners in the text."""
    figure_by_image = {case.view(view).panels[0].image: image.figure for view, image in images.items()}
    figures = []
    for key, figure in figure_by_image.items():
        boxes = tuple(_box_outline(case.image(key), box, figure) for box in wanted if box.image == key)
        if boxes:
            listed = "; ".join(f"{box.name}, {box.corners} pixels" for box in boxes)
            figures.append(replace(figure, boxes=boxes, alt=f"{figure.title} image, boxes: {listed}."))
    return tuple(figures)


def _box_outline(image: CaseImage, box: Box, figure: Figure) -> BoxOutline:
    x0, y0, x1, y1 = pixel_box(box, Size(width=image.width, height=image.height))
    # A view may be smaller than its image.
    across, down = figure.size.width / image.width, figure.size.height / image.height
    corners = [format_number(side) for side in (x0, y0, x1, y1)]
    return BoxOutline(
        name=box.name or box.of,
        x=round(x0 * across, 2),
        y=round(y0 * down, 2),
        width=round((x1 - x0) * across, 2),
        height=round((y1 - y0) * down, 2),
        colour=HUES["yellow"] if box.name == _QUESTIONED_BOX else colour_of(box.name or box.of),
        corners=f"{corners[0]}, {corners[1]} to {corners[2]}, {corners[3]}",
    )
