"""Metric variants: a metric with every choice that decides its value, spelled out in its name.

Names are `metric.resampling.margin.rule.empty.aggregation`, such as
`iou.bilinear_full.full_image.minmax_0.5.positives.per_image`. Parts in which a metric has no choice are left out.
`parse_variant` takes the parts after the metric in any order and fills in missing ones; `Variant.name` has all of them.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final, get_args

from carina.maps.metrics import METRICS, Aggregation, Empty, Margin, MetricInfo, Resampling
from carina.maps.rules import (
    SELECTED_THRESHOLDS,
    FixedThreshold,
    OracleThreshold,
    OtsuThreshold,
    PeakNeighbourhood,
    PeakPixel,
    Rule,
    SelectedThreshold,
    ThresholdRule,
    TieRule,
    TopPixels,
    define_rule,
    parse_rule,
    rule_name,
)
from carina.store.errors import CarinaError

RESAMPLINGS: Final[dict[Resampling, str]] = {
    "bilinear_full": "in the pixels of the original image, interpolated linearly between the centres of the cells",
    "torch_full": "in the pixels of the original image, as bilinear_full, with every digit as torch computes "
    "it (cheXlocalize)",
    "nearest_full": "in the pixels of the original image, each pixel with the value of its cell",
    "nearest_224": "in a square of 224 x 224 pixels over the part of the image that the model sees, each pixel with "
    "the value of its cell; the truth is sampled at the upper left corner of each pixel (MedKLIP)",
    "corners_224": "in a square of 224 x 224 pixels over the part of the image that the model sees, interpolated "
    "linearly with the centres of the corner pixels on those of the corner cells; the truth as in nearest_224 (MAVL)",
}
MARGINS: Final[dict[Margin, str]] = {
    "visible_only": "pixels that the model does not see are left out, also those of the truth",
    "full_image": "pixels that the model does not see rank below all others: they are never predicted, and missed "
    "where they belong to the truth",
}
EMPTIES: Final[dict[Empty, str]] = {
    "positives": "undefined where the truth is empty; an empty prediction counts",
    "tp_only": "undefined where the truth or the prediction is empty",
    "any_mask": "undefined only where truth and prediction are both empty",
    "gated": "as any_mask, but nothing is predicted where the probability of the finding is below the cut-off with the "
    "highest mean IoU on another, declared split (cheXlocalize)",
    "empty_is_hit": "1 where the truth is empty (Quantus 0.6.0)",
}
AGGREGATIONS: Final[dict[Aggregation, str]] = {
    "per_image": "image by image, then averaged",
    "pooled": "over the pixels of all images together",
}

_THRESHOLDS: Final = (FixedThreshold, OtsuThreshold, OracleThreshold, SelectedThreshold)
_MASKS: Final[tuple[Empty, ...]] = ("positives", "tp_only", "any_mask", "gated")
_HITS: Final[tuple[Empty, ...]] = ("positives", "empty_is_hit")


_FULL: Final[tuple[Resampling, ...]] = ("bilinear_full", "torch_full", "nearest_full")
_BINNED: Final = (
    "with values rounded up to one of 4,096 steps from the lowest to the highest, or cut to 11 bits if pooled"
)


def _register_metrics() -> None:
    """Register the metrics that need a rule, and those of all pixel values that can be pooled."""
    for metric in (
        MetricInfo(
            name="hit", definition="pointing game", rules=(PeakPixel, PeakNeighbourhood), empties=_HITS
        ),
        MetricInfo(
            name="hit_weighted",
            definition="pointing game times 1 - the truth's share of the pixels",
            rules=(PeakPixel, PeakNeighbourhood),
            empties=_HITS,
        ),
        MetricInfo(
            name="hit_box",
            definition="pointing game with boxes, edges included, instead of the region as truth",
            rules=(PeakPixel,),
            empties=_HITS,
            resamplings=_FULL,
        ),
        *(
            MetricInfo(name=name, definition=definition, rules=_THRESHOLDS, empties=_MASKS, pooled=True)
            for name, definition in (
                ("iou", "intersection over union"),
                ("dice", "Dice coefficient: twice the intersection, over the sum of both areas"),
                ("precision", "share of the predicted pixels that lies in the truth"),
                ("recall", "share of the truth that is predicted"),
                ("specificity", "share of the pixels outside the truth that is not predicted"),
                ("accuracy", "share of all pixels that is predicted correctly"),
            )
        ),
        MetricInfo(
            name="image_specificity",
            definition="1 where truth and prediction are both empty, 0 where the truth is empty and the prediction is "
            "not",
            rules=_THRESHOLDS,
        ),
        *(
            MetricInfo(name=name, definition=definition, pooled=True)
            for name, definition in (
                ("auroc", "area under the ROC curve of the pixels, ties counted as one half"),
                ("auprc", "average precision of the pixels"),
                ("auroc_binned", f"area under the ROC curve of the pixels {_BINNED}"),
                ("auprc_binned", f"average precision of the pixels {_BINNED}"),
            )
        ),
        MetricInfo(
            name="topk", definition="share of the k highest pixels that lies in the truth", rules=(TopPixels,)
        ),
        MetricInfo(
            name="topk_gain",
            definition="share of the k highest pixels that lies in the truth, divided by the truth's share of all "
            "pixels",
            rules=(TopPixels,),
        ),
    ):
        METRICS.register(metric.name, metric)


_register_metrics()


@dataclass(frozen=True)
class Variant:
    """A metric with every choice that decides its value; None where the metric has no such choice.

    Raises:
        CarinaError: The metric does not have one of the choices.

    Example:
        >>> parse_variant("iou.otsu").name
        'iou.bilinear_full.full_image.otsu.positives.per_image'
    """

    metric: str
    resampling: Resampling
    margin: Margin | None
    rule: Rule | None
    empty: Empty | None
    aggregation: Aggregation

    def __post_init__(self) -> None:
        fault = self._find_fault()
        if fault:
            raise CarinaError(f"variant {self.name!r}: {fault}")

    @property
    def name(self) -> str:
        """Full name, under which its values are stored."""
        parts = (
            self.metric,
            self.resampling,
            self.margin,
            None if self.rule is None else rule_name(self.rule),
            self.empty,
            self.aggregation,
        )
        return ".".join(part for part in parts if part is not None)

    def __str__(self) -> str:
        return self.name

    @property
    def is_oracle(self) -> bool:
        """Whether its threshold is selected by looking at the truth of the scored images."""
        return isinstance(self.rule, OracleThreshold) or (
            isinstance(self.rule, SelectedThreshold) and self.rule.selected_on == "oracle_set"
        )

    @property
    def counts_without_truth(self) -> bool:
        """Whether a map without a region counts, as if the region were empty."""
        return self.empty in ("any_mask", "gated")

    @property
    def counts_without_map(self) -> bool:
        """Whether a region without a map counts, as if nothing were predicted."""
        return self.counts_without_truth or (
            self.aggregation == "pooled" and isinstance(self.rule, _THRESHOLDS)
        )

    @property
    def definition(self) -> str:
        """Definition of the metric and of every choice, in one line."""
        parts = [METRICS[self.metric].definition]
        if self.rule is not None:
            parts.append(define_rule(self.rule))
        parts.append(RESAMPLINGS[self.resampling])
        if self.margin is not None:
            parts.append(MARGINS[self.margin])
        if self.empty is not None:
            parts.append(EMPTIES[self.empty])
        parts.append(AGGREGATIONS[self.aggregation])
        return "; ".join(parts)

    def _find_fault(self) -> str | None:  # noqa: PLR0911 - one for each fault
        info = METRICS[self.metric]
        if self.resampling not in info.resamplings:
            return f"{self.metric} is scored only with {_join(info.resamplings)}, found {self.resampling}"
        if (
            isinstance(self.rule, OracleThreshold)
            and self.rule.kind == "grid"
            and self.resampling != "nearest_full"
        ):
            return f"oracle_grid is scored only with nearest_full, found {self.resampling}"
        if (self.margin is None) == (self.resampling in _FULL):
            return (
                f"{self.resampling} holds only what the model sees and has no margin, found {self.margin}"
                if self.margin
                else f"expected a margin: {_join(MARGINS)}"
            )
        if self.margin is not None and self.margin not in info.margins:
            return f"{self.metric} is scored only with {_join(info.margins)}, found {self.margin}"
        if not isinstance(self.rule, info.rules or (type(None),)):
            return _find_rule_fault(self.metric, info, self.rule)
        if self.aggregation == "pooled" and (not info.pooled or self.empty):
            return (
                f"{self.metric} cannot be pooled"
                if not info.pooled
                else f"pooled metrics have no treatment of empty masks, found {self.empty}"
            )
        if (
            self.aggregation == "pooled"
            and isinstance(self.rule, FixedThreshold)
            and len(self.rule.thresholds) > 1
        ):
            return "pooled metrics take one threshold, found several"
        if self.aggregation == "per_image" and (self.empty is None) != (not info.empties):
            return (
                f"expected a treatment of empty masks: {_join(info.empties)}"
                if info.empties
                else f"{self.metric} has no treatment of empty masks, found {self.empty}"
            )
        if self.empty is not None and self.empty not in info.empties:
            return f"expected {_join(info.empties)} as treatment of empty masks, found {self.empty}"
        if self.empty == "gated" and isinstance(self.rule, SelectedThreshold):
            return "gated cannot be combined with a threshold that is selected on a set of images"
        return None


def _find_rule_fault(metric: str, info: MetricInfo, rule: Rule | None) -> str:
    if not info.rules:
        return f"{metric} takes no rule, found {rule_name(rule) if rule else ''}"
    examples = {
        PeakPixel: "expected",
        PeakNeighbourhood: "within_15",
        TopPixels: "top_1000",
        FixedThreshold: "minmax_0.5",
        OtsuThreshold: "otsu",
    }
    listed = _join([examples[kind] for kind in info.rules if kind in examples])
    return f"expected a rule such as {listed}" + (f", found {rule_name(rule)}" if rule else "")


def parse_variant(name: str) -> Variant:
    """Parse the name of a metric variant.

    Args:
        name: A metric and its choices, separated by dots, in any order after the metric. Choices that are left out are
            `bilinear_full`, `full_image` (`visible_only` for `cnr`), `positives` and `per_image`. A rule cannot be left
            out.

    Returns:
        The variant with all its choices.

    Raises:
        CarinaError: The metric or a choice is unknown, or the metric does not have the choice.

    Example:
        >>> parse_variant("hit.expected.nearest_224").name
        'hit.nearest_224.expected.positives.per_image'
    """
    metric, *parts = re.split(r"\.(?=[a-z])", name)
    if metric not in METRICS:
        raise CarinaError(
            f"variant {name!r}: unknown metric {metric!r}. Known: {', '.join(METRICS.names())}."
        )
    choices: dict[str, object] = {}
    for part in parts:
        choice, value = _parse_choice(part, name)
        if choice in choices:
            raise CarinaError(f"variant {name!r}: found two parts for {choice}, expected one")
        choices[choice] = value
    return _fill_defaults(metric, choices)


def _parse_choice(part: str, name: str) -> tuple[str, object]:
    """Name and value of the choice that a part of a variant's name makes."""
    for choice, values in (
        ("resampling", RESAMPLINGS),
        ("margin", MARGINS),
        ("empty", EMPTIES),
        ("aggregation", AGGREGATIONS),
    ):
        if part in values:
            return choice, part
    rule = parse_rule(part)
    if rule is None:
        raise CarinaError(
            f"variant {name!r}: unknown part {part!r}; expected a resampling, margin, rule, treatment of empty masks "
            "or aggregation"
        )
    return "rule", rule


