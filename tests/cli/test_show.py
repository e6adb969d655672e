"""`carina show` on a study set and on a benchmark on disk."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from carina.cases import Case, CaseImage, CaseView, Key, Option, Panel, Step, write_benchmark
from carina.cases import Provenance as CaseProvenance
from carina.cli import app
from carina.studies import (
    Annotation,
    Finding,
    Image,
    Provenance,
    Region,
    Report,
    ReportSection,
    Study,
    write_png,
    write_studies,
)


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def studies(tmp_path: Path) -> Path:
    """Three studies of 64 x 64 pixels with a nodule each."""
    directory = tmp_path / "set"
    mask = np.zeros((64, 64), bool)
    mask[20:30, 20:30] = True
    made = []
    for number in range(3):
        key = f"images/{number}.png"
        write_png(directory / key, np.full((64, 64), 40 * number, np.uint8))
        nodule = Annotation(image=key, region=Region.from_mask(mask), drawn="mask", annotator="reader A")
        made.append(
            Study(
                id=f"p00{number}-s0",
                patient=f"p00{number}",
                source="test",
                order=0,
                images=(Image(key=key, view="PA", width=64, height=64),),
                findings=(Finding(id="f1", name="nodule", certainty="present", annotations=(nodule,)),),
                report=Report(sections=(ReportSection(name="findings", text="A nodule."),)),
            )
        )
    write_studies(directory, made, Provenance(command="test"))
    return directory


def test_without_an_id_contact_sheet_and_pages_are_written(studies: Path, tmp_path: Path) -> None:
    result = invoke("show", studies, "-o", tmp_path / "pages", "--limit", "2")
    assert result.exit_code == 0
    assert result.stdout.split() == [
        str(tmp_path / "pages" / "index.html"),
        str(tmp_path / "pages" / "contact-sheet.png"),
    ]
    assert sorted(path.name for path in (tmp_path / "pages").iterdir()) == [
        ".carina.files",
        "contact-sheet.png",
        "index.html",
        "p000-s0.html",
        "p000-s0.png",
        "p001-s0.html",
        "p001-s0.png",
    ]
    assert "2 of 3 studies" in (tmp_path / "pages" / "index.html").read_text()


def test_with_an_id_one_page_is_written(studies: Path, tmp_path: Path) -> None:
    result = invoke("show", studies, "p001-s0", "-o", tmp_path / "pages")
    assert result.exit_code == 0
    html, png = map(Path, result.stdout.split())
    assert "A nodule." in html.read_text()
    assert png.read_bytes().startswith(b"\x89PNG")


def test_json_lists_the_pages_of_studies(studies: Path, tmp_path: Path) -> None:
    out = tmp_path / "pages"
    sheet = json.loads(invoke("show", studies, "-o", out, "--json").stdout)
    assert sheet["html"] == str(out / "index.html")
    assert [page["id"] for page in sheet["pages"]] == ["p000-s0", "p001-s0", "p002-s0"]
    assert all(Path(page["html"]).is_file() and Path(page["png"]).is_file() for page in sheet["pages"])
    one = json.loads(invoke("show", studies, "p002-s0", "-o", out, "--json").stdout)
    assert one == {
        "id": "p002-s0",
        "html": str(out / "p002-s0.html"),
        "png": str(out / "p002-s0.png"),
    }


@pytest.mark.parametrize(
    ("wrong", "hint"), [("p01-s0", "did you mean"), ("zzz", "it holds 3 studies, the first is p000-s0")]
)
def test_unknown_study_is_refused_with_a_suggestion(
    studies: Path, tmp_path: Path, wrong: str, hint: str
) -> None:
    result = invoke("show", studies, wrong, "-o", tmp_path / "pages")
    assert result.exit_code == 2
    assert f"no study '{wrong}'" in result.stderr
    assert hint in result.stderr
    assert not (tmp_path / "pages").exists()


def test_file_as_output_directory_is_refused(studies: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    result = invoke("show", studies, "-o", tmp_path / "taken")
    assert result.exit_code == 2
    assert "expected a directory" in result.stderr


def test_a_missing_image_is_an_empty_frame_with_its_outlines(studies: Path, tmp_path: Path) -> None:
    (studies / "images" / "1.png").unlink()
    result = invoke("show", studies, "p001-s0", "-o", tmp_path / "pages")
    assert result.exit_code == 0
    assert "Missing: 1 image file." in result.stderr
    html = Path(result.stdout.split()[0]).read_text()
    assert "1 of 1 image files is not here" in html
    assert "Image file that is not here" in html
    assert 'data-layer="finding/nodule"' in html


def test_a_set_without_its_images_is_shown(studies: Path, tmp_path: Path) -> None:
    for file in (studies / "images").iterdir():
        file.unlink()
    result = invoke("show", studies, "-o", tmp_path / "pages")
    assert result.exit_code == 0
    assert "Missing: 3 image files." in result.stderr
    assert "3 image files are not here" in (tmp_path / "pages" / "index.html").read_text()
    told = json.loads(invoke("show", studies, "-o", tmp_path / "pages", "--json").stdout)
    assert told["missing_images"] == 3


def test_an_image_of_unknown_size_is_an_empty_frame(tmp_path: Path) -> None:
    bare = Study(
        id="s1", patient="p1", source="test", images=(Image(key="a.png", view="PA", width=0, height=0),)
    )
    write_studies(tmp_path / "bare", [bare], Provenance(command="test"))
    result = invoke("show", tmp_path / "bare", "-o", tmp_path / "pages")
    assert result.exit_code == 0, result.output
    assert 'viewBox="0 0 512 512"' in (tmp_path / "pages" / "s1.html").read_text()


def test_a_damaged_image_is_reported_with_file_and_study(studies: Path, tmp_path: Path) -> None:
    write_png(studies / "images" / "1.png", np.zeros((32, 64), np.uint8))
    result = invoke("show", studies, "p001-s0", "-o", tmp_path / "pages")
    assert result.exit_code == 2
    assert "images/1.png" in result.stderr
    assert "p001-s0" in result.stderr


def test_open_starts_the_browser(studies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("typer.launch", opened.append)
    invoke("show", studies, "-o", tmp_path / "pages", "--open")
    invoke("show", studies, "p001-s0", "-o", tmp_path / "pages")
    assert opened == [(tmp_path / "pages" / "index.html").as_uri()]


# ---- benchmarks --------------------------------------------------------------------------------------------------


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    """Three cases of one step about one image each."""
    directory = tmp_path / "bench"
    cases = []
    for number in range(3):
        key = f"films/{number}.png"
        write_png(directory / key, np.full((64, 64), 40 * number, np.uint8))
        step = Step(
            id="1",
            stage=1,
            task="detection",
            format="choice",
            question="Is a nodule visible?\nOptions:\n(1) Yes\n(2) No",
            options=(Option(id="yes", text="Yes"), Option(id="no", text="No")),
            shows=("v1",),
            uses=("v1",),
            key=Key(options=("no",)),
        )
        cases.append(
            Case(
                id=f"c-00{number}",
                protocol="percept",
                study=f"s{number}",
                patient=f"p{number}",
                source="test",
                target="nodule",
                path="LF",
                images=(CaseImage(key=key, width=64, height=64),),
                views=(CaseView(id="v1", panels=(Panel(image=key),)),),
                steps=(step,),
            )
        )
    write_benchmark(directory, cases, CaseProvenance(command="test"))
    return directory


def test_benchmark_gets_an_index_and_pages(bench: Path, tmp_path: Path) -> None:
    out = tmp_path / "pages"
    result = invoke("show", bench, "-o", out, "--limit", "2")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.split() == [str(out / "index.html")]
    assert "pages of 2 of 3 cases" in result.stderr
    assert sorted(path.name for path in out.iterdir()) == [
        ".carina.files",
        "c-000.html",
        "c-000.png",
        "c-001.html",
        "c-001.png",
        "index.html",
    ]
    assert "2 of 3 cases" in (out / "index.html").read_text()


def test_one_case_gets_a_page_and_an_image(bench: Path, tmp_path: Path) -> None:
    result = invoke("show", bench, "c-001", "-o", tmp_path / "pages")
    html, png = map(Path, result.stdout.split())
    assert "Is a nodule visible?" in html.read_text()
    assert png.read_bytes().startswith(b"\x89PNG")


def test_json_lists_the_pages_of_cases(bench: Path, tmp_path: Path) -> None:
    out = tmp_path / "pages"
    index = json.loads(invoke("show", bench, "-o", out, "--json").stdout)
    assert index["html"] == str(out / "index.html")
    assert [page["id"] for page in index["pages"]] == ["c-000", "c-001", "c-002"]
    one = json.loads(invoke("show", bench, "c-002", "-o", out, "--json").stdout)
    assert one == {"id": "c-002", "html": str(out / "c-002.html"), "png": str(out / "c-002.png")}


@pytest.mark.parametrize(
    ("wrong", "hint"), [("c-01", "did you mean"), ("zzz", "it holds 3 cases, the first is c-000")]
)
def test_unknown_case_is_refused_with_a_suggestion(
    bench: Path, tmp_path: Path, wrong: str, hint: str
) -> None:
    result = invoke("show", bench, wrong, "-o", tmp_path / "pages")
    assert result.exit_code == 2
    assert f"no case '{wrong}'" in result.stderr
    assert hint in result.stderr
    assert not (tmp_path / "pages").exists()


def test_images_of_a_benchmark_may_be_elsewhere(bench: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (bench / "films").rename(elsewhere / "films")
    missing = invoke("show", bench, "c-001", "-o", tmp_path / "pages")
    assert missing.exit_code == 2
    assert "films/1.png" in missing.stderr
    assert "c-001" in missing.stderr
    assert not (tmp_path / "pages").exists()
    assert invoke("show", bench, "c-001", "-o", tmp_path / "pages", "--images", elsewhere).exit_code == 0
    nowhere = invoke("show", bench, "c-001", "-o", tmp_path / "pages", "--images", tmp_path / "nowhere")
    assert nowhere.exit_code == 2
    assert "nowhere" in nowhere.stderr


def test_images_option_is_refused_for_a_study_set(studies: Path, tmp_path: Path) -> None:
    result = invoke("show", studies, "-o", tmp_path / "pages", "--images", tmp_path)
    assert result.exit_code == 2
    assert f"{studies}: is a study set" in result.stderr.replace("\n", "")
    assert "images" in result.stderr


def test_pages_are_not_written_into_a_set(studies: Path, bench: Path) -> None:
    assert "is a benchmark; choose another" in invoke("show", studies, "-o", bench).stderr
    assert "is a study set; choose another" in invoke("show", bench, "-o", studies).stderr


def test_other_directory_is_refused(tmp_path: Path) -> None:
    result = invoke("show", tmp_path, "-o", tmp_path / "pages")
    assert result.exit_code == 2
    assert str(tmp_path) in result.stderr.replace("\n", "")
    assert "studies.json" in result.stderr
    assert "bench.json" in result.stderr


@pytest.mark.usefixtures("studies")
def test_a_directory_that_holds_sets_gets_a_start_page(tmp_path: Path) -> None:
    result = invoke("show", tmp_path, "-o", tmp_path, "--limit", "1")
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / "index.html")
    assert "1 study set or benchmark." in result.stderr
    assert (tmp_path / "pages" / "set" / "index.html").is_file()
    assert 'href="pages/set/index.html"' in (tmp_path / "index.html").read_text()
    # Repeated, the pages that are there are used.
    again = json.loads(invoke("show", tmp_path, "-o", tmp_path, "--json").stdout)
    assert (again["html"], again["pages"]) == (str(tmp_path / "index.html"), [])
