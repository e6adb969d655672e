"""How runs look in charts, and where their names stand."""

from dataclasses import replace

import msgspec
import pytest

from carina.report.draw import Series
from carina.report.draw.shapes import Mark, Words
from carina.report.ground.draw.dots import Panel, Spot, dot_chart
from carina.report.ground.draw.scatter import Dot, Scatter, scatter_chart
from carina.report.ground.page.styles import control_styles, styles
from carina.report.page.breaks import breakable


def named(run, model, method):
    scoring = msgspec.structs.replace(run.scoring, model=model, method=method)
    return replace(run, id=f"{model}-{method}", scoring=scoring)


@pytest.mark.parametrize("models", [1, 3, 7])
def test_no_two_runs_have_the_same_mark(ground, models):
    run = ground.probing.runs[0]
    runs = [named(run, f"lab/{model}", f"m{method}") for model in range(models) for method in range(6)][:20]
    marks = {(style.shape, style.fill) for style in styles(runs).values()}
    assert len(marks) == len(runs)


def test_random_weights_are_no_control(ground):
    run = ground.probing.runs[0]
    made = styles([named(run, "builtin/untrained", "similarity"), named(run, "control/lungs", "lungs")])
    grey = {style.colour for style in control_styles(["control/lungs", "control/random"]).values()}
    assert made["builtin/untrained-similarity"].colour not in grey
    assert made["control/lungs-lungs"].colour in grey


def words(panel):
    drawing = scatter_chart("c", [panel], across="x", up="y", title="", note="")
    return [item.text for item in drawing.items if isinstance(item, Words)]


def test_labels_of_rows_go_on_below():
    names = {
        "a": "builtin/asymmetry · asymmetry (a run of a rather long name)",
        "b": "builtin/untrained · occlusion",
    }
    series = {key: Series(name, "s1", "circle") for key, name in names.items()}
    panel = Panel("t", {key: {key: Spot(0.5)} for key in names})
    drawing = dot_chart("c", names, [panel], series, title="", note="")
    told = " ".join(item.text for item in drawing.items if isinstance(item, Words))
    assert all(name in told for name in names.values())
    # The mark of a spot lies beside that of its row.
    heights = [item.y for item in drawing.items if isinstance(item, Mark)]
    assert heights[:2] == heights[2:]


def test_names_are_written_out():
    style = Series("builtin/asymmetry · asymmetry of a long name (in a run of some name)", "s1", "circle")
    dots = [Dot(style.name, at, at, style, (0.0, 1.0), (0.0, 1.0)) for at in (0.2, 0.21)]
    keyed = " ".join(words(Scatter("t", "s", dots, keyed=True)))
    assert keyed.count(style.name) == 2
    findings = [Dot(name, at, 0.5, style) for name, at in (("pleural effusion", 0.1), ("cardiomegaly", 0.7))]
    assert {"pleural effusion", "cardiomegaly"} <= set(words(Scatter("t", "s", findings)))


def test_short_names_are_not_broken():
    assert breakable("builtin/asymmetry · asymmetry") == "builtin/asymmetry · asymmetry"
    assert (
        breakable("clip:weights/of/a/long/name <b>")
        == "clip:weights/<wbr>of/<wbr>a/<wbr>long/<wbr>name &lt;b&gt;"
    )
