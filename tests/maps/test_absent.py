"""Findings that are absent, maps that were not made, images that nobody drew on, and maps that are not shown."""

import math

import numpy as np
import pytest

from carina.maps import Cell, Scorer, Thresholds, score_pair
from carina.models.frame import Frame
from carina.store.errors import CarinaError

NAN = math.nan
FRAME = Frame.stretched(8, 8, side=8)
NOTHING = np.zeros((8, 8), bool)
OTSU = "torch_full.full_image.otsu_filled"
GATED = f"iou.{OTSU}.gated.per_image"


def block(rows: slice, columns: slice) -> np.ndarray:
    made = NOTHING.copy()
    made[rows, columns] = True
    return made


UPPER, LOWER = block(slice(0, 4), slice(0, 4)), block(slice(4, 8), slice(4, 8))
BESIDE = block(slice(4, 8), slice(2, 6))
"""Half of `LOWER` and as much beside it."""
SMALL = block(slice(0, 2), slice(0, 4))
PAIRS = [("p1", UPPER, UPPER), ("p2", BESIDE, LOWER), ("n1", SMALL, NOTHING), ("n2", NOTHING, NOTHING)]
"""Pixels that the map has high, and the truth: 16 of 16 right; 8 of 16 right and 8 missed; 8 where nothing is; none."""


def logits(lit: np.ndarray) -> np.ndarray:
    return np.where(lit, np.float32(2), np.float32(-2))


def scored(name: str) -> Scorer:
    scorer = Scorer(name)
    for at, lit, truth in PAIRS:
        scorer.add(at, "edema", logits(lit), truth, FRAME)
    return scorer


def column(scorer: Scorer, name: str) -> list[float]:
    return [row.values[name] for row in scorer.rows()]


def figures(scorer: Scorer, level: str) -> dict[str, Cell]:
    cells = scorer.summary(replicates=20)
    return {cell.variant: cell for cell in cells if cell.level == level and cell.average == "micro"}


def same(found: list[float], expected: list[float]) -> bool:
    return found == pytest.approx(expected, nan_ok=True)


# ---- negatives ----


def test_chexlocalize_counts_predictions_on_images_without_the_finding() -> None:
    scorer = scored("chexlocalize")
    assert same(column(scorer, f"iou.{OTSU}.any_mask.per_image"), [1, 8 / 24, 0, NAN])
    assert same(column(scorer, f"iou.{OTSU}.tp_only.per_image"), [1, 8 / 24, NAN, NAN])
    hit = "hit.torch_full.full_image.first_argmax.positives.per_image"
    assert same(column(scorer, hit), [1, 0, NAN, NAN])
    found = figures(scorer, "finding")
    assert (found[f"iou.{OTSU}.any_mask.per_image"].n, found[hit].n, found[hit].undefined) == (3, 2, 2)
    # Of 32 true pixels 24 are found; of 224 others 8 and 8 are taken for true.
    pooled = {metric: found[f"{metric}.{OTSU}.pooled"] for metric in ("precision", "recall", "specificity")}
    assert {metric: cell.value for metric, cell in pooled.items()} == {
        "precision": pytest.approx(24 / 40),
        "recall": pytest.approx(24 / 32),
        "specificity": pytest.approx(208 / 224),
    }
    assert {cell.n for cell in pooled.values()} == {4}


def test_radzero_scores_specificity_on_images_without_the_finding() -> None:
    scorer = scored("radzero")
    rule = "bilinear_full.full_image.oracle_set_dice_sigmoid101"
    # A sigmoid of 2 is 0.881 and of -2 is 0.119. Below that all is predicted: Dice 32/80 for both. From 0.12 on the
    # blocks are: 1 and 16/32. The first of the best is 0.12, where the map that is -2 everywhere predicts nothing.
    assert [threshold for _, threshold in scorer.best_thresholds().values()] == [pytest.approx(0.12)] * 2
    assert same(column(scorer, f"dice.{rule}.positives.per_image"), [1, 0.5, NAN, NAN])
    assert same(column(scorer, f"image_specificity.{rule}.per_image"), [NAN, NAN, 0, 1])
    box = "hit_box.bilinear_full.full_image.first_argmax.positives.per_image"
    assert same(column(scorer, box), [1, 0, NAN, NAN])
    found = figures(scorer, "all")
    # 24 true pixels above 208 others, 24 tie with 16 above and 8 with 208 below.
    auroc = found["auroc.bilinear_full.full_image.pooled"]
    assert (auroc.value, auroc.n) == (pytest.approx((24 * 208 + (24 * 16 + 8 * 208) / 2) / (32 * 224)), 4)
    dice, quiet = found[f"dice.{rule}.positives.per_image"], found[f"image_specificity.{rule}.per_image"]
    assert (dice.value, dice.n, dice.undefined) == (0.75, 2, 2)
    assert (quiet.value, quiet.n, quiet.undefined) == (0.5, 2, 2)
    none = {cell.variant: cell for cell in scorer.summary(replicates=20) if cell.group == "none"}
    assert none["auroc.bilinear_full.full_image.pooled"].value is None  # nothing true among the negatives


