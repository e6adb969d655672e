"""Pages of study sets and benchmarks as files: `show`, and the writers of single pages and of whole sets."""

import webbrowser
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from carina.cases import Benchmark, open_benchmark
from carina.cases.checking import explain_no_set
from carina.cases.draw import PngRows, Rgb, Size
from carina.cases.model import Case
from carina.pages.benchmark_index import CaseCard, count_strata, make_case_card, render_benchmark_index
from carina.pages.case import CaseLinks, load_case, render_case
from carina.pages.case_summary import draw_case_summary
from carina.pages.conversation import is_conversation, load_conversation, render_conversation
from carina.pages.conversation_index import list_conversations, render_conversation_index
from carina.pages.conversation_summary import draw_conversation_summary
from carina.pages.figures import png_bytes
from carina.pages.missing_images import FramedViews
from carina.pages.output import claim_pages, lock_pages
from carina.pages.sets import CaseSet, RenderedViews, StudySet
from carina.pages.study import StudyContent, StudyLinks, load_study, render_study
from carina.pages.study_index import (
    CONTACT_COLUMNS,
    StudyCard,
    contact_sheet_size,
    draw_contact_row,
    draw_contact_tile,
    has_lateral,
    make_study_card,
    render_study_index,
)
from carina.pages.study_summary import draw_study_summary
from carina.pages.words import page_name
from carina.store.arguments import PositiveInt, check_arguments
from carina.store.errors import CarinaError
from carina.store.files import replacing, write_bytes
from carina.store.layout import what_is
from carina.store.progress import Progress, no_progress
from carina.store.results import Location, Result, as_path
from carina.studies import Studies, open_studies
from carina.studies.model import Study

if TYPE_CHECKING:
    import polars as pl

INDEX: Final = "index.html"
CONTACT_SHEET: Final = "contact-sheet.png"
_TITLE: Final = "the pages"
LIMIT: Final = 24
"""Studies or cases with a page, unless another number is given."""


