"""The smallest difference that a benchmark of a given size can detect, if its cases cluster in patients."""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from carina.stats.resampling import Clusters, FloatArray, IntArray, cluster_codes, one_column
from carina.store.errors import CarinaError


def design_effect(values: npt.ArrayLike, clusters: Clusters) -> float | None:
    """Variance of the mean, relative to that of the same number of independent rows.

    [K/(K-1) * sum over K clusters of (sum of residuals)² / n²] / [sum of residuals² / (n-1) / n]: the linearised
    variance of a ratio of cluster sums over that of a simple random sample; exactly 1 for independent rows.
    n / design effect is the effective sample size.

    Args:
        values: One number per row, shape (rows,); for a paired comparison, the differences.
        clusters: Patient of each row.

    Returns:
        The design effect; None with fewer than two clusters, or if all values are equal.

    Example:
        >>> design_effect([1, 0, 1, 0], None)
        1.0
    """
    residuals, codes, sizes = _residuals(values, clusters)
    if len(sizes) < 2 or not residuals.any():
        return None
    n, k = len(residuals), len(sizes)
    clustered = k / (k - 1) * float((np.bincount(codes, residuals) ** 2).sum()) / n**2
    return clustered / (float((residuals**2).sum()) / (n - 1) / n)


def intraclass_correlation(values: npt.ArrayLike, clusters: Clusters) -> float | None:
    """Similarity of rows in one cluster: the one-way analysis-of-variance estimate.

    (MSB - MSW) / (MSB + (m0 - 1) * MSW), with mean squares between K and within clusters, and m0 =
    (n - sum of m_c² / n) / (K - 1) the effective size of a cluster. May be negative.

    Args:
        values: One number per row, shape (rows,).
        clusters: Patient of each row.

    Returns:
        The correlation; None with fewer than two clusters, if no cluster has two rows, or if all values are equal.

    Example:
        >>> intraclass_correlation([1, 1, 0, 0], ["p1", "p1", "p2", "p2"])
        1.0
    """
    residuals, codes, sizes = _residuals(values, clusters)
    n, k = len(residuals), len(sizes)
    if k < 2 or n == k or not residuals.any():
        return None
    means = np.bincount(codes, residuals) / sizes
    between = float((sizes * means**2).sum()) / (k - 1)
    within = float(((residuals - means[codes]) ** 2).sum()) / (n - k)
    size = (n - float((sizes**2).sum()) / n) / (k - 1)
    return (between - within) / (between + (size - 1) * within)


def minimum_detectable_difference(
    n: int,
    clusters: int,
    p: float,
    *,
    icc: float = 0.0,
    effect: float | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    paired: bool = True,
    discordance: float | None = None,
) -> float | None:
    """The smallest true difference in accuracy that a two-sided test at `alpha` detects with probability `power`.

    n rows of `clusters` patients are equivalent to m = n / D independent rows, D = 1 + (n/clusters - 1) * icc; or D =
    `effect`, as `design_effect` measures it. With z_a and z_b the normal quantiles of 1 - alpha/2 and `power`:

    - paired, both models on the same rows (McNemar; Connor 1987): m = (z_a * sqrt(q) + z_b * sqrt(q - d²))² / d², where
      q is the share of rows that exactly one of them has right (`discordance`); solved for d,
      d = sqrt(q) * (z_a * sqrt(m) + z_b * sqrt(m + z_b² - z_a²)) / (m + z_b²). Without q, models of accuracy p with
      independent errors are assumed, q = 2p(1-p); models that fail on the same cases have a lower q, so that smaller
      differences can be detected.
    - unpaired, each on m rows of its own (Fleiss): m = (z_a * sqrt(2r(1-r)) + z_b * sqrt(p(1-p) + s(1-s)))² / d², with
      s the other's accuracy, d away from p towards one half, and r = (p+s)/2; solved numerically.

    Normal approximations, which are too optimistic with fewer than about 30 patients.

    Args:
        n: Number of rows.
        clusters: Number of patients.
        p: Accuracy of the models, from 0 to 1.
        icc: Intraclass correlation of rows of one patient.
        effect: Design effect; replaces `icc`.
        power: Probability of detection, from 0.5 to below 1.
        alpha: Level of the test, between 0 and 1.
        paired: Whether both models are tested on the same rows.
        discordance: Share of rows that exactly one of two paired models gets right.

    Returns:
        The difference; None if no possible difference can be detected.

    Raises:
        CarinaError: An argument is out of range.

    Example:
        >>> round(minimum_detectable_difference(1000, 500, 0.7), 3)
        0.057
    """
    _check(n, clusters, p, power, alpha)
    inflation = 1 + (n / clusters - 1) * icc if effect is None else effect
    if not inflation > 0:
        raise CarinaError(f"design effect: expected above 0, found {inflation:g}; check the icc of {icc:g}")
    m = n / inflation
    z_a, z_b = float(ndtri(1 - alpha / 2)), float(ndtri(power))
    if not paired:
        return _detectable_unpaired(m, p, z_a, z_b)
    share = 2 * p * (1 - p) if discordance is None else discordance
    if not 0 <= share <= 1:
        raise CarinaError(f"discordance: expected a share from 0 to 1, found {share}")
    return _detectable_paired(m, share, z_a, z_b)


def _detectable_paired(m: float, share: float, z_a: float, z_b: float) -> float | None:
    under = m + z_b**2 - z_a**2
    if under < 0 or share == 0:
        return None
    difference = math.sqrt(share) * (z_a * math.sqrt(m) + z_b * math.sqrt(under)) / (m + z_b**2)
    return difference if difference <= share else None  # models cannot differ by more than their discordance


def _detectable_unpaired(m: float, p: float, z_a: float, z_b: float) -> float | None:
    from scipy.optimize import brentq  # noqa: PLC0415 - slow to import, and needed here only

    towards = 1.0 if p <= 0.5 else -1.0

    def shortfall(d: float) -> float:
        other = p + towards * d
        middle = (p + other) / 2
        alike = z_a * math.sqrt(2 * middle * (1 - middle))
        apart = z_b * math.sqrt(max(0.0, p * (1 - p) + other * (1 - other)))
        return alike + apart - d * math.sqrt(m)

    most = max(p, 1 - p)
    if shortfall(most) > 0:
        return None
    return float(brentq(shortfall, 1e-12, most))  # at 0 itself, p of 0 or 1 would give a root


def _residuals(values: npt.ArrayLike, clusters: Clusters) -> tuple[FloatArray, IntArray, IntArray]:
    """Present values less their mean, the clusters of these rows, and the sizes of the clusters."""
    column = one_column(values)
    kept = ~np.isnan(column[:, 0])
    _, codes = np.unique(cluster_codes(clusters, len(column))[kept], return_inverse=True)
    present = column[kept, 0]
    if len(present) == 0 or present.min() == present.max():
        return np.zeros(len(present)), codes, np.bincount(codes)
    return present - present.mean(), codes, np.bincount(codes)


def _check(n: int, clusters: int, p: float, power: float, alpha: float) -> None:
    if not 1 <= clusters <= n:
        raise CarinaError(f"clusters: expected from 1 to n = {n}, found {clusters}")
    if not 0 <= p <= 1:
        raise CarinaError(f"p: expected an accuracy from 0 to 1, found {p}")
    if not 0 < alpha < 1:
        raise CarinaError(f"alpha: expected a share between 0 and 1, found {alpha}")
    if not 0.5 <= power < 1:
        raise CarinaError(f"power: expected from 0.5 to below 1, found {power}")
