import html
from pathlib import Path

import cv2
import msgspec
import numpy as np
import pytest

from carina.draw import colour_of
from carina.show import study_page
from carina.studies import Study


@pytest.fixture
def page(studies, study, tmp_path, read_page):
    (tmp_path / "p1-s0.html").write_text("the prior's page")
    return read_page(study_page(studies, study, tmp_path).html)


def test_a_page_is_sound_and_stands_alone(page) -> None:
    page.assert_sound()


def test_every_sentence_is_there_and_nothing_of_it_is_markup(page, study: Study) -> None:
    report = study.report
    assert report is not None
    for sentence in report.sentences:
        assert html.escape(report.quote(sentence), quote=False) in page.source.replace("&#39;", "'")
        assert report.quote(sentence) in page.text
    assert "<script>alert" not in page.source
    assert sum(tag == "script" for tag, _ in page.tags) == 1


def test_every_fact_is_there(page, study: Study) -> None:
    for finding in study.findings:
        assert finding.name in page.text
    for word in (
        "uncertain", "moderate", "focal", "worse", "left lower zone", "depth 6.23 cm", "3.42", "accompanies",
        "endotracheal tube", "adequate", "4 cm above the carina", "chest CT", "to the left (3.2°)", "over",
        "63 years, female", "2024-05-02", "number 2 of this patient", "cough", "Prior AP",
    ):  # fmt: skip
        assert word in page.text, word


def test_images_are_shown_raw_and_marked_frontal_first(page) -> None:
    labels = [attrs["aria-label"] for tag, attrs in page.tags if tag == "svg"]
    assert labels == [
        "Chest radiograph, PA. Marked: pleural effusion, nodule, endotracheal tube.",
        "Chest radiograph, PA, without marks.",
        "Chest radiograph, Prior AP. Marked: pleural effusion.",
        "Chest radiograph, lateral. Marked: nodule.",
        "Chest radiograph, lateral, without marks.",
    ]
    # Each image is held once, however often it is shown.
    assert page.source.count("data:image/jpeg") == 3


def test_marks_can_be_switched_and_are_tied_to_sentences_and_rows(page) -> None:
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


def test_neighbours_are_linked_where_their_pages_are(page) -> None:
    assert "p1-s0.html" in page.links
    assert "p1-s2.html" not in page.links
    assert "index.html" not in page.links


def test_the_picture_shows_the_marks(studies, study: Study, tmp_path: Path) -> None:
    picture = cv2.imread(str(study_page(studies, study, tmp_path).png))[..., ::-1]
    assert picture.shape[1] == 3 * 480 + 4 * 12
    for name in ("pleural effusion", "nodule", "endotracheal tube"):
        assert (picture == colour_of(name)).all(axis=2).sum() > 200


def test_pages_are_the_same_every_time(studies, study: Study, tmp_path: Path) -> None:
    first, second = (study_page(studies, study, tmp_path / name) for name in "ab")
    assert first.html.read_bytes() == second.html.read_bytes()
    assert first.png.read_bytes() == second.png.read_bytes()


def test_a_bare_study_has_a_page(studies, tmp_path: Path, read_page) -> None:
    bare = studies.studies["p2/s0 <b>"]
    written = study_page(studies, bare, tmp_path)
    page = read_page(written.html)
    page.assert_sound()
    assert "No report." in page.text
    assert "p2/s0 <b>" in page.text
    assert written.html.parent == tmp_path
    assert written.html.stem == written.png.stem


def test_names_from_outside_are_escaped_everywhere(studies, study: Study, tmp_path: Path, read_page) -> None:
    evil = "\"><img src=x onerror='alert(1)'>"
    finding = msgspec.structs.replace(study.findings[0], name=evil)
    device = msgspec.structs.replace(study.devices[0], name=evil, site=evil)
    hostile = msgspec.structs.replace(
        study, id=evil, patient=evil, findings=(finding,), devices=(device,), indication=evil, prior=None
    )
    page = read_page(study_page(studies, hostile, tmp_path).html)
    page.assert_sound()
    assert not any(tag == "img" or "onerror" in attrs for tag, attrs in page.tags)


def test_large_films_are_shrunk_for_the_page_only() -> None:
    from carina.show.pictures import shrunk

    assert shrunk(np.zeros((3200, 1600), np.uint8)).shape == (1600, 800)
    assert shrunk(np.zeros((300, 200), np.uint8)).shape == (300, 200)
