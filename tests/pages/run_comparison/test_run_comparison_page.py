"""The page that compares runs: its numbers are those of the tables, it needs no other file, and it is deterministic."""

import csv
import json
import re
import shutil
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest
from tests.pages import conversation_cases as like

from carina.cases import Box, Provenance, Views, open_benchmark, write_benchmark
from carina.pages.report import report as write_report
from carina.store.errors import CarinaError
from carina.studies import write_png


class Page(HTMLParser):
    """Cells of the page by key, and what else the tests ask for."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.source = path.read_text(encoding="utf-8")
        self.cells: dict[str, list[dict[str, str]]] = defaultdict(list)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.data = ""
        self._cell: dict[str, str] | None = None
        self._part = ""
        self._quiet = ""
        self.feed(self.source)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        self.tags.append((tag, named))
        if tag == "td":
            self._cell = {"class": named.get("class") or ""}
            if named.get("data-key"):
                self.cells[named["data-key"]].append(self._cell)
        if tag == "span":
            self._part = named.get("class") or ""
        if tag in ("script", "style"):
            self._quiet = named.get("type") or tag

    def handle_endtag(self, tag):
        if tag == "td":
            self._cell = None
        if tag in ("script", "style"):
            self._quiet = ""

    def handle_data(self, data):
        if self._quiet:
            self.data += data if self._quiet == "application/json" else ""
            return
        self.text += f"{data} "
        if self._cell is not None and data.strip():
            self._cell[self._part] = data.strip()


@pytest.fixture(scope="session")
def page(written):
    return Page(written.pages[0])


@pytest.fixture(scope="session")
def tables(written):
    return {
        path.stem: list(csv.DictReader(path.read_text().splitlines()))
        for path in written.files
        if path.suffix == ".csv"
    }


def percent(text: str) -> str:
    return f"{100 * float(text):.1f}"


def points(text: str) -> str:
    told = f"{100 * float(text):+.1f}".replace("-", "−")
    return "0.0" if told in ("+0.0", "−0.0") else told


PLAIN = ("state", "status", "cost")
"""Levels whose figures are counts."""


def is_count(key: str) -> bool:
    return key.split("|")[1] in PLAIN and "|share of " not in key


def test_every_number_of_the_page_is_in_the_tables(page, tables):
    known = {}
    for name, rows in tables.items():
        for row in rows if name != "results" else ():
            if "one" in row and name != "against-blind":
                key = "|".join(row[part] for part in ("one", "other", "level", "name", "metric"))
                bounds = f"{points(row['low'])} to {points(row['high'])}" if row["low"] else None
                known[key] = (points(row["value"]), bounds)
            elif "run" in row and "level" in row:
                key = "|".join(row[part] for part in ("run", "level", "name", "metric"))
                if is_count(key):
                    known[key] = (row["value"], None)
                else:
                    bounds = f"{percent(row['low'])}–{percent(row['high'])}" if row["low"] else None
                    known[key] = (percent(row["value"]) if row["value"] else "", bounds)
    assert len(page.cells) > 250
    for key, shown in page.cells.items():
        value, bounds = known[key]
        for cell in shown:
            if is_count(key):
                assert float(cell["value"].replace(",", "")) == pytest.approx(float(value), abs=0.05), key
            else:
                assert (cell["value"], cell.get("sub")) == (value, bounds), key


def test_headline_cells_by_hand(page):
    def shown(run, level, name, metric):
        (cell,) = page.cells[f"{run}|{level}|{name}|{metric}"]
        return cell["value"], cell["n"]

    assert shown("alpha", "case", "", "mean over targets") == ("50.0", "n 6")
    assert shown("alpha", "stage", "1", "balanced accuracy") == ("75.0", "n 6")
    assert shown("alpha", "macro", "", "mean over stages") == ("68.8", "n 16")
    assert shown("beta", "micro", "", "accuracy") == ("36.8", "n 19")
    # A single patient has no interval.
    (cell,) = page.cells["alpha|after first error|2|right at all later stages, not corrected"]
    assert "sub" not in cell


def test_chance_and_constant_answer_stand_below_the_runs(page):
    text = " ".join(page.text.split())
    # Case success, stages 1 to 4, mean over stages, all steps.
    chance = "17.4 50.0 50.0 3.1 8.3 27.9 36.7"
    constant = "33.3 50.0 50.0 100.0 50.0 62.5 72.7"
    assert f"Chance a draw among the admissible answers {chance}" in text
    assert f"Best constant answer the same to every question of a kind {constant}" in text
    assert "Best constant answer 33.3% Chance 17.4%" in text.split("Warnings and notes")[0]


def test_a_model_below_the_best_constant_answer_gets_a_warning(page):
    text = " ".join(page.text.split())
    # Beta has 1/4 of cases right; of the cases that it finished, always "No" has (1/3 + 1/2) / 2.
    assert re.search(
        r"Warning. Not above the best constant answer \(1\) lab/beta · own on percept is not significantly above the "
        r"best constant answer in: "
        r"Case success \(25.0%, [\d.]+–[\d.]+, against 41.7%\)",
        text,
    )
    # What is true of a model is said once, not again of its other history.
    assert "lab/alpha · gold on percept is not significantly above" not in text


def test_codes_of_paths_are_explained(page):
    text = " ".join(page.text.split())
    for code, words, meaning in (
        ("LF", "lesion-free", "the lesion is absent; the case ends after detection"),
        ("RF", "no revision needed", "the lesion is present, and the contour shown is good"),
        ("RR", "revision required", "the lesion is present, and the contour shown is wrong"),
    ):
        assert f"Path {code}, {words} {meaning}" in text
        assert ("th", meaning) in [(tag, attrs.get("title")) for tag, attrs in page.tags]
        assert json.loads(page.data)["paths"][code] == {"name": words, "meaning": meaning}
    assert "Reach on path RR (revision required), by step" in text
    assert (
        "Steps: 1 detection, 2 contour evaluation, 3a expansion, 3c revision, 4a distribution, 4c severity."
        in text
    )


def test_charts_have_their_main_values_in_words(page):
    told = [attrs["aria-label"] for tag, attrs in page.tags if tag == "svg" and attrs.get("role") == "img"]
    assert len(told) == 5
    assert told[0] == (
        "Accuracy of every run by stage, with 95% intervals. Case success: lab/alpha · own 50%, lab/beta · own 25%, "
        "builtin/majority · own 0%, lab/alpha · gold 50%"
    )
    assert "All cases, by stage, at the end: lab/alpha · own 50%, lab/beta · own 20%" in told[1]
    assert page.source.count("<figcaption") == 5
    assert page.source.count("<caption") == page.source.count("<table")


def test_parsing_results_that_never_occur_are_named_in_the_note(page):
    assert (
        "None in any run: cut off, no answer found, no such option, too many options, ambiguous, steps not reached."
        in " ".join(page.text.split())
    )
    assert not any("|truncated|" in key for key in page.cells)


def test_every_table_row_is_in_the_long_table(written, tables):
    long = pl.read_parquet(next(path for path in written.files if path.name == "tables.parquet"))
    assert long.columns == [
        "run",
        "model",
        "history",
        "level",
        "name",
        "metric",
        "value",
        "low",
        "high",
        "n",
        "chance",
        "constant",
    ]
    assert long.height == sum(
        len(rows) for name, rows in tables.items() if name not in ("chexpercept", "results")
    )
    one = long.filter((pl.col("run") == "beta") & (pl.col("level") == "micro"))
    assert one["value"].to_list() == pytest.approx([7 / 19])
    gap = long.filter((pl.col("level") == "comparison") & (pl.col("name") == "micro, less beta"))
    assert gap["value"].to_list() == pytest.approx([10 / 19])


def test_warnings_follow_the_headline_by_kind_with_their_number(page):
    text = " ".join(page.text.split())
    assert "lab/beta · own: 1 of 6 percept cases are incomplete." in text
    assert re.search(
        r"lab/beta · own on percept is not significantly above the blind baseline builtin/majority", text
    )
    assert "more than 2% of the answers could not be parsed: lab/beta · own (5.3% of 19)" in text
    assert text.index("Headline") < text.index("Warnings and notes") < text.index("Reach: how far")
    kinds = [
        ("Warning", "Incomplete cases", 1),
        ("Warning", "Not above a blind baseline", 1),
        ("Warning", "Not above the best constant answer", 1),
        ("Note", "Answers that could not be parsed", 1),
    ]
    places = [text.index(f"{level}. {kind} ({count})") for level, kind, count in kinds]
    assert places == sorted(places)
    # The card at the top says how many there are, and leads to them.
    assert "3 warnings about these figures" in text


def test_cells_without_values_are_blank(page):
    # Only alpha has a run with corrected answers.
    assert not any(key.startswith("beta|after first error") for key in page.cells)


def test_the_page_needs_no_other_file(page, written):
    bare = re.sub(r"data:image/webp;base64,[A-Za-z0-9+/=]*", "", page.source)
    assert not re.search(r"https?://|@import|url\(|<link", bare)
    assert all(attrs.get("src", "").startswith("data:") for tag, attrs in page.tags if tag == "img")
    assert all(attrs.get("aria-label") for _, attrs in page.tags if attrs.get("role") in ("img", "region"))
    assert all(attrs.get("scope") in ("col", "row", "rowgroup") for tag, attrs in page.tags if tag == "th")
    ids = [attrs["id"] for _, attrs in page.tags if attrs.get("id")]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert all(link[1:] in ids for link in links)
    # The answers hold tags, which must reach the reader as words.
    assert "<b>I say</b>" not in page.source
    assert written.path.joinpath("tables.parquet").is_file()


def test_the_page_names_cases_that_cannot_be_shown(runs, tmp_path, monkeypatch):
    render = Views.array

    def fail_once(views, case, view):
        if case.id == "c-RF1":
            raise CarinaError(f"case {case.id}, image 'a.png': damaged")
        return render(views, case, view)

    monkeypatch.setattr(Views, "array", fail_once)
    page = Page(write_report(runs, tmp_path).pages[0])
    assert [case["id"] for case in json.loads(page.data)["cases"]].count("c-RF1") == 0
    text = " ".join(page.text.split())
    assert "5 of 6 cases" in text
    assert "1 case of those that were chosen cannot be shown" in text
    assert "case c-RF1, image 'a.png': damaged" in text


def test_the_browser_holds_cases_pictures_and_answers(page):
    data = json.loads(page.data)
    assert [case["id"] for case in data["cases"]] == ["c-RR1", "c-RR2", "c-RF1", "c-RF2", "c-LF1", "c-LF2"]
    # Six cases show the same three pictures.
    assert len(data["images"]) == 3
    case = data["cases"][3]
    assert case["outcomes"]["alpha"] == {
        "status": "wrong",
        "wrong": [2, 4],
        "unparsed": False,
        "right": 2,
        "of": 4,
    }
    assert case["outcomes"]["beta"]["status"] == "incomplete"
    step = next(step for step in case["steps"] if step["id"] == "4a")
    assert step["gold"] == "(2) 2 zones"
    assert step["answers"]["alpha"]["right"] is False
    assert step["answers"]["alpha"]["parsed"] == "(1) 1 zones"
    assert step["answers"]["alpha-gold"]["hint"] == "The contour needed no revision."
    refused = data["cases"][1]["steps"][2]["answers"]["beta"]
    assert (refused["failure"], refused["parsed"]) == ("refused", "")


def test_figures_are_written_as_svg_and_png(written):
    names = {path.name for path in written.files if path.suffix in (".svg", ".png")}
    assert names == {
        f"percept-{chart}.{ending}"
        for chart in ("headline", "reach", "target-reach", "histories", "first-error")
        for ending in ("svg", "png")
    }


def test_the_result_names_all_tables_and_figures(written):
    root = written.path
    assert len(list((root / "tables").glob("*.csv"))) == 13
    assert len(list((root / "figures").glob("*.svg"))) == 5
    assert set(written.tables) == {path.stem for path in (root / "tables").glob("*.csv")}
    assert set(written.figures) == {path.stem for path in (root / "figures").glob("*.svg")}
    assert written.to_frame().equals(written.tables["results"])
    assert written.to_frame("reach").height == written.tables["reach"].height > 0
    with pytest.raises(CarinaError, match="no table 'none'"):
        written.to_frame("none")
    assert repr(written) == f"Report({str(root)!r}, pages='report.html', tables=13, figures=5)"


def test_fewer_cases_are_a_mix(runs, tmp_path):
    written = write_report(runs, tmp_path, cases=2)
    data = json.loads(Page(written.pages[0]).data)
    # Over the four runs the deviations of RR2's steps add up to 2.37, of RR1's to 2.30; of no other case to 2.
    assert [case["id"] for case in data["cases"]] == ["c-RR1", "c-RR2"]
    assert "2 of 6 cases" in " ".join(Page(written.pages[0]).text.split())


def bytes_of(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


def test_the_order_of_rows_changes_no_byte(runs, written, tmp_path):
    shutil.copytree(runs[0].parent, tmp_path / "all")
    for run in runs:
        path = tmp_path / "all" / run.name / "steps.parquet"
        pl.read_parquet(path).sample(fraction=1, shuffle=True, seed=3).write_parquet(path)
    write_report([tmp_path / "all" / run.name for run in runs], tmp_path / "again")
    assert bytes_of(tmp_path / "again") == bytes_of(written.path)


def test_a_run_alone_has_a_report(runs, tmp_path):
    written = write_report(runs[:1], tmp_path)
    text = " ".join(Page(written.pages[0]).text.split())
    assert "no blind baseline is among these runs" in text
    assert " minus " not in text.split("Methods")[0]


def test_benchmarks_of_two_protocols_stand_in_one_report(runs, small, tmp_path):
    for key in like.KEYS:
        write_png(tmp_path / "talks" / key, like.image_pixels())
    talk = like.conversation()
    write_benchmark(tmp_path / "talks", [talk], Provenance(command="test"))
    boxed = next(number for number, step in enumerate(talk.steps) if step.format == "boxes")
    said = Box(image=like.KEYS[0], xyxy=(20, 10, 120, 60), frame="pixel")
    rows = [
        small.row(
            talk, step, number, status="ok", raw="words", correct=False, score=0.25, iou=0.25, boxes=(said,)
        )
        if number == boxed
        else small.row(talk, step, number, status="ok", raw="words", correct=None, score=0.5)
        for number, step in enumerate(talk.steps)
    ]
    # As a run on another benchmark may: in a folder of the same name.
    again = small.write_run(tmp_path / "alpha", open_benchmark(tmp_path / "talks"), rows, "lab/alpha", "own")
    written = write_report([runs[0], again], tmp_path / "report")
    page = Page(written.pages[0])
    data = json.loads(page.data)
    assert [name.split(" ")[0] for name in data["groups"]] == ["percept", "trek"]
    assert set(written.figures) >= {"percept-headline", "trek-headline"}
    step = data["cases"][-1]["steps"][boxed]
    (answer,) = step["answers"].values()
    # The films are 200 pixels wide and 100 high: left, top, width and height in percent.
    assert [box["box"] for box in answer["boxes"]] == [[10.0, 10.0, 50.0, 50.0]]
    assert step["boxes"][0]["image"] == answer["boxes"][0]["image"]
