"""A figure as SVG for a page, as SVG file and as PNG: legible, accessible and deterministic."""

import io
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from PIL import Image

from carina.pages.charts import (
    COLOURS,
    Dot,
    Interval,
    IntervalPanel,
    LinePanel,
    Reference,
    ScatterPanel,
    SeriesStyle,
    Shape,
    Trace,
    interval_chart,
    line_chart,
    mark_svg,
    scatter_chart,
    stacked_bar_chart,
)
from carina.pages.charts.bars import ink_on_bar
from carina.pages.charts.intervals import _difference_ticks
from carina.pages.charts.text import cut_text, text_width, wrap_text
from carina.store.errors import CarinaError

ONE = SeriesStyle("one <of> two & more", "s1", "circle")
OTHER = SeriesStyle("other", "s2", "square", None, "hollow")
SERIES = {"a": ONE, "b": OTHER}


def headline(**changes):
    values = {"a": {"a": Interval(0.8, 0.7, 0.9)}, "b": {"b": Interval(0.4)}}
    panel = IntervalPanel("Detection", values, {"a": [Reference("chance", 0.5, is_dashed=True)]})
    names = {key: style.name for key, style in SERIES.items()}
    made = interval_chart("one-headline", names, [panel], SERIES, title='A "chart"', note="What it shows.")
    return replace(made, **changes)


def lines(*values):
    """A line chart of one panel with a line for each sequence of values."""
    styles = [SeriesStyle(f"run {place}", f"s{place + 1}", "circle") for place in range(len(values))]
    traces = [
        Trace(style, list(enumerate(own, start=1)), (0.0, 1.0))
        for style, own in zip(styles, values, strict=True)
    ]
    ticks = {0.0: "start", 1.0: "first", 2.0: "second"}
    panel = LinePanel("All cases", traces, (0.0, 2.25), ticks)
    return line_chart("one-reach", [panel], title="Reach", note="Percent.", summary="", legend=styles)


def elements(svg, tag):
    return list(ET.fromstring(svg).iter(f"{{http://www.w3.org/2000/svg}}{tag}"))  # noqa: S314 - our own


def marks(figure):
    """Where marks with tooltips stand, by tooltip."""
    return {
        use[0].text: (float(use.attrib["x"]), float(use.attrib["y"]))
        for use in elements(figure.svg("light"), "use")
        if len(use)
    }


def texts(figure):
    """Every text with its edges in pixels: left, top, right and bottom."""
    found = []
    for one in elements(figure.svg("light"), "text"):
        style = one.attrib["style"]
        moved = re.match(r"translate\(([\d.]+) ([\d.]+)\)", one.get("transform", ""))
        x, y = (moved[1], moved[2]) if moved else (one.attrib["x"], one.attrib["y"])
        width = text_width(one.text or "", 12 if "12px" in style else 11, bold="font-weight: 600" in style)
        anchor = re.search(r"text-anchor: (\w+)", style)
        left = float(x) - width * {"start": 0, "middle": 0.5, "end": 1}[anchor[1] if anchor else "start"]
        found.append((one.text, left, float(y) - 8, left + width, float(y) + 2))
    return found


def places(figure, text):
    """Left and base line of each text that says this, from left to right."""
    return sorted((left, bottom - 2) for words, left, _, _, bottom in texts(figure) if words == text)


def test_a_file_has_literal_colours_title_and_description():
    svg = headline().svg("light")
    root = ET.fromstring(svg)  # noqa: S314 - our own
    assert (root.attrib["role"], root.attrib["aria-label"]) == ("img", headline().alt)
    assert "var(" not in svg
    assert elements(svg, "title")[0].text == 'A "chart"'
    assert [one.text for one in elements(svg, "desc")] == ["What it shows."]
    words = {one.text for one in elements(svg, "text")}
    assert {"Detection", "one <of> two & more", "0%", "50%", "100%", "What it shows."} <= words
    assert COLOURS["s1"][0] in svg


