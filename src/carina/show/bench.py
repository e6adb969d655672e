"""The index of a benchmark: how many cases each cell holds, and the first of them with a way to each one's page."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from carina.cases.render import Views
from carina.files import write_bytes
from carina.show import case_words
from carina.show.bench_cards import CaseCard, case_card
from carina.show.case import CaseLinks, CasePage, write_case
from carina.show.case_source import CaseSet, DrawnViews
from carina.show.case_turns import is_talk
from carina.show.talk_index import talk_values
from carina.show.template import fill
from carina.show.words import page_name

INDEX = "index.html"
Cells = Mapping[tuple[str | None, str | None], int]
"""Target and path to the number of cases."""


@dataclass(frozen=True, kw_only=True)
class BenchIndex:
    """The files of a benchmark's index."""

    html: Path
    pages: tuple[CasePage, ...]


@dataclass(frozen=True, kw_only=True)
class CellCount:
    """Cases of one target on one path; its button leaves those on the page."""

    token: str
    count: int
    shown: int
    title: str


@dataclass(frozen=True, kw_only=True)
class TargetRow:
    name: str
    colour: str | None
    cells: tuple[CellCount, ...]
    total: int


def bench_index(
    cases: CaseSet,
    out_dir: Path,
    *,
    limit: int = 24,
    title: str = "Cases",
    views: DrawnViews | None = None,
    on_page: Callable[[CasePage], None] | None = None,
) -> BenchIndex:
    """Write `index.html` and the page of each of the first `limit` cases.

    `on_page` is told of every page as it is written, for a progress bar.
    """
    drawn = views or Views(cases)
    shown = list(islice(cases, limit))
    names = [f"{page_name(case.id)}.html" for case in shown]
    cards, pages = [], []
    for place, case in enumerate(shown):
        links = CaseLinks(
            index=INDEX,
            before=names[place - 1] if place else None,
            after=names[place + 1] if place + 1 < len(names) else None,
        )
        cards.append(case_card(drawn, case))
        pages.append(write_case(cases, case, out_dir, views=drawn, links=links))
        if on_page:
            on_page(pages[-1])
    if shown and all(is_talk(case) for case in shown):
        name, values = "talks.html.j2", talk_values(cases, cards)
    else:
        name, values = "bench.html.j2", _cell_values(cases, cards)
    values |= {"title": title, "total": len(cases), "cards": cards, "sources": cases.manifest.sources}
    index = BenchIndex(html=out_dir / INDEX, pages=tuple(pages))
    write_bytes(index.html, fill(name, values).encode())
    return index


def _cell_values(cases: CaseSet, cards: Sequence[CaseCard]) -> dict[str, object]:
    """A table of targets and paths."""
    cells = _cells(cases)
    paths = _in_order(path for _, path in cells)
    tokens = {cell: f"c{place}" for place, cell in enumerate(cells)}
    return {
        "protocols": sorted({card.case.protocol for card in cards}),
        "paths": [(path, case_words.PATHS.get(path or "", path or "")) for path in paths],
        "rows": _rows(cells, paths, tokens, cards),
        "sums": [sum(count for (_, at), count in cells.items() if at == path) for path in paths],
        "tokens": [tokens.get((card.case.target, card.case.path), "") for card in cards],
    }


def _rows(
    cells: Cells,
    paths: Sequence[str | None],
    tokens: Mapping[tuple[str | None, str | None], str],
    cards: Sequence[CaseCard],
) -> list[TargetRow]:
    rows = []
    for target in _in_order(target for target, _ in cells):
        made = []
        for path in paths:
            cell = (target, path)
            shown = sum((card.case.target, card.case.path) == cell for card in cards)
            name = " ".join(part for part in (target, case_words.PATHS.get(path or "", path)) if part)
            made.append(
                CellCount(token=tokens.get(cell, ""), count=cells.get(cell, 0), shown=shown, title=name)
            )
        total = sum(cell.count for cell in made)
        colour = case_words.colour(target).hex if target else None
        rows.append(TargetRow(name=target or "", colour=colour, cells=tuple(made), total=total))
    return rows


def _cells(cases: CaseSet) -> Cells:
    """How many cases every cell holds, in order of names."""
    pairs = cases.table(["target", "path"]).collect().rows()
    return Counter((target, path) for target, path in sorted(pairs, key=_order))


def _order(names: Sequence[str | None]) -> tuple[tuple[bool, str], ...]:
    """Without a name comes last."""
    return tuple((name is None, name or "") for name in names)


def _in_order(names: Iterable[str | None]) -> list[str | None]:
    return sorted(set(names), key=lambda name: _order([name]))
