"""What an import does with images that do not look like what their study says of them."""

import csv
import shutil

import pytest
from tests.sources.files import skips, write_text
from typer.testing import CliRunner

from carina import CarinaError, check, import_studies
from carina.cli import app
from carina.phantom import PhantomOptions, make_studies
from carina.sources import _writing, import_source
from carina.studies import write_png


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of two PA images: the second is inverted."""
    folder = tmp_path_factory.mktemp("own")
    made = [
        pixels[image.key]
        for study, pixels in make_studies(8, 3, PhantomOptions(size=128))
        for image in study.images
        if image.view != "lateral"
    ]
    write_png(folder / "a.png", made[0])
    write_png(folder / "b.png", ~made[1])
    write_text(folder / "labels.csv", "image,patient,view,label", "a.png,p1,PA,mass", "b.png,p2,PA,mass")
    return folder / "labels.csv"


def read(table, out, **settings):
    return import_source("table", table, out, images=table.parent, workers=1, **settings)


def rows(path):
    with (path / "implausible.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_an_inverted_image_is_listed_and_kept(table, tmp_path):
    imported = read(table, tmp_path / "out")
    assert (imported.counts.kept, imported.counts.images_looked_at) == (2, 2)
    (row,) = rows(imported.path)
    assert (row["image"], row["check"], row["what was done"]) == ("b.png", "polarity", "listed")
    assert [image.monochrome1 for study in imported.opened() for image in study.images] == [False, False]


def test_an_inverted_image_is_left_out_on_request(table, tmp_path):
    imported = read(table, tmp_path / "out", implausible="exclude")
    assert imported.counts.kept == 1
    (skipped,) = imported.skipped
    assert (skipped.kind, skipped.field) == ("implausible", "polarity")
    assert rows(imported.path)[0]["what was done"] == "the study is left out"
    assert "implausible" in imported.opened().manifest.options


def test_an_inverted_image_is_corrected_on_request(table, tmp_path):
    imported = read(table, tmp_path / "out", implausible="correct")
    assert [image.monochrome1 for study in imported.opened() for image in study.images] == [False, True]
    assert rows(imported.path)[0]["what was done"] == "monochrome1 is set to True"


def test_no_image_is_opened_on_request(table, tmp_path):
    imported = read(table, tmp_path / "out", implausible="ignore")
    assert (imported.counts.images_looked_at, imported.implausible, skips(imported)) == (0, [], [])


@pytest.fixture(scope="module")
def repeated(table, tmp_path_factory):
    """The image a.png again, in a study of another patient; and a row of it without the first."""
    folder = tmp_path_factory.mktemp("repeated")
    for name in ("a.png", "again.png"):
        shutil.copy(table.parent / "a.png", folder / name)
    write_text(
        folder / "labels.csv", "image,patient,view,label", "a.png,p1,PA,mass", "again.png,p2,PA,No finding"
    )
    return folder / "labels.csv"


@pytest.mark.parametrize("workers", [1, 2])
def test_the_same_image_under_two_names_is_listed(workers, repeated, tmp_path):
    imported = import_source("table", repeated, tmp_path / "out", images=repeated.parent, workers=workers)
    (row,) = rows(imported.path)
    assert (row["study"], row["image"], row["check"]) == ("again", "again.png", "repeated")
    assert row["seen"] == "the pixels of image 'a.png' of study 'a'"
    assert len(imported.opened()) == 2
    (problem,) = check(imported.path).implausible
    assert (problem.study, problem.check) == ("again", "repeated")


def test_of_an_image_that_is_repeated_the_first_stays_on_request(repeated, tmp_path):
    imported = read(repeated, tmp_path / "out", implausible="exclude")
    assert [study.id for study in imported.opened()] == ["a"]
    assert [(one.kind, one.field) for one in imported.skipped] == [("implausible", "repeated")]


def test_an_import_that_resumes_knows_the_images_before(repeated, tmp_path, monkeypatch):
    monkeypatch.setattr(_writing, "PART_SIZE", 1)
    written = _writing._write_note

    def fail(out, index, note):
        written(out, index, note)
        raise KeyboardInterrupt

    monkeypatch.setattr(_writing, "_write_note", fail)
    with pytest.raises(KeyboardInterrupt):
        read(repeated, tmp_path / "out")
    monkeypatch.setattr(_writing, "_write_note", written)
    imported = read(repeated, tmp_path / "out")
    assert [row["check"] for row in rows(imported.path)] == ["repeated"]


def test_several_workers_find_the_same(table, tmp_path):
    one, two = (
        import_source("table", table, tmp_path / str(n), images=table.parent, workers=n) for n in (1, 2)
    )
    assert one.implausible == two.implausible
    assert len(one.implausible) == 1


def test_an_unknown_choice_is_refused(table, tmp_path):
    with pytest.raises(CarinaError, match="implausible"):
        import_studies("table", table, tmp_path / "out", implausible="perhaps")


@pytest.fixture
def damaged(table, tmp_path):
    """The same table and images, of which the second is a file that ends within its pixels."""
    folder = tmp_path / "own"
    shutil.copytree(table.parent, folder)
    image = folder / "b.png"
    image.write_bytes(image.read_bytes()[:-200])
    return folder / table.name


@pytest.mark.parametrize("implausible", ["report", "exclude", "correct"])
def test_a_study_whose_image_cannot_be_decoded_is_skipped(damaged, tmp_path, implausible):
    imported = read(damaged, tmp_path / "out", implausible=implausible)
    assert [study.id for study in imported.opened()] == ["a"]
    (skipped,) = imported.skipped
    assert (skipped.kind, skipped.field, skipped.study) == ("image", "image", "b")
    assert "b.png" in skipped.reason


def test_a_study_whose_image_cannot_be_decoded_is_kept_unopened_and_found_by_check(damaged, tmp_path):
    imported = read(damaged, tmp_path / "out", implausible="ignore")
    assert imported.counts.kept == 2
    (problem,) = check(imported.path).problems
    assert problem.record == "b"
    assert "b.png" in problem.message
    assert CliRunner().invoke(app, ["check", str(imported.path)]).exit_code == 1
