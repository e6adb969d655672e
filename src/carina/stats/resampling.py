"""Drawing whole clusters with replacement, fast and the same for the same data.

Steps of one patient are alike, so patients are drawn, not steps. Every statistic of this package but Spearman's is a
function of sums over rows; so each cluster is boiled down to its sums once, and a replicate is a weighted sum of them,
the weights being how often each cluster was drawn. Ten thousand replicates are a matrix product.

Clusters are put in order by their sums, never by name or by place: neither the order of rows nor the names of patients
can change a result.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from carina.errors import CarinaError
from carina.seeding import rng

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Clusters = Sequence[Hashable] | npt.NDArray[Any] | None
"""Who each row belongs to; None where each row stands alone. A label of None is a cluster like any other: where the
patient is not known, name the study."""
Labels = Sequence[Hashable] | npt.NDArray[Any]
"""A category for each row; None or NaN where there is none."""

REPLICATES: Final = 10_000
BLOCK: Final = 1 << 17
"""Draws at a time: the weights of a block stay in the processor's cache."""
WIDE: Final = 128
"""Replicates in a block for sums of as many columns."""
FEW: Final = 32
"""So many times as dear is one binomial of a multinomial draw as the draw and count of one cluster."""


def columns_of(values: npt.ArrayLike, what: str = "values") -> FloatArray:
    """Rows and columns of numbers, NaN where missing; a list of numbers becomes one column."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2:
        raise CarinaError(f"{what}: expected rows, or rows and columns, not {table.ndim} dimensions")
    if np.isinf(table).any():
        raise CarinaError(f"{what}: expected finite numbers, or NaN where missing, not infinity")
    return table + 0.0  # -0.0 and 0.0 are one value, but would sort apart


def one_column(values: npt.ArrayLike, what: str = "values") -> FloatArray:
    """One number for each row, NaN where missing, as a column."""
    column = columns_of(values, what)
    if column.shape[1] != 1:
        raise CarinaError(f"{what}: expected one a row, not {column.shape[1]}")
    return column


def cluster_codes(clusters: Clusters, rows: int) -> IntArray:
    """Each row's cluster as a number, in order of appearance or of labels."""
    if clusters is None:
        return np.arange(rows, dtype=np.int64)
    if len(clusters) != rows:
        raise CarinaError(f"clusters: expected one for each of {rows} rows, not {len(clusters)}")
    if isinstance(clusters, np.ndarray) and clusters.ndim == 1 and clusters.dtype.kind in "biuSU":
        return np.unique(clusters, return_inverse=True)[1].astype(np.int64)
    seen: dict[Hashable, int] = {}
    return np.fromiter((seen.setdefault(label, len(seen)) for label in clusters), np.int64, rows)


def label_codes(*labelled: Labels) -> tuple[list[IntArray], int]:
    """Categories as numbers, one numbering for all lists, -1 where missing; and how many categories there are.

    Categories are in order of type and spelling, so that the numbering does not depend on the order of rows.
    """
    lists = [list(labels.tolist() if isinstance(labels, np.ndarray) else labels) for labels in labelled]
    distinct = {label for labels in lists for label in labels if not _missing(label)}
    ordered = sorted(distinct, key=lambda label: (type(label).__name__, repr(label)))
    numbers = {label: number for number, label in enumerate(ordered)}
    codes = [
        np.array([-1 if _missing(label) else numbers[label] for label in labels], dtype=np.int64)
        for labels in lists
    ]
    return codes, len(ordered)


def _missing(label: Hashable) -> bool:
    return label is None or label != label  # noqa: PLR0124 - only NaN differs from itself


def one_hot(codes: IntArray, width: int) -> FloatArray:
    """A column of ones and zeros for each category; no one in a row whose code is -1."""
    columns: FloatArray = (codes[:, None] == np.arange(width)).astype(np.float64)
    return columns


def cluster_sums(features: FloatArray, codes: IntArray) -> FloatArray:
    """Sums of each column over the rows of each cluster.

    Rows of a cluster are added in order of their values: sums of fractions would depend on the order of rows.
    """
    if features.shape[0] == 0:
        return features
    order = np.lexsort((*features.T, codes))
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    sums: FloatArray = np.add.reduceat(features[order], starts, axis=0)
    return sums


def total(sums: FloatArray) -> FloatArray:
    """Column sums over all clusters, the same in whatever order they come."""
    added: FloatArray = sums[np.lexsort(sums.T)].sum(axis=0)
    return added


def profiles(sums: FloatArray) -> tuple[FloatArray, IntArray]:
    """Distinct rows of cluster sums in order, and how many clusters have each.

    Clusters with equal sums are interchangeable, so drawing how many of each kind is as good as drawing each. Where
    few are alike nothing would be gained, and every cluster is its own kind.
    """
    distinct, counts = np.unique(sums, axis=0, return_counts=True)
    if len(distinct) * FEW > len(sums):
        return np.repeat(distinct, counts, axis=0), np.ones(len(sums), dtype=np.int64)
    return distinct, counts


def weights(counts: IntArray, *, replicates: int, seed: int, least: int = 1) -> Iterator[FloatArray]:
    """How often clusters of each kind are drawn, replicate by replicate, in blocks of (replicates, kinds).

    As many clusters are drawn as there are, each as likely as any other: a multinomial draw over the kinds. A block has
    `least` replicates or more; the draws do not depend on it.
    """
    if replicates < 1:
        raise CarinaError(f"replicates: expected at least 1, not {replicates}")
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
    # A product with many columns is slow a few replicates at a time: the columns are read anew for each block.
    least = min(WIDE, kinds.shape[1])
    blocks = weights(counts, replicates=replicates, seed=seed, least=least)
    return np.concatenate([block @ kinds for block in blocks])


def ratio(above: FloatArray, below: FloatArray) -> FloatArray:
    """Their quotient, NaN where the lower is not above 0."""
    quotient = np.full(np.broadcast_shapes(above.shape, below.shape), np.nan)
    np.divide(above, below, out=quotient, where=below > 0)
    return quotient


def percentiles(replicated: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """The middle `level` of each column's replicates; undefined ones are left out, NaN where none is left."""
    if not 0 < level < 1:
        raise CarinaError(f"level: expected a share between 0 and 1, not {level}")
    tails = [(1 - level) / 2, (1 + level) / 2]
    bounds = np.full((2, replicated.shape[1]), np.nan)
    defined = ~np.isnan(replicated)
    whole = defined.all(axis=0)
    bounds[:, whole] = np.quantile(replicated[:, whole], tails, axis=0)
    for column in np.flatnonzero(~whole & defined.any(axis=0)):
        bounds[:, column] = np.quantile(replicated[defined[:, column], column], tails)
    return bounds[0], bounds[1]
