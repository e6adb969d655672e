import html
from pathlib import Path

import cv2
import msgspec
import numpy as np
import pytest

from carina.cases.draw import colour_of
from carina.pages import write_study_page
from carina.studies import Study


@pytest.fixture
def page(studies, study, tmp_path, read_page):
    (tmp_path / "p1-s0.html").write_text("the prior's page")
    return read_page(write_study_page(studies, study, tmp_path).html)


def test_page_is_valid_and_loads_nothing(page) -> None:
    page.assert_sound()


def test_every_sentence_is_on_the_page_and_escaped(page, study: Study) -> None:
    report = study.report
    assert report is not None
    for sentence in report.sentences:
        assert html.escape(report.quote(sentence), quote=False) in page.source.replace("&#39;", "'")
        assert report.quote(sentence) in page.text
    assert "<script>alert" not in page.source
    assert sum(tag == "script" for tag, _ in page.tags) == 2


def test_every_fact_is_on_the_page(page, study: Study) -> None:
    for finding in study.findings:
        assert finding.name in page.text
    for word in (
        "uncertain", "moderate", "focal", "worse", "left lower zone", "depth 6.23 cm", "3.42", "accompanies",
        "endotracheal tube", "adequate", "4 cm above the carina", "chest CT", "to the left (3.2°)", "over",
        "63 years, female", "2024-05-02", "number 2 of this patient", "cough", "Prior AP",
    ):  # fmt: skip
        assert word in page.text, word


def test_images_appear_with_and_without_outlines_frontal_first(page) -> None:
    labels = [attrs["aria-label"] for tag, attrs in page.tags if tag == "svg"]
    assert labels == [
        "Chest radiograph, PA. Outlined: pleural effusion, nodule, endotracheal tube.",
        "Chest radiograph, PA, without outlines.",
        "Chest radiograph, Prior AP. Outlined: pleural effusion.",
        "Chest radiograph, lateral. Outlined: nodule.",
        "Chest radiograph, lateral, without outlines.",
    ]
    # Each image is stored once, however often it appears.
    assert page.source.count("data:image/jpeg") == 3


def test_outlines_have_switches_and_share_keys_with_sentences_and_rows(page) -> None:
    inputs = {
        attrs["data-layer"]: attrs for tag, attrs in page.tags if tag == "input" and "data-layer" in attrs
    }
    assert list(inputs) == [
        "finding/pleural effusion",
        "finding/nodule",
        "device/endotracheal tube",
        "anatomy/left lung",
    ]
    assert "checked" in inputs["finding/nodule"]
    assert "checked" not in inputs["anatomy/left lung"]
    assert {mark["data-layer"] for mark in page.with_class("mark")} == set(inputs)
    assert all("off" in (mark["class"] or "").split() for mark in page.with_class("anatomy"))
    assert {mark["data-m"] for mark in page.with_class("mark") if "uncertain" in mark["class"].split()} == {
        "m2"
    }
    sentences = {attrs["id"]: attrs.get("data-m") for attrs in page.with_class("s")}
    assert sentences == {"s1": None, "s2": "m0", "s3": "m1 m3", "s4": "m0 m2", "s5": "m2"}
    rows = [attrs["data-m"] for tag, attrs in page.tags if tag == "tr" and "data-m" in attrs]
    assert rows == ["m0", "m2", "m1", "m3", "m0 m2", "m2"]


def test_neighbours_are_linked_where_their_pages_exist(page) -> None:
    assert "p1-s0.html" in page.links
    assert "p1-s2.html" not in page.links
    assert "index.html" not in page.links


def test_summary_image_shows_the_outlines(studies, study: Study, tmp_path: Path) -> None:
    picture = cv2.imread(str(write_study_page(studies, study, tmp_path).png))[..., ::-1]
    assert picture.shape[1] == 3 * 480 + 4 * 12
    for name in ("pleural effusion", "nodule", "endotracheal tube"):
        assert (picture == colour_of(name)).all(axis=2).sum() > 200


def test_page_has_the_same_bytes_every_time(studies, study: Study, tmp_path: Path) -> None:
    first, second = (write_study_page(studies, study, tmp_path / name) for name in "ab")
    assert first.html.read_bytes() == second.html.read_bytes()
    assert first.png.read_bytes() == second.png.read_bytes()


def test_study_without_findings_and_report_has_a_page(studies, tmp_path: Path, read_page) -> None:
    bare = studies.studies["p2/s0 <b>"]
    written = write_study_page(studies, bare, tmp_path)
    page = read_page(written.html)
    page.assert_sound()
    assert "No report." in page.text
    assert "p2/s0 <b>" in page.text
    assert written.html.parent == tmp_path
    assert written.html.stem == written.png.stem


def test_text_of_a_study_is_escaped_everywhere(studies, study: Study, tmp_path: Path, read_page) -> None:
    evil = "\"><img src=x onerror='alert(1)'>"
    finding = msgspec.structs.replace(study.findings[0], name=evil)
    device = msgspec.structs.replace(study.devices[0], name=evil, site=evil)
    hostile = msgspec.structs.replace(
        study, id=evil, patient=evil, findings=(finding,), devices=(device,), indication=evil, prior=None
    )
    page = read_page(write_study_page(studies, hostile, tmp_path).html)
    page.assert_sound()
    assert not any(tag == "img" or "onerror" in attrs for tag, attrs in page.tags)


def test_large_images_are_shrunk_and_small_ones_kept() -> None:
    from carina.pages.figures import shrink

    assert shrink(np.zeros((3200, 1600), np.uint8)).shape == (1600, 800)
    assert shrink(np.zeros((300, 200), np.uint8)).shape == (300, 200)
