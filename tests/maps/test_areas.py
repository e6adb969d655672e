from itertools import chain, combinations

import numpy as np
import pytest

from carina.maps import measure_shape, size_bin, size_bins
from carina.maps.areas import best_cells
from carina.store.errors import CarinaError
from carina.studies import Region


def test_size_bins_include_their_edges() -> None:
    assert size_bins() == ["< 1%", "1-5%", "> 5%"]
    assert [size_bin(share) for share in (0, 0.009, 0.01, 0.05, 0.051, 1)] == [
        "none", "< 1%", "1-5%", "1-5%", "> 5%", "> 5%",
    ]  # fmt: skip
    assert size_bins((0.002, 0.01, 0.1)) == ["< 0.2%", "0.2-1%", "1-10%", "> 10%"]
    assert size_bin(0.01, (0.002, 0.01, 0.1)) == "1-10%"
    with pytest.raises(CarinaError, match="two or more ascending shares"):
        size_bins((0.5, 0.1))


def test_shape_of_a_box_and_a_triangle() -> None:
    box = measure_shape(Region.from_box(10, 10, 31, 11, height=100, width=100))
    assert box is not None
    assert (box.pieces, box.share) == (1, pytest.approx(0.0341))
    half = np.tril(np.ones((50, 50), bool))
    half[0, -1] = True
    triangle = measure_shape(Region.from_mask(half))
    assert triangle is not None
    assert triangle.pieces == 2
    assert measure_shape(Region.empty(5, 5)) is None


@pytest.mark.parametrize("seed", range(10))
def test_the_best_cells_are_the_best_of_all_sets_of_cells(seed: int) -> None:
    draw = np.random.default_rng(seed)
    cells = draw.integers(0, 7, (8, 8))
    truth = draw.random((8, 8)) < draw.uniform(0.1, 0.9)
    counted = draw.random((8, 8)) < 0.8
    true = int(truth.sum())
    every = chain.from_iterable(combinations(range(7), size) for size in range(1, 8))
    highest = 0.0
    for chosen in every:
        lit = np.isin(cells, chosen) & counted
        highest = max(highest, (lit & truth).sum() / (true + (lit & ~truth).sum()))
    hit, false = best_cells(truth, cells, counted, true)
    assert hit / (true + false) == pytest.approx(highest)
