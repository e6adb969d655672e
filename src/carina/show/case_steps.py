"""The steps of a case as a page sets them out. Knows formats of questions, not protocols."""

from dataclasses import dataclass

from carina.cases.model import Case, Mark, Option, Step
from carina.draw import NAMED, Size, ink_on
from carina.show import case_words as words
from carina.show.case_facts import Facts, facts_of, names_in
from carina.show.case_pictures import Picture, key_pictures, pixel_box, view_picture
from carina.show.case_source import CaseSet, DrawnViews
from carina.show.words import number


@dataclass(frozen=True, kw_only=True)
class Choice:
    """An option with its number; what is right of it belongs to the key."""

    number: int
    option: Option
    right: bool
    kind: str
    colour: str | None = None
    ink: str | None = None
    """Colours of its point and of the number in it, as CSS writes them."""
    picture: Picture | None = None


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A picture at a step."""

    picture: Picture
    view: str
    since: str | None = None
    """The earlier step that brought it in; None where this one does."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """One step, ready to be shown."""

    step: Step
    anchor: str
    stem: str
    demands: str
    making: str
    shown: tuple[Shown, ...]
    choices: tuple[Choice, ...]
    answer: str
    keyed: tuple[Picture, ...]
    """The key on its images, where it names places."""
    boxes: tuple[tuple[str, str, str], ...]
    """Name, image and corners of every keyed box."""
    facts: Facts

    @property
    def pictured(self) -> bool:
        """Whether its options are pictures."""
        return any(choice.picture for choice in self.choices)

    @property
    def several(self) -> bool:
        """Whether it brings more than one picture, none of which leads."""
        return sum(shown.since is None for shown in self.shown) > 1

    @property
    def known(self) -> bool:
        """Whether it shows nothing that was not there before."""
        return all(shown.since for shown in self.shown)


def blocks(cases: CaseSet, views: DrawnViews, case: Case) -> tuple[Block, ...]:
    """Every step of a case, in order."""
    pictures = {
        view.id: view_picture(views, case, view, f"view-{place}")
        for place, view in enumerate(case.views, start=1)
    }
    return tuple(_block(cases, case, place, pictures) for place in range(len(case.steps)))


def _block(cases: CaseSet, case: Case, place: int, pictures: dict[str, Picture]) -> Block:
    step = case.steps[place]
    entered = {view: before.id for before in case.steps[: place + 1] for view in before.shows}
    chosen = {option.view for option in step.options}
    order = list(entered)
    # What is new comes first, then the latest: that is what the question is about.
    old = sorted((view for view in step.uses if view not in step.shows), key=order.index, reverse=True)
    wanted = [view for view in dict.fromkeys((*step.shows, *old)) if view not in chosen]
    return Block(
        step=step,
        anchor=f"step-{place + 1}",
        stem=words.stem(step),
        demands=words.demands(step),
        making=words.making(step),
        shown=tuple(
            Shown(
                picture=pictures[view],
                view=view,
                since=None if view in step.shows else entered.get(view),
            )
            for view in wanted
        ),
        choices=tuple(_choice(case, step, number, pictures) for number in range(1, len(step.options) + 1)),
        answer=words.answer(step),
        keyed=tuple(
            Picture(id=f"key-{place + 1}-{count}", alt=f"{alt}.", pixels=pixels)
            for count, (alt, pixels) in enumerate(key_pictures(cases, case, step), start=1)
        ),
        boxes=tuple(
            (box.name or box.of, box.image, _corners(case, step, box_place))
            for box_place, box in enumerate(step.key.boxes)
        ),
        facts=facts_of(step.facts, names_in(case, step)),
    )


def _choice(case: Case, step: Step, place: int, pictures: dict[str, Picture]) -> Choice:
    option = step.options[place - 1]
    mark = _mark(case, step, option.mark)
    colour = NAMED.get(mark.colour) if mark else None
    kinds = step.key.kinds
    kind = words.kind(kinds[place - 1]) if len(kinds) == len(step.options) else ""
    return Choice(
        number=place,
        option=option,
        right=option.id in step.key.options,
        kind=kind if kind != option.text.lower() else "",
        colour=colour.hex if colour else None,
        ink=ink_on(colour).hex if colour else None,
        picture=pictures[option.view] if option.view else None,
    )


def _mark(case: Case, step: Step, text: str | None) -> Mark | None:
    """The mark that an option names, as the step's views draw it."""
    if text is None:
        return None
    marks = (mark for view in step.uses for panel in case.view(view).panels for mark in panel.marks)
    return next((mark for mark in marks if mark.text == text), None)


def _corners(case: Case, step: Step, place: int) -> str:
    box = step.key.boxes[place]
    image = case.image(box.image)
    x0, y0, x1, y1 = (number(side) for side in pixel_box(box, Size(width=image.width, height=image.height)))
    return f"{x0}, {y0} to {x1}, {y1}"
