"""The page of one case: the whole examination with its pictures, its keys, and what these rest on."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from carina.cases.faults import faults
from carina.cases.model import Case
from carina.cases.render import Views
from carina.draw import Rgb
from carina.errors import BenchmarkError
from carina.files import write_bytes
from carina.show import case_words
from carina.show.case_facts import facts_of, names_in
from carina.show.case_path import path_of
from carina.show.case_pictures import LARGEST, Picture
from carina.show.case_sheet import case_sheet
from carina.show.case_source import CaseSet, DrawnViews
from carina.show.case_steps import Block, blocks
from carina.show.case_truth import Explanation, apart, explanation
from carina.show.case_turns import is_talk, scenes, stage_counts
from carina.show.pictures import jpeg_uri, png_bytes, shrunk
from carina.show.talk_sheet import talk_sheet
from carina.show.template import fill
from carina.show.words import page_name


@dataclass(frozen=True, kw_only=True)
class CasePage:
    """The files of one case's page."""

    id: str
    html: Path
    png: Path


@dataclass(frozen=True, kw_only=True)
class CaseLinks:
    """File names of the pages around this one; None where there is no such page."""

    index: str | None = None
    before: str | None = None
    after: str | None = None


def case_page(cases: CaseSet, case: Case, out_dir: Path, *, views: DrawnViews | None = None) -> CasePage:
    """Write `<id>.html` and `<id>.png`; an index that is already in `out_dir` is linked.

    `views` draws what the steps show; without it the benchmark's own images are drawn.
    """
    index = "index.html" if (out_dir / "index.html").is_file() else None
    return write_case(cases, case, out_dir, views=views or Views(cases), links=CaseLinks(index=index))


def write_case(cases: CaseSet, case: Case, out_dir: Path, *, views: DrawnViews, links: CaseLinks) -> CasePage:
    """Write a case's page with the given links."""
    for fault in faults(case):
        raise BenchmarkError(f"case {case.id!r} cannot be shown: {fault}")
    html, sheet = (
        _talk(cases, case, views, links) if is_talk(case) else _examination(cases, case, views, links)
    )
    name = page_name(case.id)
    page = CasePage(id=case.id, html=out_dir / f"{name}.html", png=out_dir / f"{name}.png")
    write_bytes(page.png, png_bytes(sheet))
    write_bytes(page.html, html.encode())
    return page


def _examination(cases: CaseSet, case: Case, views: DrawnViews, links: CaseLinks) -> tuple[str, Rgb]:
    """The page and the sheet of a case whose steps branch and whose views are drawn on."""
    steps = blocks(cases, views, case)
    truth = explanation(cases, case)
    values = {
        **_head(cases, case, links),
        "counts": {"Steps": str(len(steps)), "Cell": case.cell},
        "path": path_of(case),
        "steps": steps,
        "truth": truth,
        "facts": facts_of(apart(case), names_in(case)),
        "store": [(picture, _uri(picture)) for picture in _pictures(steps, truth)],
    }
    return fill("case.html.j2", values), case_sheet(case, steps, truth)


def _talk(cases: CaseSet, case: Case, views: DrawnViews, links: CaseLinks) -> tuple[str, Rgb]:
    """The page and the sheet of a conversation."""
    talk = scenes(views, case)
    stages = stage_counts(case)
    turns = f"{len(case.steps)} in {len(stages)} stage{'s' if len(stages) != 1 else ''}"
    films = {film.picture.id: film.picture for scene in talk for film in scene.films}
    rest = [fact for fact in case.facts if fact.name not in case_words.CHRONOLOGY]
    values = {
        **_head(cases, case, links),
        "counts": {"Turns": turns + (", shuffled" if case.order == "shuffled" else "")},
        "stages": stages,
        "scenes": talk,
        "demands": {step.id: case_words.demands(step) for step in case.steps},
        "facts": facts_of(rest, names_in(case)),
        "store": [(picture, _uri(picture)) for picture in films.values()],
    }
    return fill("talk.html.j2", values), talk_sheet(case, talk)


def _head(cases: CaseSet, case: Case, links: CaseLinks) -> dict[str, object]:
    """What every page of a case begins with."""
    return {
        "case": case,
        "colour": case_words.colour(case.target).hex if case.target else None,
        "path_words": case_words.path(case),
        "header": case_words.header(case, cases.manifest.sources),
        "links": links,
    }


def _pictures(steps: Iterable[Block], truth: Explanation | None) -> list[Picture]:
    """Every picture of the page once."""
    found: dict[str, Picture] = {}
    for block in steps:
        chosen = (choice.picture for choice in block.choices if choice.picture)
        for picture in (*(shown.picture for shown in block.shown), *chosen, *block.keyed):
            found.setdefault(picture.id, picture)
    if truth:
        found[truth.picture.id] = truth.picture
    return list(found.values())


def _uri(picture: Picture) -> str:
    # OpenCV writes blue first.
    return jpeg_uri(shrunk(picture.pixels, LARGEST)[..., ::-1])
