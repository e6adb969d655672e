"""Against scikit-learn, scikit-image and SciPy."""

import warnings

import numpy as np
import pytest
from scipy import ndimage
from skimage.filters import threshold_otsu
from sklearn.metrics import average_precision_score, f1_score, jaccard_score, roc_auc_score

from carina.maps import Scorer, score_pair
from carina.maps.pair import LEVELS, tally_pixels
from carina.maps.thresholds import _fill_contours
from carina.models.frame import Frame

SIDE = 96
FRAME = Frame.stretched(SIDE, SIDE, side=14)


def made(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth map at the image's size, and a truth that it partly follows."""
    draw = np.random.default_rng(seed)
    values = ndimage.gaussian_filter(draw.normal(size=(SIDE, SIDE)), 6).astype(np.float32)
    truth = ndimage.gaussian_filter(draw.normal(size=(SIDE, SIDE)), 9) + values / 4 > 0.02
    assert truth.any()
    return values, truth


def coarse(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The same with so few values that most pixels tie."""
    values, truth = made(seed)
    return np.round(values / np.abs(values).max() * 6).astype(np.float32), truth


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("make", [made, coarse])
def test_curves_of_one_image_equal_scikit_learn(make: object, seed: int) -> None:
    values, truth = make(seed)
    found = score_pair(values, truth, FRAME, ["auroc", "auprc", "auroc_binned", "auprc_binned"])
    auroc, auprc, auroc_binned, auprc_binned = found.values()
    assert auroc == pytest.approx(roc_auc_score(truth.ravel(), values.ravel()), abs=1e-12)
    assert auprc == pytest.approx(average_precision_score(truth.ravel(), values.ravel()), abs=1e-12)
    scaled = (values - values.min()) / (values.max() - values.min())
    binned = np.ceil(scaled * LEVELS)
    assert auroc_binned == pytest.approx(roc_auc_score(truth.ravel(), binned.ravel()), abs=1e-12)
    assert auprc_binned == pytest.approx(average_precision_score(truth.ravel(), binned.ravel()), abs=1e-12)


def test_curves_of_a_set_are_those_of_all_pixels_at_once() -> None:
    names = ["auroc.pooled", "auprc.pooled", "auroc_binned.pooled", "auprc_binned.pooled"]
    pairs = [made(seed) for seed in range(4)] + [coarse(5)]
    scorer = Scorer(names)
    for at, (values, truth) in enumerate(pairs):
        scorer.add(str(at), "mass", values - np.float32(at / 50), truth, FRAME)
    cells = {
        cell.variant.split(".")[0]: cell for cell in scorer.summary(replicates=200) if cell.level == "all"
    }
    pixels = np.concatenate([values.ravel() - np.float32(at / 50) for at, (values, _) in enumerate(pairs)])
    truths = np.concatenate([truth.ravel() for _, truth in pairs])
    assert cells["auroc"].value == pytest.approx(roc_auc_score(truths, pixels), abs=1e-12)
    assert cells["auprc"].value == pytest.approx(average_precision_score(truths, pixels), abs=1e-12)
    # 11 significant bits, towards 0 above it and away from it below.
    cut = np.float32(2.0) ** (np.floor(np.log2(np.abs(np.where(pixels == 0, 1, pixels)))) - 10)
    binned = np.where(pixels == 0, 0, np.floor(pixels / cut) * cut)
    binned = np.where(pixels < 0, -np.floor(-pixels / cut) * cut, binned)
    assert cells["auroc_binned"].value == pytest.approx(roc_auc_score(truths, binned), abs=1e-12)
    assert cells["auprc_binned"].value == pytest.approx(average_precision_score(truths, binned), abs=1e-12)
    for cell in cells.values():
        assert cell.low < cell.value < cell.high
        assert (cell.n, cell.patients, cell.replicates) == (5, 5, 200)


@pytest.mark.parametrize("seed", range(6))
def test_overlap_and_otsu_equal_scikit_learn_and_scikit_image(seed: int) -> None:
    values, truth = made(seed)
    found = score_pair(values, truth, FRAME, ["iou.minmax_0.5", "dice.minmax_0.5", "iou.otsu", "dice.otsu"])
    scaled = (values - values.min()) / (values.max() - values.min())
    for lit, iou, dice in (
        (scaled > 0.5, "iou.bilinear_full.full_image.minmax_0.5", "dice.bilinear_full.full_image.minmax_0.5"),
        (
            scaled > threshold_otsu(scaled),
            "iou.bilinear_full.full_image.otsu",
            "dice.bilinear_full.full_image.otsu",
        ),
    ):
        assert found[f"{iou}.positives.per_image"] == pytest.approx(jaccard_score(truth.ravel(), lit.ravel()))
        assert found[f"{dice}.positives.per_image"] == pytest.approx(f1_score(truth.ravel(), lit.ravel()))


def test_histogram_levels_are_exact_at_every_256th() -> None:
    values, truth = made(1)
    tally = tally_pixels(values, truth)
    scaled = (values - values.min()) / (values.max() - values.min())
    for k in range(256):
        above = scaled > np.float32(k / 256)
        assert tally.inside[16 * k + 1 :].sum() == (above & truth).sum()
        assert tally.outside[16 * k + 1 :].sum() == (above & ~truth).sum()


@pytest.mark.parametrize("seed", range(8))
def test_contours_are_filled_with_their_holes(seed: int) -> None:
    """Of more than a pixel; SciPy labels them and fills them."""
    draw = np.random.default_rng(seed)
    lit = ndimage.gaussian_filter(draw.normal(size=(60, 70)), 1 + seed / 4) > 0.05
    labels, _ = ndimage.label(lit, np.ones((3, 3)))
    kept = np.bincount(labels.ravel())[labels] > 1
    expected = ndimage.binary_fill_holes(lit & kept)
    np.testing.assert_array_equal(_fill_contours(lit.astype(np.uint8) * 200), expected)


def test_no_warning_is_raised_by_odd_maps() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for values in (
            np.full((2, 2), np.nan, np.float32),
            np.zeros((2, 2), np.float32),
            -np.ones((2, 2), np.float32),
        ):
            scorer = Scorer("carina", split="test")
            scorer.add("a", "mass", values, np.zeros((4, 4), bool), Frame.stretched(4, 4, side=2))
            scorer.summary(replicates=5)
