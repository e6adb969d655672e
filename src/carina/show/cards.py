"""A study in brief: one picture, its findings and the first words of its report, for sheets of many."""

from dataclasses import dataclass, replace

from carina.draw import Gray, Size, colour_of
from carina.show import words
from carina.show.marks import marks_of
from carina.show.pictures import displayed, jpeg_uri, shrunk
from carina.show.shapes import Shape, shapes_on
from carina.show.source import StudySet
from carina.studies.model import Device, Finding, Image, Study

_FRONTAL = Size(width=420, height=420)
_LATERAL = Size(width=240, height=240)
_ANATOMY = frozenset({"right lung", "left lung", "heart"})
"""What can be told apart at this size; the study's page has the rest."""
_EXCERPT = 400
"""Characters of the report; the page cuts them to a few lines."""


@dataclass(frozen=True, kw_only=True)
class Thumbnail:
    """A small picture, with its shapes in the coordinates of the whole image."""

    image: Image
    alt: str
    pixels: Gray
    """Of full size."""
    uri: str
    shapes: tuple[Shape, ...]
    """Without numbers, which could not be read at this size."""


@dataclass(frozen=True, kw_only=True)
class Tag:
    """A finding or device that is not absent."""

    name: str
    colour: str
    uncertain: bool
    device: bool


@dataclass(frozen=True, kw_only=True)
class Card:
    study: Study
    page: str
    """File name of the study's page."""
    line: str
    frontal: Thumbnail | None
    lateral: Thumbnail | None
    tags: tuple[Tag, ...]
    excerpt: str

    @property
    def findings(self) -> tuple[str, ...]:
        """Names to filter by."""
        return tuple(tag.name for tag in self.tags if not tag.device)


def card(studies: StudySet, study: Study) -> Card:
    """One study in brief."""
    frontal = next((image for image in study.images if image.view != "lateral"), None)
    lateral = next((image for image in study.images if image.view == "lateral"), None)
    date = study.date.isoformat() if study.date else ""
    return Card(
        study=study,
        page=f"{words.page_name(study.id)}.html",
        line=words.joined([words.patient(study), f"study {study.order + 1}", date]),
        frontal=_thumbnail(studies, study, frontal, _FRONTAL) if frontal else None,
        lateral=_thumbnail(studies, study, lateral, _LATERAL) if lateral else None,
        tags=_tags(study),
        excerpt=_excerpt(study),
    )


def _thumbnail(studies: StudySet, study: Study, image: Image, box: Size) -> Thumbnail:
    pixels = displayed(studies, image)
    marks = [
        mark for mark in marks_of(study).on(image.key) if mark.kind == "finding" or mark.name in _ANATOMY
    ]
    names = ", ".join(dict.fromkeys(mark.name for mark in marks if mark.kind == "finding"))
    return Thumbnail(
        image=image,
        alt=f"{words.view(image)} of {study.id}. Marked: {names or 'nothing'}.",
        pixels=pixels,
        uri=jpeg_uri(shrunk(pixels, box)),
        shapes=tuple(replace(shape, pin=None) for shape in shapes_on(image, marks)),
    )


def _tags(study: Study) -> tuple[Tag, ...]:
    things: list[Finding | Device] = [*study.findings, *study.devices]
    tags = (
        Tag(
            name=thing.name,
            colour=colour_of(thing.name).hex,
            uncertain=thing.certainty == "uncertain",
            device=isinstance(thing, Device),
        )
        for thing in things
        if thing.certainty != "absent"
    )
    return tuple(dict.fromkeys(tags))


def _excerpt(study: Study) -> str:
    """The start of what the report concludes, or else of what it found, or else of what it has."""
    if study.report is None:
        return ""
    texts = [study.report.text(name) for name in ("impression", "findings")]
    texts += [section.text for section in study.report.sections]
    text = next((text for text in texts if text and text.strip()), "")
    return text if len(text) <= _EXCERPT else text[:_EXCERPT].rstrip() + "…"