def test_an_element_of_a_page_has_only_colours_of_the_page():
    svg = headline().svg("page")
    assert "var(--s1)" in svg
    assert "var(--ink)" in svg
    assert not re.search(r"#[0-9a-f]{6}", svg)
    # The page shows the note below the chart, in its own font, and loads nothing.
    assert "What it shows." not in re.sub(r"<desc>.*?</desc>", "", svg)
    assert "font-family" not in svg
    assert not re.search(r"https?://|url\(|<style", svg)


def test_a_dark_file_has_the_dark_colours():
    svg = headline().svg("dark")
    assert COLOURS["s1"][1] in svg
    assert COLOURS["surface"][1] in svg
    assert COLOURS["ink"][0] not in svg


def test_the_main_values_are_in_the_alternative_text():
    assert headline().alt == 'A "chart". Detection: one <of> two & more 80%, other 40%'
    assert headline(summary="").alt == 'A "chart"'


def test_every_mark_has_its_value_as_tooltip():
    titles = re.findall(r"<title>(.*?)</title>", headline().svg("page"))
    assert titles == [
        "one &lt;of&gt; two &amp; more, Detection: 80.0% (70.0% to 90.0%)",
        "other, Detection: 40.0%",
    ]


def test_the_data_of_a_figure_are_its_values():
    rows = headline().to_frame().rows(named=True)
    assert rows[0] == {
        "panel": "Detection", "row": ONE.name, "series": ONE.name, "value": 0.8, "low": 0.7, "high": 0.9,
    }  # fmt: skip
    assert lines([0.5, 0.25]).to_frame()["value"].to_list() == [0.5, 0.25]


def test_ids_begin_with_the_name_of_the_figure():
    svg = headline().svg("page")
    ids = re.findall(r' id="([^"]*)"', svg)
    assert len(ids) == len(set(ids)) > 0
    assert all(one.startswith("one-headline-") for one in ids)
    assert {one[1:] for one in re.findall(r'href="([^"]*)"', svg)} == set(ids)


def test_the_same_figure_gives_the_same_bytes():
    assert headline().svg("page") == headline().svg("page")
    assert headline().svg("light") == headline().svg("light")
    assert headline().png() == headline().png()
    # In any order.
    drawn = headline()
    assert (drawn.png("dark"), drawn.png(), drawn.svg("page")) == (
        headline().png("dark"),
        headline().png(),
        headline().svg("page"),
    )


def pixels(figure, theme="light"):
    return np.asarray(Image.open(io.BytesIO(figure.png(theme, dpi=72))).convert("RGB"))


def rgb(role, theme=0):
    return [int(COLOURS[role][theme][at : at + 2], 16) for at in (1, 3, 5)]


def test_a_png_shows_the_colours_of_its_theme():
    light, dark = pixels(headline()), pixels(headline(), "dark")
    assert light.shape == dark.shape
    assert light.shape[1] == 1160
    assert light[0, 0].tolist() == rgb("surface")
    assert dark[0, 0].tolist() == rgb("surface", 1)
    for shown, theme in ((light, 0), (dark, 1)):
        assert (np.abs(shown.astype(int) - rgb("s1", theme)).sum(axis=2) < 12).any()
    # The default has three pixels for one.
    full = Image.open(io.BytesIO(headline().png()))
    assert full.size == (3 * light.shape[1], 3 * light.shape[0])


def test_a_file_explains_its_chart_below_in_lines_that_fit():
    made = headline(note="word " * 300)
    words = [one.text for one in elements(made.svg("light"), "text") if (one.text or "").startswith("word")]
    assert " ".join(words).split() == ["word"] * 300
    assert len(words) > 1
    height = float(ET.fromstring(made.svg("light")).attrib["height"])  # noqa: S314 - our own
    assert height > made.height


# ---- where values and texts stand ------------------------------------------------------------------------------------


