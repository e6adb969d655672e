"""Figures of explain runs against what can be worked out by hand."""

from dataclasses import replace
from statistics import fmean

import numpy as np
import polars as pl
import pytest

from carina.explanations.analysis.comparisons import RIVALS
from carina.explanations.analysis.estimates import limit_bounds, summary_estimates
from carina.explanations.analysis.measures import OURS, WHOLE_CELLS, select_measures
from carina.explanations.analysis.read import is_maps, read_maps_run, read_maps_runs
from carina.stats import Interval
from carina.store.errors import CarinaError

HIT, TUNED, OTSU = (one.variant for one in OURS[:3])


def test_means_over_images_and_over_findings(ground, tiny):
    good, poor = ground.group.runs
    for metric, by_hand in ((HIT, tiny.HITS), (OTSU, tiny.IOUS), (TUNED, tiny.IOUS)):
        assert ground.estimate(good, metric).value == pytest.approx(fmean(by_hand.values()))
        assert ground.estimate(good, metric).n == 7
        means = [
            fmean(v for (target, _), v in by_hand.items() if target == name) for name in ("mass", "nodule")
        ]
        assert ground.estimate(good, metric, average="macro").value == pytest.approx(fmean(means))
        for name, mean in zip(("mass", "nodule"), means, strict=True):
            assert ground.estimate(good, metric, level="finding", name=name).value == pytest.approx(mean)
        # A mass covers 8 of 64 pixels, a nodule one.
        assert ground.estimate(good, metric, level="size", name="> 5%").value == pytest.approx(means[0])
        assert ground.estimate(good, metric, level="size", name="1-5%").value == pytest.approx(means[1])
    assert ground.estimate(poor, HIT).value == 0


def test_means_are_broken_down_by_properties_of_the_lesions(ground, tiny):
    good, poor = ground.group.runs
    assert {one.title: one.labels for one in ground.dimensions} == {
        # Thirds of seven maps of patients a, a, b, b, c, d and e.
        "Conspicuity": ("below 98", "98 to 99", "99 or more"),
        "Pieces": ("one", "several"),
        "Side": ("right", "left"),
    }
    parts = {
        ("conspicuity", "below 98"): lambda _, patient: patient == "a",
        ("conspicuity", "98 to 99"): lambda _, patient: patient == "b",
        ("conspicuity", "99 or more"): lambda _, patient: patient in "cde",
        ("pieces", "one"): lambda target, _: target == "mass",
        ("pieces", "several"): lambda target, _: target == "nodule",
        ("side", "right"): lambda _, patient: patient in "ab",
        ("side", "left"): lambda _, patient: patient in "cde",
    }
    for (level, name), belongs in parts.items():
        for metric, by_hand in ((HIT, tiny.HITS), (OTSU, tiny.IOUS)):
            values = [value for about, value in by_hand.items() if belongs(*about)]
            found = ground.estimate(good, metric, level=level, name=name)
            assert (found.value, found.n) == (pytest.approx(fmean(values)), len(values)), (level, name)
        assert ground.estimate(poor, HIT, level=level, name=name).value == 0
        assert ground.best_control(good, HIT, level=level, name=name) is not None
        assert ground.whole_cells(good, level=level, name=name) == 1


def test_few_usable_draws_give_no_interval(explained):
    run = read_maps_run(explained[0])
    few = replace(run, summary=run.summary.with_columns(replicates=pl.lit(99)))
    for told, sure in ((summary_estimates(run, [HIT]), True), (summary_estimates(few, [HIT]), False)):
        (macro,) = [one for one in told if (one.source, one.level, one.average) == ("model", "all", "macro")]
        assert (macro.low is not None) is sure
    assert next(one for one in summary_estimates(few, [HIT]) if one.average == "micro").low is not None


def test_a_summary_of_findings_alone_gets_their_mean(explained):
    run = read_maps_run(explained[0])
    alone = replace(run, summary=run.summary.filter(pl.col("level") == "finding"))
    (mean,) = [one for one in summary_estimates(alone, [HIT]) if one.level == "all" and one.source == "model"]
    # Three masses of four, one nodule and a half of three.
    assert mean.value == pytest.approx(fmean([3 / 4, 1.5 / 3]))
    assert (mean.average, mean.low, mean.high, mean.n, mean.patients) == ("macro", None, None, 7, 5)


def test_figures_of_fewer_than_five_patients_have_no_interval(ground):
    good, poor = ground.group.runs
    assert ground.estimate(good, HIT).low is not None  # five
    for run in (good, poor):
        for name in ("mass", "nodule"):  # four and three, whether all peaks miss or some
            found = ground.estimate(run, HIT, level="finding", name=name)
            assert (found.low, found.high) == (None, None)
    every = [*ground.estimates, *(item for items in ground.tables.values() for item in items)]
    assert not [one for one in every if 0 < one.patients < 5 and one.low is not None]


def test_peaks_that_all_miss_are_as_sure_as_their_patients_are_many(ground):
    # Five patients: 1 - 0.025 ** (1 / 5) is the upper bound of none in five.
    poor = ground.estimate(ground.group.runs[1], HIT)
    assert (poor.value, poor.low, poor.high) == (0, 0, pytest.approx(1 - 0.025**0.2))


