"""One image as a page shows it: pixels, data URI, and the shapes that lie on it."""

from dataclasses import dataclass, replace

from carina.draw import Gray
from carina.show import words
from carina.show.marks import Marks, marks_of
from carina.show.pictures import displayed, jpeg_uri, shrunk
from carina.show.shapes import Shape, pin_radius, shapes_on
from carina.show.source import StudySet
from carina.studies.model import Image, Study


@dataclass(frozen=True, kw_only=True)
class Pane:
    """An image, ready to be shown raw and marked."""

    image: Image
    title: str
    alt: str
    """What it shows, for those who do not see it."""
    pixels: Gray
    uri: str
    shapes: tuple[Shape, ...]
    pin_radius: float


def pane(studies: StudySet, image: Image, marks: Marks, *, title: str) -> Pane:
    """One image of a study with all its marks."""
    pixels = displayed(studies, image)
    shapes = shapes_on(image, marks.on(image.key))
    names = dict.fromkeys(shape.mark.name for shape in shapes if shape.mark.kind != "anatomy")
    return Pane(
        image=image,
        title=title,
        alt=f"Chest radiograph, {title}. Marked: {', '.join(names) or 'nothing'}.",
        pixels=pixels,
        uri=jpeg_uri(shrunk(pixels)),
        shapes=shapes,
        pin_radius=pin_radius(image),
    )


def panes_of(studies: StudySet, study: Study, marks: Marks) -> tuple[Pane, ...]:
    """Every image of a study, frontal views first."""
    images = sorted(study.images, key=lambda image: image.view == "lateral")
    return tuple(pane(studies, image, marks, title=words.view(image)) for image in images)


def prior_panes(studies: StudySet, study: Study, prior: Study) -> tuple[Pane, ...]:
    """For each kind of view in a study, the prior's first image of that kind, marked without numbers.

    Numbers belong to one study's tables; the prior's own page has them.
    """
    marks = marks_of(prior, prefix="p")
    wanted = {image.view == "lateral" for image in study.images}
    chosen = {image.view == "lateral": image for image in reversed(prior.images)}
    panes = [
        pane(studies, image, marks, title=f"Prior {words.view(image)}")
        for lateral, image in sorted(chosen.items())
        if lateral in wanted
    ]
    return tuple(
        replace(
            item,
            shapes=tuple(replace(shape, pin=None) for shape in item.shapes if shape.mark.kind != "anatomy"),
        )
        for item in panes
    )
