"""The page that compares maps: it needs no other file, is deterministic, and is legible in light and dark."""

import csv
import re
from pathlib import Path

import polars as pl
import pytest

from carina.pages.report import report


@pytest.fixture(scope="module")
def source(written):
    return written.pages[0].read_text(encoding="utf-8")


def test_every_cell_is_a_row_of_the_tables(written, source):
    long = pl.read_parquet(written.path / "ground.parquet")
    keys = {
        "|".join(row)
        for row in long.select("run", "source", "level", "name", "metric", "average").iter_rows()
    }
    shown = [
        key.replace("&lt;", "<").replace("&gt;", ">") for key in re.findall(r'data-key="([^"]*)"', source)
    ]
    figures = [key for key in shown if key.count("|") == 5]
    differences = [key for key in shown if key.count("|") == 4]
    assert len(figures) > 60
    assert set(figures) <= keys
    rows = []
    for name in ("controls", "comparison", "pretraining-comparison"):
        with (written.path / "tables" / f"ground-{name}.csv").open(encoding="utf-8") as file:
            rows += list(csv.DictReader(file))
    known = {"|".join(row[name] for name in ("one", "other", "level", "name", "metric")) for row in rows}
    assert differences
    assert set(differences) <= known


def test_a_figure_is_written_as_it_is(source):
    # Four hits and a half in seven maps.
    key = "good|model|all||hit.bilinear_full.full_image.expected.positives.per_image|micro"
    cell = source[source.index(f'data-key="{key}"') :].partition("</td>")[0]
    assert '<span class="value">64.3</span>' in cell
    assert '<span class="n">n 7</span>' in cell


def test_warnings_tell_what_is_not_above_a_control(source):
    text = re.sub(r"\s+", " ", source)
    assert (
        "lab/poor · similarity is not significantly above control/mean-region, control/lungs and control/centre in "
        "any measure." in text
    )
    # After the headline, by kind, with the number of each.
    assert text.index("<h3>Headline</h3>") < text.index("<h3>Warnings and notes</h3>")
    (count,) = re.findall(r"<b>Warning\.</b> Not above the controls \((\d+)\)", text)
    assert int(count) == len(re.findall(r"<li>[^<]* is not significantly above", text))


def test_a_run_has_one_warning_of_the_controls(source):
    told = re.findall(r"<li>([^<]*)</li>", source)
    above = [
        one.partition(" is not significantly above ")[0]
        for one in told
        if "is not significantly above" in one
    ]
    assert len(above) == len(set(above)) > 0


def test_whole_cells_are_not_called_a_limit(written, source):
    assert "Whole cells, IoU" in source
    assert "a smooth map can lie a little above it" in source
    drawn = "".join(path.read_text(encoding="utf-8") for path in written.files if path.suffix == ".svg")
    assert not re.search(r"grid limit|can reach|most that|cannot exceed", source + drawn, re.IGNORECASE)


def test_the_page_needs_no_other_file(source):
    bare = re.sub(r"data:image/jpeg;base64,[A-Za-z0-9+/=]*", "", source)
    assert not re.search(r"https?://|@import|url\(|<link", bare)
    assert source.count("data:image/jpeg") == 2 * 6 * 3
    assert source.count("<caption") == source.count("<table")


def bytes_of(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()
    }


@pytest.mark.usefixtures("three_images_suffice")
def test_the_same_runs_give_the_same_bytes(written, explained, tmp_path):
    report(explained, tmp_path)
    assert bytes_of(tmp_path) == bytes_of(written.path)


def test_figures_are_written_as_svg_and_png(written):
    assert {"ground-headline", "ground-finding", "ground-size"} <= set(written.figures)
    files = {path.name for path in written.files if path.suffix in (".svg", ".png")}
    assert files == {f"{name}.{ending}" for name in written.figures for ending in ("svg", "png")}


# ---- in a browser ---------------------------------------------------------------------------------------------------

OVERLAPS = """() => [...document.querySelectorAll("svg.chart")].flatMap((chart) => {
    const words = [...chart.querySelectorAll("text")];
    const boxes = words.map((one) => one.getBoundingClientRect());
    const apart = (a, b) =>
        a.left >= b.right - 1 || b.left >= a.right - 1 || a.top >= b.bottom - 3 || b.top >= a.bottom - 3;
    return words.flatMap((one, at) => words
        .filter((_, place) => place > at && !apart(boxes[at], boxes[place]))
        .map((other) => [one.textContent, other.textContent]));
})"""
OUTSIDE = """() => [...document.querySelectorAll("svg.chart")].flatMap((chart) => {
    const { left, right, top, bottom } = chart.getBoundingClientRect();
    const within = (box) =>
        box.left >= left - 1 && box.right <= right + 1 && box.top >= top - 1 && box.bottom <= bottom + 1;
    const words = [...chart.querySelectorAll("text")];
    return words.filter((one) => !within(one.getBoundingClientRect())).map((one) => one.textContent);
})"""


@pytest.fixture(params=["light", "dark"])
def opened(browser, written, request):
    page = browser.new_page(viewport={"width": 1300, "height": 900}, color_scheme=request.param)
    faults = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: message.type == "error" and faults.append(message.text))
    page.on(
        "request", lambda request: request.url.startswith(("file:", "data:")) or faults.append(request.url)
    )
    page.goto(written.pages[0].as_uri())
    yield page, request.param
    page.close()
    assert faults == []


def ground_of(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_the_page_follows_the_colour_scheme_and_the_switch(opened):
    page, theme = opened
    colours = {"light": "rgb(243, 244, 246)", "dark": "rgb(17, 19, 22)"}
    assert ground_of(page) == colours[theme]
    other = "dark" if theme == "light" else "light"
    page.locator(f"[data-theme-set={other}]").click()
    assert ground_of(page) == colours[other]
    page.locator("[data-theme-set=auto]").click()
    assert ground_of(page) == colours[theme]


def test_chart_texts_neither_overlap_nor_leave_the_chart(opened):
    page, _ = opened
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(OVERLAPS) == []
    assert page.evaluate(OUTSIDE) == []
    assert page.locator("img").evaluate_all("all => all.every((one) => one.naturalWidth === 288)")


@pytest.mark.parametrize("width", [400, 1032])
def test_unfolded_nothing_is_wider_than_screen_or_paper(opened, width):
    page, _ = opened
    page.set_viewport_size({"width": width, "height": 900})
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    if width > 1000:
        page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
