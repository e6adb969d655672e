"""Recognition against grounding, thresholds, calibration and groups of models, worked out by hand."""

from dataclasses import replace
from math import exp
from statistics import fmean

import msgspec
import polars as pl
import pytest

from carina.explanations.analysis import calibration as calibrating
from carina.explanations.analysis import recognition as recognising
from carina.explanations.analysis.calibration import calibrate
from carina.explanations.analysis.correlation import relate_findings, relate_models, same_probes
from carina.explanations.analysis.estimates import MapEstimate
from carina.explanations.analysis.maps_analysis import analyse_maps
from carina.explanations.analysis.maps_groups import MapsGroup, group_maps_runs
from carina.explanations.analysis.measures import OURS, pointing_measure
from carina.explanations.analysis.read import read_maps_runs
from carina.explanations.analysis.recognition import AUROC, separable_findings
from carina.explanations.scoring import MODEL
from carina.pages.map_comparison.notices import map_notices
from carina.pages.map_comparison.recognition_tables import left_out_sentence

TUNED = pl.col("variant").str.contains("tuned", literal=True)


def figure(level, name, metric, value, average=""):
    return MapEstimate(
        run="r", model="m", method="x", source=MODEL, level=level, name=name, metric=metric, value=value,
        average=average,
    )  # fmt: skip


def related(ground, x, y):
    names = [f"f{place}" for place in range(len(x))]
    measure = pointing_measure(ground.group.measures)
    return relate_findings(
        ground.group.runs[0],
        measure,
        [figure("recognition", name, AUROC, value) for name, value in zip(names, x, strict=True)],
        [figure("finding", name, measure.variant, value) for name, value in zip(names, y, strict=True)],
    )


def test_recognition_and_localisation_are_correlated_over_findings(ground):
    found = related(ground, [0.5, 0.6, 0.7, 0.8, 0.9], [0.1, 0.3, 0.2, 0.4, 0.5]).correlation
    # One pair of neighbours is exchanged: 1 - 6 * 2 / (5 * 24).
    assert found.value == pytest.approx(0.9)
    assert found.n == 5
    assert found.low < 0.9 <= found.high
    # Without a recognition of one, four are left: a correlation, and no interval.
    four = related(ground, [None, 0.6, 0.7, 0.8, 0.9], [0.1, 0.3, 0.2, 0.4, 0.5]).correlation
    assert four.value == pytest.approx(1 - 6 * 2 / (4 * 15))
    assert (four.low, four.high, four.n) == (None, None, 4)
    two = related(ground, [0.5, 0.6], [0.1, 0.3]).correlation
    assert (two.value, two.n) == (None, 2)


def test_findings_of_few_images_count_in_no_mean_and_no_correlation(ground, explained, probes):
    run = ground.group.runs[0]
    # Masses are there on four images and absent on three, nodules on three and three.
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(recognising, "LEAST", 3)
        assert separable_findings(run) == ["mass", "nodule"]
        patched.setattr(recognising, "LEAST", 4)
        assert separable_findings(run) == []
    assert separable_findings(run) == []  # five, on a page
    (group,) = group_maps_runs(read_maps_runs(explained), {probes.manifest.fingerprint: probes})
    found = analyse_maps(group)
    assert found.mean_auroc(found.group.runs[0]).value is None
    assert found.relations == ()
    # The findings themselves are told.
    mass = found.estimate(found.group.runs[0], AUROC, level="recognition", name="mass", average="")
    assert mass.value == pytest.approx(10 / 12)


def of_cases(run, name, keep):
    """A run as it would be on some of the probes."""
    kept = [case for case in run.own["case"] if keep(case)]
    return replace(
        run,
        id=name,
        suffix=name,
        scores=run.scores.filter(pl.col("case").is_in(kept)),
        scoring=msgspec.structs.replace(run.scoring, model=f"lab/{name}"),
    )


def test_models_are_related_on_the_probes_that_most_share(ground):
    run = ground.group.runs[0]
    whole = [of_cases(run, name, lambda _: True) for name in ("w", "x")]
    few = [of_cases(run, name, lambda case: "mass" in case) for name in ("a", "b", "c")]
    assert same_probes([*whole, *few]) == (few, whole)
    # Of as many runs, those on more probes.
    assert same_probes([*few[:2], *whole]) == (whole, few[:2])
    assert same_probes([]) == ([], [])


