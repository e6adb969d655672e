"""What must not change a score, and how far scores of the same map can be apart."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from carina.maps import score_pair
from carina.models.frame import Frame

FULL = [
    "hit.expected",
    "hit.any_max",
    "hit.all_max",
    "auroc",
    "auprc",
    "rank",
    "iou.oracle_image",
    "dice.oracle_area",
]
"""Depend on nothing but the order of the values."""
SCALED = [
    "iou.minmax_0.5",
    "dice.otsu",
    "iou.symmetric_0.1+0.3",
    "cnr",
    "auroc_binned",
    "iou.otsu_filled.any_mask",
]
"""Depend on values up to a linear change."""


@st.composite
def pairs(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, Frame]:
    height, width = draw(st.integers(2, 12)), draw(st.integers(2, 12))
    whole = npst.arrays(
        np.int16, (height, width), elements=st.integers(0, draw(st.sampled_from([2, 9, 250])))
    )
    values = draw(whole).astype(np.float32)
    truth = draw(npst.arrays(bool, (height, width)))
    return values, truth, Frame.stretched(height, width, side=8)


def scores(values: np.ndarray, truth: np.ndarray, frame: Frame, names: list[str]) -> list[float]:
    return list(score_pair(values.astype(np.float32), truth, frame, names).values())


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_a_monotonic_function_of_the_map_keeps_rank_metrics(
    pair: tuple[np.ndarray, np.ndarray, Frame],
) -> None:
    values, truth, frame = pair
    before = scores(values, truth, frame, FULL)
    for change in (lambda v: v * 4 - 100, lambda v: v**3 / 1000, lambda v: np.sqrt(v) - 7):
        assert scores(change(values), truth, frame, FULL) == pytest.approx(before, abs=1e-12, nan_ok=True)


@given(pairs(), st.sampled_from([0.25, 2.0, 64.0]), st.integers(-512, 512))
@settings(max_examples=60, deadline=None)
def test_scale_and_offset_keep_metrics_of_scaled_maps(
    pair: tuple[np.ndarray, np.ndarray, Frame], scale: float, offset: int
) -> None:
    values, truth, frame = pair
    before = scores(values, truth, frame, SCALED)
    assert scores(values * scale + offset, truth, frame, SCALED) == pytest.approx(
        before, abs=1e-9, nan_ok=True
    )


@given(pairs(), st.sampled_from(["bilinear_full", "nearest_full", "nearest_224", "corners_224"]))
@settings(max_examples=60, deadline=None)
def test_the_highest_numbers_of_float32_are_scored_as_smaller_ones(
    pair: tuple[np.ndarray, np.ndarray, Frame], place: str
) -> None:
    """Below 0 as far as above, so that float32 does not hold their differences; a power of two rounds nothing."""
    values, truth, frame = pair
    small = values / 256 * 1.99 * 2 - 1.99
    names = [
        f"{name}.{place}"
        for name in (*FULL, *SCALED, "hit.first_argmax", "mass", "mass_signed")
        if name != "cnr"
    ]
    before = scores(small, truth, frame, names)
    assert scores(small.astype(np.float32) * np.float32(2.0**127), truth, frame, names) == pytest.approx(
        before, rel=1e-12, abs=0, nan_ok=True
    )


def test_the_highest_numbers_of_float32_keep_their_peak() -> None:
    """A lone peak of 3e38 among -3e38, in a cell whose pixels are the truth."""
    values = np.full((14, 14), -3e38, np.float32)
    values[4, 9] = 3e38
    truth = np.zeros((56, 56), bool)
    truth[16:20, 36:40] = True
    frame = Frame.stretched(56, 56, side=14)
    for name in ("hit.first_argmax", "hit.all_max", "hit.any_max.corners_224", "hit_box.expected"):
        assert scores(values, truth, frame, [name]) == [1.0]
    assert scores(values, truth, frame, ["iou.nearest_full.minmax_0.5", "auroc.nearest_full"]) == [1.0, 1.0]


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_mirroring_changes_only_the_first_peak(
    pair: tuple[np.ndarray, np.ndarray, Frame],
) -> None:
    values, truth, frame = pair
    names = [*FULL, *SCALED[:-1], "mass", "hit.nearest_full.expected", "iou.nearest_full.oracle_grid"]
    before = scores(values, truth, frame, names)
    assert scores(values[:, ::-1], truth[:, ::-1], frame, names) == pytest.approx(
        before, abs=1e-9, nan_ok=True
    )
    assert scores(values[::-1], truth[::-1], frame, names) == pytest.approx(before, abs=1e-9, nan_ok=True)


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_oracles_are_upper_bounds_and_tie_rules_are_ordered(
    pair: tuple[np.ndarray, np.ndarray, Frame],
) -> None:
    values, truth, frame = pair
    if not truth.any():
        return
    best, *others = scores(
        values,
        truth,
        frame,
        ["iou.oracle_image", "iou.minmax_0.3", "iou.otsu", "iou.oracle_area", "iou.raw_3"],
    )
    assert all(other <= best + 1e-12 for other in others)
    every, expected, some = scores(values, truth, frame, ["hit.all_max", "hit.expected", "hit.any_max"])
    assert every <= expected <= some
    first = scores(values, truth, frame, ["hit.first_argmax"])[0]
    assert every <= first <= some
    cells, nearest = scores(
        values, truth, frame, ["iou.nearest_full.oracle_grid", "iou.nearest_full.oracle_image"]
    )
    assert cells >= nearest - 1e-12


@given(pairs())
@settings(max_examples=60, deadline=None)
def test_dice_follows_from_iou_and_the_inverted_truth_inverts_auroc(
    pair: tuple[np.ndarray, np.ndarray, Frame],
) -> None:
    values, truth, frame = pair
    iou, dice, auroc = scores(values, truth, frame, ["iou.minmax_0.5", "dice.minmax_0.5", "auroc"])
    assert dice == pytest.approx(2 * iou / (1 + iou), nan_ok=True)
    turned = scores(values, ~truth, frame, ["auroc"])[0]
    assert auroc == pytest.approx(1 - turned, nan_ok=True)
    assert math.isnan(auroc) == (truth.all() or not truth.any())


@given(pairs(), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_a_finer_image_keeps_scores_by_cells(pair: tuple[np.ndarray, np.ndarray, Frame], times: int) -> None:
    """Each pixel repeated: counts grow, shares stay."""
    values, truth, _ = pair
    names = [
        f"{name}.nearest_full"
        for name in ("hit.expected", "iou.minmax_0.5", "auroc", "auprc", "mass", "rank")
    ]
    height, width = values.shape
    before = scores(values, truth, Frame.stretched(height, width, side=8), names)
    finer = truth.repeat(times, axis=0).repeat(times, axis=1)
    after = scores(values, finer, Frame.stretched(*finer.shape, side=8), names)
    assert after == pytest.approx(before, abs=1e-12, nan_ok=True)
