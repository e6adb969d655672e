"""Published data in its published layout, through every command: import, check, show, build, audit, run, report.

The files are read in place, in the folder `shared/data` beside the checkout, and are no part of the repository.
"""

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from carina.cases import open_benchmark
from carina.cli import app
from carina.studies import open_studies

DATA = Path(__file__).parents[3] / "shared" / "data"
pytestmark = [
    pytest.mark.skipif(not (DATA / "nih").is_dir(), reason=f"{DATA}: no real data here"),
    pytest.mark.xdist_group("real-data"),
]
SERIES = "00000211"
"""A patient with several images and boxes of cardiomegaly."""
LESION = "X-ray_of_cyst_in_pneumocystis_pneumonia_1.jpg"
"""The image on which lungs and a lesion are drawn."""


def call(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def count_lines(path, name):
    with (path / name).open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("real")


@pytest.fixture(scope="module")
def nih(folder):
    result = call("import", "nih", DATA / "nih", "-o", folder / "nih", "--workers", 1)
    assert "105 studies of 105 records" in result.output
    return folder / "nih"


@pytest.fixture(scope="module")
def covid(folder):
    result = call("import", "covid", DATA / "covid", "-o", folder / "covid", "--workers", 1)
    assert "59 studies of 59 records" in result.output
    return folder / "covid"


@pytest.fixture(scope="module")
def openi(folder):
    call("import", "openi", DATA / "openi", "-o", folder / "openi", "--missing-images", "keep", "--limit", 25)
    return folder / "openi"


@pytest.fixture(scope="module")
def chestx_det(folder):
    path = DATA / "chestx-det"
    call("import", "chestx-det", path, "-o", folder / "det", "--missing-images", "keep", "--limit", 40)
    return folder / "det"


# ---- import, check, show --------------------------------------------------------------------------------------------


def test_nih_follow_up_order_is_that_of_the_table_of_2020(nih):
    studies = [study for study in open_studies(nih) if study.patient.lstrip("0") == SERIES.lstrip("0")]
    assert len(studies) >= 5
    with (DATA / "nih" / "Data_Entry_2017_v2020.csv").open(newline="") as file:
        number = {row["Image Index"]: int(row["Follow-up #"]) for row in csv.DictReader(file)}
    by_order = sorted(studies, key=lambda study: study.order)
    numbers = [number[study.images[0].key.rsplit("/", 1)[-1]] for study in by_order]
    assert numbers == sorted(numbers)
    assert [study.prior for study in by_order] == [None, *(study.id for study in by_order[:-1])]


@pytest.mark.parametrize("name", ["nih", "covid"])
def test_sets_with_images_are_sound_and_can_be_shown(name, request, folder):
    studies = request.getfixturevalue(name)
    assert "nothing wrong" in call("check", studies).output
    call("show", studies, "-o", folder / f"show-{name}", "--limit", 2, "--no-open")
    assert len(list((folder / f"show-{name}").glob("*.html"))) == 3


@pytest.mark.parametrize("name", ["openi", "chestx_det"])
def test_sets_without_images_are_sound_but_for_the_files(name, request, folder):
    studies = request.getfixturevalue(name)
    assert "nothing wrong" in call("check", studies, "--no-files").output
    assert "is missing: no file" in call("check", studies, code=1).output
    shown = call("show", studies, "-o", folder / f"show-{name}", "--no-open", "--limit", 3)
    assert "Missing: " in shown.output
    assert (folder / f"show-{name}" / "index.html").is_file()


# ---- ground ---------------------------------------------------------------------------------------------------------


def test_boxes_of_nih_become_probes_that_are_explained_run_and_reported(nih, folder):
    call("build", "ground", nih, "-o", folder / "ground", "--workers", 1)
    bench = open_benchmark(folder / "ground")
    present = [case for case in bench if case.path == "present"]
    assert {"cardiomegaly"} <= {case.target for case in present}
    call("audit", folder / "ground", "--no-open")
    maps = ("explain", folder / "ground", "--model", "builtin/asymmetry", "-o", folder / "maps")
    call(*maps, "--limit", 4, "--workers", 1)
    call("run", folder / "ground", "--model", "builtin/reader", "-o", folder / "ground-run", "--limit", 3)
    call("report", folder / "ground-run", folder / "maps", "-o", folder / "ground-report", "--no-open")
    assert (folder / "ground-report" / "ground.html").stat().st_size > 10_000


# ---- trek -----------------------------------------------------------------------------------------------------------


def test_series_of_nih_become_conversations_that_compare(nih, folder):
    call("build", "trek", nih, "-o", folder / "trek-nih", "--workers", 1)
    bench = open_benchmark(folder / "trek-nih")
    assert any(case.reference_study for case in bench)
    assert any(step.stage == 5 for case in bench for step in case.steps)
    # Labels say nothing of devices, and of no finding but fourteen.
    assert not [step for case in bench for step in case.steps if step.task in ("any device", "devices")]
    statuses = find_gates(folder / "trek-nih")
    assert statuses["stage-requirements"] == statuses["evidence"] == statuses["image-files"] == "pass"
    for model in ("builtin/reader", "builtin/majority"):
        out = folder / f"trek-{model.rsplit('/', 1)[-1]}"
        call("run", folder / "trek-nih", "--model", model, "-o", out, "--limit", 3)
    runs = [folder / "trek-reader", folder / "trek-majority"]
    call("report", *runs, "-o", folder / "trek-report", "--no-open")
    assert (folder / "trek-report" / "report.html").stat().st_size > 10_000


def test_reports_of_openi_become_conversations(openi, folder):
    call("build", "trek", openi, "-o", folder / "trek-openi", "--workers", 1)
    bench = open_benchmark(folder / "trek-openi")
    assert len(bench) == 25
    assert any(step.evidence for case in bench for step in case.steps)
    statuses = find_gates(folder / "trek-openi", code=1)
    # The images are not here; de-identification leaves XXXX twice in a row.
    assert [name for name, status in statuses.items() if status == "fail"] == ["image-files"]


def find_gates(bench, code=None):
    result = CliRunner().invoke(app, ["audit", str(bench), "--no-open"])
    assert code is None or result.exit_code == code, result.output
    audit = json.loads((bench / "audit" / "audit.json").read_text())
    return {gate["name"]: gate["status"] for gate in audit["gates"]}


# ---- percept --------------------------------------------------------------------------------------------------------


def build_percept(studies, out, *more, code=0):
    """Rows of the skipped lesions."""
    call("build", "percept", studies, "-o", out, "--workers", 1, "--per-cell", 2, *more, code=code)
    return count_lines(out, "skipped.csv") if (out / "skipped.csv").exists() else []


def test_boxes_are_no_masks_and_percept_says_so(nih, folder):
    reasons = {row["reason"] for row in build_percept(nih, folder / "percept-nih")}
    assert "drawn as a box" in reasons
    bench = open_benchmark(folder / "percept-nih")
    assert {case.path for case in bench} <= {"LF"}
    call(
        "run", folder / "percept-nih", "--model", "builtin/reader", "-o", folder / "percept-run", "--limit", 2
    )


def test_polygons_without_images_and_lungs_are_left_out_with_the_reason(chestx_det, folder):
    result = call("build", "percept", chestx_det, "-o", folder / "percept-det", "--workers", 1, code=1)
    assert "no frontal image" in result.output


def test_lungs_and_lesion_of_one_covid_image_meet(covid, folder):
    study = open_studies(covid)[LESION.rsplit(".", 1)[0]]
    assert {"right lung", "left lung"} <= {structure.name for structure in study.anatomy}
    drawn = [finding for finding in study.findings if finding.annotations]
    assert [finding.name for finding in drawn] == ["ground glass opacity"]
    # Percept has no examination of ground glass, but what was looked for is known of images without a finding.
    build_percept(covid, folder / "percept-covid")
    assert {case.path for case in open_benchmark(folder / "percept-covid")} == {"LF"}
    call("build", "ground", covid, "-o", folder / "ground-covid", "--workers", 1)
    (probe,) = [case for case in open_benchmark(folder / "ground-covid") if case.path == "present"]
    assert (probe.study, probe.target) == (study.id, "ground glass opacity")
