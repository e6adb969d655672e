"""`carina demo` and `carina.tour.demo`, with fewer and smaller studies than a user sees; tests/e2e has the real one."""

import json
from html.parser import HTMLParser
from pathlib import Path

from typer.testing import CliRunner

from carina import tour
from carina.cases import open_benchmark
from carina.cli import app
from carina.pages.start import preview_uri
from carina.runs import read_info
from carina.studies import open_studies

SMALL = {"studies": 3, "size": 64, "per_cell": 1, "workers": 1}
"""Three studies of 64 pixels, made in this process, and one case for each lesion and path."""


def run_command(*arguments):
    small = [text for name, value in SMALL.items() for text in (f"--{name.replace('_', '-')}", str(value))]
    return CliRunner().invoke(app, ["demo", *map(str, arguments), *small])


class Links(HTMLParser):
    """Addresses of a page, and what it would fetch."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.images: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        if tag == "a":
            self.links.append(named["href"])
        if tag == "img":
            self.images.append(named["src"])


def test_demo_prints_counts_and_the_start_page(tmp_path):
    out = tmp_path / "demo"
    result = run_command("--out", out)
    assert result.exit_code == 0, result.output
    assert len(open_studies(out / "studies")) == 3
    last = result.stdout.splitlines()[-1]
    assert last == f"Start page: {out / 'index.html'}"
    assert result.stdout.startswith(f"3 synthetic studies: {out / 'studies'}\n")


def test_start_page_links_every_kind_of_page(tmp_path):
    made = tour.demo(tmp_path / "demo", **SMALL)
    assert made.path == tmp_path / "demo" / "index.html"
    page = Links(made.path)
    for link in page.links:
        assert link.startswith("#") or (made.path.parent / link).is_file(), link
    for written in (
        made.study_pages.html,
        made.percept_pages.html,
        made.trek_pages.html,
        made.ground_pages.html,
        made.report,
        made.map_report,
    ):
        assert written.relative_to(made.path.parent).as_posix() in page.links
    # One preview a tile, stored in the page.
    assert len(page.images) == 6
    assert all(source.startswith("data:image/jpeg") for source in page.images)
    # The last two show a chart of the answers, and one of the maps; a set this small has no chart of reach.
    figures = made.report.parent / "figures"
    charts = [preview_uri(figures / f"{name}.png") for name in ("percept-headline", "ground-maps-finding")]
    assert page.images[4:] == charts


def test_pages_list_all_studies_and_cases(tmp_path):
    made = tour.demo(tmp_path / "demo", **SMALL)
    text = made.study_pages.html.read_text()
    for study in open_studies(made.studies):
        assert study.id in text
    for benchmark, pages in ((made.percept, made.percept_pages), (made.trek, made.trek_pages)):
        cases = open_benchmark(benchmark).ids()
        text = pages.html.read_text()
        assert cases
        for case in cases:
            assert case in text
    assert "builtin/reader" in made.report.read_text()
    assert "builtin/asymmetry" in made.map_report.read_text()


def test_result_lists_everything_as_a_table(tmp_path):
    made = tour.demo(tmp_path / "demo", **SMALL)
    kinds = made.to_frame()["kind"].to_list()
    assert kinds.count("run") == len(made.runs) == 15
    assert kinds.count("maps") == 3
    assert all(Path(path).exists() for path in made.to_frame()["path"])
    assert repr(made).startswith("Demo(")


def test_json_names_everything_that_was_written(tmp_path):
    result = run_command("-o", tmp_path, "--json")
    assert result.exit_code == 0, result.output
    paths = json.loads(result.stdout)
    assert set(paths) == {
        "start", "studies", "percept", "trek", "ground", "html", "png", "percept_html", "trek_html", "probes_html",
        "runs", "maps", "report", "ground_html",
    }  # fmt: skip
    assert len(paths["runs"]) == 15
    assert [Path(run).name for run in paths["maps"]] == [
        "asymmetry-asymmetry",
        "untrained-similarity",
        "untrained-occlusion",
    ]
    histories = {Path(run).name: read_info(Path(run)).policy.history for run in paths["runs"]}
    assert histories["percept-anchored"] == "own"
    assert histories["percept-anchored-gold"] == "gold"
    assert "trek-anchored" not in histories
    assert paths["studies"] == str(tmp_path / "studies")


def test_second_call_keeps_the_studies(tmp_path):
    assert run_command("-o", tmp_path).exit_code == 0
    stamps = {path: path.stat().st_mtime_ns for path in (tmp_path / "studies").rglob("*.p*")}
    assert run_command("-o", tmp_path).exit_code == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "studies").rglob("*.p*")} == stamps
