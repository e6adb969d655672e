"""The index of a study set: a card for each study, as an HTML page and as a contact sheet (PNG).

card = make_study_card(content)
html = render_study_index([card], title="My studies", total=1)
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from carina.cases.draw import (
    GAP,
    MUTED,
    PANEL,
    WHITE,
    Rgb,
    Size,
    blank,
    colour_of,
    line_height,
    put_image,
    put_text,
    shorten,
    size_of,
    text_size,
    wrap,
)
from carina.pages import words
from carina.pages.figures import Figure, jpeg_uri, shrink
from carina.pages.frame import render_page
from carina.pages.marks import Mark, draw_outlines
from carina.pages.study import StudyContent, StudyImage
from carina.studies.assessment import UNNAMED, certainty_of
from carina.studies.model import Device, Finding, Study

_FRONTAL: Final = Size(width=420, height=420)
_LATERAL: Final = Size(width=240, height=240)
"""Largest sizes of thumbnails on the HTML page."""
_ANATOMY: Final = frozenset({"right lung", "left lung", "heart"})
"""Structures that are large enough to be recognised on a thumbnail."""
_EXCERPT: Final = 400
"""Characters of the report; the page cuts them to a few lines."""

CONTACT_COLUMNS: Final = 4
"""Studies in a row of the contact sheet."""
_FRONTAL_TILE: Final = Size(width=280, height=280)
_LATERAL_TILE: Final = Size(width=128, height=280)
"""Largest sizes of images on the contact sheet."""
_TEXT: Final = 14
_TAG_LINES: Final = 2
_REPORT_LINES: Final = 3
_PITCH: Final = line_height(_TEXT) + 1
_TILE_HEIGHT: Final = (
    _FRONTAL_TILE.height + 8 + line_height(18) + _PITCH * (1 + _TAG_LINES + _REPORT_LINES) + 12
)


@dataclass(frozen=True, kw_only=True)
class Tag:
    """A finding or device that is present or uncertain."""

    name: str
    colour: str
    uncertain: bool
    is_device: bool


@dataclass(frozen=True, kw_only=True)
class StudyCard:
    """One study in brief: thumbnails, findings and the first words of its report. Holds no pixels."""

    id: str
    page: str
    """File name of the study's page."""
    line: str
    frontal: Figure | None
    lateral: Figure | None
    tags: tuple[Tag, ...]
    excerpt: str
    missing: int = 0
    """Number of images whose files are not there."""
    is_normal: bool
    """Whether it is known that there is no finding; otherwise a study without findings only records none."""

    @property
    def findings(self) -> tuple[str, ...]:
        """Names to filter by."""
        return tuple(tag.name for tag in self.tags if not tag.is_device)

    @property
    def without_findings(self) -> "FindingFilter":
        """The filter that a study without findings belongs to."""
        return _NO_FINDING if self.is_normal else _NOT_RECORDED


@dataclass(frozen=True, kw_only=True)
class FindingFilter:
    """A button that leaves the studies with one finding."""

    token: str
    name: str
    colour: str | None
    count: int


_NO_FINDING: Final = FindingFilter(token="none", name="no finding", colour=None, count=0)  # noqa: S106 - not a secret
_NOT_RECORDED: Final = FindingFilter(token="unknown", name="no finding recorded", colour=None, count=0)  # noqa: S106


def make_study_card(content: StudyContent) -> StudyCard:
    """Summarise a study for the index of a study set.

    Args:
        content: What `load_study` returned.

    Returns:
        The card, for `render_study_index`.

    Example:
        >>> from carina import open_studies
        >>> from carina.pages import load_study
        >>> studies = open_studies("studies")
        >>> make_study_card(load_study(studies, studies["p000000-s2"])).line
        '38 years, male · study 2 · 2113-03-21'
    """
    study = content.study
    date = study.date.isoformat() if study.date else ""
    frontal, lateral = _first_views(content)
    return StudyCard(
        id=study.id,
        page=f"{words.page_name(study.id)}.html",
        line=words.join_parts(
            [words.describe_patient(study), "" if study.order is None else f"study {study.order + 1}", date]
        ),
        frontal=_thumbnail(content, frontal, _FRONTAL) if frontal else None,
        lateral=_thumbnail(content, lateral, _LATERAL) if lateral else None,
        tags=_tags(study),
        excerpt=_excerpt(study),
        missing=content.missing,
        is_normal=certainty_of(study, UNNAMED["finding"], kind="finding") == "absent",
    )


