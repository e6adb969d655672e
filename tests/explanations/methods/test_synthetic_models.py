"""Models of which it is known where they look: every method finds the place, wherever it is."""

import numpy as np
import pytest

from carina.explanations.methods import METHODS

OPTIONS = {
    "similarity": {"sigma": 0.0},
    "rise": {"masks": 300, "cells": 4, "centred": True},
    "gscorecam": {"channels": 1, "scale": 20.0},
}
"""The grid is of 4 x 4 cells, on which a Gaussian of 1.5 leaves nothing of a single one."""
PLACES = ((0, 0), (1, 2), (3, 1))
TEXT_FREE = {"rollout"}


def peak(made):
    return np.unravel_index(made[0].argmax(), made[0].shape)


def maps(name, model, pixels, prompts, **options):
    method = METHODS[name]
    chosen = method.options(**{**OPTIONS.get(name, {}), **options})
    return method.maps(model, pixels, prompts, chosen).numpy()


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("pool", ["class", "mean", "attention"])
def test_maps_of_a_transformer_that_scores_brightness(tiny, pool, name):
    model = tiny.seeing(pool)
    for place in PLACES:
        found = maps(name, model, tiny.bright(model, *place), tiny.BRIGHT)
        assert found.shape == (1, 4, 4)
        assert peak(found) == place
        # And nowhere else.
        assert found[0][place] - np.delete(found.ravel(), found.argmax()).max() > 0.01 * np.ptp(found)


@pytest.mark.parametrize("name", ["similarity", "grad-cam", "gscorecam", "occlusion", "rise"])
def test_maps_of_a_residual_network_that_scores_brightness(tiny, name):
    model = tiny.seeing_resnet()
    assert model.grid == (4, 4)
    for place in PLACES:
        assert peak(maps(name, model, tiny.bright(model, *place), tiny.BRIGHT)) == place


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["rise", "occlusion"])
def test_a_model_that_reads_one_cell(tiny, name, place):
    """The picture has no pattern, so that only the model tells where it looks."""
    model = tiny.reading(*place)
    pixels = tiny.torch.ones(1, 3, 16, 16, dtype=tiny.torch.float64)
    found = maps(name, model, pixels, tiny.BRIGHT)
    assert peak(found) == place
    if name == "occlusion":
        assert (np.delete(found.ravel(), found.argmax()) == 0).all()


@pytest.mark.parametrize("name", ["grad-cam", "legrad", "relevance"])
def test_evidence_against_a_finding_is_not_in_the_map(tiny, name):
    """Probe for the dark, slopes on the bright patch are negative."""
    model = tiny.seeing("class")
    dark = type(tiny.BRIGHT)(tiny.BRIGHT.negative)
    assert maps(name, model, tiny.bright(model, 1, 2), dark)[0, 1, 2] == 0


@pytest.mark.parametrize("name", sorted(set(METHODS) - TEXT_FREE))
def test_another_text_gives_another_map(tiny, name):
    model = tiny.random_model("class", seed=2, decodes=True)
    pixels, pair = tiny.pictures(model), tiny.PromptPair
    one, other = (
        maps(
            name,
            model,
            pixels,
            pair((text, f"{text} here"), ("none",)),
            **({"masks": 20} if name == "rise" else {}),
        )
        for text in ("a nodule", "mass seen")
    )
    assert not np.allclose(one, other)
