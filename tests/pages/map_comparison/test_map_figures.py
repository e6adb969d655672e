"""How runs and controls of maps are marked in every figure."""

from dataclasses import replace

import msgspec
import pytest

from carina.pages.map_comparison.figures import style_controls, style_runs
from carina.pages.run_comparison.cells import break_long_words


def named(run, model, method):
    scoring = msgspec.structs.replace(run.scoring, model=model, method=method)
    return replace(run, id=f"{model}-{method}", scoring=scoring)


@pytest.mark.parametrize("models", [1, 3, 7])
def test_no_two_runs_have_the_same_mark(ground, models):
    run = ground.group.runs[0]
    runs = [named(run, f"lab/{model}", f"m{method}") for model in range(models) for method in range(6)][:20]
    marks = {(style.shape, style.fill) for style in style_runs(runs).values()}
    assert len(marks) == len(runs)


def test_random_weights_are_not_drawn_as_a_control(ground):
    run = ground.group.runs[0]
    made = style_runs([named(run, "builtin/untrained", "similarity"), named(run, "control/lungs", "lungs")])
    grey = {style.colour for style in style_controls(["control/lungs", "control/random"]).values()}
    assert made["builtin/untrained-similarity"].colour not in grey
    assert made["control/lungs-lungs"].colour in grey


def test_only_long_names_may_be_broken():
    assert break_long_words("builtin/asymmetry · asymmetry") == "builtin/asymmetry · asymmetry"
    assert (
        break_long_words("clip:weights/of/a/long/name <b>")
        == "clip:weights/<wbr>of/<wbr>a/<wbr>long/<wbr>name &lt;b&gt;"
    )
