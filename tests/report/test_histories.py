"""One model under several histories: paired differences by hand, and models that the history does not reach."""

import pytest

from carina.report.page.charts import charts
from carina.report.page.grids import after_error, same_under_both
from carina.report.page.grids import histories as histories_grid
from carina.report.page.styles import styles


def pair(analysis, one, other):
    (found,) = [item for item in analysis.histories if (item.one.id, item.other.id) == (one, other)]
    return found


DIFFERENCES = {
    # Case success, stages 1 to 4, mean over stages, all steps.
    ("alpha", "alpha-gold"): (0, 0, 0, 0, -1 / 4, -1 / 16, -1 / 22),
    # Without a history RR1's distribution is wrong too, of one target of two and one case of three.
    ("alpha", "alpha-none"): (1 / 6, 0, 0, 0, 1 / 4, 1 / 16, 1 / 22),
    # Told of its errors, it has RR2 right throughout, and RF2's distribution.
    ("alpha-hint", "alpha"): (1 / 6, 0, 0, 1 / 2, 1 / 4, 3 / 16, 2 / 22),
    ("majority", "majority-gold"): (0, 0, 0, 0, 0, 0, 0),
}


def test_which_histories_are_compared(histories):
    assert [(item.one.id, item.other.id) for item in histories.histories] == [
        ("alpha", "alpha-gold"),
        ("majority", "majority-gold"),
        ("alpha", "alpha-none"),
        ("alpha-hint", "alpha"),
    ]


@pytest.mark.parametrize("runs", DIFFERENCES)
def test_differences(histories, runs):
    found = pair(histories, *runs)
    assert [item.value for item in found.differences] == pytest.approx(DIFFERENCES[runs])
    assert [item.n for item in found.differences] == [6, 6, 4, 2, 4, 16, 22]


def test_p_values_swap_patients_and_are_corrected_over_the_figures_of_a_pair(histories):
    told = {item.level: item for item in pair(histories, "alpha-hint", "alpha").differences}
    # Of all steps patients A and B add one each: of the four ways to swap them two add up to as much.
    assert told["micro"].p == pytest.approx(1 / 2)
    # Seven figures, of which two have p = 1/2 and five have 1.
    assert {item.adjusted for item in told.values()} == {1.0}
    # One patient alone may as well be swapped.
    assert {item.p for item in pair(histories, "alpha", "alpha-none").differences} == {1.0}


def test_answers_that_are_the_same_are_told_in_a_sentence(histories):
    assert [item.alike for item in histories.histories] == [None, 22, None, None]
    assert same_under_both(histories) == [
        "builtin/majority: all 22 answers are the same with history own as with gold: what went before does not reach "
        "this model, and there is no difference to show."
    ]
    grid = histories_grid(histories)
    assert [(row.head.text, row.group.partition(":")[0]) for row in grid.rows] == [
        ("lab/alpha", "own less gold"),
        ("lab/alpha", "own less none"),
        ("lab/alpha", "hint less own"),
    ]
    # Nor is what follows an error told twice of it.
    assert [row.head.text for row in after_error(histories).rows] == ["lab/alpha", "lab/alpha"]


def test_after_an_error_answers_are_mended_silently_where_there_is_such_a_run(histories):
    assert {item.run for item in histories.mended} == {"alpha", "alpha-gold"}


def test_marks_tell_histories_apart_without_colour(histories):
    made = styles(histories.exam.runs)
    assert {run: made[run].fill for run in ("alpha", "alpha-gold", "alpha-hint", "alpha-none")} == {
        "alpha": "full",
        "alpha-gold": "hollow",
        "alpha-hint": "half",
        "alpha-none": "dot",
    }
    assert len({(item.shape, item.fill) for item in made.values()}) == len(made)


def test_the_chart_has_a_panel_a_comparison(histories):
    drawing = charts(histories, styles(histories.exam.runs), "percept")["histories"]
    words = " ".join(item.text for item in drawing.items if hasattr(item, "text"))
    assert [name in words for name in ("own less gold", "own less none", "hint less own")] == [True] * 3
    assert "builtin/majority" not in words
    assert drawing.told == (
        "own less gold: propagation, what its own earlier errors cost: lab/alpha +0.0 points; own less none: what the "
        "conversation so far is worth: lab/alpha +16.7 points; hint less own: what it gains by being told of its "
        "errors: lab/alpha +16.7 points"
    )
