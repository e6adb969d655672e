"""Scores of a run's maps beside the controls, on disk and on the command line."""

import dataclasses
import json

import msgspec
import numpy as np
import polars as pl
import pytest
from tests.explanations.test_map_parts import bench, box  # noqa: F401 - a fixture
from typer.testing import CliRunner

from carina.cases import (
    Box,
    Case,
    CaseImage,
    Key,
    Provenance,
    Step,
    open_benchmark,
    write_benchmark,
)
from carina.cli import app
from carina.explanations import scoring
from carina.explanations.map_parts import MapOptions, make_maps
from carina.explanations.maps import LocalisationMap, open_maps, pack_grid, store_frame
from carina.explanations.recognition import best_f1_threshold, recognition
from carina.explanations.scoring import read_scoring, score_map_run
from carina.ground.facts import GroundCaseFacts
from carina.models.frame import Frame
from carina.store.errors import CarinaError
from carina.studies import Region

HIT = "hit.bilinear_full.full_image.expected.positives.per_image"
TUNED = "iou.bilinear_full.full_image.tuned_iou_minmax256.positives.per_image"


@pytest.fixture
def split_bench(bench, tmp_path):  # noqa: F811
    """The same probes, every third patient of them in a split of its own."""
    cases = [
        msgspec.structs.replace(case, split="val" if int(case.patient[1:]) % 3 == 0 else "test")
        for case in bench
    ]
    write_benchmark(tmp_path / "bench", cases, Provenance(command="test", image_root=str(bench.directory)))
    return open_benchmark(tmp_path / "bench")


def test_a_run_is_scored_beside_every_control(split_bench, tmp_path):
    make_maps(split_bench, "builtin/asymmetry", tmp_path / "run", MapOptions())
    found = score_map_run(split_bench, open_maps(tmp_path / "run"), tune_on="val", replicates=50)
    assert read_scoring(tmp_path / "run") == found
    rows = pl.read_parquet(tmp_path / "run" / "scores.parquet")
    # Twelve probes of findings that are there, four of them of patients in the tuning split.
    there = [case for case in split_bench if case.path == "present" and case.split == "test"]
    assert found.scored == len(there) == 8
    assert set(rows["source"]) == {
        "model",
        *(f"control/{name}" for name in ("uniform", "centre", "lungs", "mean-region", "random", "oracle")),
    }
    assert set(rows.filter(source="model")["case"]) == {case.id for case in there}
    means = {name[0]: of[HIT].mean() for name, of in rows.group_by("source")}
    # Squares of 14 x 14 on 56 x 84, at cells of 4 x 6 pixels: the best covered cell lies inside each of them.
    assert means["control/oracle"] == 1
    # A uniform map points everywhere alike.
    assert means["control/uniform"] == pytest.approx(14 * 14 / (56 * 84))
    # Bright squares beside the middle on an even image: nothing is as asymmetric.
    assert means["model"] > 0.6
    assert set(found.thresholds) == set(rows["source"])
    assert TUNED in found.variants
    assert {curve.finding for curve in found.sensitivity} == {"", "mass", "nodule"}


def test_without_a_split_to_tune_on_tuned_variants_are_left_out(split_bench, tmp_path):
    make_maps(split_bench, "control/lungs", tmp_path / "run", MapOptions())
    maps = open_maps(tmp_path / "run")
    found = score_map_run(split_bench, maps, controls=(), replicates=20)
    assert TUNED not in found.variants
    assert (found.tuned_on, found.thresholds, found.scored) == (None, {}, 12)
    # A control has no score, so it recognises nothing.
    assert found.recognition == ()
    with pytest.raises(CarinaError, match="split 'train' has no present finding"):
        score_map_run(split_bench, maps, tune_on="train")


def test_maps_of_another_benchmark_are_refused(bench, split_bench, tmp_path):  # noqa: F811
    make_maps(bench, "control/centre", tmp_path / "run", MapOptions())
    with pytest.raises(CarinaError, match="expected maps of the benchmark"):
        score_map_run(split_bench, open_maps(tmp_path / "run"))