@pytest.mark.usefixtures("three_images_suffice")
def test_runs_on_other_probes_are_skipped_and_listed(ground):
    run = ground.group.runs[0]
    tuned = of_cases(run, "tuned", lambda _: True)
    others = [
        replace(one, summary=one.summary.with_columns(value=pl.when(TUNED).then(None).otherwise("value")))
        for one in (of_cases(run, name, lambda _: True) for name in ("x", "y", "z"))
    ]
    few = of_cases(run, "few", lambda case: "mass" in case)
    group = MapsGroup((tuned, *others, few), None, ground.group.measures)
    found = analyse_maps(group)
    over = [one for one in found.relations if one.run is None]
    # A tuned threshold is had by one alone, so areas are compared by Otsu's.
    assert [one.measure.title for one in over] == ["Pointing game", "IoU, Otsu"]
    assert [[place.grounding.run for place in one.points] for one in over] == [["tuned", "x", "y", "z"]] * 2
    assert group.overlap.title == "IoU, Otsu"
    assert (
        "Left out, because they rest on other probes: lab/few · similarity (few) (4 scored)"
        in left_out_sentence(found)
    )
    (warned,) = [one for one in map_notices(found, ()) if one.text.startswith("Not all runs")]
    assert warned.level == "warning"
    assert "lab/few · similarity (few) (4 of 7)" in warned.text


def test_methods_of_one_model_are_drawn_together(ground):
    run = ground.group.runs[0]
    measure = pointing_measure(ground.group.measures)
    points = [
        (run, figure("recognition", "", AUROC, x), figure("all", "", measure.variant, y))
        for x, y in ((0.5, 0.1), (0.6, 0.2), (0.7, 0.3))
    ]
    found = relate_models(measure, points).correlation
    # Three runs of one model say nothing of models.
    assert (found.value, found.n, found.clusters) == (None, 3, 1)
    others = [
        (replace(one, scoring=msgspec.structs.replace(run.scoring, model=f"lab/{place}")), *rest)
        for place, (one, *rest) in enumerate(points)
    ]
    assert relate_models(measure, others).correlation.value == pytest.approx(1.0)


def test_two_findings_and_two_models_are_no_correlation(ground):
    assert {one.correlation.value for one in ground.relations} == {None}
    assert [len(one.points) for one in ground.relations if one.run is None] == [2, 2]


def test_thresholds_equal_values_worked_out_by_hand(ground):
    good = next(one for one in ground.threshold_curves if one.source == MODEL)
    # Below 0.5 mass c overlaps by 1/3, from there on by 1/2.
    assert good.tuned == (0.0, pytest.approx((3 + 1 / 3 + 1 / 2) / 7))
    assert good.best == (pytest.approx(130 / 256, abs=1e-6), pytest.approx(4 / 7))
    assert good.good_share == 1
    told = {item.metric: item.value for item in ground.tables["thresholds"] if item.run == "good"}
    assert told["IoU at the tuned threshold"] == pytest.approx((3 + 1 / 3 + 1 / 2) / 7)


def test_bands_of_scores_equal_values_worked_out_by_hand(ground, monkeypatch):
    run = ground.group.runs[0]
    assert calibrate(run) is None  # thirteen scores are too few
    monkeypatch.setattr(calibrating, "LEAST", 3)
    found = calibrate(run)
    # 0.1 0.1 0.2 0.2 | 0.3 0.3 0.4 | 0.5 0.6 0.6 | 0.7 0.8 0.9
    assert [band.frequency.value for band in found.bands] == pytest.approx([1 / 4, 2 / 3, 1 / 3, 1])
    assert [band.mean for band in found.bands] == pytest.approx([0.15, 1 / 3, 17 / 30, 0.8])
    assert not found.is_probability
    assert found.error is None


def test_probabilities_are_distinguished_from_scores(ground, monkeypatch):
    monkeypatch.setattr(calibrating, "LEAST", 3)
    run = ground.group.runs[0]
    decoder = replace(run, scoring=msgspec.structs.replace(run.scoring, model="kad:tiny"))
    found = calibrate(decoder)
    assert found.is_probability
    groups = [([0.1, 0.1, 0.2, 0.2], 1), ([0.3, 0.3, 0.4], 2), ([0.5, 0.6, 0.6], 1), ([0.7, 0.8, 0.9], 3)]
    gaps = [
        len(scores) * abs(fmean(1 / (1 + exp(-score)) for score in scores) - there / len(scores))
        for scores, there in groups
    ]
    assert found.error == pytest.approx(sum(gaps) / 13)


def test_models_are_grouped_by_their_pretraining_data(ground, tiny):
    found = ground.pretraining
    assert [(group.tag, [run.id for run in group.runs]) for group in found.groups] == [
        ("chest x-ray", ["good"]),
        ("general", ["poor"]),
    ]
    hit = OURS[0].variant
    values = {item.name: item.value for item in found.estimates if item.metric == hit}
    assert values == {"chest x-ray": pytest.approx(fmean(tiny.HITS.values())), "general": 0}
    gap = next(item for item in found.differences if item.metric == hit)
    assert (gap.one, gap.other, gap.value) == (
        "chest x-ray",
        "general",
        pytest.approx(fmean(tiny.HITS.values())),
    )
