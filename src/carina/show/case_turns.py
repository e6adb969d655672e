"""A case that is one long talk, as a page sets it out: scenes of films, stages, and turns of question and answer.

Knows formats of questions, not protocols. What an examination needs beside (branches, drawn masks, options that are
pictures) is laid out by `carina.show.case_steps`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from carina.cases.model import Box, Case, CaseImage, CaseView, Evidence, Option, Step
from carina.draw import HUES, Colour, Size, colour_of
from carina.show import case_words as words
from carina.show.case_facts import Facts, facts_of, names_in
from carina.show.case_pictures import Picture, pixel_box
from carina.show.case_source import DrawnViews
from carina.show.case_stages import stage_title
from carina.show.case_text import Piece, asked, corners_in, pieces
from carina.show.words import number

_ROLES: Final = {"current": "Current", "reference": "Reference"}
_ASKED_BOX: Final = "the box in question"
_FRAMES: Final = {
    "pixel": "pixels",
    "percent": "percent of width and height",
    "unit": "shares of width and height",
    "thousand": "thousandths of width and height",
}


@dataclass(frozen=True, kw_only=True)
class Anchor:
    """A turn to jump to."""

    id: str
    anchor: str


@dataclass(frozen=True, kw_only=True)
class Film:
    """An image in the talk, with its part in it."""

    picture: Picture
    role: str
    title: str
    """ "Current", "Reference 2": says nothing of the projection, which may be asked for."""
    projection: str
    """Belongs to the key; empty where it is not known."""
    since: Anchor
    """The turn that brings it in."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """A keyed box, in pixels of the picture it is drawn on."""

    name: str
    x: float
    y: float
    width: float
    height: float
    colour: Colour
    corners: str
    """In pixels of the image."""


@dataclass(frozen=True, kw_only=True)
class Framed:
    """A film with the boxes of a key."""

    film: Film
    frames: tuple[Frame, ...]

    @property
    def alt(self) -> str:
        told = "; ".join(f"{frame.name}, {frame.corners} pixels" for frame in self.frames)
        return f"{self.film.title} image, framed: {told}."


@dataclass(frozen=True, kw_only=True)
class Pick:
    """An option; what is right of it belongs to the key."""

    label: str
    option: Option
    right: bool
    kind: str


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One question and its answer."""

    step: Step
    anchor: str
    stem: str
    chips: tuple[str, ...]
    """What the question demands of the answer, each in a few words."""
    after: tuple[Anchor, ...]
    """Earlier turns that it refers to."""
    picks: tuple[Pick, ...]
    answer: tuple[Piece, ...]
    """Empty where a label, options or sections say it all."""
    unit: str
    """What the corners of its boxes are counted in."""
    framed: tuple[Framed, ...]
    given: Framed | None
    """The box that the question speaks of, where it names one in numbers."""
    evidence: tuple[str, ...]
    origin: str
    facts: Facts