def test_the_interval_of_a_perfect_score_narrows_with_more_patients():
    right = Interval(1.0, 1.0, 1.0, 9, 6)
    assert limit_bounds(right, is_counted=True).low == pytest.approx(0.025 ** (1 / 6))
    assert limit_bounds(right) == right  # not counted: an area, say
    assert limit_bounds(Interval(1.0, 1.0, 1.0, 9, 4), is_counted=True).low is None
    assert limit_bounds(Interval(0.5, 0.2, 0.8, 9, 5), is_counted=True).low == 0.2


def test_the_best_score_of_whole_cells_is_given_for_each_run(ground):
    good = ground.group.runs[0]
    # Cells are pixels here: any truth can be reached.
    assert ground.whole_cells(good) == 1
    assert ground.whole_cells(good, level="finding", name="nodule") == 1
    assert ground.estimate(good, WHOLE_CELLS.variant, source="control/centre").value == 1


def test_recognition_equals_values_worked_out_by_hand(ground):
    good, poor = ground.group.runs
    # Of 12 pairs of a mass and none, 10 in order; of 9 of a nodule and none 6 and a tie.
    by_finding = {"mass": 10 / 12, "nodule": 6.5 / 9}
    for name, area in by_finding.items():
        found = ground.estimate(good, "recognition AUROC", level="recognition", name=name, average="")
        assert found.value == pytest.approx(area)
    assert ground.mean_auroc(good).value == pytest.approx(fmean(by_finding.values()))
    assert ground.mean_auroc(good).n == 13
    assert ground.mean_auroc(good).patients == 7
    assert ground.mean_auroc(poor).value == pytest.approx(1 - fmean(by_finding.values()))
    low, high = ground.mean_auroc(good).low, ground.mean_auroc(good).high
    assert 0 <= low < fmean(by_finding.values()) < high <= 1


def test_the_interval_of_the_mean_auroc_is_that_of_drawn_patients(ground):
    """Against a plain loop: patients drawn with replacement, all rows of each, and the areas counted pair by pair."""
    rows = ground.group.runs[0].recognition_scores.to_dicts()
    chance = np.random.default_rng(5)
    patients = sorted({row["patient"] for row in rows})
    drawn = []
    for _ in range(3000):
        times = dict.fromkeys(patients, 0)
        for name in chance.choice(patients, len(patients)):
            times[str(name)] += 1
        areas = []
        for finding in ("mass", "nodule"):
            own = [row for row in rows if row["finding"] == finding for _ in range(times[row["patient"]])]
            there = [row["score"] for row in own if row["present"]]
            absent = [row["score"] for row in own if not row["present"]]
            if there and absent:
                areas.append(fmean((a > b) + (a == b) / 2 for a in there for b in absent))
        if len(areas) == 2:
            drawn.append(fmean(areas))
    found = ground.mean_auroc(ground.group.runs[0])
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert found.low == pytest.approx(low, abs=0.04)
    assert found.high == pytest.approx(high, abs=0.04)


def test_models_are_compared_with_controls_and_with_each_other(ground, tiny):
    (first, second) = ground.controls
    assert {item.other for item in first.differences} == set(RIVALS)
    centre = next(item for item in first.differences if item.other == "control/centre" and item.metric == HIT)
    # The four middle pixels tie for the highest; two of them are in the truth of a mass, none in that of a nodule.
    assert centre.value == pytest.approx(fmean(tiny.HITS.values()) - 4 * 0.5 / 7)
    # Poor's pixel is in no truth.
    assert all(item.value <= 0 for item in second.differences if item.metric == HIT)
    assert second.not_above
    gap = next(item for item in ground.differences if item.metric == HIT)
    assert (gap.one, gap.other, gap.n) == ("good", "poor", 7)
    assert gap.value == pytest.approx(fmean(tiny.HITS.values()))


def test_measures_of_other_profiles_have_the_title_of_their_metric():
    told = select_measures(
        [("hit.nearest_224.any_max.positives.per_image", "a"), ("cnr.bilinear_full.visible_only", "b")],
        known=["hit.nearest_224.any_max.positives.per_image"],
    )
    assert [(one.title, one.definition) for one in told] == [("Pointing game", "a")]


def test_a_maps_run_is_recognised_and_refused_when_given_twice(explained, probes):
    assert is_maps(explained[0])
    assert not is_maps(probes.directory)
    with pytest.raises(CarinaError, match="more than once"):
        read_maps_runs([explained[0], explained[0]])


def test_runs_with_the_same_label_get_a_suffix(explained, probes, tiny, tmp_path):
    again = tiny.explained(tmp_path / "again", probes, controls=())
    titles = [run.title for run in read_maps_runs([explained[0], again])]
    assert titles == ["lab/good · similarity (good)", "lab/good · similarity (again)"]
    (again / "summary.parquet").unlink()
    with pytest.raises(CarinaError, match=r"summary.parquet: missing"):
        read_maps_run(again)
    (again / "summary.parquet").write_bytes(b"nothing")
    with pytest.raises(CarinaError, match="not a Parquet file"):
        read_maps_run(again)
