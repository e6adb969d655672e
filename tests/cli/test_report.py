"""`carina report` as a user starts it."""

import json

import pytest
import typer
from tests.runs.analysis.conftest import runs  # noqa: F401 - a fixture
from typer.testing import CliRunner

from carina.cli.report import register


@pytest.fixture
def app():
    made = typer.Typer()
    register(made)
    made.callback()(lambda: None)
    return made


def test_paths_of_pages_are_printed(app, runs, tmp_path):  # noqa: F811 - the fixture
    result = CliRunner().invoke(app, ["report", *map(str, runs), "-o", str(tmp_path / "out"), "--cases", "1"])
    assert result.exit_code == 0, result.output
    assert str(tmp_path / "out" / "report.html") in result.output
    assert (tmp_path / "out" / "report.html").is_file()


def test_json_names_every_file(app, runs, tmp_path):  # noqa: F811 - the fixture
    result = CliRunner().invoke(app, ["report", str(runs[0]), "-o", str(tmp_path), "--cases", "0", "--json"])
    printed = json.loads(result.stdout)
    listed = {printed["html"], *printed["tables"], *printed["figures"]}
    written = {str(path) for path in tmp_path.rglob("*") if path.is_file()}
    assert listed == written - {str(tmp_path / ".carina.files")}


def test_help_has_an_example(app):
    result = CliRunner().invoke(app, ["report", "--help"])
    assert "carina report runs/gpt runs/majority -o report" in result.output


def test_labels_and_a_table_for_a_paper_are_options(app, runs, tmp_path):  # noqa: F811 - the fixture
    options = ["--label", "alpha=Ours", "--table", "markdown", "--cases", "0", "--json"]
    result = CliRunner().invoke(app, ["report", *map(str, runs[:2]), "-o", str(tmp_path), *options])
    assert result.exit_code == 0, result.output
    written = tmp_path / "tables" / "headline.md"
    assert str(written) in json.loads(result.stdout)["tables"]
    assert "| Ours (lab/alpha) |" in written.read_text()
    result = CliRunner().invoke(app, ["report", str(runs[0]), "-o", str(tmp_path), "--table", "word"])
    assert result.exit_code == 2
