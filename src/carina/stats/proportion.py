"""Intervals of a share k / n of independent trials, without clusters."""

import math

from scipy.special import betaincinv, ndtri

from carina.stats.interval import Interval
from carina.store.errors import CarinaError


def wilson(k: float, n: int, *, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share: all p that the z-test does not reject for k of n.

    (p + z²/2n ± z * sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n), with p = k/n and z the normal quantile of (1 + level)/2.

    Args:
        k: Successes, from 0 to n; a fraction where ties count in part.
        n: Trials.
        level: Coverage of the interval, between 0 and 1.

    Returns:
        The share with its interval; without values for n = 0.

    Raises:
        CarinaError: `k` or `level` is out of range.

    Example:
        >>> share = wilson(9, 10)
        >>> round(share.low, 3), round(share.high, 3)
        (0.596, 0.982)
    """
    _check(k, n, level)
    if n == 0:
        return Interval(None, None, None, 0, 0)
    z2 = float(ndtri((1 + level) / 2)) ** 2
    p = k / n
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2) / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    # Without rounding, the bounds for no success and for n successes are 0 and 1.
    low = 0.0 if k == 0 else max(0.0, middle - half)
    high = 1.0 if k == n else min(1.0, middle + half)
    return Interval(p, low, high, n, n)


def clopper_pearson(k: int, n: int, *, level: float = 0.95) -> Interval:
    """Clopper and Pearson's exact interval of a share, whose coverage is at least `level` for any true share.

    From the (1-level)/2 quantile of Beta(k, n-k+1) to the (1+level)/2 quantile of Beta(k+1, n-k); 0 if k = 0, and 1 if
    k = n.

    Args:
        k: Successes, from 0 to n.
        n: Trials.
        level: Coverage of the interval, between 0 and 1.

    Returns:
        The share with its interval; without values for n = 0.

    Raises:
        CarinaError: `k` or `level` is out of range.

    Example:
        >>> round(clopper_pearson(10, 10).low, 3)
        0.692
    """
    _check(k, n, level)
    if n == 0:
        return Interval(None, None, None, 0, 0)
    tail = (1 - level) / 2
    low = float(betaincinv(k, n - k + 1, tail)) if k > 0 else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return Interval(k / n, low, high, n, n)


def _check(k: float, n: int, level: float) -> None:
    if not 0 <= k <= n:
        raise CarinaError(f"k: expected a count from 0 to n = {n}, found {k}")
    if not 0 < level < 1:
        raise CarinaError(f"level: expected a share between 0 and 1, found {level}")
