"""Areas under curves over all thresholds: ROC and precision-recall, of sorted values exactly or of counts per level.

Unseen pixels that count lie below all others, tied among themselves: one more level at the bottom.
"""

import numpy as np

from carina.ground.score.onepass import Numbers, Pair, Steps


def auroc_of_levels(inside: Numbers, outside: Numbers) -> float:
    """Chance that a true pixel lies above another one, ties as one half; levels ascending, NaN if either is empty."""
    true, other = int(inside.sum()), int(outside.sum())
    if not true or not other:
        return np.nan
    # In doubles: pooled over a set, products of pixel counts leave 64 bits.
    below = np.cumsum(outside) - outside / 2
    return float((inside * below).sum()) / (true * other)


def auprc_of_levels(inside: Numbers, outside: Numbers) -> float:
    """Average precision: sum over levels from the top of (rise in recall) x precision; NaN where nothing is true."""
    true = int(inside.sum())
    if not true:
        return np.nan
    hit = np.cumsum(inside[::-1])
    predicted = hit + np.cumsum(outside[::-1])
    rise = inside[::-1]
    kept = rise > 0
    return float((rise[kept] / true * (hit[kept] / predicted[kept])).sum())


def exact_levels(pair: Pair) -> tuple[Numbers, Numbers]:
    """The counts at every distinct value of a true pixel and between them, so that no two values share a level."""
    return levels_of(pair.steps, len(pair.outside), pair.unseen_inside, pair.unseen_outside)


def levels_of(
    steps: Steps, outside: int, unseen_inside: int = 0, unseen_outside: int = 0
) -> tuple[Numbers, Numbers]:
    """Levels in ascending order: unseen, then in turn those below and those equal to a true pixel's value.

    Values that only other pixels have are merged: neither curve's area depends on the order among them.
    """
    true = np.zeros(2 * len(steps.true) + 2, np.int64)
    other = np.zeros_like(true)
    true[0], other[0] = unseen_inside, unseen_outside
    true[2::2] = steps.true
    other[2::2] = steps.up_to - steps.below
    other[1::2] = np.append(steps.below, outside) - np.append(0, steps.up_to)
    return true, other


def binned_levels(pair: Pair) -> tuple[Numbers, Numbers]:
    """The one pass's levels, with one below them for unseen pixels."""
    tally = pair.tally
    return (
        np.append(np.int64(pair.unseen_inside), tally.inside),
        np.append(np.int64(pair.unseen_outside), tally.outside),
    )