def _fill_defaults(metric: str, choices: dict[str, object]) -> Variant:
    info = METRICS[metric]
    resampling = choices.get("resampling", "bilinear_full")
    aggregation = choices.get("aggregation", "per_image")
    margin = choices.get("margin", info.margins[-1] if resampling in _FULL else None)
    empty = choices.get("empty", info.empties[0] if info.empties and aggregation == "per_image" else None)
    return Variant(metric, resampling, margin, choices.get("rule"), empty, aggregation)  # type: ignore[arg-type]


STANDARD_THRESHOLDS: Final[tuple[ThresholdRule, ...]] = (
    FixedThreshold("raw", (0.008,)),
    FixedThreshold("minmax", (0.3,)),
    FixedThreshold("minmax", (0.5,)),
    FixedThreshold("symmetric", (0.1, 0.2, 0.3, 0.4, 0.5)),
    FixedThreshold("sigmoid", (0.5,)),
    OtsuThreshold(filled=False),
    OtsuThreshold(filled=True),
    OracleThreshold("area"),
    OracleThreshold("image"),
    OracleThreshold("grid"),
    *SELECTED_THRESHOLDS,
)
"""Threshold rules that published projects use; a name may have any other number."""
_STANDARD_RULES: Final[dict[type, tuple[Rule, ...]]] = {
    PeakPixel: tuple(PeakPixel(ties) for ties in get_args(TieRule)),
    PeakNeighbourhood: (PeakNeighbourhood(15),),
    TopPixels: (TopPixels(1000),),
    FixedThreshold: STANDARD_THRESHOLDS,
}


@cache
def all_variants() -> tuple[Variant, ...]:
    """All variants with a standard rule; rules with other thresholds, radii and numbers of pixels can be named too."""
    return tuple(_standard_variants())


def _standard_variants() -> Iterator[Variant]:
    for metric, info in METRICS.entries().items():
        rules: list[Rule | None] = [rule for kind in info.rules for rule in _STANDARD_RULES.get(kind, ())]
        for rule, resampling in product(rules or [None], info.resamplings):
            if isinstance(rule, OracleThreshold) and rule.kind == "grid" and resampling != "nearest_full":
                continue
            has_several_thresholds = isinstance(rule, FixedThreshold) and len(rule.thresholds) > 1
            for margin in info.margins if resampling in _FULL else (None,):
                for empty in info.empties or (None,):
                    if empty == "gated" and isinstance(rule, SelectedThreshold):
                        continue
                    yield Variant(metric, resampling, margin, rule, empty, "per_image")
                if info.pooled and not has_several_thresholds:
                    yield Variant(metric, resampling, margin, rule, None, "pooled")


def _join(names: Iterable[str]) -> str:
    listed = list(names)
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"
