"""The index of a benchmark: counts by cell, and cards that lead to the pages of cases."""

import importlib.util
import re
from pathlib import Path

import msgspec
import pytest

from carina.draw import colour_of
from carina.show import bench_index
from carina.show.bench_cards import telling_view

spec = importlib.util.spec_from_file_location("percept_like", Path(__file__).with_name("percept_like.py"))
like = importlib.util.module_from_spec(spec)
spec.loader.exec_module(like)


@pytest.fixture
def bench():
    cases = [
        like.rr_case(),
        like.lf_case(),
        like.lf_case(id="c-2", target="consolidation"),
        like.rr_case(id="c-3"),
    ]
    return like.bench_of(*cases)


def test_cells_are_counted_over_all_cases_and_cards_shown_for_the_first(bench, tmp_path, read_page) -> None:
    seen: list[str] = []
    index = bench_index(bench, tmp_path, limit=2, title="<mine>", on_page=lambda page: seen.append(page.id))
    page = read_page(index.html)
    page.assert_sound()
    assert seen == [written.id for written in index.pages] == ["c-0123456789abcdef", "c-fedcba9876543210"]
    assert "2 of 4 cases" in page.text
    rows = re.findall(r"<tr>.*?</tr>", page.source, re.DOTALL)
    plain = [re.sub(r'<span class="vh">[^<]*</span>', "", row) for row in rows]
    cells = [
        [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
        for row in plain
    ]
    assert cells == [
        ["Target", "LFlesion-free", "RRrevision required", "all"],
        ["consolidation", "1", "2", "3"],
        ["edema", "1", "0", "1"],
        ["all", "2", "2", "4"],
    ]
    # Only cells with a card on this page can be chosen, and everything.
    filters = [attrs["data-filter"] for tag, attrs in page.tags if tag == "button"]
    assert len(filters) == 3
    assert {attrs["data-f"] for attrs in page.with_class("study")} == set(filters) - {""}
    assert "revision required · 9 steps" in page.text
    assert "lesion-free · 1 step" in page.text


def test_pages_are_linked_to_the_index_and_to_each_other(bench, tmp_path, read_page) -> None:
    index = bench_index(bench, tmp_path)
    links = [read_page(page.html).links for page in index.pages]
    names = [page.html.name for page in index.pages]
    for place, found in enumerate(links):
        wanted = ["index.html", *names[max(0, place - 1) : place], *names[place + 1 : place + 2]]
        assert sorted(link for link in found if not link.startswith("#")) == sorted(wanted)


def test_the_card_shows_what_tells_most() -> None:
    assert telling_view(like.rr_case()) == "v3"
    assert telling_view(like.lf_case()) == "v1"


def test_the_card_never_shows_an_option() -> None:
    case = like.rr_case()
    (panel,) = case.view("v5").panels
    crowded = msgspec.structs.replace(panel, marks=case.view("v3").panels[0].marks * 2)
    views = tuple(
        msgspec.structs.replace(view, panels=(crowded,)) if view.id == "v5" else view for view in case.views
    )
    assert telling_view(msgspec.structs.replace(case, views=views)) == "v3"


def test_an_index_is_the_same_every_time(bench, tmp_path) -> None:
    first, second = (bench_index(bench, tmp_path / name) for name in "ab")
    assert first.html.read_bytes() == second.html.read_bytes()


def test_short_names_of_targets_have_the_colours_of_their_findings(tmp_path) -> None:
    case = like.lf_case(target="effusion")
    index = bench_index(like.bench_of(case), tmp_path)
    for page in (index.html, index.pages[0].html):
        assert f"--c:{colour_of('pleural effusion').hex}" in page.read_text(encoding="utf-8")
