"""`carina import`: options, what it prints, and how it refuses."""

import importlib.util
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from carina.cases import open_benchmark
from carina.cli import app

_spec = importlib.util.spec_from_file_location(
    "cli_published", Path(__file__).parents[1] / "percept" / "bundle" / "published.py"
)
published = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(published)


@pytest.fixture
def bundle(tmp_path):
    return published.write_bundle(tmp_path / "bundle")


def run(*arguments):
    return CliRunner().invoke(app, ["import", *map(str, arguments), "--workers", "1"])


def test_it_tells_what_it_brought(bundle, tmp_path):
    result = run("chexpercept", bundle, "-o", tmp_path / "bench")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "lesion\tLF\tRF\tRR",
        "cardiomegaly\t0\t1\t1",
        "edema\t1\t0\t0",
        "effusion\t0\t0\t1",
        "ground glass\t1\t0\t0",
        "opacity\t0\t1\t0",
        str(tmp_path / "bench"),
    ]
    assert result.stderr.splitlines() == [
        "6 cases of 6 records, 0 skipped",
        "6 cases are of no known patient: their intervals will be by case (--patients)",
    ]
    assert len(open_benchmark(tmp_path / "bench")) == 6


def test_what_is_wrong_is_skipped_told_and_listed(bundle, tmp_path):
    gone = bundle / "chexpercept/edema_s3_negative_0/detection_qa/xray.png"
    gone.unlink()
    result = run("chexpercept", bundle, "-o", tmp_path / "bench")
    assert result.exit_code == 0
    first, second, *_ = result.stderr.splitlines()
    records = bundle / "chexpercept.json"
    assert first == f"Skipped: {records}: edema_s3_negative_0: detection_qa: {gone}: no such image file"
    assert second == "5 cases of 6 records, 1 skipped"
    assert "edema_s3_negative_0" in (tmp_path / "bench" / "skipped.csv").read_text()


def test_stop_is_bad_input(bundle, tmp_path):
    (bundle / "chexpercept/edema_s3_negative_0/detection_qa/xray.png").unlink()
    result = run("chexpercept", bundle, "-o", tmp_path / "bench", "--on-error", "stop")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {bundle / 'chexpercept.json'}: edema_s3_negative_0: ")
    assert result.stderr.count("\n") == 1


def test_nothing_at_all_is_a_failure(bundle, tmp_path):
    for path in bundle.rglob("xray.png"):
        path.unlink()
    result = run("chexpercept", bundle, "-o", tmp_path / "bench")
    assert result.exit_code == 1
    assert "0 cases of 6 records, 6 skipped" in result.stderr
    assert not (tmp_path / "bench").exists()


def test_json_is_one_document(bundle, tmp_path):
    (bundle / "chexpercept/edema_s3_negative_0/detection_qa/xray.png").unlink()
    table = tmp_path / "patients.csv"
    table.write_text("key_id,patient\neffusion_s1_positive_0,p1\n")
    result = run(
        "chexpercept", bundle, "-o", tmp_path / "bench", "--json", "--patients", table, "--limit", "3"
    )
    told = json.loads(result.stdout)
    assert result.stderr == ""
    assert (told["records"], told["cases"], told["without_patient"]) == (6, 3, 2)
    assert told["cells"] == {"cardiomegaly/RR": 1, "effusion/RR": 1, "opacity/RF": 1}
    (skipped,) = told["skipped"]
    assert (skipped["key_id"], skipped["reason"]) == ("edema_s3_negative_0", "image")


def test_copied_images_are_the_benchmarks_own(bundle, tmp_path):
    assert run("chexpercept", bundle, "-o", tmp_path / "bench", "--copy-images").exit_code == 0
    assert len(list((tmp_path / "bench" / "images").rglob("*.png"))) == len(list(bundle.rglob("*.png")))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("padchest", "x"), "'padchest' is no source that can be imported; known: chexpercept"),
        (("chexpercept", "nowhere"), "chexpercept.json: missing, so nowhere is not a CheXpercept bundle"),
        (("chexpercept", "x", "--on-error", "ask"), "--on-error 'ask': expected skip or stop"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, arguments, sentence):
    result = run(*arguments, "-o", tmp_path / "bench")
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
    assert sentence in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_bundle_is_listed_as_a_source():
    listed = json.loads(CliRunner().invoke(app, ["sources", "--json"]).stdout)
    (found,) = [source for source in listed if source["name"] == "chexpercept"]
    assert "chexpercept.json" in found["needs"]
    assert "benchmark" in found["needs"]


def test_help_has_examples():
    result = CliRunner().invoke(app, ["import", "--help"])
    assert "Examples:\n    carina import chexpercept" in result.stdout
