"""What every variant says of odd input. The tables are those of docs/reference/ground.md."""

import math
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
import pytest

from carina.maps import Scorer, Thresholds, Variant, all_variants
from carina.maps.counts import OVERLAPS, MaskCounts, overlap
from carina.maps.evaluation import Evaluation
from carina.maps.rules import SelectedThreshold, rule_name
from carina.maps.tuning import tuned_variant
from carina.models.frame import Frame

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "ground.md"
SIDE = 56
NAN = math.nan
SHARE = 1 / 4

PREDICTED: list[tuple[str, str, str, str, str]] = [
    # rules; empty truth, constant map, map of NaN alone, truth that is wholly unseen
    ("minmax_*, symmetric_*, otsu, otsu_filled", "as usual", "nothing", "nothing", "as usual"),
    ("raw_*, sigmoid_*", "as usual", "all or nothing", "nothing", "as usual"),
    ("tuned_*_minmax*, oracle_set_*_minmax*", "as usual", "nothing", "nothing", "as usual"),
    ("tuned_*_raw*, tuned_*_sigmoid*, oracle_set_*_raw*, oracle_set_*_sigmoid*", "as usual", "all or nothing",
     "nothing", "as usual"),
    ("oracle_area", "nothing", "all", "nothing", "as usual"),
    ("oracle_image", "nothing", "all", "nothing", "nothing"),
    ("oracle_grid", "nothing", "as usual", "nothing", "nothing"),
]  # fmt: skip

OVERLAP: list[tuple[str, str, str, str, str]] = [
    # metric and treatment of empty masks; only the truth is empty, only the prediction is, both are
    ("iou, dice", "positives", "NaN", "0", "NaN"),
    ("iou, dice", "tp_only", "NaN", "NaN", "NaN"),
    ("iou, dice", "any_mask, gated", "0", "0", "NaN"),
    ("precision", "positives, tp_only", "NaN", "NaN", "NaN"),
    ("precision", "any_mask, gated", "0", "NaN", "NaN"),
    ("recall", "positives, any_mask, gated", "NaN", "0", "NaN"),
    ("recall", "tp_only", "NaN", "NaN", "NaN"),
    ("specificity", "positives", "NaN", "1", "NaN"),
    ("specificity", "any_mask, gated", "share not predicted", "1", "NaN"),
    ("accuracy", "positives", "NaN", "1 - share", "NaN"),
    ("accuracy", "any_mask, gated", "share not predicted", "1 - share", "NaN"),
    ("specificity, accuracy", "tp_only", "NaN", "NaN", "NaN"),
    ("image_specificity", "", "0", "NaN", "1"),
]

OTHER: list[tuple[str, str, str, str, str, str]] = [
    # metric, rule; empty truth, constant map, map of NaN alone, truth that is wholly unseen
    ("hit", "first_argmax, within_*", "NaN", "as its first pixel", "0", "0"),
    ("hit", "any_max", "NaN", "1", "0", "0"),
    ("hit", "all_max", "NaN", "0", "0", "0"),
    ("hit", "expected", "NaN", "share", "0", "0"),
    ("hit_box", "first_argmax", "NaN", "as its first pixel", "0", "0"),
    ("hit_box", "any_max", "NaN", "1", "0", "0"),
    ("hit_box", "all_max", "NaN", "0", "0", "0"),
    ("hit_box", "expected", "NaN", "share", "0", "0"),
    ("auroc, auroc_binned", "", "NaN", "0.5", "0.5", "unseen others / 2 others"),
    ("auprc, auprc_binned", "", "NaN", "share", "share", "share"),
    ("cnr, cnr_abs", "", "NaN", "0", "", ""),
    ("mass, mass_signed", "", "NaN", "share, NaN if 0", "0", "0"),
    ("rank", "", "NaN", "share", "share", "0 if K pixels are seen"),
    ("topk", "top_*", "NaN", "share", "share", "0"),
    ("topk_gain", "top_*", "NaN", "1", "1", "0"),
]