@dataclass(frozen=True, kw_only=True)
class Group:
    """Turns of one stage in a row; with no stage where the order is shuffled."""

    stage: int | None
    title: str
    anchor: str
    continued: bool
    """Whether the stage began before films entered in its midst."""
    turns: tuple[Turn, ...]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The talk from where films enter to where the next do, and all films that have entered by then."""

    films: tuple[Film, ...]
    new: frozenset[str]
    """Ids of pictures that enter with it."""
    groups: tuple[Group, ...]

    @property
    def paired(self) -> bool:
        """Whether there is something to compare."""
        return len({film.role for film in self.films}) > 1


@dataclass(frozen=True, kw_only=True)
class StageCount:
    """A stage of the talk, where it begins, and how many turns it has."""

    stage: int
    title: str
    anchor: str
    count: int


def is_talk(case: Case) -> bool:
    """Whether a case is one thread of questions about plain films: no branches, nothing drawn, no places as keys."""
    return (
        len(case.steps) > 1
        and all(_plain(view) for view in case.views)
        and not any(step.reached_by or step.key.regions or step.format == "map" for step in case.steps)
        and not any(option.view or option.mark for step in case.steps for option in step.options)
    )


def scenes(views: DrawnViews, case: Case) -> tuple[Scene, ...]:
    """The whole talk."""
    films = _films(views, case)
    turns = [_turn(case, place, films) for place in range(len(case.steps))]
    starts = [place for place, step in enumerate(case.steps) if step.shows] or [0]
    starts[0] = 0
    made: list[Scene] = []
    seen: set[int] = set()
    for start, end in zip(starts, [*starts[1:], len(turns)], strict=True):
        entered = {view for step in case.steps[:end] for view in step.shows}
        new = {view for step in case.steps[start:end] for view in step.shows}
        made.append(
            Scene(
                films=tuple(film for view, film in films.items() if view in entered),
                new=frozenset(films[view].picture.id for view in new),
                groups=_groups(case, turns[start:end], seen),
            )
        )
    return tuple(made)


def stage_counts(case: Case) -> tuple[StageCount, ...]:
    """Every stage that the case has."""
    found = []
    for stage in sorted({step.stage for step in case.steps}):
        places = [place for place, step in enumerate(case.steps, start=1) if step.stage == stage]
        # In a shuffled talk a stage has no heading to jump to.
        anchor = f"stage-{stage}" if case.order == "staged" else f"step-{places[0]}"
        title = stage_title(case.protocol, stage)
        found.append(StageCount(stage=stage, title=title, anchor=anchor, count=len(places)))
    return tuple(found)


def turns_of(talk: Iterable[Scene]) -> tuple[Turn, ...]:
    """All turns in order."""
    return tuple(turn for scene in talk for group in scene.groups for turn in group.turns)


def sentences(evidence: Iterable[Evidence]) -> tuple[str, ...]:
    """ "current report, sentences 4 and 7", numbered from 1 as on the page of the study."""
    by_report: dict[str, set[int]] = {}
    for item in evidence:
        by_report.setdefault(item.report, set()).add(item.sentence + 1)
    return tuple(f"{report} report, {_counted(sorted(places))}" for report, places in by_report.items())


def chips(step: Step) -> tuple[str, ...]:
    """What is demanded of the form of the answer."""
    limits = step.constraints
    told = (
        "several may be right" if step.multiple else "",
        "" if limits.min_words is None else f"at least {limits.min_words} words",
        "" if limits.max_words is None else f"at most {limits.max_words} words",
        "the answer alone" if limits.answer_only else "",
    )
    return tuple(chip for chip in told if chip)


def _plain(view: CaseView) -> bool:
    panel = view.panels[0]
    return len(view.panels) == 1 and not (panel.overlays or panel.marks or panel.crop)


def _films(views: DrawnViews, case: Case) -> dict[str, Film]:
    """View to film, in the order of the case's views."""
    since = {
        view: Anchor(id=step.id, anchor=f"step-{place}")
        for place, step in enumerate(case.steps, start=1)
        for view in step.shows
    }
    shown = [view for view in case.views if view.id in since]
    roles = [_image(case, view).role for view in shown]
    films = {}
    for place, view in enumerate(shown):
        image = _image(case, view)
        count = roles[: place + 1].count(image.role)
        several = roles.count(image.role) > 1
        title = f"{_ROLES[image.role]} {count}" if several else _ROLES[image.role]
        films[view.id] = Film(
            picture=Picture(
                id=f"view-{place + 1}",
                alt=f"{title} {'picture' if image.finished else 'chest radiograph'}.",
                pixels=views.array(case, view.id),
            ),
            role=image.role,
            title=title,
            projection="" if image.view == "unknown" else image.view,
            since=since[view.id],
        )
    return films


def _image(case: Case, view: CaseView) -> CaseImage:
    return case.image(view.panels[0].image)


def _groups(case: Case, turns: Sequence[Turn], seen: set[int]) -> tuple[Group, ...]:
    """Turns by stage; all in one group where the order is shuffled, because stages then change at every turn."""
    if case.order == "shuffled":
        first = turns[0].anchor
        return (Group(stage=None, title="", anchor=f"from-{first}", continued=False, turns=tuple(turns)),)
    groups = []
    for stage, members in groupby(turns, key=lambda turn: turn.step.stage):
        held = tuple(members)
        again = stage in seen
        groups.append(
            Group(
                stage=stage,
                title=stage_title(case.protocol, stage),
                anchor=f"stage-{stage}-{held[0].anchor}" if again else f"stage-{stage}",
                continued=again,
                turns=held,
            )
        )
        seen.add(stage)
    return tuple(groups)