def test_a_mark_stands_at_its_value_on_the_axis():
    made = headline()
    [(zero, _)], [(whole, _)] = places(made, "0%"), places(made, "100%")
    zero, whole = zero + text_width("0%", 11) / 2, whole + text_width("100%", 11) / 2
    found = marks(made)
    one = found[f"{ONE.name}, Detection: 80.0% (70.0% to 90.0%)"]
    other = found["other, Detection: 40.0%"]
    assert one[0] == pytest.approx(zero + 0.8 * (whole - zero), abs=0.05)
    assert other[0] == pytest.approx(zero + 0.4 * (whole - zero), abs=0.05)
    # Rows from top to bottom in the order of the labels, each mark in the middle of its row of 24 pixels.
    assert other[1] - one[1] == pytest.approx(24, abs=0.02)
    assert places(made, "other")[0][1] - places(made, ONE.name)[0][1] == pytest.approx(24, abs=0.02)


def test_differences_have_an_axis_around_zero():
    values = {"r": {"a": Interval(-0.07, -0.21, 0.02), "b": Interval(0.0)}}
    made = interval_chart(
        "d", {"r": "Row"}, [IntervalPanel("gold − own", values)], SERIES, title="", note="", unit="points"
    )
    words = [text for text, *_ in texts(made)]
    assert [text for text in words if re.fullmatch(r"[+−]?\d+", text or "")] == [
        "−30",
        "−15",
        "0",
        "+15",
        "+30",
    ]
    assert list(marks(made)) == [
        f"{ONE.name}, gold − own: −7.0 points (−21.0 to +2.0)",
        "other, gold − own: +0.0 points",
    ]


def test_points_of_a_line_stand_at_their_shares():
    made = lines([0.5, 0.25])
    heights = {label: places(made, label)[0][1] for label in ("0%", "25%", "50%", "75%", "100%")}
    found = marks(made)
    half, quarter = found["run 0, first: 50.0%"], found["run 0, second: 25.0%"]
    # The base line of a label is some pixels below its tick.
    assert half[1] - heights["50%"] == pytest.approx(quarter[1] - heights["25%"], abs=0.02)
    assert heights["0%"] - heights["100%"] == pytest.approx(250, abs=0.02)
    assert half[0] == pytest.approx(places(made, "first")[0][0] + text_width("first", 11) / 2, abs=0.05)


def long_charts():
    """Every kind of chart with many series, long names and titles in several lines."""
    names = [f"openai-api/local/a-model-with-a-long-name-{number} · own" for number in range(9)]
    styles = {name: SeriesStyle(name, f"s{place % 8 + 1}", "circle") for place, name in enumerate(names)}
    title = "A rather long title of a measure"
    own = IntervalPanel(title, {name: {name: Interval(0.5, 0.0, 1.0)} for name in names})
    every = IntervalPanel(title, {"pleural effusion": {name: Interval(1.0) for name in names}})
    ticks = {0.0: "start", 1.0: "Contour evaluation", 2.0: "Attribute extraction"}
    traces = [Trace(style, [(1.0, 0.5), (2.0, 0.4)], (0.0, 1.0)) for style in styles.values()]
    panel = LinePanel(
        title, traces, (0.0, 2.25), ticks, subtitle="n = 4", x_title="stage", chance=[(0, 1), (2, 0)]
    )
    dots = [Dot(name, 0.1 * place, 0.05 * place, styles[name]) for place, name in enumerate(names)]
    parts = {"1": "Detection", "2": "Contour evaluation", "none": "no error"}
    shares = {name: {"1": 0.2, "2": 0.04, "none": 0.76} for name in names}
    words = {"title": "t", "note": "What it shows. " * 30}
    yield interval_chart("own", {name: name for name in names}, [own] * 6, styles, **words)
    yield interval_chart("rows", {"pleural effusion": "pleural effusion"}, [every] * 2, styles, **words)
    yield line_chart("above", [panel] * 4, summary="", legend=list(styles.values()), **words)
    yield line_chart("below", [panel] * 4, summary="", **words)
    scatters = [ScatterPanel(title * 2, "n = 9", dots, has_legend=place == 0) for place in range(4)]
    yield scatter_chart("dots", scatters, x_title="AUROC", y_title="pointing game", **words)
    yield stacked_bar_chart("bars", shares, parts, styles, **words)


