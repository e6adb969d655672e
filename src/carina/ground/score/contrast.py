"""Contrast to noise between inside and outside the truth."""

import math

from carina.ground.score.onepass import Pair


def cnr(pair: Pair) -> float:
    """(mean inside - mean outside) / sqrt(variance inside + variance outside); 0 where both variances are 0.

    NaN where nothing seen lies inside, or nothing outside. Variances are of the population.
    """
    inside, outside = pair.tally.of_inside, pair.tally.of_outside
    if not inside.n or not outside.n:
        return math.nan
    noise = inside.variance + outside.variance
    return (inside.mean - outside.mean) / math.sqrt(noise) if noise > 0 else 0.0
