"""What only a set has: thresholds, pooled figures, summaries."""

import hashlib
import math
from pathlib import Path

import numpy as np
import pytest

from carina.maps import (
    Row,
    Scorer,
    Thresholds,
    human_gap,
    parse_variant,
    read_thresholds,
    summarise,
    tune_cutoff,
    write_thresholds,
)
from carina.models.frame import Frame
from carina.store.errors import CarinaError

FRAME = Frame.stretched(4, 4, side=4)
NAN = math.nan


def ladder(true: int) -> tuple[np.ndarray, np.ndarray]:
    """Values 0 to 15 of 15, the highest `true` of them true: the best threshold lies just below them."""
    values = np.arange(16, dtype=np.float32).reshape(4, 4) / 15
    return values, values > (15 - true) / 15


def filled(scorer: Scorer, pairs: list[tuple[str, str, int]]) -> Scorer:
    for name, finding, true in pairs:
        values, truth = ladder(true)
        scorer.add(name, finding, values, truth, FRAME, patient=name[0])
    return scorer


IOU = "iou.bilinear_full.full_image.tuned_iou_minmax256.positives.per_image"


def test_thresholds_are_tuned_by_finding_and_frozen(tmp_path: Path) -> None:
    names = [IOU, "dice.tuned_iou_minmax256", "recall.tuned_iou_minmax256.pooled"]
    tuned = filled(
        Scorer(names, split="val"), [("v1", "mass", 4), ("v2", "edema", 8), ("v3", "edema", 8)]
    ).tune()
    # The first threshold that is not below 11/15 and 7/15: 188/256 = 0.734 and 120/256 = 0.469.
    digests = sorted(hashlib.sha256(name).hexdigest()[:16] for name in (b"v1", b"v2", b"v3"))
    chosen = {"": 120 / 256, "edema": 120 / 256, "mass": 188 / 256}
    assert tuned == Thresholds("val", {IOU: chosen}, tuple(digests))
    write_thresholds(tmp_path / "t.json", tuned)
    assert read_thresholds(tmp_path / "t.json") == tuned

    scorer = filled(
        Scorer(names, split="test", tuned=tuned), [("a", "mass", 2), ("b", "edema", 8), ("c", "new", 8)]
    )
    rows = [list(row.values.values()) for row in scorer.rows()]
    assert rows == [pytest.approx([2 / 4, 4 / 6]), pytest.approx([1, 1]), pytest.approx([1, 1])]
    pooled = [
        cell for cell in scorer.summary(replicates=50) if "pooled" in cell.variant and cell.level == "all"
    ]
    assert [(cell.value, cell.n, cell.patients) for cell in pooled] == [(1.0, 3, 3)]


def test_thresholds_of_the_scored_split_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CarinaError, match="split 'test': thresholds were tuned on the split that is scored"):
        Scorer([IOU], split="test", tuned=Thresholds("test", {}))
    with pytest.raises(CarinaError, match="split: thresholds were tuned on split 'val'"):
        Scorer([IOU], tuned=Thresholds("val", {}))
    with pytest.raises(CarinaError, match="need a name"):
        filled(Scorer([IOU]), [("a", "mass", 2)]).tune()
    with pytest.raises(CarinaError, match="no maps to tune"):
        Scorer([IOU], split="val").tune()
    with pytest.raises(CarinaError, match="none has thresholds to tune"):
        Scorer(["auroc"], split="val").tune()
    with pytest.raises(CarinaError, match="no threshold was tuned for it"):
        filled(Scorer([IOU], split="test", tuned=Thresholds("val", {})), [("a", "mass", 2)])
    bad = tmp_path / "bad.json"
    for text, message in (
        ("{", "not tuned thresholds"),
        ('{"split":"v","chosen":{"x":{}}}', "x: lacks the threshold of all"),
        ('{"split":"v","chosen":{"x":{"":1}}}', "lacks the digests of the images"),
    ):
        bad.write_text(text)
        with pytest.raises(CarinaError, match=message):
            read_thresholds(bad)
    with pytest.raises(CarinaError, match=r"none\.json: no such file"):
        read_thresholds(tmp_path / "none.json")


PUBLISHED = "threshold,task\n0.4,Airspace Opacity\n0.2,Cardiomegaly\n0.7,Lung Lesion\n"
"""A table as cheXlocalize writes it; in its other tables, Airspace Opacity is called Lung Opacity."""


