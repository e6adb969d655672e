"""Every kind of estimate against the values that follow from `small_runs.py` by hand."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carina.runs.analysis.estimates import REPLICATES, estimate_share, weight_groups
from carina.runs.analysis.measures import best_constant
from carina.runs.analysis.outcomes import derive_outcomes
from carina.runs.analysis.reach import reach_by_stage
from carina.runs.analysis.read import read_run
from carina.stats import balanced_accuracy, mean_interval


def value(analysis, run, level, name="", metric=None):
    """The figure of a run; its metric need only be told where there are several."""
    found = [
        item
        for items in analysis.tables.values()
        for item in items
        if (item.run, item.level, item.name) == (run, level, name) and metric in (None, item.metric)
    ]
    (one,) = found
    return one


def difference(items, one, other, level, name=""):
    (found,) = [
        item for item in items if (item.one, item.other, item.level, item.name) == (one, other, level, name)
    ]
    return found


HEADLINE = {
    # run: case success, stages 1 to 4, mean over stages, all steps
    "alpha": (1 / 2, 3 / 4, 3 / 4, 1 / 2, 3 / 4, 11 / 16, 18 / 22),
    "alpha-gold": (1 / 2, 3 / 4, 3 / 4, 1 / 2, 1, 3 / 4, 19 / 22),
    "beta": (1 / 4, 1 / 2, 1 / 2, 0, 0, 1 / 4, 7 / 19),
    "majority": (0, 1 / 2, 1 / 2, 0, 0, 1 / 4, 6 / 22),
}
NUMBERS = {
    "alpha": (6, 6, 4, 2, 4, 16, 22),
    "alpha-gold": (6, 6, 4, 2, 4, 16, 22),
    # The case that failed on the way counts as far as it was answered.
    "beta": (5, 6, 3, 2, 3, 14, 19),
    "majority": (6, 6, 4, 2, 4, 16, 22),
}


@pytest.mark.parametrize("run", HEADLINE)
def test_headline_values_equal_those_worked_out_from_the_rows(analysis, run):
    keys = [measure.key for measure in analysis.measures]
    assert [key[:2] for key in keys] == [
        ("case", ""), ("stage", "1"), ("stage", "2"), ("stage", "3"), ("stage", "4"), ("macro", ""), ("micro", ""),
    ]  # fmt: skip
    found = [analysis.headline[run, key] for key in keys]
    assert [item.value for item in found] == pytest.approx(HEADLINE[run])
    assert [item.n for item in found] == list(NUMBERS[run])
    assert all(item.low <= item.value <= item.high for item in found)


def test_chance_is_the_product_over_steps(analysis):
    by_case = {"LF": 1 / 2, "RF": 1 / 48, "RR": 1 / 1536}
    wanted = [
        sum(by_case.values()) / 3,
        1 / 2,
        1 / 2,
        1 / 32,
        1 / 12,
        (1 / 2 + 1 / 2 + 1 / 32 + 1 / 12) / 4,
        (6 / 2 + 4 / 2 + 2 / 8 + 2 / 4 + 4 / 4 + 4 / 3) / 22,
    ]
    found = [analysis.headline["alpha", measure.key].chance for measure in analysis.measures]
    assert found == pytest.approx(wanted)


def test_the_best_constant_answer_is_counted_over_the_same_steps(analysis):
    # Case success: always "No" has the two lesion-free cases of six, one of three for either target. Detection and
    # contour check: one side of two. Revision: the keys are the same twice. Attributes: one severity of two.
    wanted = [1 / 3, 1 / 2, 1 / 2, 1, 1 / 2, (1 / 2 + 1 / 2 + 1 + 1 / 2) / 4]
    # Steps: "Yes" four times of six, either verdict, 3a, 3c and 4a always, either severity.
    wanted.append((4 + 2 + 2 + 2 + 4 + 2) / 22)
    for run in ("alpha", "majority"):
        found = [analysis.headline[run, measure.key].constant for measure in analysis.measures]
        assert found == pytest.approx(wanted)
    # Where a case failed on the way, over what is left: RF2 is not counted, so edema has one of two.
    assert analysis.headline["beta", ("case", "", "mean over targets")].constant == pytest.approx(
        (1 / 3 + 1 / 2) / 2
    )


def test_a_constant_answer_goes_as_far_as_a_case_has_steps():
    # Two units end after the first step with the answer that the third begins with.
    frame = pl.DataFrame(
        {
            "unit": list("abcde"),
            "cluster": list("abcde"),
            "value": [0.0] * 5,
            "chance": [0.0] * 5,
            "question": ["all"] * 5,
            "pattern": [["1\tYes"], ["1\tYes"], ["1\tYes", "2\tleft"], ["1\tNo"], ["1\tYes", "2\tright"]],
        }
    )
    assert best_constant(weight_groups(frame)) == pytest.approx(3 / 5)
    # Each kind of question has an answer of its own.
    two = frame.with_columns(question=pl.Series(["x", "x", "x", "y", "y"]))
    assert best_constant(weight_groups(two)) == pytest.approx(3 / 5 + 1 / 5)
    # A key that cannot be said of another case leaves nothing to be told.
    unknown = frame.with_columns(pattern=pl.Series([[None], *frame["pattern"].to_list()[1:]]))
    assert best_constant(weight_groups(unknown)) is None
    assert best_constant(weight_groups(frame.head(0))) is None


def test_opposing_paths_give_sensitivity_and_specificity(analysis):
    for stage in ("1", "2"):
        says_so = value(analysis, "alpha", "stage", stage, "sensitivity")
        denies = value(analysis, "alpha", "stage", stage, "specificity")
        assert (says_so.value, denies.value, denies.n) == (1.0, 0.5, 2)
        assert says_so.n == (4 if stage == "1" else 2)


def test_intervals_equal_those_of_carina_stats(analysis):
    steps = analysis.group.outcomes["alpha"].steps
    wanted = mean_interval(steps["value"].to_numpy(), steps["cluster"].to_list(), replicates=REPLICATES)
    found = value(analysis, "alpha", "micro")
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))
    first = steps.filter(pl.col("stage") == 1)
    wanted = balanced_accuracy(
        first["value"].to_numpy(),
        (first["path"] == "LF").to_list(),
        first["cluster"].to_list(),
        replicates=REPLICATES,
    )
    found = value(analysis, "alpha", "stage", "1", "balanced accuracy")
    assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high))


def test_the_interval_of_a_perfect_score_narrows_with_more_patients(analysis):
    # Clopper and Pearson, three of three patients: the 0.025 quantile of Beta(3, 1).
    found = value(analysis, "alpha", "stage", "1", "sensitivity")
    assert (found.low, found.high) == pytest.approx((0.025 ** (1 / 3), 1.0))
    # None of two: 1 less the same for two.
    found = value(analysis, "beta", "stage", "3", "accuracy")
    assert (found.low, found.high) == pytest.approx((0.0, 1 - 0.025 ** (1 / 2)))


def test_reach_by_stage_counts_cases_right_so_far(analysis):
    curves = {curve.run: curve for curve in analysis.reach["stages"]}
    assert curves["alpha"].positions == ("1", "2", "3", "4")
    assert [item.value for item in curves["alpha"].estimates] == pytest.approx([5 / 6, 4 / 6, 3 / 6, 3 / 6])
    assert [item.value for item in curves["beta"].estimates] == pytest.approx([2 / 5, 1 / 5, 1 / 5, 1 / 5])
    assert {item.n for item in curves["beta"].estimates} == {5}
    # Chance: 1/2 after detection; then RR and RF halve, RR has 1/32 of that, and both 1/12.
    wanted = [1 / 2, (4 / 4 + 2 / 2) / 6, (2 / 128 + 2 / 4 + 2 / 2) / 6, (2 / 1536 + 2 / 48 + 2 / 2) / 6]
    assert [item.chance for item in curves["alpha"].estimates] == pytest.approx(wanted)


def test_reach_by_step_counts_cases_right_so_far(analysis):
    assert list(analysis.reach) == ["stages", "RR", "RF"]
    curves = {curve.run: curve for curve in analysis.reach["RR"]}
    assert curves["alpha"].positions == ("1", "2", "3a", "3c", "4a", "4c")
    assert [item.value for item in curves["alpha"].estimates] == [1, 1, 0.5, 0.5, 0.5, 0.5]
    assert [item.value for item in curves["beta"].estimates] == [0.5, 0, 0, 0, 0, 0]


def test_reach_by_target_counts_cases_right_so_far(analysis):
    assert list(analysis.target_reach) == ["consolidation", "edema"]
    told = {
        (target, curve.run): ([item.value for item in curve.estimates], {item.n for item in curve.estimates})
        for target, curves in analysis.target_reach.items()
        for curve in curves
    }
    assert told["consolidation", "alpha"] == ([1, 1, 1, 1], {3})
    assert told["edema", "alpha"] == (pytest.approx([2 / 3, 1 / 3, 0, 0]), {3})
    assert told["consolidation", "beta"] == (pytest.approx([1 / 3, 0, 0, 0]), {3})
    # RF2 failed on the way; RR2 breaks at once, LF2 is right and has no more stages.
    assert told["edema", "beta"] == (pytest.approx([1 / 2, 1 / 2, 1 / 2, 1 / 2]), {2})
    assert value(analysis, "alpha", "reach by stage, target edema", "2").value == pytest.approx(1 / 3)


def test_first_errors_are_counted_with_the_gain_of_correcting_one_stage(analysis):
    told = {(item.run, item.name): item.value for item in analysis.first_errors}
    assert [told["alpha", name] for name in ("1", "2", "3", "4", "none")] == pytest.approx(
        [1 / 6, 1 / 6, 1 / 6, 0, 1 / 2]
    )
    assert [told["beta", name] for name in ("1", "2", "3", "4", "none")] == pytest.approx(
        [3 / 5, 1 / 5, 0, 0, 1 / 5]
    )
    alone = {(item.run, item.name): item.value for item in analysis.single_errors}
    assert [alone["alpha", name] for name in ("1", "2", "3", "4")] == pytest.approx([1 / 6, 0, 1 / 6, 0])
    # LF1 is wrong at detection alone; RF1, which is wrong there too, is not.
    assert [alone["beta", name] for name in ("1", "2", "3", "4")] == pytest.approx([1 / 5, 0, 0, 0])


def test_accuracy_after_the_first_error_is_compared_between_histories(analysis):
    shares = {(item.run, item.name, item.metric): (item.value, item.n) for item in analysis.after_first_error}
    # LF2 has nothing after detection. RF2 stays wrong where it is not corrected; RR2 is right either way.
    assert shares == {
        ("alpha", "2", "right at all later stages, not corrected"): (0.0, 1),
        ("alpha-gold", "2", "right at all later stages, corrected"): (1.0, 1),
        ("alpha", "3", "right at all later stages, not corrected"): (1.0, 1),
        ("alpha-gold", "3", "right at all later stages, corrected"): (1.0, 1),
    }


def test_models_are_compared_on_the_steps_that_both_answered(analysis):
    micro = difference(analysis.differences, "alpha", "beta", "micro")
    assert (micro.value, micro.n) == (pytest.approx(10 / 19), 19)
    second = difference(analysis.differences, "alpha", "beta", "stage", "2")
    assert (second.value, second.n) == (pytest.approx(1 / 2), 3)


def test_p_values_come_from_sign_changes_by_patient(analysis):
    # What patients add to the difference in case success: A, C and D 1/6 each, E -1/4. Of the 16 sign patterns 10 have
    # a sum of at least 1/4.
    cases = difference(analysis.differences, "alpha", "beta", "case")
    assert cases.value == pytest.approx(1 / 4)
    assert cases.p == pytest.approx(10 / 16)
    # The family of a figure is all three pairs of own runs.
    family = sorted(item.p for item in analysis.differences if item.level == "case")
    assert len(family) == 3
    place = family.index(cases.p)
    assert cases.adjusted == pytest.approx(min(1.0, max((3 - at) * family[at] for at in range(place + 1))))


def test_no_model_is_significantly_best_with_five_patients(analysis):
    assert analysis.best == set()


def test_models_are_compared_with_the_blind_baseline(analysis):
    told = {item.run.id: item for item in analysis.blind}
    assert list(told) == ["alpha", "beta", "alpha-gold"]
    assert {item.baseline.id for item in told.values()} == {"majority"}
    micro = difference(told["alpha"].differences, "alpha", "majority", "micro")
    assert micro.value == pytest.approx(12 / 22)
    assert micro.low > 0
    # Beta has 7 of 19, majority 6 of the same 19 (all but RF2's later steps, at which it is wrong).
    micro = difference(told["beta"].differences, "beta", "majority", "micro")
    assert micro.value == pytest.approx(1 / 19)
    assert micro in told["beta"].not_above


@pytest.mark.parametrize(
    ("dimension", "label", "metric", "counted"),
    [
        ("target", "consolidation", "accuracy", (11, 11)),
        ("target", "edema", "accuracy", (7, 11)),
        ("target", "edema", "case success", (0, 3)),
        ("path", "RF", "accuracy", (6, 8)),
        ("severity", "less than 1/3", "accuracy", (10, 10)),
        ("severity", "2/3 or more", "accuracy", (7, 10)),
        ("lesion size", "below 4%", "accuracy", (6, 6)),
        ("lesion size", "4% to 6%", "accuracy", (5, 6)),
        ("lesion size", "6% or more", "accuracy", (6, 8)),
        ("conspicuity", "below 2", "accuracy", (6, 6)),
        ("conspicuity", "2 to 3", "accuracy", (4, 4)),
        ("conspicuity", "3 or more", "accuracy", (7, 10)),
        ("conspicuity", "3 or more", "case success", (0, 2)),
        ("view", "AP", "case success", (1, 3)),
    ],
)
def test_breakdown_by_a_dimension_counts_its_steps(analysis, dimension, label, metric, counted):
    found = value(analysis, "alpha", f"by {dimension}", label, metric)
    right, n = counted
    assert (found.value, found.n) == (pytest.approx(right / n), n)


def test_each_task_has_its_own_metrics(analysis):
    assert value(analysis, "alpha", "task", "distribution", "accuracy").value == 3 / 4
    # Beta's points: one right of two, the other refused.
    assert value(analysis, "beta", "task", "expansion", "overlap (Jaccard)").value == 0.5
    # Severity of beta: right for RR1, wrong for RR2 (high) and RF1 (low).
    assert value(analysis, "beta", "task", "severity", "accuracy").value == pytest.approx(1 / 3)
    assert value(analysis, "beta", "task", "severity", "mean recall over classes").value == pytest.approx(
        (1 / 2 + 0) / 2
    )
    assert value(analysis, "beta", "task", "severity", "best constant answer").value == pytest.approx(2 / 3)


def test_parse_statuses_and_states_are_counted(analysis):
    told = {(item.level, item.name): item for item in analysis.parsing if item.run == "beta"}
    assert told["status", "ok"].value == 18
    assert told["status", "refusal"].value == 1
    assert told["status", "not read"].value == pytest.approx(1 / 19)
    assert told["state", "incomplete"].value == 3
    assert told["state", "complete"].value == 5
    assert (told["form", "obeyed"].value, told["form", "obeyed"].n) == (0.0, 3)
    assert value(analysis, "alpha", "form", "obeyed").value == 1.0


def test_chosen_wrong_options_are_counted_by_kind(analysis):
    told = {
        (item.level, item.name): (item.value, item.n) for item in analysis.error_kinds if item.run == "beta"
    }
    # The refusal chose nothing; both revisions chose the first mask.
    assert told == {("kind, revision", "partial"): (1.0, 2)}
    told = {
        (item.level, item.name): (item.value, item.n) for item in analysis.error_kinds if item.run == "alpha"
    }
    assert told == {("kind, expansion", "inside"): (1.0, 1)}


def test_cost_sums_tokens_images_and_seconds(analysis):
    told = {(item.name, item.metric): item.value for item in analysis.cost if item.run == "beta"}
    assert told == {
        ("input tokens", "sum"): 1900,
        ("output tokens", "sum"): 190,
        ("dollars", "at list price"): pytest.approx((1900 * 1 + 190 * 2) / 1e6),
        ("image sends", "sum"): 38,
        ("seconds", "sum"): 9.5,
        ("seconds", "median of a step"): 0.5,
    }


def test_a_model_without_a_known_price_has_no_cost(analysis):
    assert not [item for item in analysis.cost if item.run == "alpha" and item.name == "dollars"]


def test_the_detectable_difference_follows_from_patients_and_accuracy(analysis):
    micro = analysis.detectable[-1]
    assert (micro.n, micro.patients) == (22, 5)
    assert micro.accuracy == pytest.approx(np.mean([18 / 22, 7 / 19, 6 / 22, 19 / 22]))
    assert 0.2 < micro.difference < 1


def test_many_groups_of_one_patient_each_still_have_an_interval(runs):
    # Hardly a draw of twelve patients holds all twelve.
    frame = pl.DataFrame(
        {
            "unit": [str(n) for n in range(12)],
            "cluster": [f"patient {n}" for n in range(12)],
            "target": [f"target {n}" for n in range(12)],
            "value": [1.0, 0.0] * 6,
            "chance": [0.5] * 12,
        }
    )
    found = estimate_share(
        read_run(runs[0]), weight_groups(frame, "target"), level="case", name="", metric="m"
    )
    assert found.value == pytest.approx(0.5)
    assert 0.1 < found.low < 0.4
    assert 0.6 < found.high < 0.9


def test_a_stage_of_a_single_path_has_no_balanced_accuracy(analysis, runs, keys):
    run = read_run(runs[0])
    steps = run.read_steps()
    part = derive_outcomes(steps.filter(pl.col("path") != "LF"), "percept", keys)
    told = {measure.key[:2]: measure.estimate(run, part) for measure in analysis.measures}
    assert told["stage", "1"].value is None
    # Nor does it count in the mean over stages.
    assert told["macro", ""].value == pytest.approx((3 / 4 + 1 / 2 + 3 / 4) / 3)


@settings(max_examples=25)
@given(shuffled=st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_no_estimate(shuffled, analysis, runs, keys):
    run = read_run(runs[2])
    steps = run.read_steps()
    order = list(range(steps.height))
    shuffled.shuffle(order)
    found = derive_outcomes(steps[order], "percept", keys)
    for measure in analysis.measures:
        assert measure.estimate(run, found) == analysis.headline["beta", measure.key]
    assert reach_by_stage(run, found) == analysis.reach["stages"][1]