def render_study_index(cards: Sequence[StudyCard], *, title: str, total: int) -> str:
    """Render the index of a study set as HTML.

    Args:
        cards: Cards of the studies that have a page.
        title: Heading of the page.
        total: Number of studies in the set.

    Returns:
        A whole page.

    Example:
        >>> html = render_study_index([], title="My studies", total=0)
        >>> "<title>My studies · Carina</title>" in html
        True
    """
    filters = _finding_filters(cards)
    values: dict[str, object] = {
        "title": title,
        "total": total,
        "cards": cards,
        "missing": sum(card.missing for card in cards),
        "filters": filters,
        "tokens": {item.name: item.token for item in filters},
    }
    return render_page(
        "study_index.html.j2",
        values,
        title=title,
        styles=("outlines.css", "index.css"),
        scripts=("index.js",),
    )


def has_lateral(study: Study) -> bool:
    """Whether the study's card has a lateral view."""
    return any(image.view == "lateral" for image in study.images)


def contact_sheet_size(cards: int, *, with_lateral: bool) -> Size:
    """Width and height of a contact sheet with so many cards, four in a row."""
    row = _row_size(with_lateral=with_lateral)
    return Size(width=row.width, height=max(1, -(-cards // CONTACT_COLUMNS)) * row.height)


def draw_contact_tile(content: StudyContent, card: StudyCard, *, with_lateral: bool) -> Rgb:
    """One study of the contact sheet; with room for a lateral view where any study of the sheet has one."""
    width = _tile_width(with_lateral=with_lateral)
    tile = blank(Size(width=width, height=_TILE_HEIGHT), PANEL)
    frontal, lateral = _first_views(content)
    for view, box, x in ((frontal, _FRONTAL_TILE, 0), (lateral, _LATERAL_TILE, _FRONTAL_TILE.width + 8)):
        if view:
            outlines = [outline for outline in view.figure.outlines if _is_on_thumbnail(outline.mark)]
            without_pins = [replace(outline, pin=None) for outline in outlines]
            drawn = draw_outlines(content.pixels[view.figure.id], without_pins, box, with_anatomy=True)
            put_image(tile, drawn, x=x + (box.width - size_of(drawn).width) // 2, y=0)
    _put_tile_text(tile, card, y=_FRONTAL_TILE.height + 8)
    return tile


def draw_contact_row(tiles: Sequence[Rgb], *, with_lateral: bool) -> Rgb:
    """One row of the contact sheet from at most four tiles."""
    size = _row_size(with_lateral=with_lateral)
    row = blank(size, PANEL)
    for column, tile in enumerate(tiles):
        put_image(row, tile, x=GAP + column * (_tile_width(with_lateral=with_lateral) + 2 * GAP), y=GAP)
    return row


def _tile_width(*, with_lateral: bool) -> int:
    return _FRONTAL_TILE.width + (8 + _LATERAL_TILE.width if with_lateral else 0)


def _row_size(*, with_lateral: bool) -> Size:
    return Size(
        width=CONTACT_COLUMNS * (_tile_width(with_lateral=with_lateral) + 2 * GAP) + GAP,
        height=_TILE_HEIGHT + 2 * GAP,
    )


def _first_views(content: StudyContent) -> tuple[StudyImage | None, StudyImage | None]:
    """The first frontal and the first lateral image."""
    frontal = next((view for view in content.images if not view.is_lateral), None)
    lateral = next((view for view in content.images if view.is_lateral), None)
    return frontal, lateral


def _is_on_thumbnail(mark: Mark) -> bool:
    return mark.kind == "finding" or mark.name in _ANATOMY


def _thumbnail(content: StudyContent, view: StudyImage, box: Size) -> Figure:
    """A small figure without numbers, which could not be read at this size."""
    figure = view.figure
    outlines = tuple(
        replace(outline, pin=None) for outline in figure.outlines if _is_on_thumbnail(outline.mark)
    )
    names = ", ".join(
        dict.fromkeys(outline.mark.name for outline in outlines if outline.mark.kind == "finding")
    )
    return Figure(
        id=figure.id,
        alt=f"{figure.title} of {content.study.id}. Outlined: {names or 'nothing'}.",
        size=figure.size,
        uri=jpeg_uri(shrink(content.pixels[figure.id], box)),
        outlines=outlines,
    )


def _tags(study: Study) -> tuple[Tag, ...]:
    things: list[Finding | Device] = [*study.findings, *study.devices]
    tags = (
        Tag(
            name=thing.name,
            colour=colour_of(thing.name).hex,
            uncertain=thing.certainty == "uncertain",
            is_device=isinstance(thing, Device),
        )
        for thing in things
        if thing.certainty != "absent"
    )
    return tuple(dict.fromkeys(tags))


def _excerpt(study: Study) -> str:
    """The start of the impression, or else of the findings, or else of the first section that has text."""
    if study.report is None:
        return ""
    texts = [study.report.text(name) for name in ("impression", "findings")]
    texts += [section.text for section in study.report.sections]
    text = next((text for text in texts if text and text.strip()), "")
    return text if len(text) <= _EXCERPT else text[:_EXCERPT].rstrip() + "…"


def _finding_filters(cards: Sequence[StudyCard]) -> tuple[FindingFilter, ...]:
    """One for each finding, the most frequent first, and those for studies without any."""
    counts = Counter(name for card in cards for name in dict.fromkeys(card.findings))
    filters = [
        FindingFilter(token=f"f{place}", name=name, colour=colour_of(name).hex, count=count)
        for place, (name, count) in enumerate(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    ]
    without = Counter(card.without_findings for card in cards if not card.findings)
    filters += [replace(item, count=without[item]) for item in (_NO_FINDING, _NOT_RECORDED) if without[item]]
    return tuple(filters)


def _put_tile_text(tile: Rgb, card: StudyCard, *, y: int) -> None:
    width = tile.shape[1]
    put_text(tile, shorten(card.id, width=width, size=18), x=0, y=y, size=18, colour=WHITE)
    y += line_height(18)
    put_text(tile, shorten(card.line, width=width, size=_TEXT), x=0, y=y, size=_TEXT, colour=MUTED)
    y += _PITCH
    _put_tags(tile[y : y + _PITCH * _TAG_LINES], card)
    y += _PITCH * _TAG_LINES + 4
    lines = wrap(card.excerpt, width=width, size=_TEXT)
    if len(lines) > _REPORT_LINES:
        lines[_REPORT_LINES - 1] = shorten(lines[_REPORT_LINES - 1] + " …", width=width, size=_TEXT)
    for line in lines[:_REPORT_LINES]:
        put_text(tile, line, x=0, y=y, size=_TEXT, colour=MUTED)
        y += _PITCH


def _put_tags(area: Rgb, card: StudyCard) -> None:
    """Coloured squares with names, as many as fit."""
    if not card.tags:
        put_text(area, card.without_findings.name, x=0, y=0, size=_TEXT, colour=MUTED)
    x = y = 0
    for tag in card.tags:
        text = f"{tag.name}?" if tag.uncertain else tag.name
        width = 16 + text_size(text, size=_TEXT).width + 14
        if x and x + width > area.shape[1]:
            x, y = 0, y + _PITCH
        if y + _PITCH > area.shape[0]:
            return
        square: Rgb = np.full((10, 10, 3), colour_of(tag.name), np.uint8)
        put_image(area, square, x=x, y=y + 5)
        put_text(area, text, x=x + 16, y=y, size=_TEXT, colour=WHITE)
        x += width
