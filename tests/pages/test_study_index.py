from pathlib import Path

import cv2
import msgspec

from carina.cases.draw import colour_of
from carina.pages import write_study_pages
from carina.studies import Assessed


def test_index_links_to_the_page_of_every_study(studies, tmp_path: Path, read_page) -> None:
    sheet = write_study_pages(studies, tmp_path, title="Small & good")
    page = read_page(sheet.html)
    page.assert_sound()
    assert [item.id for item in sheet.pages] == list(studies.studies)
    for item in sheet.pages:
        assert item.html.name in page.links
        assert item.id in page.text
        own = read_page(item.html)
        own.assert_sound()
        assert "index.html" in own.links
    assert "Small & good" in page.text
    assert "p1-s0.html" in read_page(tmp_path / "p1-s1.html").links
    assert "p1-s1.html" in read_page(tmp_path / "p1-s0.html").links


def test_cards_show_findings_and_report(studies, tmp_path: Path, read_page) -> None:
    page = read_page(write_study_pages(studies, tmp_path).html)
    assert "A moderate left effusion has grown." in page.text
    assert "nodule? uncertain" in page.text
    assert "pneumothorax" not in page.text.split("A moderate left")[0]
    assert "63 years, female · study 2 · 2024-05-02" in page.text
    # Absent findings have no filter; nobody says what was looked for in the study without findings.
    cards = [attrs["data-f"].split() for attrs in page.with_class("study")]
    buttons = [attrs["data-filter"] for _, attrs in page.tags if "data-filter" in attrs]
    assert buttons == ["", "f0", "f1", "unknown"]
    assert cards == [["f0", "f1"], ["f0"], ["unknown"]]
    assert page.text.count("no finding recorded") == 2  # the filter and the card
    assert all(attrs["loading"] == "lazy" for tag, attrs in page.tags if tag == "img")


def test_only_a_study_that_was_looked_through_has_no_finding(studies, tmp_path: Path, read_page) -> None:
    (silent,) = [item for item in studies.studies.values() if not item.findings]
    seen = msgspec.structs.replace(silent, id="seen", assessed=Assessed(findings="every"))
    closed = Assessed(findings="listed", listed=("mass",))
    listed = msgspec.structs.replace(silent, id="listed", assessed=closed)
    studies.studies.update({"seen": seen, "listed": listed})
    page = read_page(write_study_pages(studies, tmp_path).html)
    cards = [attrs["data-f"].split() for attrs in page.with_class("study")]
    assert cards[-3:] == [["unknown"], ["none"], ["unknown"]]
    buttons = [attrs["data-filter"] for _, attrs in page.tags if "data-filter" in attrs]
    assert buttons[-2:] == ["none", "unknown"]
    for name, sentence in (
        ("seen", "Every finding was looked for; it is not known which devices were looked for."),
        (
            "listed",
            "Only findings of a closed list were looked for (mass); it is not known which devices were",
        ),
    ):
        own = read_page(tmp_path / f"{name}.html")
        own.assert_sound()
        assert sentence in own.text
        assert "no finding" not in own.text.lower()


def test_limit_holds_and_links_lead_to_written_pages(studies, tmp_path: Path, read_page) -> None:
    sheet = write_study_pages(studies, tmp_path, limit=1)
    assert [item.id for item in sheet.pages] == ["p1-s1"]
    page = read_page(sheet.html)
    page.assert_sound()
    assert "1 of 3 studies" in page.text
    own = read_page(sheet.pages[0].html)
    own.assert_sound()
    assert own.links.count("p1-s0.html") == 0


def test_contact_sheet_has_the_same_bytes_every_time(studies, tmp_path: Path) -> None:
    picture = cv2.imread(str(write_study_pages(studies, tmp_path).png))[..., ::-1]
    assert (picture == colour_of("pleural effusion")).all(axis=2).sum() > 200
    again = write_study_pages(studies, tmp_path / "again")
    assert again.png.read_bytes() == (tmp_path / "contact-sheet.png").read_bytes()


def test_empty_set_has_an_index(studies, tmp_path: Path, read_page) -> None:
    studies.studies.clear()
    sheet = write_study_pages(studies, tmp_path)
    read_page(sheet.html).assert_sound()
    assert sheet.pages == ()
