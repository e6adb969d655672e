"""The registry of metrics of localisation maps, and what a metric declares about itself.

A metric that needs only the values inside and outside the truth is one function, registered by `@map_metric`. Metrics
that need a threshold or another rule (`carina.maps.rules`) are registered in `carina.maps.variants`. Another package
announces its metrics through the entry-point group `carina.metrics`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from carina.store.registry import Registry

if TYPE_CHECKING:
    from carina.maps.pair import Pair

Resampling = Literal["bilinear_full", "torch_full", "nearest_full", "nearest_224", "corners_224"]
Margin = Literal["visible_only", "full_image"]
Empty = Literal["positives", "tp_only", "any_mask", "gated", "empty_is_hit"]
Aggregation = Literal["per_image", "pooled"]

MetricFunction: TypeAlias = "Callable[[Pair], float]"
"""Computes a score from a map and a truth in the same pixels; NaN where the metric is undefined."""


@dataclass(frozen=True, kw_only=True)
class MetricInfo:
    """Name and definition of a metric, and the choices that its variants have."""

    name: str
    definition: str
    """What is computed, as part of a sentence."""
    function: "MetricFunction | None" = None
    """Computes the score; None for metrics that need a rule."""
    rules: tuple[type, ...] = ()
    """Kinds of rules, one of which a variant names; empty for metrics without a rule."""
    empties: tuple[Empty, ...] = ()
    """Treatments of empty masks; empty for metrics without this choice."""
    pooled: bool = False
    """Whether the metric can be computed over the pixels of all images together."""
    margins: tuple[Margin, ...] = get_args(Margin)
    """Treatments of the pixels that the model did not see."""
    resamplings: tuple[Resampling, ...] = get_args(Resampling)
    """Ways to bring the map and the truth to the same pixels."""


METRICS: Final[Registry[MetricInfo]] = Registry(
    "metric",
    group="carina.metrics",
    modules=("carina.maps.variants", "carina.maps.pixel_values"),
    entry_type=MetricInfo,
)


def map_metric(
    *, name: str, definition: str, margins: tuple[Margin, ...] = get_args(Margin)
) -> Callable[[MetricFunction], MetricFunction]:
    """Register a function as a metric of localisation maps.

    Args:
        name: First part of the names of its variants, such as "cnr".
        definition: What is computed, as part of a sentence.
        margins: Treatments of the pixels that the model did not see.

    Returns:
        A decorator that registers a function from a `Pair` to a score and returns it unchanged.

    Raises:
        ValueError: The name is taken.

    Example:
        >>> @map_metric(name="coverage", definition="share of the truth that the model saw")
        ... def coverage(pair):
        ...     return len(pair.inside) / pair.n_true if pair.n_true else float("nan")
    """

    def register(function: MetricFunction) -> MetricFunction:
        METRICS.register(
            name, MetricInfo(name=name, definition=definition, function=function, margins=margins)
        )
        return function

    return register
