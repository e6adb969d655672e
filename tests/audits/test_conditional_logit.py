"""The conditional logit against another optimiser and by hand."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize

from carina.audits.conditional_logit import QuestionTable, fit_logit, score_hits


def table(examples, width):
    """From, for each question, the features of each option and the option's share in the right answer."""
    rows = [features for options, _ in examples for features in options]
    sizes = np.array([len(options) for options, _ in examples], np.int64)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    indices = np.array([feature for row in rows for feature in row], np.int64)
    matrix = sparse.csr_matrix((np.ones(indices.size), indices, indptr), shape=(len(rows), width))
    right = np.array([share for _, shares in examples for share in shares], np.float64)
    return QuestionTable(features=matrix, starts=starts, right=right)


@pytest.fixture
def data():
    chance = np.random.default_rng(0)
    examples = []
    for _ in range(200):
        options = [sorted(set(chance.integers(0, 30, 5).tolist())) for _ in range(chance.integers(2, 6))]
        right = int(np.argmax([sum(feature < 6 for feature in option) for option in options]))
        examples.append((options, [float(place == right) for place in range(len(options))]))
    return table(examples, 30)


def test_weights_minimise_the_loss(data):
    ends = [*data.starts[1:], data.right.size]

    def loss(weights):
        scores = data.features @ weights
        total = 0.5 * weights @ weights
        for start, end in zip(data.starts, ends, strict=True):
            total += np.log(np.exp(scores[start:end]).sum()) - data.right[start:end] @ scores[start:end]
        return total

    found = fit_logit(data)
    reference = minimize(loss, np.zeros(30), method="BFGS")
    assert loss(found) == pytest.approx(reference.fun, abs=1e-3)
    assert found == pytest.approx(reference.x, abs=0.02)


def test_the_model_learns_what_marks_the_right_option(data):
    assert score_hits(data, fit_logit(data)).mean() > 0.75


def test_tied_options_share_a_hit():
    data = table([([[0], [0], [1]], [1.0, 0.0, 0.0]), ([[1], [0]], [0.0, 1.0])], 2)
    assert score_hits(data, np.array([1.0, 0.0])).tolist() == [0.5, 1.0]
    some = data.select(np.array([False, True]))
    assert (some.starts.tolist(), some.right.tolist()) == ([0], [0.0, 1.0])
