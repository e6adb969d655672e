"""The index of a benchmark: the number of cases of each target and path, and cards of the first cases.

html = render_benchmark_index([card], {("nodule", "LF"): 1}, title="My benchmark")
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from carina.cases.draw import Size
from carina.cases.model import Case
from carina.pages.case_figures import describe_view
from carina.pages.case_text import PATH_TITLES, path_title, target_colour
from carina.pages.figures import Figure, jpeg_uri, shrink
from carina.pages.frame import render_page
from carina.pages.sets import CaseSet, RenderedViews
from carina.pages.words import page_name
from carina.store.counts import format_count
from carina.studies import SourceInfo

_THUMBNAIL: Final = Size(width=480, height=480)

Stratum = tuple[str | None, str | None]
"""Target and path of a case."""


@dataclass(frozen=True, kw_only=True)
class CaseCard:
    """One case in brief: a view and a few words. Holds no pixels."""

    id: str
    protocol: str
    target: str | None
    path: str | None
    path_title: str
    steps: int
    page: str
    """File name of the case's page."""
    colour: str | None
    figure: Figure | None

    @property
    def stratum(self) -> Stratum:
        return self.target, self.path

    @property
    def steps_text(self) -> str:
        return format_count(self.steps, "step")


@dataclass(frozen=True, kw_only=True)
class StratumCount:
    """Number of cases of one target and path; its button keeps those on the page."""

    token: str
    cases: int
    cards: int
    title: str


@dataclass(frozen=True, kw_only=True)
class TargetRow:
    """All paths of one target."""

    name: str
    colour: str | None
    strata: tuple[StratumCount, ...]
    total: int


def make_case_card(views: RenderedViews, case: Case) -> CaseCard:
    """Summarise a case for the index of a benchmark.

    Args:
        views: Renders the image on the card.
        case: The case.

    Returns:
        The card, for `render_benchmark_index`.

    Example:
        >>> from carina.cases import Views, open_benchmark
        >>> bench = open_benchmark("bench")
        >>> card = make_case_card(Views(bench), bench["c-7db117ee228a361f"])
        >>> card.target, card.steps, card.page
        ('cardiomegaly', 2, 'c-7db117ee228a361f.html')
    """
    view = representative_view(case)
    figure = None
    if view is not None:
        pixels = views.array(case, view)
        figure = Figure(
            id="card",
            alt=describe_view(case, case.view(view)),
            size=Size(width=pixels.shape[1], height=pixels.shape[0]),
            uri=jpeg_uri(shrink(pixels, _THUMBNAIL)),
        )
    return CaseCard(
        id=case.id,
        protocol=case.protocol,
        target=case.target,
        path=case.path,
        path_title=path_title(case),
        steps=len(case.steps),
        page=f"{page_name(case.id)}.html",
        colour=target_colour(case.target).hex if case.target else None,
        figure=figure,
    )


def representative_view(case: Case) -> str | None:
    """The first view with the most overlays and marks, without views of options; None where a case shows nothing."""
    options = {option.view for step in case.steps for option in step.options}
    shown = [view for step in case.steps for view in step.shows]
    wanted = [view for view in shown if view not in options] or shown

    def drawings(view: str) -> int:
        return sum(len(panel.overlays) + len(panel.marks) for panel in case.view(view).panels)

    return max(wanted, key=drawings, default=None)


def count_strata(cases: CaseSet) -> dict[Stratum, int]:
    """Count the cases of every target and path.

    Args:
        cases: A benchmark.

    Returns:
        Number of cases by target and path, in the order of their names.

    Example:
        >>> from carina import open_benchmark
        >>> count_strata(open_benchmark("bench"))["edema", "RR"]
        1
    """
    pairs = cases.table(["target", "path"]).collect().rows()
    return Counter((target, path) for target, path in sorted(pairs, key=_sort_key))


def render_benchmark_index(
    cards: Sequence[CaseCard],
    counts: Mapping[Stratum, int],
    *,
    title: str,
    sources: Sequence[SourceInfo] = (),
) -> str:
    """Render the index of a benchmark as HTML.

    Args:
        cards: Cards of the cases that have a page.
        counts: Number of cases by target and path, also of those without a card.
        title: Heading of the page.
        sources: Sources of the images.

    Returns:
        A whole page.

    Example:
        >>> from carina import open_benchmark
        >>> html = render_benchmark_index([], count_strata(open_benchmark("bench")), title="My benchmark")
        >>> "<title>My benchmark · Carina</title>" in html
        True
    """
    paths = _sorted_names(path for _, path in counts)
    tokens = {stratum: f"c{place}" for place, stratum in enumerate(counts)}
    values: dict[str, object] = {
        "title": title,
        "total": sum(counts.values()),
        "sources": sources,
        "cards": [(card, tokens.get(card.stratum, "")) for card in cards],
        "protocols": sorted({card.protocol for card in cards}),
        "paths": [(path, PATH_TITLES.get(path or "", path or "")) for path in paths],
        "rows": _target_rows(counts, paths, tokens, cards),
        "sums": [sum(count for (_, at), count in counts.items() if at == path) for path in paths],
    }
    return render_page(
        "benchmark_index.html.j2",
        values,
        title=title,
        styles=("index.css", "benchmark_index.css"),
        scripts=("index.js",),
    )


def _target_rows(
    counts: Mapping[Stratum, int],
    paths: Sequence[str | None],
    tokens: Mapping[Stratum, str],
    cards: Sequence[CaseCard],
) -> list[TargetRow]:
    on_page = Counter(card.stratum for card in cards)
    rows = []
    for target in _sorted_names(target for target, _ in counts):
        strata = []
        for path in paths:
            stratum = (target, path)
            title = " ".join(part for part in (target, PATH_TITLES.get(path or "", path)) if part)
            strata.append(
                StratumCount(
                    token=tokens.get(stratum, ""),
                    cases=counts.get(stratum, 0),
                    cards=on_page[stratum],
                    title=title,
                )
            )
        rows.append(
            TargetRow(
                name=target or "",
                colour=target_colour(target).hex if target else None,
                strata=tuple(strata),
                total=sum(stratum.cases for stratum in strata),
            )
        )
    return rows


def _sort_key(names: Sequence[str | None]) -> tuple[tuple[bool, str], ...]:
    """In the order of names; a missing name comes last."""
    return tuple((name is None, name or "") for name in names)


def _sorted_names(names: Iterable[str | None]) -> list[str | None]:
    return sorted(set(names), key=lambda name: _sort_key([name]))
