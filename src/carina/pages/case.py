"""The page of one case: every step with its views, question, options and answer key, and the facts behind the key.

    content = load_case(benchmark, case, Views(benchmark))
    html = render_case(content)

Knows formats of questions, not protocols. A case that is one thread of questions about plain images is laid out by
`carina.pages.conversation`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from carina.cases.boxes import pixel_box
from carina.cases.draw import NAMED, Size, ink_on
from carina.cases.faults import faults
from carina.cases.model import Branch, Case, Mark, Option, Step
from carina.pages.case_facts import other_facts
from carina.pages.case_figures import key_figures, view_figure
from carina.pages.case_text import (
    answer_text,
    describe_answer_format,
    describe_case,
    describe_step_origin,
    option_kind_title,
    path_title,
    split_question,
    target_colour,
)
from carina.pages.contour_difference import ContourDifference, contour_difference
from carina.pages.fact_table import FactTable, subject_names, tabulate_facts
from carina.pages.figures import Figure, PixelStore
from carina.pages.frame import render_page
from carina.pages.sets import CaseSet, RenderedViews
from carina.pages.words import format_number
from carina.store.errors import BenchmarkError
from carina.studies import SourceInfo


@dataclass(frozen=True, kw_only=True)
class CaseLinks:
    """File names of the pages around a case's page; None where there is no such page."""

    index: str | None = None
    previous: str | None = None
    next: str | None = None


@dataclass(frozen=True, kw_only=True)
class Choice:
    """An option of a step."""

    number: int
    label: str
    """As the page shows it: "(2)"; or as sent, where a conversation labels options in its own way."""
    option: Option
    is_right: bool
    kind: str
    colour: str | None = None
    ink: str | None = None
    """Colours of its point and of the number in it, as CSS writes them."""
    figure: Figure | None = None


@dataclass(frozen=True, kw_only=True)
class StepFigure:
    """A view at a step."""

    figure: Figure
    view: str
    since: str | None = None
    """The earlier step that showed it first; None where this one does."""


@dataclass(frozen=True, kw_only=True)
class StepContent:
    """One step, ready for its template."""

    step: Step
    anchor: str
    stem: str
    answer_format: str
    origin: str
    views: tuple[StepFigure, ...]
    choices: tuple[Choice, ...]
    answer: str
    key_figures: tuple[Figure, ...]
    """The answer key on its images, where it consists of locations."""
    boxes: tuple[tuple[str, str, str], ...]
    """Name, image and corners of every box of the answer key."""
    facts: FactTable

    @property
    def has_image_options(self) -> bool:
        return any(choice.figure for choice in self.choices)

    @property
    def has_several_new_views(self) -> bool:
        """Whether it brings more than one view, so that none of them is the main one."""
        return sum(view.since is None for view in self.views) > 1

    @property
    def has_no_new_view(self) -> bool:
        return all(view.since for view in self.views)


@dataclass(frozen=True, kw_only=True)
class PathStep:
    """A step on the path of a case."""

    id: str
    anchor: str
    task: str


@dataclass(frozen=True, kw_only=True)
class PathStage:
    """Consecutive steps of one stage, and the answers that lead to them."""

    stage: int
    steps: tuple[PathStep, ...]
    conditions: tuple[str, ...]
    """ "1: Yes", for every earlier answer that the first of these steps depends on and the stage before does not."""


@dataclass(frozen=True, kw_only=True)
class CaseContent:
    """What the page of a case is made from."""

    case: Case
    sources: Sequence[SourceInfo]
    steps: tuple[StepContent, ...]
    difference: ContourDifference | None
    pixels: PixelStore


def load_case(cases: CaseSet, case: Case, views: RenderedViews) -> CaseContent:
    """Render the views of a case, and lay out its steps.

    Args:
        cases: Benchmark that holds the case.
        case: The case.
        views: Renders what the steps show.

    Returns:
        The content of the page, for `render_case`.

    Raises:
        BenchmarkError: The case is inconsistent.

    Example:
        >>> from carina.cases import Views, open_benchmark
        >>> bench = open_benchmark("bench")
        >>> len(load_case(bench, bench["c-7db117ee228a361f"], Views(bench)).steps)
        2
    """
    check_case(case)
    pixels: PixelStore = {}
    figures = {
        view.id: view_figure(views, case, view, pixels, id=f"view-{place}")
        for place, view in enumerate(case.views, start=1)
    }
    return CaseContent(
        case=case,
        sources=cases.manifest.sources,
        steps=tuple(_step_content(cases, case, place, figures, pixels) for place in range(len(case.steps))),
        difference=contour_difference(cases, case, pixels),
        pixels=pixels,
    )


def check_case(case: Case) -> None:
    """Raise `BenchmarkError` where a case is inconsistent."""
    for fault in faults(case):
        raise BenchmarkError(f"case {case.id!r} cannot be shown: {fault}")


