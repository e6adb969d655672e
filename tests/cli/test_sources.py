"""`carina sources`: the list, and one source with its options."""

import json

import pytest
from typer.testing import CliRunner

from carina.cli import app
from carina.sources import SOURCES, Source, list_sources

MADE = Source(
    name="made", title="Made here", needs="Nothing.", licence="CC0 [any use]", truth=("masks", "report")
)


def invoke(*arguments):
    return CliRunner().invoke(app, ["sources", *arguments])


@pytest.fixture
def only_made(monkeypatch):
    monkeypatch.setattr(SOURCES, "_entries", {"made": MADE})
    monkeypatch.setattr(SOURCES, "_has_modules", True)
    monkeypatch.setattr(SOURCES, "_has_entry_points", True)


@pytest.mark.usefixtures("only_made")
def test_sources_are_listed_with_needs_licence_and_truth():
    assert invoke().stdout.splitlines() == [
        "source\tneeds on disk\tlicence\ttruth",
        "made\tNothing.\tCC0 [any use]\tmasks, report",
    ]
    (listed,) = json.loads(invoke("--json").stdout)
    assert listed == {
        "name": "made",
        "title": "Made here",
        "brings": "studies",
        "needs": "Nothing.",
        "tree": None,
        "licence": "CC0 [any use]",
        "truth": ["masks", "report"],
        "url": None,
        "citation": None,
        "options": [],
    }


def test_the_phantom_and_both_importers_are_listed():
    listed = json.loads(invoke("--json").stdout)
    needs = {source["name"]: source["needs"] for source in listed}
    assert {"chexpercept", "nih", "phantom", "swift-chat"} <= set(needs)
    assert "chexpercept.json" in needs["chexpercept"]
    assert "benchmark" in needs["chexpercept"]
    assert "benchmark" in needs["swift-chat"]


def test_one_source_is_described_with_its_options():
    result = invoke("chexpercept")
    assert "brings: cases" in result.stdout
    assert "--patients\ta path" in result.stdout
    described = json.loads(invoke("chexpercept", "--json").stdout)
    assert [option["option"] for option in described["options"]] == ["--patients"]


def test_a_source_is_described_with_a_tree_of_its_files_and_an_example():
    lines = invoke("nih").stdout.splitlines()
    first = lines.index("files:")
    assert lines[first + 1].startswith("  Data_Entry_2017_v2020.csv")
    assert lines[first + 4] == "    00000001_000.png"
    assert lines[-1] == "example: carina import nih PATH -o studies"
    assert json.loads(invoke("nih", "--json").stdout)["tree"].splitlines()[2] == "images/"


@pytest.mark.parametrize("source", list_sources(), ids=lambda source: source.name)
def test_every_source_says_what_it_needs_and_shows_a_tree_and_an_example(source):
    """All but the phantom, which reads no files; an option is shown where there is one."""
    lines = invoke(source.name).stdout.splitlines()
    headings = {line.partition(":")[0].partition("\t")[0] for line in lines}
    assert {"title", "brings", "needs", "licence", "truth"} <= headings
    assert ("files" in headings) == (source.read is not None)
    assert ("option" in headings) == bool(source.describe()["options"])
    assert lines[-1].startswith(f"example: carina {'' if source.read is None else 'import '}{source.name} ")


def test_an_unknown_source_is_bad_input():
    unknown = invoke("nowhere")
    assert (unknown.exit_code, "unknown source 'nowhere'" in unknown.stderr) == (2, True)
