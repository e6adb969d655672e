"""Intervals of a share k / n of independent trials, where nothing clusters."""

import math

from scipy.special import betaincinv, ndtri

from carina.errors import CarinaError
from carina.stats.interval import Interval


def wilson(k: int, n: int, *, level: float = 0.95) -> Interval:
    """Wilson's score interval of a share: all p whose z-test does not reject k of n.

    (p + z²/2n ± z * sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n), with p = k/n and z the normal quantile of (1 + level)/2.
    """
    _check(k, n, level)
    if n == 0:
        return Interval(None, None, None, 0, 0)
    z = float(ndtri((1 + level) / 2))
    p = k / n
    middle = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    whole = 1 + z * z / n
    # Rounding aside the bounds of none and of all are 0 and 1.
    low = 0.0 if k == 0 else (middle - half) / whole
    high = 1.0 if k == n else (middle + half) / whole
    return Interval(p, low, high, n, n)


def clopper_pearson(k: int, n: int, *, level: float = 0.95) -> Interval:
    """Clopper and Pearson's exact interval of a share: covers at least `level` whatever the truth.

    From the (1-level)/2 quantile of Beta(k, n-k+1) to the (1+level)/2 quantile of Beta(k+1, n-k); 0 where k = 0, and
    1 where k = n.
    """
    _check(k, n, level)
    if n == 0:
        return Interval(None, None, None, 0, 0)
    tail = (1 - level) / 2
    low = float(betaincinv(k, n - k + 1, tail)) if k > 0 else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - tail)) if k < n else 1.0
    return Interval(k / n, low, high, n, n)


def _check(k: int, n: int, level: float) -> None:
    if not 0 <= k <= n:
        raise CarinaError(f"k: expected a count from 0 to n = {n}, not {k}")
    if not 0 < level < 1:
        raise CarinaError(f"level: expected a share between 0 and 1, not {level}")