def test_any_number_of_workers_gives_the_same_files(split_bench, tmp_path):
    for workers in (1, 2):
        out = tmp_path / str(workers)
        make_maps(split_bench, "builtin/asymmetry", out, MapOptions())
        score_map_run(
            split_bench, open_maps(out), tune_on="val", controls=("lungs",), replicates=20, workers=workers
        )
    for name in ("scores.parquet", "summary.parquet", "scoring.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes(), name


def test_a_finished_run_is_scored_again_only_if_something_changed(split_bench, tmp_path, monkeypatch):
    out = tmp_path / "run"
    make_maps(split_bench, "builtin/asymmetry", out, MapOptions())
    told = []

    def again(**options):
        given = {"controls": ("lungs",), "replicates": 20, "progress": told.append, **options}
        return score_map_run(split_bench, open_maps(out), **given)

    first = again()
    assert told == [1, 1]
    files = {
        name: (out / name).read_bytes() for name in ("scores.parquet", "summary.parquet", "scoring.json")
    }
    told.clear()
    with monkeypatch.context() as here:
        here.setattr(scoring, "in_order", None)  # nothing is worked out
        assert again() == first
    assert told == [2]
    assert again(seed=1) != first
    assert again(tune_on="val").tuned_on == "val"
    assert again() == first
    for damaged in files:
        (out / damaged).write_bytes(b"")
        assert again() == first
        assert {name: (out / name).read_bytes() for name in files} == files


def test_patients_on_whose_maps_thresholds_were_tuned_are_not_scored(split_bench, tmp_path):
    """One patient of the tuning split has a probe in the other, too."""
    first = next(case for case in split_bench if case.split == "test" and case.path == "present")
    tuner = next(case.patient for case in split_bench if case.split == "val" and case.path == "present")
    cases = [
        msgspec.structs.replace(case, patient=tuner) if case.id == first.id else case for case in split_bench
    ]
    root = split_bench.manifest.image_root
    write_benchmark(tmp_path / "shared", cases, Provenance(command="test", image_root=root))
    probes = open_benchmark(tmp_path / "shared")
    make_maps(probes, "builtin/asymmetry", tmp_path / "run", MapOptions())
    found = score_map_run(probes, open_maps(tmp_path / "run"), tune_on="val", controls=(), replicates=20)
    assert (found.scored, found.tuned, found.shared) == (7, 4, 1)
    assert first.id not in pl.read_parquet(tmp_path / "run" / "scores.parquet")["case"].to_list()


def test_boxes_of_the_truth_are_the_annotated_boxes():
    """Not those of the connected pieces: two boxes that touch are two, as chat models are asked for."""
    corners = ((100.0, 250.0, 300.0, 500.0), (300.0, 250.0, 400.0, 1000.0))
    step = Step(
        id="2", stage=2, task="localisation", format="boxes", question="Where?",
        key=Key(boxes=tuple(Box(image="i", xyxy=one, frame="thousand") for one in corners)),
    )  # fmt: skip
    case = Case(
        id="c", protocol="ground", study="s", patient=None, source="made",
        images=(CaseImage(key="i", width=333, height=200),), steps=(step,),
    )  # fmt: skip
    assert scoring._boxes(case) == ((33, 50, 67, 50), (100, 50, 33, 150))


def test_hit_box_uses_the_annotated_boxes(bench, tmp_path):  # noqa: F811
    """A map of the truth hits the box of its own; where another place was boxed, it misses that."""
    boxed = {"g00": (0.0, 0.0, 1000.0, 1000.0), "g01": (990.0, 990.0, 1000.0, 1000.0)}
    cases = [
        msgspec.structs.replace(
            case,
            steps=tuple(
                msgspec.structs.replace(
                    step, key=Key(boxes=(Box(image="i", xyxy=boxed[case.id], frame="thousand"),))
                )
                for step in case.steps[-1:]
            ),
        )
        for case in bench
        if case.id in boxed
    ]
    write_benchmark(tmp_path / "bench", cases, Provenance(command="test", image_root=str(bench.directory)))
    probes = open_benchmark(tmp_path / "bench")
    make_maps(probes, "control/oracle", tmp_path / "run", MapOptions())
    score_map_run(probes, open_maps(tmp_path / "run"), profile_name="radzero", controls=(), replicates=20)
    rows = pl.read_parquet(tmp_path / "run" / "scores.parquet")
    hits = "hit_box.bilinear_full.full_image.first_argmax.positives.per_image"
    assert dict(zip(rows["case"], rows[hits], strict=True)) == {"g00": 1.0, "g01": 0.0}


@pytest.mark.parametrize("profile", ["chexlocalize", "quantus", "medklip"])
def test_the_command_prints_every_variant_of_a_published_profile(split_bench, tmp_path, profile):
    out = tmp_path / "run"
    result = CliRunner().invoke(
        app,
        ["explain", str(split_bench.directory), "-m", "builtin/asymmetry", "-o", str(out), "--tune-on", "val",
         "--profile", profile, "--workers", "1"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    lines = {line.split("\t")[0]: line.split("\t")[1:] for line in result.stdout.splitlines()}
    for variant in read_scoring(out).variants:
        assert float(lines[variant][0].partition(" ")[0]) >= 0, variant
    assert "thresholds tuned on 4 maps of split val" in result.output


def test_profiles_that_count_absent_findings_get_their_maps(split_bench, tmp_path):
    """cheXlocalize's any_mask has 0 wherever something is predicted of what is not there; tp_only leaves it out."""
    out = tmp_path / "run"
    make_maps(split_bench, "control/centre", out, MapOptions())
    maps = open_maps(out)
    with_absent = score_map_run(split_bench, maps, profile_name="chexlocalize", tune_on="val", controls=())
    rows = pl.read_parquet(out / "scores.parquet")
    there = {case.id for case in split_bench if case.path == "present"}
    absent = rows.filter(~pl.col("case").is_in(sorted(there)))
    assert (with_absent.scored, len(rows), len(absent)) == (8, 16, 8)
    otsu = "iou.torch_full.full_image.otsu_filled"
    assert absent[f"{otsu}.any_mask.per_image"].to_list() == [0.0] * 8
    assert absent[f"{otsu}.tp_only.per_image"].null_count() == 8
    # A control has no scores; of a model that has some, cut-offs are tuned too.
    gated = f"{otsu}.gated.per_image"
    assert gated not in with_absent.variants
    make_maps(split_bench, "builtin/asymmetry", tmp_path / "model", MapOptions())
    found = score_map_run(
        split_bench, open_maps(tmp_path / "model"), profile_name="chexlocalize", tune_on="val", controls=()
    )
    assert gated in found.variants
    score_map_run(split_bench, maps, profile_name="radzero", controls=(), replicates=20)
    rows = pl.read_parquet(out / "scores.parquet")
    quiet = rows.filter(~pl.col("case").is_in(sorted(there)))[
        "image_specificity.bilinear_full.full_image.oracle_set_dice_sigmoid101.per_image"
    ]
    assert (len(quiet), quiet.null_count()) == (12, 0)
    score_map_run(split_bench, maps, controls=(), replicates=20)
    assert set(pl.read_parquet(out / "scores.parquet")["case"]) == there


def test_an_unknown_split_is_refused_before_maps_are_made(split_bench, tmp_path):
    command = ["explain", str(split_bench.directory), "-m", "builtin/asymmetry", "-o", str(tmp_path / "run")]
    result = CliRunner().invoke(app, [*command, "--tune-on", "vall"])
    assert result.exit_code == 2
    assert "split 'vall' has no present finding" in " ".join(result.output.split())
    assert "the splits are test, val" in " ".join(result.output.split())
    assert not (tmp_path / "run").exists()


# ---- recognition ----------------------------------------------------------------------------------------------------


def scored_map(number, score, *, present, against=None, target="mass"):
    return LocalisationMap(
        id=f"c{number}", study="s", patient=f"p{number}", split=None, target=target, present=present,
        positive=("mass",), placed=store_frame(Frame.stretched(4, 4, side=2)), rows=1, columns=1,
        **pack_grid(np.zeros((1, 1), np.float32))._asdict(), score=score, against=against,
    )  # fmt: skip


def test_recognition_equals_values_worked_out_by_hand():
    rows = [
        scored_map(n, score, present=there)
        for n, (score, there) in enumerate(
            [(0.9, True), (0.8, False), (0.6, True), (0.4, False), (0.2, False)]
        )
    ]
    tuning = [scored_map(9, 0.7, present=True), scored_map(8, 0.5, present=False)]
    (found,) = recognition(rows, tuning)
    # Of six pairs the positive is higher in five.
    assert found.auroc.value == pytest.approx(5 / 6)
    assert (found.present, found.absent, found.threshold) == (2, 3, 0.7)
    # From 0.7: one of two positives, one of three negatives is called.
    assert (found.sensitivity, found.specificity) == (1 / 2, 2 / 3)
    assert found.f1 == pytest.approx(2 * 1 / (2 + 2))
    assert found.accuracy.value == pytest.approx(3 / 5)
    (without,) = recognition(rows, [])
    assert (without.threshold, without.accuracy, without.f1) == (None, None, None)


def test_the_score_of_negative_prompts_is_subtracted():
    rows = [scored_map(1, 0.5, present=True, against=0.4), scored_map(2, 0.6, present=False, against=0.9)]
    assert recognition(rows, [])[0].auroc.value == 1


def test_the_threshold_with_the_best_f1():
    scores, there = np.array([0.9, 0.8, 0.8, 0.3]), np.array([True, True, False, False])
    # From 0.9: 2/3; from 0.8: 4/5 with the tie; from 0.3: 4/6.
    assert best_f1_threshold(scores, there) == 0.8
    assert best_f1_threshold(scores, ~there & False) is None


# ---- the command ----------------------------------------------------------------------------------------------------


def test_the_command_prints_scores_with_intervals(split_bench, tmp_path):
    out = str(tmp_path / "run")
    command = [
        "explain",
        str(split_bench.directory),
        "--model",
        "builtin/asymmetry",
        "-o",
        out,
        "--workers",
        "1",
    ]
    said = CliRunner().invoke(app, [*command, "--tune-on", "val", "--limit", "12"])
    assert said.exit_code == 0, said.output
    assert "pointing game" in said.stdout
    assert "control/mean-region" in said.stdout
    assert "recognition" in said.stdout
    said = CliRunner().invoke(app, [*command, "--tune-on", "val", "--limit", "12", "--json", "--no-controls"])
    assert json.loads(said.stdout)["scoring"]["method"] == "asymmetry"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--profile", "xbench"], "unknown. Known: carina, chexlocalize"),
        (["--option", "sigma"], "'sigma' is not NAME=VALUE"),
        (["--engine", "dask"], "'--engine'"),
        (["--address", "x:1"], "engine"),
    ],
)
def test_wrong_usage_is_refused_and_writes_nothing(split_bench, tmp_path, more, said):
    out = tmp_path / "run"
    command = ["explain", str(split_bench.directory), "--model", "control/centre", "-o", str(out), *more]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 2
    assert said in result.output
    assert not out.exists()


def test_a_benchmark_without_probes_is_refused(tmp_path, split_bench):
    cases = [msgspec.structs.replace(case, protocol="percept") for case in split_bench]
    write_benchmark(tmp_path / "other", cases, Provenance(command="test"))
    result = CliRunner().invoke(
        app, ["explain", str(tmp_path / "other"), "--model", "control/centre", "-o", str(tmp_path / "run")]
    )
    assert result.exit_code == 2
    assert "expected probes, found none" in result.output


def test_a_large_image_is_reduced_before_its_maps_are_scored():
    size = (3000, 2000)
    region = Region.from_box(600, 900, 300, 600, height=size[0], width=size[1])
    truth = scoring._Truth("mass", "p1", region, ((600.0, 900.0, 300.0, 600.0),), region, size)
    reduced = scoring._reduce_truth(truth, 1000)
    # A third of everything: 2000 / 3 is 667 columns.
    assert reduced.size == (1000, 667)
    assert reduced.region.bbox == (200, 300, 100, 200)
    assert reduced.lungs == reduced.region
    assert reduced.boxes[0] == pytest.approx((600 * 667 / 2000, 300, 300 * 667 / 2000, 200))


def test_a_lesion_that_would_lose_all_its_pixels_is_scored_at_full_size():
    # Pixel 0 of 3000 is under the centre of no pixel of 1000: those are at 1, 4, 7, ...
    region = Region.from_box(0, 0, 1, 1, height=3000, width=3000)
    truth = scoring._Truth("mass", "p1", region, (), None, (3000, 3000))
    assert scoring._reduce_truth(truth, 1000) is truth


def _has_lungs(case):
    return "lungs" in GroundCaseFacts.of(case).roles.values()


def _without_lungs(probes, directory, *, keep=0):
    """The same probes, only the first `keep` of them with lungs."""
    cases = []
    for number, case in enumerate(probes):
        facts = GroundCaseFacts.of(case)
        roles = {name: role for name, role in facts.roles.items() if role != "lungs" or number < keep}
        regions = tuple(region for region in case.regions if region.name in roles)
        facts = dataclasses.replace(facts, roles=roles).rows()
        cases.append(msgspec.structs.replace(case, facts=facts, regions=regions))
    write_benchmark(directory, cases, Provenance(command="test", image_root=str(probes.directory)))
    return open_benchmark(directory)


def test_the_lungs_are_no_control_where_no_image_has_lungs(bench, tmp_path):  # noqa: F811
    bare = _without_lungs(bench, tmp_path / "bare")
    make_maps(bare, "builtin/asymmetry", tmp_path / "run", MapOptions())
    found = score_map_run(bare, open_maps(tmp_path / "run"), replicates=50)
    assert "control/lungs" not in set(pl.read_parquet(tmp_path / "run" / "scores.parquet")["source"])
    assert found.notes == ("control/lungs is left out: no lungs in this set",)


def test_maps_of_the_lungs_that_are_uniform_are_counted(bench, tmp_path):  # noqa: F811
    present = sum(case.path == "present" for case in bench)
    some = _without_lungs(bench, tmp_path / "some", keep=len(bench) // 2)
    known = sum(case.path == "present" and _has_lungs(case) for case in some)
    make_maps(some, "builtin/asymmetry", tmp_path / "run", MapOptions())
    (note,) = score_map_run(some, open_maps(tmp_path / "run"), replicates=50).notes
    assert note.startswith(f"control/lungs: uniform on {present - known} maps of {present}")
