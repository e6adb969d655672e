"""Changes that make a contour simpler: their area and direction, worked out on shapes of which both are known."""

import cv2
import numpy as np
import pytest

from carina.percept.outline import draw_outline
from carina.percept.rules import Rules
from carina.percept.straight_changes import list_runs, replace_run
from carina.store.seeding import rng

RULES = Rules()


@pytest.fixture
def outline(chest):
    return draw_outline(chest.scene(chest.lesions()["large"]), RULES, rng(1))


def made(outline, operation, sizes):
    table = list_runs(outline)
    near = np.ones_like(outline.mask)
    runs = [run for run, _ in zip(table.find_runs(sizes, operation, near, rng(2)), range(30), strict=False)]
    return [(run, replace_run(outline, table, run)) for run in runs]


@pytest.mark.parametrize("operation", ["expansion", "contraction"])
def test_a_change_has_about_the_area_of_its_run_and_moves_the_contour_one_way(outline, operation):
    sizes = 0.08 * outline.area, 0.2 * outline.area
    changes = [(run, change) for run, change in made(outline, operation, sizes) if change is not None]
    assert len(changes) >= 5
    for run, change in changes:
        assert sizes[0] <= run.area <= sizes[1]
        assert change.operation == operation
        assert 0.8 * run.area <= change.area <= 1.2 * run.area
        before = outline.mask[change.window]
        assert (before[change.mask] == (operation == "contraction")).all()
        assert outline.field[change.window][change.mask].all()


def test_a_chord_of_a_convex_contour_leaves_it_convex(outline):
    for run, change in made(outline, "contraction", (0.08 * outline.area, 0.2 * outline.area)):
        assert run.corner is None  # a corner of a convex contour lies outside
        after = outline.mask.copy()
        after[change.window] ^= change.mask
        ring = max(
            cv2.findContours(after.view(np.uint8), cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_NONE)[0], key=len
        )
        assert cv2.contourArea(ring) >= 0.97 * cv2.contourArea(cv2.convexHull(ring))