VARIANTS = [variant for variant in all_variants() if variant.aggregation == "per_image"]
TUNED = Thresholds(
    "other", {tuned_variant(v).name: {"": 0.5} for v in VARIANTS if isinstance(v.rule, SelectedThreshold)}
)
CUTOFFS = Thresholds("other", {tuned_variant(v).name: {"": 0.5} for v in VARIANTS if v.empty == "gated"})
FRAME = Frame.stretched(SIDE, SIDE, side=14)
CORNER = np.zeros((SIDE, SIDE), bool)
CORNER[SIDE // 2 :, : SIDE // 2] = True
NOTHING = np.zeros((SIDE, SIDE), bool)
DRAWN = np.round(np.random.default_rng(0).random((14, 14)) * 1024).astype(np.float32) / 1024
DRAWN[:3] = 0
CONSTANT = np.full((14, 14), 0.75, np.float32)
UNKNOWN = np.full((14, 14), NAN, np.float32)
# Of an image twice as wide as high the model sees the middle; the truth is at the left.
WIDE = Frame.cropped(SIDE, 2 * SIDE, shortest=224, side=224)
LEFT = np.zeros((SIDE, 2 * SIDE), bool)
LEFT[SIDE // 2 :, : SIDE // 2] = True


def named(variant: Variant) -> str:
    return rule_name(variant.rule) if variant.rule else ""


def fits(listed: str, name: str) -> bool:
    return any(fnmatchcase(name, one) for one in listed.split(", "))


def evaluated(values: np.ndarray, truth: np.ndarray, frame: Frame) -> dict[str, float]:
    scorer = Scorer(VARIANTS, split="this", tuned=TUNED, cutoffs=CUTOFFS)
    scorer.add("a", "", values, truth, frame, probability=0.5)  # at its cut-off a map is shown
    return scorer.rows()[0].values


def same(found: float, expected: float) -> bool:
    return found == pytest.approx(expected, nan_ok=True)


# ---- what is predicted ----


@pytest.mark.parametrize(
    ("column", "values", "truth", "frame"),
    [
        (1, DRAWN, NOTHING, FRAME),
        (2, CONSTANT, CORNER, FRAME),
        (3, UNKNOWN, CORNER, FRAME),
        (4, DRAWN, LEFT, WIDE),
    ],
    ids=["empty truth", "constant", "unknown", "unseen"],
)
def test_predicted_pixels_in_special_cases_equal_the_table(
    column: int, values: np.ndarray, truth: np.ndarray, frame: Frame
) -> None:
    evaluation = Evaluation(values, truth, frame)
    for variant in VARIANTS:
        if variant.metric != "iou" or variant.empty != "positives":
            continue
        (row,) = (row for row in PREDICTED if fits(row[0], named(variant)))
        if column == 4 and variant.margin != "full_image":
            row = ("", row[1], "", "", row[1])  # the visible part has no truth
        counts = evaluation.counts(variant, 0.5)
        pair = evaluation.pair(variant.resampling, variant.margin)
        predicted = counts.true_positives + counts.false_positives
        match row[column]:
            case "nothing":
                assert (predicted == 0).all(), variant
            case "all":
                assert (predicted == pair.n_pixels).all(), variant
            case "all or nothing":
                assert set(predicted.tolist()) <= {0, pair.n_pixels}, variant
            case _:
                assert ((predicted > 0) & (predicted < pair.n_pixels)).all(), variant


# ---- what that means for the overlap ----


def test_overlap_of_empty_masks_equals_the_table() -> None:
    seen = set()
    for metrics, empties, *cells in OVERLAP:
        for metric in metrics.split(", "):
            for empty in empties.split(", "):
                seen.add((metric, empty or None))
                for cell, (hit, false, true, other) in zip(
                    cells, ((0, 30, 0, 100), (0, 0, 25, 75), (0, 0, 0, 100)), strict=True
                ):
                    counts = MaskCounts(np.array([hit]), np.array([false]), true, other)
                    expected = {"share not predicted": 0.7, "1 - share": 0.75}.get(cell)
                    found = overlap(metric, counts, empty or None)[0]  # type: ignore[arg-type]
                    assert same(found, float(cell) if expected is None else expected), (metric, empty, cell)
    assert seen == {(v.metric, v.empty) for v in VARIANTS if v.metric in OVERLAPS}


def test_scores_are_undefined_where_no_pixel_counts() -> None:
    counts = MaskCounts(np.array([0]), np.array([0]), 0, 0)
    for variant in VARIANTS:
        if variant.metric in OVERLAPS:
            assert math.isnan(overlap(variant.metric, counts, variant.empty)[0]), variant


# ---- the other metrics ----


def expected_of(cell: str) -> float:
    """The number that a cell stands for, in the examples of this file."""
    others = 2 * SIDE * SIDE - LEFT.sum()
    match cell:
        case "share":
            return SHARE
        case "as its first pixel":
            return 0.0
        case "unseen others / 2 others":
            return float((SIDE * SIDE - LEFT.sum()) / (2 * others))
        case "share, NaN if 0":
            return SHARE
        case "0 if K pixels are seen":
            return 0.0
    return float(cell)


@pytest.mark.parametrize(
    ("column", "values", "truth", "frame"),
    [
        (2, DRAWN, NOTHING, FRAME),
        (3, CONSTANT, CORNER, FRAME),
        (4, UNKNOWN, CORNER, FRAME),
        (5, DRAWN, LEFT, WIDE),
    ],
    ids=["empty truth", "constant", "unknown", "unseen"],
)
def test_other_metrics_in_special_cases_equal_the_table(
    column: int, values: np.ndarray, truth: np.ndarray, frame: Frame
) -> None:
    scores = evaluated(values, truth, frame)
    for variant in VARIANTS:
        if variant.metric in OVERLAPS or variant.metric == "hit_weighted" or variant.empty == "empty_is_hit":
            continue
        (row,) = (row for row in OTHER if fits(row[0], variant.metric) and fits(row[1], named(variant)))
        cell = row[column]
        if column >= 4 and variant.margin != "full_image":
            cell = "NaN" if variant.metric != "hit_box" or column == 4 else "0"
        expected = SHARE / 2 if cell == "share" and column == 5 else expected_of(cell)
        assert same(scores[variant.name], expected), (variant, cell, scores[variant.name])


def test_mass_of_a_map_of_zeros_is_undefined() -> None:
    scores = evaluated(np.zeros((14, 14), np.float32), CORNER, FRAME)
    assert all(math.isnan(value) for name, value in scores.items() if name.startswith("mass"))


@pytest.mark.parametrize("level", [1e-30, 0.3, 7.0, 3e38])
def test_the_mass_of_a_constant_above_zero_is_the_share_of_the_truth(level: float) -> None:
    truth = np.zeros((SIDE, SIDE), bool)
    truth[3:10, 5:16] = True
    scores = evaluated(np.full((14, 14), level, np.float32), truth, FRAME)
    name = "mass.bilinear_full.full_image.per_image"
    assert scores[name] == pytest.approx(77 / SIDE**2, rel=1e-12)
    assert scores[name.replace("mass", "mass_signed")] == pytest.approx(77 / SIDE**2, rel=1e-12)


def test_weighted_hits_and_empty_hits_derive_from_the_plain_hit() -> None:
    for values, truth, frame, share in (
        (DRAWN, NOTHING, FRAME, 0.0),
        (CONSTANT, CORNER, FRAME, SHARE),
        (UNKNOWN, CORNER, FRAME, SHARE),
        (DRAWN, LEFT, WIDE, SHARE / 2),
    ):
        scores = evaluated(values, truth, frame)
        for variant in VARIANTS:
            if variant.metric == "hit_weighted" and variant.margin == "full_image":
                plain = scores[variant.name.replace("hit_weighted", "hit", 1)]
                assert same(scores[variant.name], plain * (1 - share)), variant
            if variant.empty == "empty_is_hit" and variant.metric == "hit":
                plain = scores[variant.name.replace("empty_is_hit", "positives")]
                empty = truth is NOTHING or (frame is WIDE and variant.margin != "full_image")
                assert same(scores[variant.name], 1.0 if empty else plain), variant


def test_scores_are_undefined_where_nothing_is_visible() -> None:
    scores = evaluated(UNKNOWN, CORNER, FRAME)
    for variant in VARIANTS:
        if variant.margin != "full_image":
            assert math.isnan(scores[variant.name]), variant


def test_negative_values_change_only_metrics_of_raw_values() -> None:
    """A map moved down by a constant: whatever ranks or rescales stays; raw, sigmoid and mass do not."""
    above, below = (evaluated(DRAWN - np.float32(shift), CORNER, FRAME) for shift in (0, 0.5))
    for variant in VARIANTS:
        if "raw" in named(variant) or "sigmoid" in named(variant) or variant.metric.startswith("mass"):
            continue
        assert below[variant.name] == pytest.approx(above[variant.name], abs=1e-6, nan_ok=True), variant
    name = "mass.nearest_full.full_image.per_image"
    lifted = np.maximum(DRAWN - 0.5, 0)
    assert below[name] == pytest.approx(lifted[7:, :7].sum() / lifted.sum())
    signed = (DRAWN - 0.5).astype(float)
    assert below[name.replace("mass", "mass_signed")] == pytest.approx(signed[7:, :7].sum() / signed.sum())


# ---- the page ----


def line(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def code(listed: str) -> str:
    return ", ".join(f"`{one}`" for one in listed.split(", ")) if listed else ""


def test_the_reference_page_has_these_tables() -> None:
    page = PAGE.read_text(encoding="utf-8")
    lines = [line(code(row[0]), *row[1:]) for row in PREDICTED]
    lines += [line(code(row[0]), code(row[1]), *row[2:]) for row in (*OVERLAP, *OTHER)]
    for wanted in lines:
        assert wanted in page, f"docs/reference/ground.md lacks the line {wanted}"
