"""The index of a benchmark: counts by target and path, and cards that link to the pages of cases."""

import re

import msgspec
import pytest
from tests.pages import percept_cases as like

from carina.cases.draw import colour_of
from carina.pages import write_case_pages
from carina.pages.benchmark_index import representative_view


@pytest.fixture
def bench():
    cases = [
        like.rr_case(),
        like.lf_case(),
        like.lf_case(id="c-2", target="consolidation"),
        like.rr_case(id="c-3"),
    ]
    return like.bench_of(*cases)


def test_counts_cover_all_cases_and_cards_the_first(bench, tmp_path, read_page) -> None:
    index = write_case_pages(bench, tmp_path, limit=2, title="<mine>")
    page = read_page(index.html)
    page.assert_sound()
    assert [written.id for written in index.pages] == ["c-0123456789abcdef", "c-fedcba9876543210"]
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
    # Only targets and paths with a card on this page have a button, and "all".
    filters = [attrs["data-filter"] for _, attrs in page.tags if "data-filter" in attrs]
    assert len(filters) == 3
    assert {attrs["data-f"] for attrs in page.with_class("study")} == set(filters) - {""}
    assert "revision required · 9 steps" in page.text
    assert "lesion-free · 1 step" in page.text


def test_pages_are_linked_to_the_index_and_to_each_other(bench, tmp_path, read_page) -> None:
    index = write_case_pages(bench, tmp_path)
    links = [read_page(page.html).links for page in index.pages]
    names = [page.html.name for page in index.pages]
    for place, found in enumerate(links):
        wanted = ["index.html", *names[max(0, place - 1) : place], *names[place + 1 : place + 2]]
        assert sorted(link for link in found if not link.startswith("#")) == sorted(wanted)


def test_card_shows_the_view_with_most_drawn_on_it() -> None:
    assert representative_view(like.rr_case()) == "v3"
    assert representative_view(like.lf_case()) == "v1"


def test_card_shows_no_option() -> None:
    case = like.rr_case()
    (panel,) = case.view("v5").panels
    crowded = msgspec.structs.replace(panel, marks=case.view("v3").panels[0].marks * 2)
    views = tuple(
        msgspec.structs.replace(view, panels=(crowded,)) if view.id == "v5" else view for view in case.views
    )
    assert representative_view(msgspec.structs.replace(case, views=views)) == "v3"


def test_index_has_the_same_bytes_every_time(bench, tmp_path) -> None:
    first, second = (write_case_pages(bench, tmp_path / name) for name in "ab")
    assert first.html.read_bytes() == second.html.read_bytes()


def test_target_has_the_colour_of_its_finding(tmp_path) -> None:
    case = like.lf_case(target="effusion")
    index = write_case_pages(like.bench_of(case), tmp_path)
    for page in (index.html, index.pages[0].html):
        assert f"--c:{colour_of('pleural effusion').hex}" in page.read_text(encoding="utf-8")
