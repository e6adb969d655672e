"""Cluster bootstrap: whole clusters are drawn with replacement, fast and reproducibly.

Steps of one patient are correlated, so patients are drawn, not steps. Apart from rank statistics, every statistic of
this package is a function of sums over rows. So the sums of each cluster are computed once, and a replicate is a
weighted sum of them, with the number of draws of each cluster as weights: ten thousand replicates are a matrix product.

Clusters are sorted by their sums, never by name or place: neither the order of rows nor the names of patients change a
result.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carina.store.errors import CarinaError
from carina.store.seeding import rng

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Clusters = Sequence[Hashable] | npt.NDArray[Any] | None
"""Cluster of each row, usually the patient; None if rows are independent. A label of None is a cluster like any other:
where the patient is unknown, use the study."""
Labels = Sequence[Hashable] | npt.NDArray[Any]
"""Category of each row; None or NaN where it is missing."""

REPLICATES: Final = 10_000
BLOCK: Final = 1 << 17
"""Draws in a block, so that its weights stay in the processor's cache."""
WIDE: Final = 128
"""Replicates in a block for sums with as many columns."""
FEW: Final = 32
"""Cost of one binomial of a multinomial draw, relative to drawing and counting one cluster."""


def columns_of(values: npt.ArrayLike, what: str = "values") -> FloatArray:
    """Numbers as a table, NaN where missing; a list of numbers becomes one column."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise CarinaError(f"{what}: expected one or two dimensions, found {table.ndim}")
    if np.isinf(table).any():
        raise CarinaError(f"{what}: expected finite numbers, or NaN where missing, found infinity")
    return table + 0.0  # -0.0 and 0.0 are equal, but would be sorted apart


def one_column(values: npt.ArrayLike, what: str = "values") -> FloatArray:
    """One number for each row, NaN where missing, as a column."""
    column = columns_of(values, what)
    if column.shape[1] != 1:
        raise CarinaError(f"{what}: expected one number per row, found {column.shape[1]}")
    return column


def cluster_codes(clusters: Clusters, rows: int) -> IntArray:
    """The cluster of each row as a number, in order of appearance or of labels."""
    if clusters is None:
        return np.arange(rows, dtype=np.int64)
    if len(clusters) != rows:
        raise CarinaError(f"clusters: expected one for each of {rows} rows, found {len(clusters)}")
    if isinstance(clusters, np.ndarray) and clusters.ndim == 1 and clusters.dtype.kind in "biuSU":
        return np.unique(clusters, return_inverse=True)[1].astype(np.int64)
    seen: dict[Hashable, int] = {}
    return np.fromiter((seen.setdefault(label, len(seen)) for label in clusters), np.int64, rows)


def label_codes(*labelled: Labels) -> tuple[list[IntArray], int]:
    """Categories as numbers, with one numbering for all lists and -1 where missing; and the number of categories.

    Categories are sorted by type and spelling, so that the numbering does not depend on the order of rows.
    """
    lists = [list(labels.tolist() if isinstance(labels, np.ndarray) else labels) for labels in labelled]
    distinct = {label for labels in lists for label in labels if not _is_missing(label)}
    ordered = sorted(distinct, key=lambda label: (type(label).__name__, repr(label)))
    numbers = {label: number for number, label in enumerate(ordered)}
    codes = [
        np.array([-1 if _is_missing(label) else numbers[label] for label in labels], dtype=np.int64)
        for labels in lists
    ]
    return codes, len(ordered)


def _is_missing(label: Hashable) -> bool:
    return label is None or label != label  # noqa: PLR0124 - only NaN differs from itself


def one_hot(codes: IntArray, width: int) -> FloatArray:
    """A column of ones and zeros for each category; only zeros in a row with the code -1."""
    columns: FloatArray = (codes[:, None] == np.arange(width)).astype(np.float64)
    return columns


def cluster_sums(features: FloatArray, codes: IntArray) -> FloatArray:
    """Sums of each column over the rows of each cluster.

    Rows of a cluster are added in the order of their values: sums of fractions would depend on the order of rows.
    """
    if features.shape[0] == 0:
        return features
    order = np.lexsort((*features.T, codes))
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    sums: FloatArray = np.add.reduceat(features[order], starts, axis=0)
    return sums


def total(sums: FloatArray) -> FloatArray:
    """Column sums over all clusters, independent of their order."""
    added: FloatArray = sums[np.lexsort(sums.T)].sum(axis=0)
    return added


def profiles(sums: FloatArray) -> tuple[FloatArray, IntArray]:
    """Distinct rows of cluster sums in order, and how many clusters have each.

    Clusters with equal sums are interchangeable, so it suffices to draw the number of each kind. If few clusters are
    equal, that is not faster, and every cluster is its own kind.
    """
    distinct, counts = np.unique(sums, axis=0, return_counts=True)
    if len(distinct) * FEW > len(sums):
        return np.repeat(distinct, counts, axis=0), np.ones(len(sums), dtype=np.int64)
    return distinct, counts


def weights(counts: IntArray, *, replicates: int, seed: int, least: int = 1) -> Iterator[FloatArray]:
    """How often clusters of each kind are drawn, replicate by replicate, in blocks of (replicates, kinds).

    As many clusters are drawn as there are, with equal probability: a multinomial draw over the kinds. A block has at
    least `least` replicates; the draws do not depend on it.
    """
    if replicates < 1:
        raise CarinaError(f"replicates: expected at least 1, found {replicates}")
    draw = rng(seed, "stats", "bootstrap")
    kinds, total = len(counts), int(counts.sum())
    rows = max(least, BLOCK // max(1, kinds))
    for start in range(0, replicates, rows):
        size = min(rows, replicates - start)
        if kinds < total:
            yield draw.multinomial(total, counts / total, size=size).astype(np.float64)
            continue
        drawn = draw.integers(0, kinds, size=(size, kinds))
        block = np.empty((size, kinds))
        for row in range(size):
            block[row] = np.bincount(drawn[row], minlength=kinds)
        yield block


def resampled_sums(sums: FloatArray, *, replicates: int, seed: int) -> FloatArray:
    """Column sums of each replicate, (replicates, columns), from the sums of each cluster."""
    kinds, counts = profiles(sums)
    # With many columns, small blocks are slow: the columns are read again for each block.
    least = min(WIDE, kinds.shape[1])
    blocks = weights(counts, replicates=replicates, seed=seed, least=least)
    return np.concatenate([block @ kinds for block in blocks])


def ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Quotient of two arrays, NaN where the denominator is not above 0."""
    quotient = np.full(np.broadcast_shapes(above.shape, below.shape), np.nan)
    np.divide(above, below, out=quotient, where=below > 0)
    return quotient


def percentiles(replicated: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Ends of the middle `level` of each column's replicates; undefined ones are left out, NaN if none remains."""
    if not 0 < level < 1:
        raise CarinaError(f"level: expected a share between 0 and 1, found {level}")
    tails = [(1 - level) / 2, (1 + level) / 2]
    bounds = np.full((2, replicated.shape[1]), np.nan)
    defined = ~np.isnan(replicated)
    whole = defined.all(axis=0)
    bounds[:, whole] = np.quantile(replicated[:, whole], tails, axis=0)
    for column in np.flatnonzero(~whole & defined.any(axis=0)):
        bounds[:, column] = np.quantile(replicated[defined[:, column], column], tails)
    return bounds[0], bounds[1]
