"""Methods that hide parts of a picture: against loops over masks and pixels."""

import numpy as np
import pytest

from carina.explanations.methods import METHODS
from carina.models.clip.interface import PromptPair
from carina.store.seeding import rng

PAIR = PromptPair(("sign of nodule", "a nodule"), ("no nodule",))


def maps(name, model, pixels, prompts=PAIR, **options):
    method = METHODS[name]
    return method.maps(model, pixels, prompts, method.options(**options)).numpy()


def same(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-6 * np.abs(theirs).max())


def probability(tiny, model, picture):
    """Of the finding, for one picture (3, side, side) in numpy."""
    seen = model.encode_image(tiny.torch.from_numpy(picture)[None])
    scores = [
        float(model.score(seen, model.encode_text([text]))[0, 0]) for text in PAIR.positive + PAIR.negative
    ]
    return 1 / (1 + np.exp(scores[2] - (scores[0] + scores[1]) / 2))


def enlarged(cells, size):
    """Bilinear between the centres of cells, edges held."""
    number = len(cells)
    at = np.clip((np.arange(size) + 0.5) * number / size - 0.5, 0, number - 1)
    low = np.minimum(at.astype(int), max(number - 2, 0))
    high, share = np.minimum(low + 1, number - 1), at - low
    made = np.zeros((size, size))
    for y in range(size):
        rows = (1 - share[y]) * cells[low[y]] + share[y] * cells[high[y]]
        made[y] = (1 - share) * rows[low] + share * rows[high]
    return made


def means_over(values, grid):
    rows, columns = (np.array_split(range(values.shape[0]), number) for number in grid)
    return np.array([[values[np.ix_(row, column)].mean() for column in columns] for row in rows])


@pytest.mark.parametrize("fill", ["zero", "mean"])
@pytest.mark.parametrize("centred", [False, True])
def test_rise_is_the_mean_of_masks_weighted_by_score(tiny, centred, fill):
    model = tiny.random_model("class")
    pixels = tiny.pictures(model)
    # 12 pixels in 5 cells: a cell is 3 pixels, and masks are cut from 18.
    kept = rng(3, "rise", "cells").random((9, 5, 5)) < 0.4
    shifts = rng(3, "rise", "shifts").integers(0, 3, (9, 2))
    masks = [
        enlarged(cells.astype(float), 18)[down : down + 12, right : right + 12]
        for cells, (down, right) in zip(kept, shifts, strict=True)
    ]
    theirs = []
    for picture in pixels.numpy():
        blank = np.zeros((3, 1, 1)) if fill == "zero" else picture.mean((1, 2), keepdims=True)
        scores = np.array([probability(tiny, model, mask * picture + (1 - mask) * blank) for mask in masks])
        if centred:
            scores = scores - scores.mean()
        weighted = sum(score * mask for score, mask in zip(scores, masks, strict=True)) / 9 / 0.4
        theirs.append(means_over(weighted, (3, 3)))
    options = {"masks": 9, "cells": 5, "share": 0.4, "seed": 3, "batch": 4, "fill": fill, "centred": centred}
    same(maps("rise", model, pixels, **options), np.array(theirs))


def test_rise_depends_only_on_its_seed(tiny):
    model = tiny.random_model("class")
    pixels = tiny.pictures(model)
    first, again, other = (maps("rise", model, pixels, masks=20, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.mark.parametrize(("window", "stride"), [(1, 1), (2, 1), (2, 2), (3, 2), (9, 1)])
@pytest.mark.parametrize("fill", ["zero", "mean"])
def test_occlusion_is_the_fall_of_the_score(tiny, fill, window, stride):
    model = tiny.random_model("class")
    pixels = tiny.pictures(model)
    size = min(window, 3)
    starts = {1: [0, 1, 2], 2: [0, 1], 3: [0]}[size]
    theirs = []
    for picture in pixels.numpy():
        whole = probability(tiny, model, picture)
        falls = [[[] for _ in range(3)] for _ in range(3)]
        for row in starts:
            for column in starts:
                hidden = picture.copy()
                part = hidden[:, 4 * row : 4 * (row + size), 4 * column : 4 * (column + size)]
                part[:] = 0 if fill == "zero" else picture.mean((1, 2), keepdims=True)
                fall = whole - probability(tiny, model, hidden)
                for below in range(row, row + size):
                    for beside in range(column, column + size):
                        falls[below][beside].append(fall)
        theirs.append([[np.mean(cell) for cell in row] for row in falls])
    ours = maps("occlusion", model, pixels, window=window, stride=stride, fill=fill, batch=2)
    same(ours, np.array(theirs))


def test_cells_of_a_grid_that_does_not_divide_the_square(tiny):
    """A residual network's: 40 pixels in 2 and in 3 cells, where each pixel belongs to one."""
    from carina.explanations.methods._cells import cells, mean_over_cells

    assert cells(7, 3).tolist() == [0, 0, 0, 1, 1, 2, 2]
    values = tiny.torch.arange(49, dtype=tiny.torch.float64).reshape(7, 7)
    expected = [
        [values[a:b, c:d].mean() for c, d in ((0, 3), (3, 5), (5, 7))] for a, b in ((0, 3), (3, 5), (5, 7))
    ]
    same(mean_over_cells(values, (3, 3)).numpy(), np.array(expected))