@pytest.mark.parametrize("made", long_charts(), ids=lambda made: made.name)
def test_no_text_is_cut_or_lies_on_another(made):
    height = float(ET.fromstring(made.svg("light")).attrib["height"])  # noqa: S314 - our own
    found = texts(made)
    for text, left, top, right, bottom in found:
        assert left >= 0, text
        assert top >= 0, text
        assert right <= 1160, text
        assert bottom <= height, text
    for place, (text, left, top, right, bottom) in enumerate(found):
        for other, left_2, top_2, right_2, bottom_2 in found[place + 1 :]:
            apart = right <= left_2 or right_2 <= left or bottom <= top_2 or bottom_2 <= top
            assert apart, (text, other)


# ---- lines that coincide --------------------------------------------------------------------------------------------


def test_lines_that_coincide_are_striped_and_named():
    made = lines([0.5, 0.25], [0.5, 0.25], [0.5, 0.2])
    assert made.note == "Percent. run 0 and run 1 coincide (striped line)."
    assert "run 0 and run 1 coincide" in made.alt
    # The two differ in where their dashes begin; the third line has none.
    strokes = [
        re.findall(r"stroke-dash[a-z]*: ([^;\"]*)", style)
        for style in re.findall(r'<path[^>]*style="([^"]*stroke: var\(--s\d\)[^"]*)"', made.svg("page"))
    ]
    assert strokes[:3] == [[], ["7,7", "7"], ["7,7", "0"]]


def test_marks_of_lines_that_coincide_stand_side_by_side():
    apart, together = lines([0.5, 0.25], [0.4, 0.2]), lines([0.5, 0.25], [0.5, 0.25])
    first, second = marks(apart)["run 0, first: 50.0%"], marks(apart)["run 1, first: 40.0%"]
    assert first[0] == second[0]
    first, second = marks(together)["run 0, first: 50.0%"], marks(together)["run 1, first: 50.0%"]
    assert second[0] - first[0] == pytest.approx(9, abs=0.02)
    assert first[1] == second[1]


def test_lines_that_differ_are_not_called_coinciding():
    assert lines([0.5, 0.25], [0.5, 0.24]).note == "Percent."


# ---- marks and colours ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", get_args(Shape))
def test_fills_of_a_mark_differ(shape):
    marks = {
        mark_svg(SeriesStyle("x", "s3", shape, None, fill)) for fill in ("full", "hollow", "half", "dot")
    }
    assert len(marks) == 4
    assert all("id=" not in mark and "href" not in mark for mark in marks)


def test_no_two_shapes_are_drawn_alike():
    assert len({mark_svg(SeriesStyle("x", "s3", shape)) for shape in get_args(Shape)}) == 10


def luminance(colour):
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1])
def test_texts_and_marks_have_enough_contrast(theme):
    ground = COLOURS["surface"][theme]
    for role in ("ink", "quiet"):
        assert contrast(COLOURS[role][theme], ground) >= 4.5
    for role in ("b1", "b2", "oracle", *(f"s{number}" for number in range(1, 9))):
        assert contrast(COLOURS[role][theme], ground) >= 3
    # Texts on bars, in the ink that is chosen for each.
    for role in ("good", *(f"e{number}" for number in range(1, 9))):
        assert contrast(COLOURS[role][theme], COLOURS[ink_on_bar(role)][theme]) >= 4.5


def test_no_two_roles_share_their_light_colour():
    assert len({light for light, _ in COLOURS.values()}) == len(COLOURS)


# ---- texts ----------------------------------------------------------------------------------------------------------


def test_longer_text_is_wider():
    assert text_width("wider", 12) > text_width("wide", 12) > 0
    assert text_width("wide", 24) == pytest.approx(2 * text_width("wide", 12))
    assert text_width("wide", 12, bold=True) > text_width("wide", 12)


def test_text_is_cut_and_wrapped_to_a_width():
    assert cut_text("short", 100, 12) == "short"
    cut = cut_text("a rather long text", 60, 12)
    assert cut.endswith("…")
    assert text_width(cut, 12) <= 60
    wrapped = wrap_text("a rather long text in lines", 60, 12)
    assert " ".join(wrapped) == "a rather long text in lines"
    assert all(text_width(line, 12) <= 60 for line in wrapped)


