"""`carina check` on a whole set and on damaged ones."""

import json

import pytest
from typer.testing import CliRunner

from carina.cli import app
from carina.phantom import PhantomOptions, write_phantom


@pytest.fixture
def studies(tmp_path):
    write_phantom(tmp_path / "set", n=2, seed=1, options=PhantomOptions(size=64))
    return tmp_path / "set"


def run(*arguments):
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def test_a_whole_set_has_nothing_wrong(studies):
    result = run(studies)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "2 studies: nothing wrong" in result.stderr


def test_each_damaged_image_is_a_line_that_names_its_study(studies):
    gone, changed = sorted(studies.glob("images/*/*.png"))[:2]
    gone.unlink()
    changed.write_bytes(changed.read_bytes()[:-20])
    result = run(studies)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert len(lines) == 2
    assert "row 0, study 'p000000-s1'" in lines[0]
    assert "is missing" in lines[0]
    assert run(studies, "--no-images").exit_code == 0


def test_a_changed_part_is_told_as_json(studies):
    part = next(studies.glob("studies/*.parquet"))
    part.write_bytes(part.read_bytes() + b"x")
    result = run(studies, "--json")
    assert result.exit_code == 1
    (problem,) = json.loads(result.stdout)["problems"]
    assert part.name in problem["message"]


def test_a_folder_without_a_set_is_bad_input(tmp_path):
    result = run(tmp_path)
    assert result.exit_code == 2
    assert "studies.json" in result.stderr
