"""Contours that give way to a segmenter: in its order, at the contour, and no further than a warp would go."""

import cv2
import numpy as np
import pytest
from tests.percept import painted

from carina.percept import analyse_lesion
from carina.percept.deform import apply_changes, make_change, warp
from carina.percept.deformers import SegmenterDeformers, SegmenterEffort, grow_from_contour
from carina.percept.outline import Outline, signed_distance
from carina.percept.records import LesionAnalysis
from carina.percept.rules import Rules
from carina.percept.truth import grey_reader

RULES = Rules()
TOP, LEFT = 60, 30


@pytest.fixture
def outline():
    """The lesion in a window of its image."""
    window = (slice(TOP, 460), slice(LEFT, 300))
    mask = painted.lesion_mask()[window].copy()
    return Outline(
        shape=(painted.HEIGHT, painted.WIDTH),
        window=window,
        mask=mask,
        field=painted.LUNGS["right lung"][window] | mask,
        depth=signed_distance(mask),
        scale=painted.HEIGHT / 1024,
        blur=1.5,
        limit=np.full(mask.shape, 0.5, np.float32),
    )


def below(_image, _prompts):
    """Surer towards the lower border of the image."""
    return np.tile(np.linspace(-4, 4, painted.HEIGHT)[:, None], painted.WIDTH)


def around_the_point(_image, prompts):
    """A blob that is added at a positive point and taken away at a negative one."""
    (point,) = prompts.points
    y, x = np.mgrid[: painted.HEIGHT, : painted.WIDTH] + 0.5
    blob = 6 - np.hypot(x - point.x, y - point.y) / 5
    before = np.where(prompts.mask, 3.0, -3.0)
    return np.maximum(before, blob) if point.inside else np.minimum(before, -blob)


def asked(outline, answer, operation, *, place=None, width=50.0, seed=1):
    segmenter = painted.Scripted(answer)
    give = SegmenterEffort(segmenter, painted.pixels())
    place = place or (250 - TOP, 150 - LEFT + 70)
    chance = np.random.default_rng(seed)
    window, effort = give(outline, place, operation, width=width, chance=chance)
    return segmenter, window, effort


@pytest.mark.parametrize("operation", ["expansion", "contraction"])
def test_the_segmenter_is_pointed_beside_the_contour_on_the_right_side(outline, operation):
    segmenter, _, _ = asked(outline, around_the_point, operation)
    ((_, prompts),) = segmenter.asked
    (point,) = prompts.points
    np.testing.assert_array_equal(prompts.mask, painted.lesion_mask())
    assert point.inside == (operation == "expansion")
    assert prompts.mask[int(point.y), int(point.x)] == (operation == "contraction")
    # 0.3 of a width of 50 away from the contour, at the place on its right: (220, 250).
    assert point.y == pytest.approx(250.5, abs=12)
    assert point.x == pytest.approx(235 if operation == "expansion" else 206, abs=3)


@pytest.mark.parametrize("operation", ["expansion", "contraction"])
def test_only_pixels_that_the_warp_could_move_are_moved(outline, operation):
    _, window, effort = asked(outline, around_the_point, operation)
    plain_window, plain = warp(
        outline, (250 - TOP, 220 - LEFT), operation, width=50.0, chance=np.random.default_rng(1)
    )
    assert window == plain_window
    assert not np.isfinite(effort[~np.isfinite(plain)]).any()
    inside = outline.mask[window]
    assert not np.isfinite(effort[inside != (operation == "contraction")]).any()
    assert not np.isfinite(effort[~outline.field[window]]).any()
    assert np.isfinite(effort).any()


@pytest.mark.parametrize(("operation", "sign"), [("expansion", 1), ("contraction", -1)])
def test_pixels_that_the_model_is_surest_about_move_first(outline, operation, sign):
    """Surest below: an expansion begins at the bottom of the window, a contraction at its top."""
    _, _, effort = asked(outline, below, operation)
    rows = np.nonzero(np.isfinite(effort))[0]
    first = np.nonzero(effort <= np.quantile(effort[np.isfinite(effort)], 0.1))[0]
    assert sign * (first.mean() - rows.mean()) > 0.2 * (rows.max() - rows.min())


