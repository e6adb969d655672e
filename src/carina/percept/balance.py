"""Choose among alternatives so that differences add up to nothing over a benchmark.

Each case has several alternatives, each with the differences that it would add: between the right mask and the wrong
ones, or between contours of two paths. Taking the alternative that keeps the sums near zero leaves nothing that a rule
or a classifier could learn, as far as the alternatives allow.
"""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray


def _zero() -> NDArray[np.float64]:
    return np.zeros(1)


@dataclass
class FeatureBalance:
    """Sums of differences over all cases so far, and over those of each target."""

    total: NDArray[np.float64] = field(default_factory=_zero)
    by_target: dict[str, NDArray[np.float64]] = field(default_factory=lambda: defaultdict(_zero))

    def choose(self, target: str, differences: NDArray[np.float64]) -> int:
        """Take the alternative that keeps all sums nearest to zero, the first of several; returns its number.

        Args:
            target: The lesion of the case.
            differences: What each alternative would add, (alternatives, features).
        """
        over_all = self.total + differences
        over_target = self.by_target[target] + differences
        best = int(((over_all**2).sum(axis=1) + (over_target**2).sum(axis=1)).argmin())
        self.total, self.by_target[target] = over_all[best], over_target[best]
        return best
