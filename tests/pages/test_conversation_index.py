"""The index of conversations: findings in questions, filters with correct counts, and a list of limited length."""

import re

import msgspec
import pytest
from tests.pages import conversation_cases as like
from tests.pages import percept_cases as percept

from carina.cases.model import Fact
from carina.pages import conversation_index, write_case_pages
from carina.pages.case_facts import questioned_findings


def alone():
    """No reference and no later study; three turns of two stages."""
    whole = like.conversation()
    return like.conversation(
        id="trek-p9-s1", reference_study=None, later_study=None, images=whole.images[:2], views=whole.views[:2],
        steps=whole.steps[:3], facts=(),
    )  # fmt: skip


@pytest.fixture
def bench():
    return percept.bench_of(
        like.conversation(),
        alone(),
        like.conversation(id="trek-p2-s1", later_study=None),
        image=like.image_pixels(),
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


def test_list_gives_turns_stages_neighbours_and_findings(bench, tmp_path, read_page) -> None:
    index = write_case_pages(bench, tmp_path, limit=2, title="<mine>")
    page = read_page(index.html)
    page.assert_sound()
    assert "&lt;mine&gt;" in page.source
    assert "3 conversations, trek; 21 turns; pages of the first 2" in page.text
    findings = "pleural effusion, nodule, pacemaker"
    assert rows(page) == [
        ["Case", "Turns", "Stages", "Images", "Prior", "Follow-up", "Findings and devices in questions"],
        ["trek-p1-s2", "9", "1 2 3 5 8", "2 + 1", "yes", "yes", findings],
        ["trek-p9-s1", "3", "1 2", "2", "–", "–", "pleural effusion, nodule"],
        ["trek-p2-s1", "9", "1 2 3 5 8", "2 + 1", "yes", "–", findings],
    ]
    # Only what has a page is linked, in the list and from its card.
    assert [link for link in page.links if link != "#main"] == ["trek-p1-s2.html"] * 2 + [
        "trek-p9-s1.html"
    ] * 2 + [
        "trek-p1-s2.html",
        "trek-p9-s1.html",
    ]


def test_filters_show_how_many_conversations_they_keep(bench, tmp_path, read_page) -> None:
    page = read_page(write_case_pages(bench, tmp_path).html)
    told = filters(page)
    assert list(told.values()) == [
        "1 Image quality 3", "2 Findings 3", "3 Attributes and location 2", "5 Comparison 2", "8 Report 2",
        "with a prior study 2", "with a follow-up study 1",
        "nodule 3", "pleural effusion 3", "pacemaker 2",
    ]  # fmt: skip
    held = [
        set((attrs["data-f"] or "").split()) for tag, attrs in page.tags if tag == "tr" and "data-f" in attrs
    ]
    for token, text in told.items():
        assert sum(token in tokens for tokens in held) == int(text.rsplit(" ", 1)[1])


def test_long_list_is_cut_and_says_so(bench, tmp_path, read_page, monkeypatch) -> None:
    monkeypatch.setattr(conversation_index, "LISTED", 2)
    page = read_page(write_case_pages(bench, tmp_path, limit=1).html)
    assert "3 conversations, trek; the first 2 are listed; 12 turns; pages of the first 1" in page.text
    assert len(rows(page)) == 3


def test_shuffled_conversations_are_labelled(tmp_path, read_page) -> None:
    mixed = like.conversation(id="m", order="shuffled")
    bench = percept.bench_of(like.conversation(), mixed, image=like.image_pixels())
    page = read_page(write_case_pages(bench, tmp_path).html)
    assert [row[6] for row in rows(page)] == ["Order", "staged", "shuffled"]


def test_hostile_names_are_escaped(tmp_path, read_page) -> None:
    evil = "\"><img src=x onerror='alert(1)'>"
    case = like.conversation(id=evil)
    step = msgspec.structs.replace(case.steps[1], facts=(Fact(name="target", about="finding", text=evil),))
    case = msgspec.structs.replace(case, steps=(case.steps[0], step, *case.steps[2:]))
    page = read_page(write_case_pages(percept.bench_of(case, image=like.image_pixels()), tmp_path).html)
    page.assert_sound()
    assert not any("onerror" in attrs for _, attrs in page.tags)


def test_only_findings_and_devices_are_filters() -> None:
    step = like.conversation().steps[0]
    kinds = ("view", "device", "region", "study", "finding", "device")
    facts = tuple(Fact(name="target", about=kind, text=kind) for kind in kinds)
    case = like.conversation(
        steps=(msgspec.structs.replace(step, facts=facts), *like.conversation().steps[4:5])
    )
    assert questioned_findings(case) == ("device", "finding")


def test_benchmark_without_conversations_has_the_table_of_targets(tmp_path, read_page) -> None:
    square = percept.lf_case()
    page = read_page(write_case_pages(percept.bench_of(square), tmp_path).html)
    assert [row[0] for row in rows(page)] == ["Target", "edema", "all"]