@pytest.mark.parametrize("operation", ["expansion", "contraction"])
@pytest.mark.parametrize("area", [900, 1800])
def test_changes_are_of_the_wanted_area_and_touch_the_contour(outline, operation, area):
    _, window, effort = asked(outline, around_the_point, operation)
    change = make_change(outline, window, effort, operation, area)
    assert 0.8 * area <= change.area <= 1.02 * area
    after = apply_changes(outline.mask, [change])
    assert ((after ^ outline.mask).sum(), after[0].any()) == (change.area, False)
    # Neither an island nor a hole.
    assert cv2.connectedComponents(after.view(np.uint8), connectivity=4)[0] == 2
    assert cv2.connectedComponents((~after).view(np.uint8), connectivity=4)[0] == 2


def test_a_smaller_change_lies_within_a_larger_one(outline):
    _, window, effort = asked(outline, around_the_point, "expansion")
    small, large = (make_change(outline, window, effort, "expansion", area) for area in (600, 1500))
    nothing = np.zeros_like(outline.mask)
    assert not (apply_changes(nothing, [small]) & ~apply_changes(nothing, [large])).any()


def test_equal_logits_give_the_order_of_the_warp(outline):
    _, window, effort = asked(outline, lambda *_: np.zeros((painted.HEIGHT, painted.WIDTH)), "expansion")
    _, plain = warp(
        outline, (250 - TOP, 220 - LEFT), "expansion", width=50.0, chance=np.random.default_rng(1)
    )
    by_model, by_warp = (make_change(outline, window, field, "expansion", 900) for field in (effort, plain))
    one, other = apply_changes(outline.mask, [by_model]), apply_changes(outline.mask, [by_warp])
    assert (one ^ other).sum() <= 5


def test_a_change_never_includes_an_island_before_the_pixels_that_connect_it():
    cost = np.array([[0, 5, 1, 1, np.inf, 0]], np.float32)
    contour = np.array([[True, False, False, False, False, False]])
    effort = grow_from_contour(cost, contour, np.arange(6, dtype=np.float32)[None])
    assert effort[0, 0] < effort[0, 1] < effort[0, 2] < effort[0, 3] < np.inf
    assert np.isinf(effort[0, 4:]).all()


def test_a_model_that_returns_nan_moves_nothing():
    cost = np.full((3, 3), np.nan, np.float32)
    assert np.isinf(grow_from_contour(cost, np.ones((3, 3), bool), np.ones((3, 3), np.float32))).all()


def test_the_same_place_is_asked_about_once(outline):
    segmenter = painted.Scripted(around_the_point)
    give = SegmenterEffort(segmenter, painted.pixels())
    for _ in range(3):
        give(outline, (190, 190), "expansion", width=50.0, chance=np.random.default_rng(1))
    assert len(segmenter.asked) == 1
    give(outline, (190, 190), "contraction", width=50.0, chance=np.random.default_rng(1))
    assert len(segmenter.asked) == 2


def test_a_lesion_is_analysed_with_contours_by_a_segmenter():
    deformers = SegmenterDeformers(painted.Scripted(around_the_point), lambda _image: painted.pixels())
    study = painted.study_of()
    made, again = (
        analyse_lesion(study, "consolidation", seed=5, rules=RULES, deformer_of=deformers) for _ in range(2)
    )
    assert isinstance(made, LesionAnalysis)
    assert made == again
    assert made.deformer == "scripted:one (weights 0123456789ab)"
    # The rules for edits hold, whoever makes them.
    assert RULES.revise_low <= made.overlap <= RULES.revise_high
    for edit in made.edits:
        assert edit.share >= RULES.edit_share
        assert edit.thickness >= RULES.edit_thickness * made.scale
    plain = analyse_lesion(study, "consolidation", seed=5, rules=RULES)
    assert plain.shown != made.shown
    assert plain.deformer == "signed-distance warp"


def test_random_weights_give_an_analysis_or_a_reason(tmp_path):
    pytest.importorskip("torch", reason="the extra torch is not installed")
    from tests.models import tiny  # needs torch

    from carina import models

    named = f"sam:{tiny.save_tiny('sam2', tmp_path / 'tiny-sam2')}"
    studies = painted.write_set(tmp_path / "studies", painted.study_of())
    made = [
        analyse_lesion(
            studies["s0"],
            "consolidation",
            seed=5,
            rules=RULES,
            deformer_of=SegmenterDeformers(models.open(named, needs="segments"), grey_reader(studies)),
        )
        for _ in range(2)
    ]
    assert made[0] == made[1]
    if isinstance(made[0], LesionAnalysis):
        assert made[0].deformer.startswith("sam:tiny-sam2 (weights ")
    else:
        assert made[0].reason.startswith("no room")
