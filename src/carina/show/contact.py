"""The contact sheet: many studies at a glance, with a way to each one's page."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from carina.draw import colour_of
from carina.files import write_bytes
from carina.show.cards import Card, card
from carina.show.contact_picture import contact_picture
from carina.show.pictures import png_bytes
from carina.show.source import StudySet
from carina.show.study import Links, StudyPage, write_study
from carina.show.template import fill
from carina.show.words import page_name

INDEX = "index.html"
PICTURE = "contact-sheet.png"


@dataclass(frozen=True, kw_only=True)
class ContactSheet:
    """The files of a contact sheet."""

    html: Path
    png: Path
    pages: tuple[StudyPage, ...]


@dataclass(frozen=True, kw_only=True)
class Filter:
    """A button that leaves the studies with one finding."""

    token: str
    name: str
    colour: str | None
    count: int


def contact_sheet(
    studies: StudySet,
    out_dir: Path,
    *,
    limit: int = 24,
    title: str = "Studies",
    on_page: Callable[[StudyPage], None] | None = None,
) -> ContactSheet:
    """Write `index.html`, `contact-sheet.png` and the page of each of the first `limit` studies.

    `on_page` is told of every page as it is written, for a progress bar.
    """
    shown = list(islice(studies, limit))
    names = {study.id: f"{page_name(study.id)}.html" for study in shown}
    cards, pages = [], []
    for study in shown:
        links = Links(
            index=INDEX,
            prior=names.get(study.prior) if study.prior else None,
            later=names.get(study.later) if study.later else None,
        )
        cards.append(card(studies, study))
        pages.append(write_study(studies, study, out_dir, links))
        if on_page:
            on_page(pages[-1])
    sheet = ContactSheet(html=out_dir / INDEX, png=out_dir / PICTURE, pages=tuple(pages))
    write_bytes(sheet.png, png_bytes(contact_picture(cards)))
    filters = _filters(cards)
    tokens = {item.name: item.token for item in filters}
    values: dict[str, object] = {
        "title": title,
        "total": len(studies),
        "cards": cards,
        "filters": filters,
        "tokens": tokens,
    }
    write_bytes(sheet.html, fill("index.html.j2", values).encode())
    return sheet


def _filters(cards: Sequence[Card]) -> tuple[Filter, ...]:
    """One for each finding, the commonest first, and one for studies without any."""
    counts = Counter(name for item in cards for name in dict.fromkeys(item.findings))
    filters = [
        Filter(token=f"f{place}", name=name, colour=colour_of(name).hex, count=count)
        for place, (name, count) in enumerate(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
    ]
    clear = sum(not item.findings for item in cards)
    if clear:
        filters.append(Filter(token="none", name="no finding", colour=None, count=clear))  # noqa: S106 - not a secret
    return tuple(filters)