# ---- no map, no truth ----


def test_missing_maps_and_regions_count_in_any_mask_and_pooled_counts() -> None:
    scorer = Scorer("chexlocalize")
    scorer.add("a", "edema", logits(UPPER), UPPER, FRAME)
    scorer.add("b", "edema", None, LOWER, FRAME)
    scorer.add("c", "edema", None, NOTHING, FRAME)
    scorer.add("d", "edema", logits(SMALL), None, FRAME)
    scorer.add("e", "edema", logits(NOTHING), None, FRAME)
    assert [row.available for row in scorer.rows()] == ["both", "truth", "truth", "map", "map"]
    assert same(column(scorer, f"iou.{OTSU}.any_mask.per_image"), [1, 0, NAN, 0, NAN])
    for name in (
        f"iou.{OTSU}.tp_only.per_image",
        "hit.torch_full.full_image.first_argmax.positives.per_image",
    ):
        assert same(column(scorer, name), [1, NAN, NAN, NAN, NAN])
    found = figures(scorer, "finding")
    # 16 of 32 true pixels; the predicted pixels of d are in no image with regions, so they are not counted.
    assert [(cell.value, cell.n) for name, cell in found.items() if name.endswith(f"{OTSU}.pooled")] == [
        (1.0, 3),
        (0.5, 3),
        (1.0, 3),
    ]
    # cheXlocalize draws the images with regions, a to c, or where all count a to e.
    assert (found[f"iou.{OTSU}.any_mask.per_image"].n, found[f"iou.{OTSU}.any_mask.per_image"].patients) == (
        3,
        5,
    )
    assert (found[f"iou.{OTSU}.tp_only.per_image"].n, found[f"iou.{OTSU}.tp_only.per_image"].patients) == (
        1,
        3,
    )
    with pytest.raises(CarinaError, match="image 'f', edema: expected a map, a truth or both"):
        scorer.add("f", "edema", None, None, FRAME)


def test_missing_maps_and_regions_do_not_change_other_scores() -> None:
    names = [
        "hit.first_argmax.empty_is_hit",
        "iou.oracle_set_iou_minmax256",
        "auroc.pooled",
        "image_specificity.otsu",
    ]
    plain, more = Scorer(names), Scorer(names)
    for scorer in (plain, more):
        scorer.add("a", "edema", logits(BESIDE), LOWER, FRAME)
    more.add("b", "edema", None, UPPER, FRAME)
    more.add("c", "edema", None, NOTHING, FRAME)
    more.add("d", "edema", logits(SMALL), None, FRAME)
    assert [list(row.values.values()) for row in more.rows()[1:]] == [
        [pytest.approx(NAN, nan_ok=True)] * 3
    ] * 3
    before, after = figures(plain, "all"), figures(more, "all")
    assert {name: (cell.value, cell.n) for name, cell in after.items()} == {
        name: (cell.value, cell.n) for name, cell in before.items()
    }
    assert more.best_thresholds() == plain.best_thresholds()
    assert [one.values.tolist() for one in more.sensitivity()] == [
        one.values.tolist() for one in plain.sensitivity()
    ]