def test_thresholds_of_chexlocalize_are_read_from_its_table(tmp_path: Path) -> None:
    table = tmp_path / "tuning_results.csv"
    table.write_text(PUBLISHED)
    tuned = read_thresholds(table)
    assert (tuned.split, tuned.images) == ("tuning_results.csv", ())
    name = "iou.torch_full.full_image.tuned_iou_minmax7.tp_only.per_image"
    assert tuned.chosen == {name: {"Lung Opacity": 0.4, "Cardiomegaly": 0.2, "Lung Lesion": 0.7}}
    # Above 0.7 lie 11/15 and more: 5 pixels, of which 4 are true; above 0.2 lie 4/15 and more: 12, of which 6 are true.
    scorer = filled(
        Scorer("chexlocalize", split="test", tuned=tuned), [("a", "Lung Lesion", 4), ("b", "Cardiomegaly", 6)]
    )
    assert [row.values[name] for row in scorer.rows()] == pytest.approx([4 / 5, 6 / 12])
    with pytest.raises(
        CarinaError, match=r"tuning_results\.csv: no threshold for 'Edema'; it has Cardiomegaly"
    ):
        filled(scorer, [("c", "Edema", 2)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected the columns threshold and task"),
        ("task,value\nEdema,0.4\n", "expected the columns threshold and task"),
        ("threshold,task\n0.45,Edema\n", "row 2, threshold: expected one of 0.2, 0.3, .*, 0.8, found '0.45'"),
        ("threshold,task\nnan,Edema\n", "row 2, threshold: .* found 'nan'"),
        ("threshold,task\n0.4,Edema\n0.4,Edema\n", "row 3, task: expected another finding in each row"),
        ("threshold,task\n0.4\n", "row 2, task: .* found ''"),
    ],
)
def test_a_table_of_thresholds_that_is_not_chexlocalizes_is_refused(
    tmp_path: Path, text: str, message: str
) -> None:
    table = tmp_path / "table.csv"
    table.write_text(text)
    with pytest.raises(CarinaError, match=message):
        read_thresholds(table)


def test_an_image_that_thresholds_were_tuned_on_is_refused_whatever_its_split_is_called() -> None:
    tuned = filled(Scorer([IOU], split="val"), [("a", "mass", 2), ("b", "mass", 4)]).tune()
    scorer = filled(Scorer([IOU], split="test", tuned=tuned), [("c", "mass", 2)])
    with pytest.raises(CarinaError, match="image 'b': thresholds or cut-offs were tuned on this image"):
        filled(scorer, [("b", "edema", 2)])  # another finding of it does not make it another image
    with pytest.raises(CarinaError, match="image 'a'"):
        scorer.add("a", "mass", None, ladder(2)[1], FRAME)


def test_tuned_variants_are_left_out_without_thresholds() -> None:
    scorer = Scorer(["auroc", IOU], split="val")
    assert [variant.metric for variant in scorer.variants] == ["auroc"]
    assert list(filled(scorer, [("a", "mass", 2)]).rows()[0].values) == [
        "auroc.bilinear_full.full_image.per_image"
    ]


def test_the_best_threshold_of_a_set_is_one_for_all() -> None:
    names = [
        "iou.oracle_set_iou_minmax256",
        "precision.oracle_set_iou_minmax256",
        "iou.oracle_set_iou_minmax256.pooled",
    ]
    scorer = filled(Scorer(names), [("a", "mass", 4), ("b", "mass", 8), ("c", "edema", 8)])
    assert {threshold for _, threshold in scorer.best_thresholds().values()} == {120 / 256}
    assert [list(row.values.values()) for row in scorer.rows()] == [[0.5, 0.5], [1, 1], [1, 1]]
    cells = {
        (cell.level, cell.group): cell for cell in scorer.summary(replicates=50) if "pooled" in cell.variant
    }
    assert cells["all", ""].value == pytest.approx(20 / 24)
    assert cells["finding", "mass"].value == pytest.approx(12 / 16)


def test_sensitivity_is_the_mean_at_each_threshold() -> None:
    scorer = filled(Scorer(["iou.oracle_set_iou_minmax256"]), [("a", "mass", 4), ("b", "edema", 8)])
    empty = np.zeros((4, 4), bool)
    scorer.add("c", "edema", ladder(1)[0], empty, FRAME)
    every, edema, mass = scorer.sensitivity()
    assert [one.group for one in (every, edema, mass)] == ["", "edema", "mass"]
    assert every.thresholds[128] == 0.5
    # Above a half: 8 pixels, of which 4 and 8 are true; the empty truth does not count.
    assert (mass.values[128], edema.values[128], every.values[128]) == (0.5, 1.0, 0.75)
    assert (mass.n[128], edema.n[128], every.n[128]) == (1, 1, 2)
    # One pixel is above 255/256: one of four and one of eight.
    assert every.values[255] == (1 / 4 + 1 / 8) / 2
    with pytest.raises(CarinaError, match="no variant of this scorer"):
        scorer.sensitivity(grid="minmax7")


def rows_of(values: list[tuple[str, str, str, float, float]]) -> list[Row]:
    name = parse_variant("auroc").name
    return [Row(*row[:4], {name: row[4]}) for row in values]