def _turn(case: Case, place: int, films: dict[str, Film]) -> Turn:
    step = case.steps[place]
    said = asked(step)
    anchors = {earlier.id: f"step-{at}" for at, earlier in enumerate(case.steps, start=1)}
    return Turn(
        step=step,
        anchor=f"step-{place + 1}",
        stem=said.stem,
        chips=chips(step),
        after=tuple(Anchor(id=name, anchor=anchors[name]) for name in step.depends_on),
        picks=_picks(step, said.labels),
        answer=_answer(step),
        unit=", ".join(dict.fromkeys(_FRAMES[box.frame] for box in step.key.boxes)),
        framed=_framed(case, films, step.key.boxes),
        given=_given(case, step, films),
        evidence=sentences(step.evidence),
        origin=words.worded(step.origin),
        facts=facts_of(step.facts, names_in(case, step)),
    )


def _picks(step: Step, labels: Sequence[str]) -> tuple[Pick, ...]:
    kinds = step.key.kinds if len(step.key.kinds) == len(step.options) else ("",) * len(step.options)
    return tuple(
        Pick(
            label=label,
            option=option,
            right=option.id in step.key.options,
            kind="" if kind in ("key", "distractor") else words.kind(kind),
        )
        for option, label, kind in zip(step.options, labels, kinds, strict=True)
    )


def _answer(step: Step) -> tuple[Piece, ...]:
    key = step.key
    text = (key.text or "").strip()
    if step.options or key.sections or (key.label and text.rstrip(".").lower() == key.label):
        return ()
    return pieces(text)


def _given(case: Case, step: Step, films: dict[str, Film]) -> Framed | None:
    """The box that a question names, where it can be told on which image and in which units.

    A case does not store it: the corners stand in the words, the image is the only one that the question uses, and the
    units are those of all keyed boxes of the case.
    """
    named = corners_in(step.question)
    frames = {box.frame for other in case.steps for box in other.key.boxes}
    if step.key.boxes or named is None or len(step.uses) != 1 or len(frames) != 1:
        return None
    image = _image(case, case.view(step.uses[0]))
    box = Box(image=image.key, xyxy=named, frame=frames.pop(), name=_ASKED_BOX)
    x0, y0, x1, y1 = pixel_box(box, Size(width=image.width, height=image.height))
    if not (0 <= x0 < x1 <= image.width and 0 <= y0 < y1 <= image.height):
        return None
    return next(iter(_framed(case, films, [box])), None)


def _framed(case: Case, films: dict[str, Film], wanted: Sequence[Box]) -> tuple[Framed, ...]:
    """Films with boxes on them; a box on an image that no view shows is told by its corners alone."""
    on = {case.view(view).panels[0].image: film for view, film in films.items()}
    found = []
    for key, film in on.items():
        boxes = [box for box in wanted if box.image == key]
        if boxes:
            found.append(Framed(film=film, frames=tuple(_frame(case.image(key), box, film) for box in boxes)))
    return tuple(found)


def _frame(image: CaseImage, box: Box, film: Film) -> Frame:
    x0, y0, x1, y1 = pixel_box(box, Size(width=image.width, height=image.height))
    # A view may be smaller than its image.
    across, down = film.picture.size.width / image.width, film.picture.size.height / image.height
    corners = [number(side) for side in (x0, y0, x1, y1)]
    return Frame(
        name=box.name or box.of,
        x=round(x0 * across, 2),
        y=round(y0 * down, 2),
        width=round((x1 - x0) * across, 2),
        height=round((y1 - y0) * down, 2),
        colour=HUES["yellow"] if box.name == _ASKED_BOX else colour_of(box.name or box.of),
        corners=f"{corners[0]}, {corners[1]} to {corners[2]}, {corners[3]}",
    )


def _counted(places: Sequence[int]) -> str:
    if len(places) == 1:
        return f"sentence {places[0]}"
    return f"sentences {', '.join(map(str, places[:-1]))} and {places[-1]}"
