"""Many comparisons at once: p-values made larger by as much as looking often makes chance finds likelier.

Undefined p-values (NaN or None) stay NaN and do not count among the comparisons.
"""

import numpy as np
import numpy.typing as npt

from carina.errors import CarinaError
from carina.stats.resampling import FloatArray, IntArray


def holm(p: npt.ArrayLike) -> FloatArray:
    """Holm's step-down adjustment, which holds the chance of any false find.

    With p_(1) <= ... <= p_(m): adjusted_(i) = max over j <= i of min(1, (m - j + 1) * p_(j)).
    """
    numbers, order = _sorted(p)
    factors = np.arange(len(order), 0, -1)
    numbers[order] = np.minimum(1.0, np.maximum.accumulate(factors * numbers[order]))
    return numbers


def benjamini_hochberg(p: npt.ArrayLike) -> FloatArray:
    """Benjamini and Hochberg's step-up adjustment, which holds the share of false finds among all finds.

    With p_(1) <= ... <= p_(m): adjusted_(i) = min over j >= i of min(1, m / j * p_(j)).
    """
    numbers, order = _sorted(p)
    factors = len(order) / np.arange(1, len(order) + 1)
    scaled = factors * numbers[order]
    numbers[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return numbers


def _sorted(p: npt.ArrayLike) -> tuple[FloatArray, IntArray]:
    """A copy of the p-values, and the places of the defined ones from the smallest up."""
    numbers = np.array(p, dtype=np.float64)
    if numbers.ndim != 1:
        raise CarinaError(f"p: expected a list of p-values, not {numbers.ndim} dimensions")
    defined = np.flatnonzero(~np.isnan(numbers))
    if not ((numbers[defined] >= 0) & (numbers[defined] <= 1)).all():
        raise CarinaError("p: expected p-values from 0 to 1")
    return numbers, defined[np.argsort(numbers[defined], kind="stable")]
