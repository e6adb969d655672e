"""The index of conversations: what each asks about, filters with true counts, and a list that has an end."""

import importlib.util
import re
from pathlib import Path

import msgspec
import pytest

from carina.cases.model import Fact
from carina.show import bench_index, talk_index
from carina.show.talk_index import asked_about


def loaded(name: str):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


like, percept = loaded("talk_like"), loaded("percept_like")


def alone():
    """No reference and no later study; three turns of two stages."""
    whole = like.talk()
    return like.talk(
        id="trek-p9-s1", reference_study=None, later_study=None, images=whole.images[:2], views=whole.views[:2],
        steps=whole.steps[:3], facts=(),
    )  # fmt: skip


@pytest.fixture
def bench():
    return percept.bench_of(
        like.talk(), alone(), like.talk(id="trek-p2-s1", later_study=None), image=like.film()
    )


def rows(page) -> list[list[str]]:
    found = re.findall(r"<tr.*?</tr>", page.source, re.DOTALL)
    return [
        [re.sub(r"<[^>]+>", "", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row)]
        for row in found
    ]


def filters(page) -> dict[str, str]:
    found = re.findall(r'data-filter="(\w+)"[^>]*>(.*?)</button>', page.source, re.DOTALL)
    return {token: re.sub(r"<[^>]+>", "", text) for token, text in found}


def test_the_list_tells_turns_stages_neighbours_and_findings(bench, tmp_path, read_page) -> None:
    index = bench_index(bench, tmp_path, limit=2, title="<mine>")
    page = read_page(index.html)
    page.assert_sound()
    assert "&lt;mine&gt;" in page.source
    assert "3 conversations, trek; 21 turns; pages of the first 2" in page.text
    asked = "pleural effusion, nodule, pacemaker"
    assert rows(page) == [
        ["Case", "Turns", "Stages", "Images", "Earlier", "Later", "Asked about"],
        ["trek-p1-s2", "9", "1 2 3 5 8", "2 + 1", "yes", "yes", asked],
        ["trek-p9-s1", "3", "1 2", "2", "–", "–", "pleural effusion, nodule"],
        ["trek-p2-s1", "9", "1 2 3 5 8", "2 + 1", "yes", "–", asked],
    ]
    # Only what has a page is linked, in the list and from its card.
    assert page.links == ["trek-p1-s2.html"] * 2 + ["trek-p9-s1.html"] * 2 + [
        "trek-p1-s2.html",
        "trek-p9-s1.html",
    ]


def test_filters_count_what_they_leave(bench, tmp_path, read_page) -> None:
    page = read_page(bench_index(bench, tmp_path).html)
    told = filters(page)
    assert list(told.values()) == [
        "1 Images and technique 3", "2 Findings and devices 3", "3 A closer look 2", "5 Comparison 2", "8 Report 2",
        "compared with an earlier one 2", "followed by a later one 1",
        "nodule 3", "pleural effusion 3", "pacemaker 2",
    ]  # fmt: skip
    held = [
        set((attrs["data-f"] or "").split()) for tag, attrs in page.tags if tag == "tr" and "data-f" in attrs
    ]
    for token, text in told.items():
        assert sum(token in tokens for tokens in held) == int(text.rsplit(" ", 1)[1])


def test_a_list_of_very_many_has_an_end_that_it_tells(bench, tmp_path, read_page, monkeypatch) -> None:
    monkeypatch.setattr(talk_index, "LISTED", 2)
    page = read_page(bench_index(bench, tmp_path, limit=1).html)
    assert "3 conversations, trek; the first 2 are listed; 12 turns; pages of the first 1" in page.text
    assert len(rows(page)) == 3


def test_shuffled_conversations_say_so(tmp_path, read_page) -> None:
    mixed = like.talk(id="m", order="shuffled")
    page = read_page(bench_index(percept.bench_of(like.talk(), mixed, image=like.film()), tmp_path).html)
    assert [row[6] for row in rows(page)] == ["Order", "staged", "shuffled"]


def test_hostile_names_are_escaped(tmp_path, read_page) -> None:
    evil = "\"><img src=x onerror='alert(1)'>"
    case = like.talk(id=evil)
    step = msgspec.structs.replace(case.steps[1], facts=(Fact(name="target", about="finding", text=evil),))
    case = msgspec.structs.replace(case, steps=(case.steps[0], step, *case.steps[2:]))
    page = read_page(bench_index(percept.bench_of(case, image=like.film()), tmp_path).html)
    page.assert_sound()
    assert not any("onerror" in attrs for _, attrs in page.tags)


def test_views_regions_and_studies_are_not_asked_about() -> None:
    step = like.talk().steps[0]
    kinds = ("view", "device", "region", "study", "finding", "device")
    facts = tuple(Fact(name="target", about=kind, text=kind) for kind in kinds)
    case = like.talk(steps=(msgspec.structs.replace(step, facts=facts), *like.talk().steps[4:5]))
    assert asked_about(case) == ("device", "finding")


def test_a_mixed_benchmark_keeps_the_table_of_cells(tmp_path, read_page) -> None:
    square = percept.lf_case()
    page = read_page(bench_index(percept.bench_of(square), tmp_path).html)
    assert [row[0] for row in rows(page)] == ["Target", "edema", "all"]