def render_case(content: CaseContent, links: CaseLinks | None = None) -> str:
    """Render the page of a case as HTML.

    Args:
        content: What `load_case` returned.
        links: Addresses of the index and of neighbouring pages.

    Returns:
        A whole page.

    Example:
        >>> from carina.cases import Views, open_benchmark
        >>> bench = open_benchmark("bench")
        >>> html = render_case(load_case(bench, bench["c-7db117ee228a361f"], Views(bench)))
        >>> "<title>c-7db117ee228a361f · Carina</title>" in html
        True
    """
    case = content.case
    values: dict[str, object] = {
        **header_values(case, content.sources, links),
        "counts": {"Steps": str(len(content.steps)), "Cell": case.cell},
        "path": case_path(case),
        "steps": content.steps,
        "difference": content.difference,
        "facts": tabulate_facts(other_facts(case), subject_names(case)),
        "figures": _figures(content),
    }
    return render_page("case.html.j2", values, title=case.id, styles=("case.css",), scripts=("answers.js",))


def header_values(case: Case, sources: Sequence[SourceInfo], links: CaseLinks | None) -> dict[str, object]:
    """Values of the header that the pages of cases and of conversations have in common."""
    return {
        "case": case,
        "colour": target_colour(case.target).hex if case.target else None,
        "path_title": path_title(case),
        "header": describe_case(case, sources),
        "links": links or CaseLinks(),
    }


def case_path(case: Case) -> tuple[PathStage, ...]:
    """The path from the first step to the last."""
    stages: list[PathStage] = []
    known: set[Branch] = set()
    for place, step in enumerate(case.steps):
        entry = PathStep(id=step.id, anchor=f"step-{place + 1}", task=step.task)
        new = tuple(branch for branch in step.reached_by if branch not in known)
        known |= set(new)
        if stages and stages[-1].stage == step.stage and not new:
            last = stages.pop()
            stages.append(PathStage(stage=last.stage, steps=(*last.steps, entry), conditions=last.conditions))
        else:
            conditions = tuple(_condition(case, branch) for branch in new)
            stages.append(PathStage(stage=step.stage, steps=(entry,), conditions=conditions))
    return tuple(stages)


def _condition(case: Case, branch: Branch) -> str:
    options = {option.id: option.text for option in case.step(branch.step).options}
    return f"{branch.step}: {' or '.join(options.get(option, option) for option in branch.options)}"


def _step_content(
    cases: CaseSet, case: Case, place: int, figures: dict[str, Figure], pixels: PixelStore
) -> StepContent:
    step = case.steps[place]
    first_shown = {view: earlier.id for earlier in case.steps[: place + 1] for view in earlier.shows}
    on_options = {option.view for option in step.options}
    order = list(first_shown)
    # New views come first, then the latest of the others: the question is usually about these.
    earlier_views = sorted(
        (view for view in step.uses if view not in step.shows), key=order.index, reverse=True
    )
    wanted = [view for view in dict.fromkeys((*step.shows, *earlier_views)) if view not in on_options]
    return StepContent(
        step=step,
        anchor=f"step-{place + 1}",
        stem=split_question(step).stem,
        answer_format=describe_answer_format(step),
        origin=describe_step_origin(step),
        views=tuple(
            StepFigure(
                figure=figures[view],
                view=view,
                since=None if view in step.shows else first_shown.get(view),
            )
            for view in wanted
        ),
        choices=tuple(_choice(case, step, number, figures) for number in range(1, len(step.options) + 1)),
        answer=answer_text(step),
        key_figures=key_figures(cases, case, step, pixels, prefix=f"key-{place + 1}"),
        boxes=tuple(
            (box.name or box.of, box.image, _corners(case, step, box_place))
            for box_place, box in enumerate(step.key.boxes)
        ),
        facts=tabulate_facts(step.facts, subject_names(case, step)),
    )


def _choice(case: Case, step: Step, number: int, figures: dict[str, Figure]) -> Choice:
    option = step.options[number - 1]
    mark = _option_mark(case, step, option.mark)
    colour = NAMED.get(mark.colour) if mark else None
    kinds = step.key.kinds
    kind = option_kind_title(kinds[number - 1]) if len(kinds) == len(step.options) else ""
    return Choice(
        number=number,
        label=f"({number})",
        option=option,
        is_right=option.id in step.key.options,
        kind=kind if kind != option.text.lower() else "",
        colour=colour.hex if colour else None,
        ink=ink_on(colour).hex if colour else None,
        figure=figures[option.view] if option.view else None,
    )


def _option_mark(case: Case, step: Step, text: str | None) -> Mark | None:
    """The mark that an option names, as the step's views draw it."""
    if text is None:
        return None
    marks = (mark for view in step.uses for panel in case.view(view).panels for mark in panel.marks)
    return next((mark for mark in marks if mark.text == text), None)


def _corners(case: Case, step: Step, place: int) -> str:
    box = step.key.boxes[place]
    image = case.image(box.image)
    size = Size(width=image.width, height=image.height)
    x0, y0, x1, y1 = (format_number(side) for side in pixel_box(box, size))
    return f"{x0}, {y0} to {x1}, {y1}"


def _figures(content: CaseContent) -> list[Figure]:
    """Every figure of the page once."""
    figures: dict[str, Figure] = {}
    for step in content.steps:
        options = (choice.figure for choice in step.choices if choice.figure)
        for figure in (*(view.figure for view in step.views), *options, *step.key_figures):
            figures.setdefault(figure.id, figure)
    if content.difference:
        figures[content.difference.figure.id] = content.difference.figure
    return list(figures.values())
