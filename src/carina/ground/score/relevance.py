"""How much of a map's mass, or of its highest pixels, lies in the truth."""

import math

import numpy as np

from carina.ground.score.onepass import Pair


def mass(pair: Pair, *, signed: bool = False) -> float:
    """Sum inside the truth / sum everywhere, of values above 0 or of all; NaN without truth or where the sum is 0."""
    if not pair.true:
        return math.nan
    inside, outside = pair.tally.of_inside, pair.tally.of_outside
    within, without = (inside.total, outside.total) if signed else (inside.positive, outside.positive)
    if within + without == 0:
        return math.nan if pair.known else 0.0
    return within / (within + without)


def top_share(pair: Pair, k: int) -> float:
    """Share of the k highest pixels that is true; the last places go to tied pixels in equal parts.

    Unseen pixels come after all others. NaN without truth, or where there are fewer than k pixels.
    """
    if not pair.true or k > pair.pixels or k < 1:
        return math.nan
    if k > pair.known:
        unseen = pair.unseen_inside + pair.unseen_outside
        return (len(pair.inside) + (k - pair.known) * pair.unseen_inside / unseen) / k
    last = kth_highest(pair, k)
    above = int(np.count_nonzero(pair.inside > last))
    tied = int(np.count_nonzero(pair.inside == last))
    all_above = above + int(np.count_nonzero(pair.outside > last))
    all_tied = tied + int(np.count_nonzero(pair.outside == last))
    return (above + (k - all_above) * tied / all_tied) / k


def kth_highest(pair: Pair, k: int) -> np.float32:
    """The k-th highest value, k from 1 to the number of known pixels."""
    values = np.concatenate([pair.inside, pair.outside])
    values.partition(len(values) - k)
    return np.float32(values[len(values) - k])
