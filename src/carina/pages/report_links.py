"""Links of a report: between its pages of answers and of maps, and to the pages of cases."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from carina.explanations.analysis.maps_groups import MapsGroup
from carina.pages.run_comparison.page import group_id
from carina.pages.start import Link
from carina.pages.words import page_name
from carina.runs.analysis.run_groups import RunGroup
from carina.store.errors import CarinaError


def relative_address(path: Path, root: Path) -> str:
    """The address of a file in a page that lies in `root`."""
    return quote(Path(os.path.relpath(path.resolve(), root.resolve())).as_posix())


def find_case_pages(ids: Iterable[str], directories: Sequence[Path], root: Path) -> dict[str, str]:
    """Addresses of the pages of cases, as `carina show` has written them to directories, for pages in `root`.

    Raises:
        CarinaError: A directory holds no pages.
    """
    pages: dict[str, Path] = {}
    for directory in directories:
        held = {path.stem: path for path in directory.glob("*.html")}
        if not held:
            raise CarinaError(f"{directory}: expected a directory of pages, as carina show writes it")
        pages = held | pages
    return {name: relative_address(pages[page_name(name)], root) for name in ids if page_name(name) in pages}


def link_groups(
    groups: Sequence[RunGroup], maps_groups: Sequence[MapsGroup], run_page: str, map_page: str
) -> tuple[list[list[Link]], list[list[Link]]]:
    """Links from each group of answers to the groups of maps about the same studies, and back."""
    studies = [{study for run in group.runs for study in run.index["study"]} for group in groups]
    mapped = [_mapped_studies(group) for group in maps_groups]
    forward: list[list[Link]] = [[] for _ in groups]
    back: list[list[Link]] = [[] for _ in maps_groups]
    for place, (group, own) in enumerate(zip(groups, studies, strict=True)):
        for number, (maps, others) in enumerate(zip(maps_groups, mapped, strict=True)):
            shared = len(own & others)
            if shared:
                about = f"{shared:,} of the same studies"
                text = f"Maps of {maps.title or 'maps'}, {about}"
                forward[place].append(Link(text=text, href=f"{map_page}#{map_group_id(number)}"))
                text = f"Answers to {group.title}, {about}"
                back[number].append(Link(text=text, href=f"{run_page}#{group_id(group)}"))
    return forward, back


def map_group_id(place: int) -> str:
    """Id of the section of a group of maps, by its place on the page."""
    return f"maps-{place + 1}"


def _mapped_studies(group: MapsGroup) -> set[str]:
    return {study for run in group.runs for study in run.maps.table(["study"]).collect()["study"]}