@dataclass(frozen=True, kw_only=True)
class Page:
    """The files of one study's or case's page."""

    id: str
    html: Path
    png: Path
    """The same as a single image."""
    missing_images: int = 0
    """Image files of the study that are not there."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Pages(Result):
    """Pages that were written.

    Example:
        >>> pages = show("studies", "pages", limit=2)
        >>> pages.path.name, len(pages.pages), pages.total
        ('index.html', 2, 40)
    """

    html: Path
    """The index, or the page of the one study or case that was asked for."""
    pages: tuple[Page, ...]
    png: Path | None = None
    """The contact sheet of a study set, or the image of the one study or case."""
    noun: Literal["study", "case", "set"]
    """What there are pages of: studies, cases, or the sets of a directory."""
    total: int
    """Studies or cases in the set, with and without a page; or sets in the directory."""
    missing_images: int = 0
    """Image files of the studies that have a page which are not there: an empty frame is shown in place of each."""

    @property
    def path(self) -> Path:
        return self.html

    def to_frame(self) -> "pl.DataFrame":
        """One row per page: the id of the study or case, its HTML file, and its PNG file."""
        import polars as pl  # noqa: PLC0415 - slow to import

        return pl.DataFrame(
            {
                "id": [page.id for page in self.pages],
                "file": [str(page.html) for page in self.pages],
                "image": [str(page.png) for page in self.pages],
            },
            schema={"id": pl.String, "file": pl.String, "image": pl.String},
        )

    def open(self) -> None:
        """Open the index in the web browser."""
        webbrowser.open(self.html.resolve().as_uri())

    def _summary(self) -> dict[str, object]:
        return {"pages": len(self.pages), "of": self.total}


@check_arguments
def show(
    location: Location,
    out: Location = "pages",
    *,
    id: str | None = None,  # noqa: A002 - what it is
    limit: PositiveInt = LIMIT,
    images: Location | None = None,
    title: str | None = None,
    progress: Progress = no_progress,
) -> Pages:
    """Write pages that show studies and their findings, or cases and their answer keys.

    Of a directory that holds such sets, audits, runs and reports, one start page is written that links all of them, and
    pages of the sets that have none. Pages are written one by one, so that memory does not grow with the size of the
    images.

    Args:
        location: Study set or benchmark, or a directory that holds some.
        out: Directory to write the pages to; it is created if needed.
        id: Id of one study or case. Without it, an index and the pages of the first `limit` are written.
        limit: Write pages of at most this number of studies or cases of a set.
        images: Directory of the images, if they have moved.
        title: Heading of the index; the name of the set's directory unless given.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The pages. `path` is the index, or the page of the one study or case; `to_frame()` lists ids and files.

    Raises:
        CarinaError: `location` is no study set, no benchmark and no directory that holds any, has no such id, or cannot
            be drawn; or `out` is a file or holds a set.

    Example:
        >>> pages = show("studies", "pages", limit=4)
        >>> pages.path.name
        'index.html'
    """
    target = as_path(out)
    if limit < 1:
        raise CarinaError(f"limit: expected 1 or more, found {limit}")
    if _is_folder(location):
        from carina.pages.folder import write_folder_page  # noqa: PLC0415 - it uses the writers of this module

        if id is not None:
            raise CarinaError(f"{as_path(location)}: is no set; give the set that holds {id!r}")
        root = None if images is None else as_path(images)
        return write_folder_page(
            as_path(location), target, limit=limit, images=root, title=title, progress=progress
        )
    opened = _open_set(location, images)
    heading = title or opened.directory.resolve().name
    if isinstance(opened, Benchmark):
        if id is None:
            return write_case_pages(opened, target, limit=limit, title=heading, progress=progress)
        _check_id(opened, id, "case", "cases")
        page = write_case_page(opened, opened[id], target)
    else:
        if id is None:
            return write_study_pages(opened, target, limit=limit, title=heading, progress=progress)
        _check_id(opened, id, "study", "studies")
        page = write_study_page(opened, opened[id], target)
    noun: Literal["study", "case"] = "case" if isinstance(opened, Benchmark) else "study"
    return Pages(
        html=page.html,
        png=page.png,
        pages=(page,),
        noun=noun,
        total=len(opened),
        missing_images=page.missing_images,
    )


def write_study_page(studies: StudySet, study: Study, out: Path, *, links: StudyLinks | None = None) -> Page:
    """Write the page of a study, `<id>.html`, and its summary image, `<id>.png`.

    Args:
        studies: Study set that holds the study.
        study: The study.
        out: Directory to write to.
        links: Addresses of other pages; None links pages that are already in `out`.

    Returns:
        The paths of the page and of the image.

    Example:
        >>> from carina import open_studies
        >>> studies = open_studies("studies")
        >>> write_study_page(studies, studies["p000000-s1"], Path("pages")).html.name
        'p000000-s1.html'
    """
    files = _page_files([page_name(study.id)])
    with lock_pages(out, _TITLE, ()), claim_pages(out, _TITLE, files):
        return _write_study(load_study(studies, study), out, links or _existing_links(study, out))


def write_study_pages(
    studies: StudySet,
    out: Path,
    *,
    limit: int = LIMIT,
    title: str = "Studies",
    progress: Progress = no_progress,
) -> Pages:
    """Write `index.html`, `contact-sheet.png` and the pages of the first studies of a set.

    Args:
        studies: The study set.
        out: Directory to write to.
        limit: Number of studies that get a page.
        title: Heading of the index.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The paths of the index, the contact sheet and the pages.

    Example:
        >>> from carina import open_studies
        >>> pages = write_study_pages(open_studies("studies"), Path("pages"), limit=2)
        >>> len(pages.pages), pages.total
        (2, 40)
    """
    # A first pass without pixels: pages link to their neighbours, and the contact sheet has to know its width.
    with_lateral = False
    names: dict[str, str] = {}
    for study in islice(studies, limit):
        names[study.id] = f"{page_name(study.id)}.html"
        with_lateral |= has_lateral(study)
    files = {INDEX: INDEX, CONTACT_SHEET: INDEX} | _page_files(page_name(name) for name in names)
    cards: list[StudyCard] = []
    pages: list[Page] = []
    with (
        lock_pages(out, _TITLE, ()),
        claim_pages(out, _TITLE, files),
        progress("Pages", len(names)) as advance,
        _contact_sheet(out / CONTACT_SHEET, len(names), with_lateral=with_lateral) as add_tile,
    ):
        for study in islice(studies, limit):
            content = load_study(studies, study)
            links = StudyLinks(
                index=INDEX,
                prior=names.get(study.prior) if study.prior else None,
                follow_up=names.get(study.later) if study.later else None,
            )
            card = make_study_card(content)
            add_tile(draw_contact_tile(content, card, with_lateral=with_lateral))
            cards.append(card)
            pages.append(_write_study(content, out, links))
            del content  # before the next one is read
            advance(1)
        index = out / INDEX
        write_bytes(index, render_study_index(cards, title=title, total=len(studies)).encode())
    return Pages(
        html=index,
        png=out / CONTACT_SHEET,
        pages=tuple(pages),
        noun="study",
        total=len(studies),
        missing_images=sum(page.missing_images for page in pages),
    )


def write_case_page(
    cases: CaseSet,
    case: Case,
    out: Path,
    *,
    views: RenderedViews | None = None,
    links: CaseLinks | None = None,
) -> Page:
    """Write the page of a case, `<id>.html`, and its summary image, `<id>.png`.

    Args:
        cases: Benchmark that holds the case.
        case: The case.
        out: Directory to write to.
        views: Renders what the steps show; None renders the benchmark's own images.
        links: Addresses of the index and of neighbouring pages; None links an index that is already in `out`.

    Returns:
        The paths of the page and of the image.

    Example:
        >>> bench = open_benchmark("bench")
        >>> write_case_page(bench, bench["c-7db117ee228a361f"], Path("pages")).html.name
        'c-7db117ee228a361f.html'
    """
    files = _page_files([page_name(case.id)])
    with lock_pages(out, _TITLE, ()), claim_pages(out, _TITLE, files):
        links = links or CaseLinks(index=_existing(out, INDEX))
        return _write_case(cases, case, out, views or FramedViews(cases), links)


def write_case_pages(
    cases: CaseSet,
    out: Path,
    *,
    limit: int = LIMIT,
    title: str = "Cases",
    views: RenderedViews | None = None,
    progress: Progress = no_progress,
) -> Pages:
    """Write `index.html` and the pages of the first cases of a benchmark.

    Args:
        cases: The benchmark.
        out: Directory to write to.
        limit: Number of cases that get a page.
        title: Heading of the index.
        views: Renders what the steps show; None renders the benchmark's own images.
        progress: Progress display, such as `carina.progress_bar`; none by default.

    Returns:
        The paths of the index and of the pages.

    Example:
        >>> pages = write_case_pages(open_benchmark("bench"), Path("pages"), limit=2)
        >>> len(pages.pages), pages.total
        (2, 18)
    """
    rendered = views or FramedViews(cases)
    stems = [page_name(case.id) for case in islice(cases, limit)]
    names = [f"{stem}.html" for stem in stems]
    files = {INDEX: INDEX} | _page_files(stems)
    cards: list[CaseCard] = []
    pages: list[Page] = []
    only_conversations = bool(names)
    with (
        lock_pages(out, _TITLE, ()),
        claim_pages(out, _TITLE, files),
        progress("Pages", len(names)) as advance,
    ):
        for place, case in enumerate(islice(cases, limit)):
            links = CaseLinks(
                index=INDEX,
                previous=names[place - 1] if place else None,
                next=names[place + 1] if place + 1 < len(names) else None,
            )
            cards.append(make_case_card(rendered, case))
            pages.append(_write_case(cases, case, out, rendered, links))
            only_conversations = only_conversations and is_conversation(case)
            advance(1)
        sources = cases.manifest.sources
        if only_conversations:
            entries = list_conversations(cases, cards)
            html = render_conversation_index(entries, cards, title=title, total=len(cases), sources=sources)
        else:
            html = render_benchmark_index(cards, count_strata(cases), title=title, sources=sources)
        index = out / INDEX
        write_bytes(index, html.encode())
    return Pages(html=index, pages=tuple(pages), noun="case", total=len(cases))


def _is_folder(location: Location) -> bool:
    """Whether it is a directory that is no set and has something in it."""
    if isinstance(location, Studies | Benchmark):
        return False
    path = as_path(location)
    return path.is_dir() and what_is(path) is None and any(path.iterdir())


def _open_set(location: Location, images: Location | None) -> Studies | Benchmark:
    root = None if images is None else as_path(images)
    if isinstance(location, Studies | Benchmark):
        if root is None:
            return location
        path = location.directory
    else:
        path = as_path(location)
    match what_is(path):
        case "benchmark":
            if root is not None and not root.is_dir():
                raise CarinaError(
                    f"{root}: no such directory, expected the directory of the benchmark's images"
                )
            return open_benchmark(path, root)
        case "studies":
            if root is not None:
                raise CarinaError(f"{path}: is a study set; only a benchmark takes a directory of images")
            return open_studies(path)
        case "maps":
            raise CarinaError(f"{path}: holds localisation maps; `carina report` shows them")
        case _:
            raise CarinaError(explain_no_set(path))


def _check_id(opened: Studies | Benchmark, record_id: str, noun: str, plural: str) -> None:
    if record_id not in opened:
        hint = _nearest(record_id, opened.ids(), plural)
        raise CarinaError(f"{opened.directory}: no {noun} {record_id!r}; {hint}")


def _nearest(wrong: str, ids: Sequence[str], plural: str) -> str:
    close = get_close_matches(wrong, ids, n=3)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"it holds {len(ids)} {plural}, the first is {ids[0]}" if ids else "it is empty"


def _existing(out: Path, name: str) -> str | None:
    return name if (out / name).is_file() else None


def _existing_links(study: Study, out: Path) -> StudyLinks:
    return StudyLinks(
        index=_existing(out, INDEX),
        prior=_existing(out, f"{page_name(study.prior)}.html") if study.prior else None,
        follow_up=_existing(out, f"{page_name(study.later)}.html") if study.later else None,
    )


def _page_files(stems: Iterable[str]) -> dict[str, str]:
    """The files of pages of studies or cases, each with the page that is written after it."""
    return {f"{stem}.{ending}": f"{stem}.html" for stem in stems for ending in ("png", "html")}


def _write_study(content: StudyContent, out: Path, links: StudyLinks) -> Page:
    page = _write_page(content.study.id, render_study(content, links), draw_study_summary(content), out)
    return replace(page, missing_images=content.missing)


def _write_case(cases: CaseSet, case: Case, out: Path, views: RenderedViews, links: CaseLinks) -> Page:
    html, image = _render_case(cases, case, views, links)
    return _write_page(case.id, html, image, out)


def _render_case(cases: CaseSet, case: Case, views: RenderedViews, links: CaseLinks) -> tuple[str, Rgb]:
    if is_conversation(case):
        conversation = load_conversation(cases, case, views)
        return render_conversation(conversation, links), draw_conversation_summary(conversation)
    content = load_case(cases, case, views)
    return render_case(content, links), draw_case_summary(content)


def _write_page(record_id: str, html: str, image: Rgb, out: Path) -> Page:
    name = page_name(record_id)
    page = Page(id=record_id, html=out / f"{name}.html", png=out / f"{name}.png")
    write_bytes(page.png, png_bytes(image))
    write_bytes(page.html, html.encode())
    return page


@contextmanager
def _contact_sheet(path: Path, cards: int, *, with_lateral: bool) -> Iterator[Callable[[Rgb], None]]:
    """A function that adds one tile to the contact sheet; only one row of tiles is in memory at a time."""
    size: Size = contact_sheet_size(cards, with_lateral=with_lateral)
    tiles: list[Rgb] = []
    with replacing(path) as temporary, temporary.open("wb") as file:
        rows = PngRows(file, size)

        def write_row() -> None:
            rows.write(draw_contact_row(tiles, with_lateral=with_lateral))
            tiles.clear()

        def add_tile(tile: Rgb) -> None:
            tiles.append(tile)
            if len(tiles) == CONTACT_COLUMNS:
                write_row()

        yield add_tile
        if tiles or not cards:
            write_row()
        rows.close()
