"""Curves of deletion and insertion: orders, what is shown where cells are hidden, and areas worked out by hand."""

import numpy as np
import pytest
from scipy.signal import convolve2d

from carina.explanations.faithfulness import (
    Faithfulness,
    FaithfulnessOptions,
    blur,
    faithfulness,
    faithfulness_curves,
    impute_linear,
    make_hider,
    rank_cells,
)
from carina.store.errors import CarinaError


def test_areas_under_curves_follow_the_trapezoidal_rule():
    made = Faithfulness(
        np.array([0, 0.5, 1]), np.array([[1.0, 0.5, 0.0], [1, 1, 1]]), np.array([[0, 1, 1], [0, 0, 4.0]])
    )
    assert made.deletion_area.tolist() == [0.5, 1.0]
    assert made.insertion_area.tolist() == [0.75, 1.0]


def test_cells_are_ranked_from_the_highest_with_random_ties():
    maps = np.array([[[1, 5], [3, 2]], [[0, 0], [0, 7]]], np.float32)
    first = rank_cells(maps, seed=0)
    assert first[0].tolist() == [[3, 0], [1, 2]]
    assert first[1, 1, 1] == 0
    assert sorted(first[1].ravel().tolist()) == [0, 1, 2, 3]
    flat = np.zeros((1, 8, 8), np.float32)
    orders = {tuple(rank_cells(flat, seed=seed).ravel().tolist()) for seed in range(3)}
    assert len(orders) == 3
    assert tuple(range(64)) not in orders
    # What is not known goes last.
    assert rank_cells(np.array([[[np.nan, -1], [2, 0]]]), seed=0)[0].tolist() == [[3, 2], [0, 1]]


def test_blur_is_a_gaussian_of_eleven_pixels():
    picture = np.random.default_rng(0).standard_normal((3, 20, 20)).astype(np.float32)
    along = np.exp(-(np.arange(-5, 6) ** 2) / (2 * 5.0**2))
    kernel = np.outer(along, along) / along.sum() ** 2
    padded = np.pad(picture[1], 5, mode="edge")
    np.testing.assert_allclose(blur(picture, 11, 5.0)[1], convolve2d(padded, kernel, "valid"), atol=1e-6)


def linear_by_hand(channel, hidden):
    """Equations for every hidden pixel, in a dense matrix."""
    places = [tuple(place) for place in np.argwhere(hidden)]
    matrix, known = np.zeros((len(places), len(places))), np.zeros(len(places))
    for row, (y, x) in enumerate(places):
        for down in (-1, 0, 1):
            for right in (-1, 0, 1):
                near = (y + down, x + right)
                if (down, right) == (0, 0) or min(near) < 0 or max(near) >= len(channel):
                    continue
                weight = 1 / 12 if down and right else 1 / 6
                matrix[row, row] += weight
                if hidden[near]:
                    matrix[row, places.index(near)] -= weight
                else:
                    known[row] += weight * channel[near]
    made = channel.astype(float).copy()
    made[hidden] = np.linalg.solve(matrix, known)
    return made


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_hidden_pixels_are_the_weighted_mean_of_their_neighbours(share):
    chance = np.random.default_rng(1)
    picture = chance.standard_normal((3, 9, 9)).astype(np.float32)
    hidden = chance.random((9, 9)) < share
    made = impute_linear(picture, hidden)
    for channel, theirs in zip(picture, made, strict=True):
        np.testing.assert_allclose(theirs, linear_by_hand(channel, hidden), atol=1e-5)
    assert np.array_equal(made[:, ~hidden], picture[:, ~hidden])


def test_imputation_continues_a_linear_gradient():
    """A weighted mean of neighbours on all sides leaves a plane as it is."""
    plane = np.add.outer(np.arange(12.0), 2 * np.arange(12.0)).astype(np.float32)[None].repeat(3, 0)
    hidden = np.zeros((12, 12), bool)
    hidden[3:8, 4:9] = True
    np.testing.assert_allclose(impute_linear(plane, hidden), plane, atol=1e-4)


def test_imputation_with_all_or_no_pixels_hidden():
    picture = np.random.default_rng(2).standard_normal((3, 4, 4)).astype(np.float32)
    nothing, everything = np.zeros((4, 4), bool), np.ones((4, 4), bool)
    options = FaithfulnessOptions(imputation="noisy-linear", noise=0.01)
    assert np.array_equal(make_hider(picture, options)(nothing), picture)
    flat = make_hider(picture, options)(everything) - picture.mean((1, 2), keepdims=True)
    assert 0.002 < flat.std() < 0.03
    quiet = FaithfulnessOptions(imputation="noisy-linear", noise=0.0)
    np.testing.assert_allclose(
        make_hider(picture, quiet)(everything),
        np.broadcast_to(picture.mean((1, 2), keepdims=True), (3, 4, 4)),
    )


def bright_share(pictures):
    """A score that is the mean of the picture."""
    return pictures.mean((1, 2, 3))


