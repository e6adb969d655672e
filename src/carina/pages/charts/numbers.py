"""The numbers that a chart can draw: finite ones. An axis up to infinity has no ticks, and no end."""

import math
from collections.abc import Iterable

from carina.store.errors import CarinaError


def require_finite(name: str, values: Iterable[float | None]) -> None:
    """Refuse a value of a chart that is infinite or not a number; None stands for a value that is not known.

    Raises:
        CarinaError: A value is not finite; the message has the name.
    """
    for value in values:
        if value is not None and not math.isfinite(value):
            raise CarinaError(
                f"chart, {name}: expected finite numbers, found {value}; check the run that it is about"
            )
