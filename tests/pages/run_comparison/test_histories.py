"""One model under several histories: paired differences by hand, and models on which the history has no influence."""

import pytest

from carina.pages.run_comparison.figures import run_figures, style_runs
from carina.pages.run_comparison.tables import (
    after_first_error_table,
    history_table,
    identical_answer_sentences,
)


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


def test_identical_answers_are_named_in_a_sentence(histories):
    assert [item.identical_answers for item in histories.histories] == [None, 22, None, None]
    assert identical_answer_sentences(histories) == [
        "builtin/majority: all 22 answers are the same with history own as with gold: the history has no influence on "
        "this model, and there is no difference to show."
    ]
    table = history_table(histories)
    assert [(row.heading.text, row.group.partition(":")[0]) for row in table.rows] == [
        ("lab/alpha", "own minus gold"),
        ("lab/alpha", "own minus none"),
        ("lab/alpha", "hint minus own"),
    ]
    # Nor is what follows an error told twice of it.
    assert [row.heading.text for row in after_first_error_table(histories).rows] == ["lab/alpha", "lab/alpha"]


def test_after_an_error_the_gold_run_is_preferred_to_hints(histories):
    assert {item.run for item in histories.after_first_error} == {"alpha", "alpha-gold"}


def test_histories_differ_by_their_marks_without_colour(histories):
    made = style_runs(histories.group.runs)
    assert {run: made[run].fill for run in ("alpha", "alpha-gold", "alpha-hint", "alpha-none")} == {
        "alpha": "full",
        "alpha-gold": "hollow",
        "alpha-hint": "half",
        "alpha-none": "dot",
    }
    assert len({(item.shape, item.fill) for item in made.values()}) == len(made)


def test_the_figure_has_one_panel_for_each_comparison(histories):
    figure = run_figures(histories, style_runs(histories.group.runs), "percept")["histories"]
    words = figure.svg("page")
    assert [name in words for name in ("own minus gold", "own minus none", "hint minus own")] == [True] * 3
    assert "builtin/majority" not in words
    assert figure.summary == (
        "own minus gold: propagation, the cost of the model's own earlier errors: lab/alpha +0.0 points; own minus "
        "none: the worth of the conversation so far: lab/alpha +16.7 points; hint minus own: the gain by hints after "
        "errors: lab/alpha +16.7 points"
    )