def test_curves_of_a_score_that_is_a_mean():
    """One cell of four is bright, and a wide blur of nothing beyond it: deleting it first, the score falls at once."""
    picture = np.zeros((1, 3, 4, 4), np.float32)
    picture[:, :, :2, :2] = 1
    options = FaithfulnessOptions(imputation="noisy-linear", noise=0.0, contrast="none")
    right = np.array([[[9, 0], [1, 2]]], np.float32)
    found = faithfulness_curves(bright_share, picture, right, options)
    assert found.share.tolist() == [0, 0.25, 0.5, 0.75, 1]
    # Without the bright cell all is dark; without everything it is the mean, a quarter.
    assert found.deletion[0] == pytest.approx([0.25, 0, 0, 0, 0.25])
    # Nothing known is the mean; the bright cell alone fills everything.
    assert found.insertion[0, :2] == pytest.approx([0.25, 1.0])
    assert found.insertion[0, 4] == 0.25
    wrong = faithfulness_curves(bright_share, picture, -right, options)
    assert wrong.deletion_area[0] > found.deletion_area[0]
    assert wrong.insertion_area[0] < found.insertion_area[0]


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_curves_do_not_depend_on_the_batch_size(batch):
    chance = np.random.default_rng(3)
    pictures = chance.standard_normal((2, 3, 10, 10)).astype(np.float32)
    maps = chance.standard_normal((2, 5, 5)).astype(np.float32)
    sizes = []

    def score(some):
        sizes.append(len(some))
        return some[:, 0, 3, 4]

    found = faithfulness_curves(score, pictures, maps, FaithfulnessOptions(steps=4, batch=batch))
    assert found.share.tolist() == [0, 6 / 25, 12 / 25, 19 / 25, 1]
    assert max(sizes) <= batch
    assert sum(sizes) == 2 * 2 * 5
    blurred = np.array([blur(picture, 11, 5.0) for picture in pictures])[:, 0, 3, 4]
    # Pixel (3, 4) lies in cell (1, 2), and is deleted once its rank is.
    rank = rank_cells(maps, 0)[:, 1, 2]
    for index in range(2):
        ends = np.array([0, 6, 12, 19, 25])
        expected = np.where(rank[index] < ends, blurred[index], pictures[index, 0, 3, 4])
        assert found.deletion[index] == pytest.approx(expected)
        assert found.insertion[index] == pytest.approx(
            np.where(rank[index] < ends, pictures[index, 0, 3, 4], blurred[index])
        )


@pytest.mark.parametrize("imputation", ["blur", "noisy-linear"])
@pytest.mark.parametrize("contrast", ["none", "probability"])
def test_a_model_that_reads_one_cell_is_faithful_to_it(tiny, contrast, imputation):
    model = tiny.reading(1, 2)
    pixels = tiny.bright(model, 1, 2).repeat(2, 1, 1, 1)
    right, wrong = np.zeros((2, 4, 4), np.float32), np.ones((2, 4, 4), np.float32)
    right[:, 1, 2], wrong[:, 1, 2] = 1, 0
    options = FaithfulnessOptions(imputation=imputation, contrast=contrast)
    good, bad = (faithfulness(model, pixels, tiny.BRIGHT, maps, options) for maps in (right, wrong))
    assert good.deletion.shape == good.insertion.shape == (2, 17)
    assert (good.deletion_area < bad.deletion_area).all()
    assert (good.insertion_area > bad.insertion_area).all()
    # The score moves in the first step alone, or the last.
    assert (np.abs(np.diff(good.insertion[0]))[1:] < 1e-6).all()
    assert (
        np.abs(np.diff(bad.insertion[0]))[:-1] < 0.1 * np.ptp(bad.insertion[0])
    ).all() or imputation != "blur"
    # Scores of the whole picture are the model's own.
    texts = model.encode_text([*tiny.BRIGHT.positive, *tiny.BRIGHT.negative])
    scores = model.score(model.encode_image(pixels[:1]), texts)[0].tolist()
    own = scores[0] if contrast == "none" else 1 / (1 + np.exp(scores[1] - scores[0]))
    assert good.deletion[0, 0] == pytest.approx(own)
    assert good.insertion[1, -1] == pytest.approx(own)


def test_curves_do_not_depend_on_other_images_and_are_deterministic(tiny):
    model = tiny.random_model("class")
    pixels = tiny.pictures(model, 2)
    maps = np.random.default_rng(0).random((2, 3, 3)).astype(np.float32)
    options = FaithfulnessOptions(imputation="noisy-linear")
    both = faithfulness(model, pixels, tiny.PAIR, maps, options)
    again = faithfulness(model, pixels, tiny.PAIR, tiny.torch.from_numpy(maps), options)
    assert np.array_equal(both.deletion, again.deletion)
    assert np.array_equal(both.insertion, again.insertion)
    for index in range(2):
        alone = faithfulness(model, pixels[index : index + 1], tiny.PAIR, maps[index : index + 1], options)
        np.testing.assert_allclose(both.deletion[index], alone.deletion[0], atol=1e-6)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"kernel": 10}, "option kernel: expected an odd number of pixels, found 10"),
        ({"sigma": 0}, "options sigma and noise"),
        ({"steps": 0}, "options batch and steps: expected at least 1, found 32 and 0"),
    ],
)
def test_wrong_options_are_named(given, complaint):
    with pytest.raises(CarinaError, match=complaint):
        FaithfulnessOptions(**given)