def test_a_dollar_sign_is_text_and_no_formula():
    panel = IntervalPanel("$a$", {"a": {"a": Interval(0.5)}})
    made = interval_chart("x", {"a": "costs $5 or $6"}, [panel], {"a": ONE}, title="", note="")
    assert {"$a$", "costs $5 or $6"} <= {one.text for one in elements(made.svg("light"), "text")}


def test_bars_have_their_share_in_words_where_it_fits():
    made = stacked_bar_chart(
        "b", {"a": {"1": 0.97, "none": 0.03}}, {"1": "Detection", "none": "no error"}, {"a": ONE},
        title="First errors", note="",
    )  # fmt: skip
    words = [one.text for one in elements(made.svg("light"), "text")]
    assert "Detection 97%" in words
    assert "no error 3%" not in words
    assert "no error 3%" in " ".join(one.text for one in elements(made.svg("light"), "title"))
    assert made.summary == f"No error: {ONE.name} 3%"


def scatter_texts(panel):
    made = scatter_chart("s", [panel], x_title="x", y_title="y", title="", note="")
    return " ".join(one.text for one in elements(made.svg("light"), "text"))


def test_names_of_dots_stand_at_their_marks_or_in_a_legend():
    style = SeriesStyle(
        "builtin/asymmetry · asymmetry of a long name (in a run of some name)", "s1", "circle"
    )
    dots = [Dot(style.name, at, at, style, (0.0, 1.0), (0.0, 1.0)) for at in (0.2, 0.21)]
    assert scatter_texts(ScatterPanel("t", "s", dots, has_legend=True)).count(style.name) == 2
    findings = [Dot(name, at, 0.5, style) for name, at in (("pleural effusion", 0.1), ("cardiomegaly", 0.7))]
    words = scatter_texts(ScatterPanel("t", "s", findings))
    assert "pleural effusion" in words
    assert "cardiomegaly" in words


def test_long_labels_of_rows_continue_in_the_next_line():
    names = {
        "a": "builtin/asymmetry · asymmetry (a run of a rather long name)",
        "b": "builtin/untrained · occlusion",
    }
    series = {key: SeriesStyle(name, "s1", "circle") for key, name in names.items()}
    panel = IntervalPanel("t", {key: {key: Interval(0.5)} for key in names})
    svg = interval_chart("c", names, [panel], series, title="", note="").svg("light")
    words = " ".join(one.text for one in elements(svg, "text"))
    assert all(name in words for name in names.values())
    # The mark of a value stands at the height of its row's mark.
    heights = [float(one.attrib["y"]) for one in elements(svg, "use")]
    assert heights[:2] == pytest.approx(heights[2:])


@pytest.mark.parametrize("strange", [float("inf"), float("-inf"), float("nan")])
def test_a_number_that_is_not_finite_is_refused_before_anything_is_drawn(strange):
    """An axis that reaches to infinity has no ticks and no end."""
    for make in (
        lambda: Interval(strange),
        lambda: Interval(0.5, 0.4, strange),
        lambda: Reference("chance", strange),
        lambda: Trace(ONE, [(0.0, strange)]),
        lambda: Trace(ONE, [(0.0, 0.0)], band=[(0.0, 0.0, strange)]),
        lambda: LinePanel("panel", [], (0.0, strange), {}),
        lambda: LinePanel("panel", [], (0.0, 1.0), {}, y_top=strange),
        lambda: Dot("dot", 0.5, strange, ONE),
        lambda: stacked_bar_chart("bars", {"a": {"x": strange}}, {"x": "x"}, SERIES, title="Bars", note=""),
    ):
        with pytest.raises(CarinaError, match=r"chart, .*: expected finite numbers"):
            make()


@pytest.mark.parametrize("value", [1e300, -1e300, 1e-300, 0.0])
def test_an_axis_of_any_finite_range_has_five_ticks(value):
    ticks = _difference_ticks(
        [IntervalPanel("Difference", {"a": {"a": Interval(value, -abs(value), abs(value))}})]
    )
    assert len(ticks) == 5
    assert max(ticks) >= abs(value)