def test_summary_has_micro_and_macro_means_and_n_everywhere() -> None:
    rows = rows_of(
        [
            ("1", "mass", "p", 0.001, 0.2),
            ("2", "mass", "p", 0.02, 0.4),
            ("3", "mass", "q", 0.02, 0.6),
            ("4", "edema", "r", 0.2, 1.0),
            ("5", "edema", "r", 0.2, NAN),
        ]
    )
    cells = summarise(rows, [parse_variant("auroc")], replicates=200)
    found = {(c.level, c.group, c.average): (c.value, c.n, c.patients, c.undefined) for c in cells}
    assert found == {
        ("all", "", "micro"): (pytest.approx(0.55), 4, 3, 1),
        ("all", "", "macro"): (pytest.approx((0.4 + 1) / 2), 4, 3, 1),
        ("finding", "edema", "micro"): (1.0, 1, 1, 1),
        ("finding", "mass", "micro"): (pytest.approx(0.4), 3, 2, 0),
        ("size", "< 1%", "micro"): (0.2, 1, 1, 0),
        ("size", "< 1%", "macro"): (0.2, 1, 1, 0),
        ("size", "1-5%", "micro"): (0.5, 2, 2, 0),
        ("size", "1-5%", "macro"): (0.5, 2, 2, 0),
        ("size", "> 5%", "micro"): (1.0, 1, 1, 1),
        ("size", "> 5%", "macro"): (1.0, 1, 1, 1),
        ("finding and size", "edema, > 5%", "micro"): (1.0, 1, 1, 1),
        ("finding and size", "mass, < 1%", "micro"): (0.2, 1, 1, 0),
        ("finding and size", "mass, 1-5%", "micro"): (0.5, 2, 2, 0),
    }
    by_group = {(c.level, c.group, c.average): c for c in cells}
    alone = by_group["finding", "edema", "micro"]
    assert (alone.low, alone.high, alone.replicates) == (None, None, 0)
    # Draws of p, q and r that miss r, or both p and q, have no macro mean: 1 - (2/3)^3 - (1/3)^3 are left.
    macro = by_group["all", "", "macro"]
    assert 0.55 * 200 < macro.replicates < 0.75 * 200
    assert by_group["all", "", "micro"].replicates == 200


def test_a_column_with_few_patients_has_its_number_of_usable_replicates() -> None:
    names = [parse_variant("auroc"), parse_variant("auprc")]
    rows = [
        Row(
            str(at),
            "mass",
            str(at),
            0.02,
            {names[0].name: 0.5 + at / 100, names[1].name: 0.3 + at if at < 2 else NAN},
        )
        for at in range(6)
    ]
    first, second = (
        c for c in summarise(rows, names, replicates=300) if c.level == "all" and c.average == "micro"
    )
    assert first.replicates == 300
    assert 240 < second.replicates < 295  # 1 - (4/6)^6 = 0.91
    assert (second.n, second.undefined) == (2, 4)


def test_an_image_has_one_map_of_a_finding() -> None:
    scorer = filled(Scorer(["auroc"]), [("a", "mass", 2), ("a", "mass", 3)])
    with pytest.raises(CarinaError, match="image 'a': has two maps of 'mass'"):
        scorer.summary()


def test_an_image_without_patient_counts_as_its_own_patient() -> None:
    scorer = Scorer(["auroc"])
    for name in ("a", "b"):
        scorer.add(name, "mass", *ladder(3), FRAME)
    assert [row.patient for row in scorer.rows()] == ["a", "b"]


def test_the_best_cutoff_gates_maps_of_improbable_findings() -> None:
    """Two true findings at 0.9 and 0.6, a map that points at nothing true at 0.35."""
    probabilities, shown, empty = [0.9, 0.6, 0.35], [0.5, 0.4, 0.0], [False, False, True]
    cutoffs = [0.1 * k for k in range(9)]
    # Hidden from 0.4 on the false map is undefined, and the mean 0.45; from 0.7 on a true one is lost.
    assert tune_cutoff(probabilities, shown, empty, cutoffs=cutoffs) == pytest.approx(0.4)
    assert tune_cutoff(probabilities, shown, empty, cutoffs=cutoffs, min_cutoff=0.45) == pytest.approx(0.5)
    assert tune_cutoff([0.5], [NAN], [True], cutoffs=cutoffs) == 0.0
    assert tune_cutoff([0.5], [NAN], [True], cutoffs=cutoffs, min_cutoff=0.1) == pytest.approx(0.1)


def test_human_gap_is_a_share_of_the_readers() -> None:
    np.testing.assert_allclose(
        human_gap(np.array([0.8, 0.5, 0.0]), np.array([0.6, 0.5, 0.1])), [0.25, 0, NAN]
    )


def test_bounds_where_all_maps_hit_depend_on_the_number_of_patients():
    """Five patients: none of five misses, so that at most 1 - 0.025 ** (1 / 5) of all do."""
    scorer = Scorer(["hit.expected", "iou.otsu"])
    for number in range(5):
        truth = np.zeros((8, 8), bool)
        truth[2:4, 2:4] = True
        scorer.add(str(number), "mass", truth.astype(np.float32), truth, Frame.stretched(8, 8, side=8))
    hit, iou = (
        cell for cell in scorer.summary(replicates=50) if (cell.level, cell.average) == ("all", "micro")
    )
    assert (hit.value, hit.low, hit.high) == (1.0, pytest.approx(0.025**0.2), 1.0)
    assert (iou.low, iou.high) == (iou.value, iou.value)