def test_thresholds_selected_with_any_mask_count_missing_maps() -> None:
    """Two thresholds matter: 0 predicts a row more than 0.5. With the stray, less is better, of which there is none."""
    values = np.zeros((8, 8), np.float32)
    values[:4, :4], values[4, :4] = 1.0, 0.25
    names = ["iou.oracle_set_iou_minmax256.any_mask", "recall.oracle_set_iou_minmax256.pooled"]
    scorer = Scorer(names)
    scorer.add("a", "edema", values, UPPER, FRAME)
    scorer.add("b", "edema", None, LOWER, FRAME)
    scorer.add("c", "edema", values, None, FRAME)
    any_mask, recall = scorer.variants
    assert scorer.best_thresholds()[any_mask][1] == pytest.approx(0.25)
    assert same(column(scorer, any_mask.name), [1, 0, 0])
    assert figures(scorer, "all")[recall.name].value == 0.5


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("iou.otsu.any_mask.bilinear_full.full_image", [0, 0]),
        ("iou.otsu.any_mask.bilinear_full.visible_only", [0, NAN]),
        ("iou.otsu.any_mask.nearest_224", [0, NAN]),
        ("accuracy.sigmoid_0.3.any_mask.full_image", [1 - 64 / 512, 1 - 64 / 512]),
        ("accuracy.raw_-3.any_mask.visible_only", [1 - 64 / 256, NAN]),
        ("accuracy.oracle_area.any_mask.corners_224", [1 - 64 / 256, NAN]),
    ],
)
def test_without_a_map_nothing_is_predicted_whatever_the_rule_and_the_margin(
    variant: str, expected: list[float]
) -> None:
    """Of an image twice as wide as high the model sees the middle; the truth is there, or in the margin."""
    frame = Frame.cropped(16, 32, shortest=224, side=224)
    middle, left = np.zeros((16, 32), bool), np.zeros((16, 32), bool)
    middle[4:12, 10:18], left[4:12, :8] = True, True
    scorer = Scorer([variant])
    for name, truth in (("a", middle), ("b", left)):
        scorer.add(name, "edema", None, truth, frame)
    assert same([next(iter(row.values.values())) for row in scorer.rows()], expected)


# ---- maps that are not shown ----


def gated(cutoffs: Thresholds | None, split: str, probabilities: list[float | None]) -> Scorer:
    scorer = Scorer("chexlocalize", split=split, cutoffs=cutoffs)
    for (name, lit, truth), probability in zip(PAIRS, probabilities, strict=True):
        scorer.add(f"{split}-{name}", "edema", logits(lit), truth, FRAME, probability=probability)
    return scorer


def test_cutoffs_of_one_split_gate_maps_of_another() -> None:
    validation = gated(None, "val", [0.9, 0.45, 0.35, 0.2])
    validation.add("val-x", "Lung Lesion", logits(UPPER), UPPER, FRAME, probability=0.05)
    assert GATED not in validation.rows()[0].values
    cutoffs = validation.tune_cutoffs()
    # Shown as they are: 1, 1/3 and 0, a mean of 4/9. From 0.4 on the false one is hidden, and the mean 2/3; from 0.5
    # on a true one is, and the mean 1/2. The lesion is best shown, but its cut-off is held to 0.1. All together have
    # 7/12 as they are, and 4/9 at most without the lesion.
    assert cutoffs.chosen == {GATED: {"": 0.0, "Lung Lesion": 0.1, "edema": 0.4}}
    assert len(cutoffs.images) == 5

    scorer = gated(cutoffs, "test", [0.3, 0.4, 0.9, 0.9])
    scorer.add("test-y", "edema", None, LOWER, FRAME)
    scorer.add("test-z", "edema", logits(SMALL), None, FRAME, probability=0.39)
    # Hidden is not found; at the cut-off a map is shown; a false one that is hidden is no fault.
    assert same(column(scorer, GATED), [0, 1 / 3, 0, NAN, 0, NAN])
    assert same(column(scorer, f"iou.{OTSU}.any_mask.per_image"), [1, 1 / 3, 0, NAN, 0, 0])
    assert [cell.n for cell in scorer.summary(replicates=20) if cell.variant == GATED] == [4]


def test_cutoffs_are_refused_as_thresholds_are() -> None:
    cutoffs = gated(None, "val", [0.9, 0.6, 0.35, 0.2]).tune_cutoffs()
    with pytest.raises(CarinaError, match="split 'val': cut-offs were tuned on the split that is scored"):
        Scorer("chexlocalize", split="val", cutoffs=cutoffs)
    with pytest.raises(CarinaError, match="split: cut-offs were tuned on split 'val'"):
        Scorer("chexlocalize", cutoffs=cutoffs)
    other = Scorer("chexlocalize", split="test", cutoffs=cutoffs)
    with pytest.raises(CarinaError, match="image 'val-p1': thresholds or cut-offs were tuned on"):
        other.add("val-p1", "edema", logits(UPPER), UPPER, FRAME, probability=0.5)
    with pytest.raises(CarinaError, match="image 'q', edema: its map has no probability, which iou"):
        other.add("q", "edema", logits(UPPER), UPPER, FRAME)
    with pytest.raises(CarinaError, match="image 'val-n1', edema: its map has no probability, which tuning"):
        gated(None, "val", [0.9, 0.6, None, 0.2]).tune_cutoffs()
    with pytest.raises(CarinaError, match="none has cut-offs to tune"):
        Scorer("radzero", split="val").tune_cutoffs()
    with pytest.raises(CarinaError, match="needs a probability and a cut-off"):
        score_pair(logits(UPPER), UPPER, FRAME, ["iou.otsu.gated"])
