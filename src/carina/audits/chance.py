"""What chance alone gives: exact tail probabilities and separations, without random numbers.

Pure functions over counts. A gate tries several answers, so it multiplies each tail probability by the number of tries
(Bonferroni) before it compares it with a level.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import special

from carina.audits.result import Row, Status
from carina.stats.proportion import wilson

Z95: Final = 1.959963984540054
"""97.5% quantile of the standard normal distribution."""
_EXACT: Final = 6000
"""Up to this many trials the distribution of hits is computed exactly; beyond, it is taken as normal."""

Trials = Mapping[float, int]
"""Probability of a hit -> number of independent trials with this probability."""


def expected(trials: Trials) -> float:
    """Expected number of hits."""
    return sum(p * n for p, n in trials.items())


def shift(trials: Trials, by: float) -> Trials:
    """The same trials, with `by` added to every probability."""
    if not by:
        return trials
    moved: defaultdict[float, int] = defaultdict(int)
    for p, n in trials.items():
        moved[min(max(p + by, 0.0), 1.0)] += n
    return moved


def at_least(hits: float, trials: Trials) -> float:
    """Probability of at least this many hits; a fraction of a hit, from a tie, does not count."""
    whole = math.floor(hits + 1e-9)
    if whole <= 0:
        return 1.0
    n = sum(trials.values())
    if whole > n:
        return 0.0
    if n <= _EXACT:
        return min(1.0, float(_distribution(trials)[whole:].sum()))
    return normal_tail((whole - 0.5 - expected(trials)) / _spread(trials))


def at_most(hits: float, trials: Trials) -> float:
    """Probability of at most this many hits; a fraction of a hit counts as one."""
    whole = math.ceil(hits - 1e-9)
    n = sum(trials.values())
    if whole >= n:
        return 1.0
    if n <= _EXACT:
        return min(1.0, float(_distribution(trials)[: whole + 1].sum()))
    return normal_tail((expected(trials) - whole - 0.5) / _spread(trials))


def limit(trials: Trials, level: float) -> float:
    """The largest share of hits that chance explains at this level."""
    n = sum(trials.values())
    if not n:
        return 1.0
    if n <= _EXACT:
        above = np.cumsum(_distribution(trials)[::-1])[::-1]
        whole = int(np.argmax(above <= level)) if (above <= level).any() else n + 1
        return min(1.0, (whole - 1) / n)
    return min(1.0, (expected(trials) + -float(special.ndtri(level)) * _spread(trials)) / n)


def normal_tail(z: float) -> float:
    """Probability of a value more than `z` standard deviations above the mean."""
    return float(special.ndtr(-z))


def sign_test(plus: int, minus: int) -> float:
    """One-sided sign test: probability of `plus` or more heads in `plus + minus` flips of a fair coin."""
    return float(special.bdtrc(plus - 1, plus + minus, 0.5)) if plus else 1.0


def hit_row(
    name: str,
    hits: float,
    trials: Trials,
    *,
    p: float,
    note: str,
    limit: float | None = None,
    status: Status = "pass",
) -> Row:
    """A row about the share of hits, with Wilson's interval, beside the share that chance gives."""
    n = sum(trials.values())
    interval = wilson(hits, n)
    return Row(
        name=name,
        n=n,
        value=hits / n,
        low=interval.low,
        high=interval.high,
        chance=expected(trials) / n,
        limit=limit,
        p=p,
        status=status,
        note=note,
    )


def _distribution(trials: Trials) -> NDArray[np.float64]:
    density = np.ones(1)
    for p, n in sorted(trials.items()):
        density = np.convolve(density, _binomial(n, min(max(p, 0.0), 1.0)))
    return np.asarray(density, np.float64)


def _binomial(n: int, p: float) -> NDArray[np.float64]:
    hits = np.arange(n + 1)
    ways = special.gammaln(n + 1) - special.gammaln(hits + 1) - special.gammaln(n - hits + 1)
    return np.asarray(np.exp(ways + special.xlogy(hits, p) + special.xlog1py(n - hits, -p)), np.float64)


def _spread(trials: Trials) -> float:
    return math.sqrt(sum(p * (1 - p) * n for p, n in trials.items())) or 1e-12


def separation(groups: Sequence[tuple[Sequence[float], Sequence[float]]]) -> tuple[float, float, int]:
    """How well a number separates two classes, comparing values within groups only.

    Args:
        groups: For each group, the values of the first class and those of the second.

    Returns:
        Area under the ROC curve, its standard error if there were no separation (with ties), and the number of values.
    """
    u = pairs = variance = 0.0
    compared = 0
    for first, second in groups:
        a, b = len(first), len(second)
        if not a or not b:
            continue
        values = np.concatenate([np.asarray(first, np.float64), np.asarray(second, np.float64)])
        _, at, ties = np.unique(values, return_inverse=True, return_counts=True)
        ranks = (np.cumsum(ties) - (ties - 1) / 2)[at]
        n = a + b
        u += float(ranks[:a].sum()) - a * (a + 1) / 2
        pairs += a * b
        variance += a * b / 12 * ((n + 1) - float((ties**3 - ties).sum()) / (n * (n - 1)))
        compared += n
    if not pairs:
        return 0.5, 0.0, 0
    return u / pairs, math.sqrt(max(variance, 0.0)) / pairs, compared


def equal_neighbours(labels: Sequence[str]) -> tuple[int, float]:
    """How many neighbours in a sequence are equal, and by how many standard deviations that exceeds a shuffled one."""
    n = len(labels)
    equal = sum(one == other for one, other in pairwise(labels))
    counts = np.unique(np.asarray(labels, dtype=str), return_counts=True)[1].astype(np.float64)
    if n < 3 or len(counts) < 2:
        return equal, 0.0
    # Pairs that share a place are dependent; the sums over labels use falling factorials.
    same = float((counts * (counts - 1)).sum()) / (n * (n - 1))
    three = float((counts * (counts - 1) * (counts - 2)).sum()) / (n * (n - 1) * (n - 2))
    mean = (n - 1) * same
    square = mean + 2 * (n - 2) * three
    if n > 3:
        falling = counts * (counts - 1)
        apart = (
            float(falling.sum()) ** 2
            - float((falling**2).sum())
            + float((falling * (counts - 2) * (counts - 3)).sum())
        )
        square += (n - 2) * (n - 3) * apart / (n * (n - 1) * (n - 2) * (n - 3))
    spread = math.sqrt(max(square - mean * mean, 1e-12))
    return equal, (equal - mean) / spread
