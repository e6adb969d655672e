"""The conditional logit against scipy's optimiser and by hand."""

import numpy as np
import pytest
from scipy.optimize import minimize

from carina.cases.audit import logit


@pytest.fixture
def data():
    chance = np.random.default_rng(0)
    examples = []
    for _ in range(200):
        options = [sorted(set(chance.integers(0, 30, 5).tolist())) for _ in range(chance.integers(2, 6))]
        right = int(np.argmax([sum(feature < 6 for feature in option) for option in options]))
        examples.append((options, [float(place == right) for place in range(len(options))]))
    return logit.questions(examples, 30)


def test_weights_are_where_the_loss_is_lowest(data):
    ends = [*data.starts[1:], data.right.size]

    def loss(weights):
        scores = data.features @ weights
        total = 0.5 * weights @ weights
        for start, end in zip(data.starts, ends, strict=True):
            total += np.log(np.exp(scores[start:end]).sum()) - data.right[start:end] @ scores[start:end]
        return total

    found = logit.fit(data)
    reference = minimize(loss, np.zeros(30), method="BFGS")
    assert loss(found) == pytest.approx(reference.fun, abs=1e-3)
    assert found == pytest.approx(reference.x, abs=0.02)


def test_it_learns_what_tells_the_right_option(data):
    assert logit.hits(data, logit.fit(data)).mean() > 0.75


def test_ties_are_shared():
    data = logit.questions([([[0], [0], [1]], [1.0, 0.0, 0.0]), ([[1], [0]], [0.0, 1.0])], 2)
    assert logit.hits(data, np.array([1.0, 0.0])).tolist() == [0.5, 1.0]
    some = data.some(np.array([False, True]))
    assert (some.starts.tolist(), some.right.tolist()) == ([0], [0.0, 1.0])
