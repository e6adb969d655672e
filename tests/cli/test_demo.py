"""`carina demo`, with fewer and smaller studies than a user sees; the real one runs in tests/e2e."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import carina.phantom
from carina.cases import open_benchmark
from carina.cli import app, demo
from carina.phantom import PhantomOptions, write_phantom
from carina.run import read_info
from carina.studies import open_studies


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Three studies of 64 pixels, made in this process, and one case for each lesion that they lack."""
    monkeypatch.setattr(demo, "STUDIES", 3)
    monkeypatch.setattr(demo, "SHOWN", 3)
    monkeypatch.setattr(demo, "PER_CELL", 1)
    monkeypatch.setattr(demo.os, "cpu_count", lambda: 1)

    def write_small(directory, **given):
        return write_phantom(directory, **(given | {"workers": 1, "options": PhantomOptions(size=64)}))

    monkeypatch.setattr(carina.phantom, "write_phantom", write_small)


def test_it_makes_studies_and_pages_and_says_where(tmp_path):
    out = tmp_path / "demo"
    result = CliRunner().invoke(app, ["demo", "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert len(open_studies(out / "studies")) == 3
    *_, studies, cases, talks, compared, maps = result.stdout.splitlines()
    assert maps.removeprefix("Compare their maps:").strip() == str(out / "report" / "ground.html")
    assert "builtin/asymmetry" in (out / "report" / "ground.html").read_text()
    assert compared.removeprefix("Compare the models:").strip() == str(out / "report" / "report.html")
    assert "builtin/reader" in (out / "report" / "report.html").read_text()
    assert studies.removeprefix("Look at the studies:").strip() == str(out / "pages" / "index.html")
    assert cases.removeprefix("Look at the cases:").strip() == str(out / "pages" / "percept" / "index.html")
    assert talks.removeprefix("Read conversations:").strip() == str(out / "pages" / "trek" / "index.html")
    text = (out / "pages" / "index.html").read_text()
    for study in open_studies(out / "studies"):
        assert study.id in text
    for protocol in ("percept", "trek"):
        cases = open_benchmark(out / protocol).ids()
        text = (out / "pages" / protocol / "index.html").read_text()
        assert cases
        for case in cases:
            assert case in text


def test_json_names_what_was_made(tmp_path):
    result = CliRunner().invoke(app, ["demo", "-o", str(tmp_path), "--json"])
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert set(told) == {
        "studies", "percept", "trek", "ground", "html", "png", "percept_html", "trek_html", "runs", "maps", "report",
        "ground_html",
    }  # fmt: skip
    assert len(told["runs"]) == 15
    assert [Path(run).name for run in told["maps"]] == [
        "asymmetry-asymmetry",
        "untrained-similarity",
        "untrained-occlusion",
    ]
    histories = {Path(run).name: read_info(Path(run)).policy.history for run in told["runs"]}
    assert histories["percept-anchored"] == "own"
    assert histories["percept-anchored-gold"] == "gold"
    assert "trek-anchored" not in histories
    assert told["studies"] == str(tmp_path / "studies")


def test_run_again_it_keeps_the_studies(tmp_path):
    for _ in range(2):
        assert CliRunner().invoke(app, ["demo", "-o", str(tmp_path)]).exit_code == 0
        stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "studies").rglob("*.p*")}
    assert CliRunner().invoke(app, ["demo", "-o", str(tmp_path)]).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "studies").rglob("*.p*")} == stamps
