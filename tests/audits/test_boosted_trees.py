"""Boosted trees find what features reveal only together, and nothing where nothing is to be found."""

import numpy as np
import pytest

from carina.audits.boosted_trees import BINS, find_right_by_trees, fit_trees, sort_into_bins
from carina.audits.chance import at_least
from carina.audits.percept.contour_classifier import find_right_options, find_right_options_by_trees

QUESTIONS, OPTIONS = 600, 4


@pytest.fixture
def interaction():
    """Of the right option, two features have the same sign, of wrong ones opposite signs; three others mean nothing."""
    chance = np.random.default_rng(3)
    right = chance.integers(0, OPTIONS, QUESTIONS)
    features = chance.normal(0, 1, (QUESTIONS, OPTIONS, 5))
    is_right = np.arange(OPTIONS) == right[:, None]
    sign = np.sign(features[..., 0]) * np.where(is_right, 1, -1)
    features[..., 1] = np.abs(features[..., 1]) * sign
    return features, right, np.arange(QUESTIONS) % 5


def test_trees_find_an_interaction_that_no_feature_and_no_linear_classifier_shows(interaction):
    features, right, folds = interaction
    by_chance = {1 / OPTIONS: QUESTIONS}
    for at in range(2):
        for rule in (features[..., at], -features[..., at], np.abs(features[..., at])):
            assert at_least((rule.argmax(axis=1) == right).sum(), by_chance) > 0.01
    assert at_least(find_right_options(features, right, folds).sum(), by_chance) > 0.01
    assert find_right_options_by_trees(features, right, folds).mean() > 0.6


def test_trees_find_no_more_than_chance_where_keys_are_random(interaction):
    features, _, folds = interaction
    right = np.random.default_rng(4).integers(0, OPTIONS, QUESTIONS)
    hits = find_right_options_by_trees(features, right, folds)
    assert at_least(hits.sum(), {1 / OPTIONS: QUESTIONS}) > 0.01


def test_trees_are_the_same_in_every_call_and_do_not_see_the_order_of_options(interaction):
    features, right, folds = interaction
    hits = find_right_by_trees(features, right, folds)
    np.testing.assert_array_equal(find_right_by_trees(features, right, folds), hits)
    turned = find_right_by_trees(features[:, ::-1], OPTIONS - 1 - right, folds)
    assert np.abs(turned - hits).mean() < 0.02  # sums in another order


def test_bins_keep_the_order_of_values_and_equal_values_share_one():
    values = np.random.default_rng(5).integers(0, 100, (50, 4, 1)) / 7
    bins = sort_into_bins(values)
    assert bins.max() < BINS
    order = np.argsort(values.ravel(), kind="stable")
    assert (np.diff(bins.ravel()[order].astype(int)) >= 0).all()
    for value in np.unique(values):
        assert len(np.unique(bins[values == value])) == 1


def test_options_without_differences_tie():
    features = np.zeros((20, 4, 2))
    hits = find_right_by_trees(features, np.zeros(20, np.int64), np.arange(20) % 5)
    assert hits.tolist() == [0.25] * 20
    trees = fit_trees(sort_into_bins(features), np.zeros(20, np.int64))
    assert not trees.score(sort_into_bins(features)).any()
