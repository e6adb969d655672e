"""Shuffled weights and other texts: what changes, by how much, and that everything is put back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import pearsonr, spearmanr
from skimage.metrics import structural_similarity

from carina.explanations.methods import METHODS
from carina.explanations.sanity import (
    compare_maps,
    randomise_weights,
    shuffled_weights,
    weights_by_stage,
)
from carina.store.errors import CarinaError


@pytest.mark.parametrize("shape", [(14, 14), (7, 7), (4, 6), (19, 19)])
def test_agreement_equals_scipy_and_skimage(shape):
    chance = np.random.default_rng(0)
    one = chance.standard_normal((3, *shape))
    other = one + chance.standard_normal((3, *shape))
    other[2] = np.round(other[2])
    found = compare_maps(one, other)
    window = min(7, min(shape) if min(shape) % 2 else min(shape) - 1)
    for index, (a, b) in enumerate(zip(one, other, strict=True)):
        assert found.pearson[index] == pytest.approx(pearsonr(a.ravel(), b.ravel())[0])
        assert found.spearman[index] == pytest.approx(spearmanr(a.ravel(), b.ravel())[0])
        stretched = [(values - values.min()) / np.ptp(values) for values in (a, b)]
        expected = structural_similarity(*stretched, data_range=1.0, win_size=window)
        assert found.ssim[index] == pytest.approx(expected)


@given(arrays(np.float64, (1, 7, 7), elements=st.floats(-100, 100, width=16)))
def test_a_map_agrees_with_itself_on_any_scale(values):
    found = compare_maps(values, 3 * values + 2)
    expected = np.nan if np.ptp(values) == 0 else 1.0
    for part in (found.pearson, found.spearman, found.ssim):
        np.testing.assert_allclose(part, [expected], rtol=1e-6)


def test_maps_of_other_sizes_are_refused():
    with pytest.raises(ValueError, match="expected the same"):
        compare_maps(np.zeros((1, 2, 2)), np.zeros((1, 3, 3)))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("class", ["output", "block 2", "block 1", "block 0", "input"]),
        ("attention", ["output", "block 2", "block 1", "block 0", "input"]),
        ("resnet", ["layer4", "layer3", "layer2", "layer1", "input"]),
        ("resnet3", ["layer3", "layer2", "layer1", "input"]),
    ],
)
def test_stages_go_from_output_to_input(tiny, kind, expected):
    tower = tiny.random_model(kind).tower
    found = weights_by_stage(tower)
    assert list(found) == expected
    named = [name for names in found.values() for name in names]
    assert sorted(named) == sorted(
        name for name, weights in tower.state_dict().items() if weights.is_floating_point()
    )


@pytest.mark.parametrize("kind", ["class", "resnet"])
def test_weights_are_shuffled_and_restored(tiny, kind):
    tower = tiny.random_model(kind).tower
    before = {name: weights.clone() for name, weights in tower.state_dict().items()}
    part = list(weights_by_stage(tower))[1]
    with shuffled_weights(tower, [part], seed=3):
        first = {name: weights.clone() for name, weights in tower.state_dict().items()}
    second = {}

    def stopped():
        with shuffled_weights(tower, [part], seed=3):
            second.update((name, weights.clone()) for name, weights in tower.state_dict().items())
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        stopped()
    for name, weights in tower.state_dict().items():
        assert tiny.torch.equal(weights, before[name])
        assert tiny.torch.equal(first[name], second[name])
        moved = name in weights_by_stage(tower)[part]
        assert tiny.torch.equal(first[name], before[name]) == (not moved or weights.numel() == 1)
        assert tiny.torch.equal(first[name].flatten().sort()[0], before[name].flatten().sort()[0])
    with shuffled_weights(tower, [part], seed=4):
        assert any(not tiny.torch.equal(w, first[name]) for name, w in tower.state_dict().items())


@pytest.mark.parametrize("kind", ["class", "resnet3"])
def test_maps_depend_on_weights(tiny, kind):
    model = tiny.random_model(kind)
    pixels = tiny.pictures(model)

    def explain():
        return METHODS["similarity"].maps(model, pixels, tiny.PAIR, METHODS["similarity"].options(sigma=0))

    before = explain()
    steps = randomise_weights(model, explain)
    assert [step.stage for step in steps] == list(weights_by_stage(model.tower))
    assert all((step.agreement.pearson < 0.999).all() for step in steps)
    assert tiny.torch.equal(explain(), before)
    (whole,) = randomise_weights(model, explain, order="whole")
    assert whole.stage == "whole"
    # The last step of a cascade has shuffled everything, with the same draws.
    for part in ("pearson", "spearman", "ssim"):
        assert np.array_equal(getattr(whole.agreement, part), getattr(steps[-1].agreement, part))


def test_a_map_that_ignores_the_model_agrees_fully(tiny):
    model = tiny.random_model("class")
    pixels = tiny.pictures(model)
    steps = randomise_weights(model, lambda: pixels.mean(1))
    assert all((step.agreement.pearson > 1 - 1e-9).all() for step in steps)


def test_a_model_without_a_readable_tower_cannot_be_shuffled(tiny):
    with pytest.raises(CarinaError, match="tiny: the layers of its image tower cannot be read"):
        randomise_weights(tiny.reading(0, 0), lambda: np.zeros((1, 4, 4)))


def test_rollout_ignores_the_text_and_similarity_does_not(tiny):
    model = tiny.random_model("class")
    pixels = tiny.pictures(model)
    other = tiny.PromptPair(("a fracture",), ("no fracture",))

    def with_method(name):
        return lambda prompts: METHODS[name].maps(model, pixels, prompts)

    assert (compare_maps(*map(with_method("rollout"), (tiny.PAIR, other))).pearson > 1 - 1e-9).all()
    assert (compare_maps(*map(with_method("similarity"), (tiny.PAIR, other))).pearson < 0.99).all()
