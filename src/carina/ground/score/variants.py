"""Every way to score a map has a name that spells out all choices that decide its number.

`metric.place.margin.rule.empty.aggregation`, such as `iou.bilinear_full.full_image.minmax_0.5.positives.per_image`.
Parts that a metric has no choice in are absent. `parse` takes the parts behind the metric in any order and fills in
what is missing; a `Variant` always writes all of them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final, Literal, NamedTuple, get_args

from carina.errors import CarinaError
from carina.ground.score.rules import (
    CHOSEN,
    Chosen,
    Fixed,
    Oracle,
    Otsu,
    Rule,
    Threshold,
    Tie,
    Ties,
    TopK,
    Within,
    define,
    parse_rule,
    token,
)

Metric = Literal[
    "hit", "hit_weighted", "hit_box",
    "iou", "dice", "precision", "recall", "specificity", "accuracy", "image_specificity",
    "auroc", "auprc", "auroc_binned", "auprc_binned",
    "cnr", "cnr_abs",
    "mass", "mass_signed", "rank", "topk", "topk_gain",
]  # fmt: skip
Place = Literal["bilinear_full", "nearest_full", "nearest_224", "corners_224"]
Margin = Literal["visible_only", "full_image"]
Empty = Literal["positives", "tp_only", "any_mask", "gated", "empty_is_hit"]
Aggregation = Literal["per_image", "pooled"]

PLACES: Final[dict[Place, str]] = {
    "bilinear_full": "in the pixels of the original image, linear between the centres of the map's cells",
    "nearest_full": "in the pixels of the original image, each with the value of its cell",
    "nearest_224": "in a square of 224 over what the model sees, each pixel with the value of its cell; the truth is "
    "sampled at the upper left corners of its pixels (MedKLIP)",
    "corners_224": "in a square of 224 over what the model sees, linear with the corners' centres aligned; the truth "
    "as in nearest_224 (MAVL)",
}
MARGINS: Final[dict[Margin, str]] = {
    "visible_only": "pixels that the model does not see are left out, of the truth too",
    "full_image": "pixels that the model does not see lie below all others: never predicted, and missed where true",
}
EMPTIES: Final[dict[Empty, str]] = {
    "positives": "undefined where the truth is empty; an empty prediction counts",
    "tp_only": "undefined where the truth or the prediction is empty",
    "any_mask": "undefined only where truth and prediction are both empty",
    "gated": "as any_mask, with nothing predicted where the finding is less probable than the cut-off with the highest "
    "mean IoU on another, declared split (cheXlocalize)",
    "empty_is_hit": "1 where the truth is empty (Quantus 0.6.0)",
}
AGGREGATIONS: Final[dict[Aggregation, str]] = {
    "per_image": "image by image, then averaged",
    "pooled": "over the pixels of all images together",
}

_THRESHOLDS: Final = (Fixed, Otsu, Oracle, Chosen)
_MASKS: Final[tuple[Empty, ...]] = ("positives", "tp_only", "any_mask", "gated")
_HITS: Final[tuple[Empty, ...]] = ("positives", "empty_is_hit")


class _Kind(NamedTuple):
    """What choices a metric has."""

    about: str
    rules: tuple[type, ...] = ()
    empties: tuple[Empty, ...] = ()
    pooled: bool = False
    margins: tuple[Margin, ...] = get_args(Margin)
    places: tuple[Place, ...] = get_args(Place)


_FULL: Final[tuple[Place, ...]] = ("bilinear_full", "nearest_full")
_BINNED: Final = (
    "with values rounded up to 4,096 steps from lowest to highest, or if pooled cut to 11 significant bits"
)

_KINDS: Final[dict[Metric, _Kind]] = {
    "hit": _Kind("pointing game", (Ties, Within), _HITS),
    "hit_weighted": _Kind("pointing game times 1 - the truth's share of the pixels", (Ties, Within), _HITS),
    "hit_box": _Kind(
        "pointing game with boxes, edges included, in place of the truth", (Ties,), _HITS, places=_FULL
    ),
    "iou": _Kind("intersection over union", _THRESHOLDS, _MASKS, pooled=True),
    "dice": _Kind(
        "Dice: twice the pixels that both have, over the sum of both", _THRESHOLDS, _MASKS, pooled=True
    ),
    "precision": _Kind("share of the predicted pixels that is true", _THRESHOLDS, _MASKS, pooled=True),
    "recall": _Kind("share of the true pixels that is predicted", _THRESHOLDS, _MASKS, pooled=True),
    "specificity": _Kind("share of the other pixels that is not predicted", _THRESHOLDS, _MASKS, pooled=True),
    "accuracy": _Kind("share of all pixels that is right", _THRESHOLDS, _MASKS, pooled=True),
    "image_specificity": _Kind(
        "1 where the truth is empty and nothing is predicted, 0 where the truth is empty and something is",
        _THRESHOLDS,
    ),
    "auroc": _Kind("area under the ROC curve of the pixels, ties as one half", pooled=True),
    "auprc": _Kind("average precision of the pixels", pooled=True),
    "auroc_binned": _Kind(f"area under the ROC curve of the pixels {_BINNED}", pooled=True),
    "auprc_binned": _Kind(f"average precision of the pixels {_BINNED}", pooled=True),
    "cnr": _Kind(
        "contrast to noise, (mean inside - mean outside) / sqrt(variance inside + variance outside), 0 where both "
        "variances are 0",
        margins=("visible_only",),
    ),
    "cnr_abs": _Kind("absolute value of cnr (BioViL)", margins=("visible_only",)),
    "mass": _Kind("share of the map's sum that lies in the truth, values below 0 taken as 0"),
    "mass_signed": _Kind("share of the map's sum that lies in the truth, values below 0 as they are"),
    "rank": _Kind(
        "share of the K highest pixels that is true, K the size of the truth, ties at the last place by their mean"
    ),
    "topk": _Kind("share of the k highest pixels that is true", (TopK,)),
    "topk_gain": _Kind(
        "share of the k highest pixels that is true, divided by the truth's share of all", (TopK,)
    ),
}


@dataclass(frozen=True)
class Variant:
    """One way to score; `None` where the metric has no such choice."""

    metric: Metric
    place: Place
    margin: Margin | None
    rule: Rule | None
    empty: Empty | None
    aggregation: Aggregation

    def __post_init__(self) -> None:
        wrong = self._fault()
        if wrong:
            raise CarinaError(f"variant {self.name!r}: {wrong}")

    @property
    def name(self) -> str:
        """The name under which its number is stored."""
        parts = (
            self.metric,
            self.place,
            self.margin,
            None if self.rule is None else token(self.rule),
            self.empty,
            self.aggregation,
        )
        return ".".join(part for part in parts if part is not None)

    def __str__(self) -> str:
        return self.name

    @property
    def is_oracle(self) -> bool:
        """Whether its threshold was chosen by looking at the truth of the scored images."""
        return isinstance(self.rule, Oracle) or (
            isinstance(self.rule, Chosen) and self.rule.where == "oracle_set"
        )

    @property
    def counts_without_truth(self) -> bool:
        """Whether a map counts whose image is none of those with regions: as one whose truth is empty."""
        return self.empty in ("any_mask", "gated")

    @property
    def counts_without_map(self) -> bool:
        """Whether an image counts that has no map: as one of which nothing is predicted."""
        return self.counts_without_truth or (
            self.aggregation == "pooled" and isinstance(self.rule, _THRESHOLDS)
        )

    @property
    def definition(self) -> str:
        """What is computed, in one line."""
        parts = [_KINDS[self.metric].about]
        if self.rule is not None:
            parts.append(define(self.rule))
        parts.append(PLACES[self.place])
        if self.margin is not None:
            parts.append(MARGINS[self.margin])
        if self.empty is not None:
            parts.append(EMPTIES[self.empty])
        parts.append(AGGREGATIONS[self.aggregation])
        return "; ".join(parts)

    def _fault(self) -> str | None:  # noqa: PLR0911 - a reason each
        kind = _KINDS[self.metric]
        if self.place not in kind.places:
            return f"{self.metric} is scored in {_listed(kind.places)}"
        if isinstance(self.rule, Oracle) and self.rule.how == "grid" and self.place != "nearest_full":
            return "oracle_grid is scored in nearest_full"
        if (self.margin is None) == (self.place in _FULL):
            return (
                f"{self.place} sees only what the model sees: no margin"
                if self.margin
                else f"expected a margin: {_listed(MARGINS)}"
            )
        if self.margin is not None and self.margin not in kind.margins:
            return f"{self.metric} is scored with {_listed(kind.margins)}"
        if not isinstance(self.rule, kind.rules or (type(None),)):
            return _rule_fault(self.metric, kind, self.rule)
        if self.aggregation == "pooled" and (not kind.pooled or self.empty):
            return "cannot be pooled" if not kind.pooled else f"pooled counts know no {self.empty}"
        if self.aggregation == "pooled" and isinstance(self.rule, Fixed) and len(self.rule.at) > 1:
            return "pooled counts are of one threshold"
        if self.aggregation == "per_image" and (self.empty is None) != (not kind.empties):
            return f"expected {_listed(kind.empties)}" if kind.empties else f"has no choice of {self.empty}"
        if self.empty is not None and self.empty not in kind.empties:
            return f"expected {_listed(kind.empties)}, not {self.empty}"
        if self.empty == "gated" and isinstance(self.rule, Chosen):
            return "a cut-off is chosen for thresholds that are not chosen themselves"
        return None


def _rule_fault(metric: Metric, kind: _Kind, rule: Rule | None) -> str:
    if not kind.rules:
        return f"{metric} takes no rule, not {token(rule) if rule else ''}"
    examples = {Ties: "expected", Within: "within_15", TopK: "top_1000", Fixed: "minmax_0.5", Otsu: "otsu"}
    shown = _listed([examples[of] for of in kind.rules if of in examples])
    return f"expected a rule such as {shown}" + (f", not {token(rule)}" if rule else "")


def parse(name: str) -> Variant:
    """The variant that a name stands for; what it leaves out is as in the default profile.

    Left out parts are `bilinear_full`, `full_image` (`visible_only` for contrast), `positives` and `per_image`; a rule
    cannot be left out.
    """
    metric, *parts = re.split(r"\.(?=[a-z])", name)
    if metric not in _KINDS:
        raise CarinaError(f"variant {name!r}: {metric!r} is none of {_listed(_KINDS)}")
    found: dict[str, object] = {}
    for part in parts:
        slot, value = _slot(part, name)
        if slot in found:
            raise CarinaError(f"variant {name!r}: two parts for its {slot}")
        found[slot] = value
    return _filled(metric, found)


def _slot(part: str, name: str) -> tuple[str, object]:
    """Which choice a part of a name makes."""
    for slot, known in (
        ("place", PLACES),
        ("margin", MARGINS),
        ("empty", EMPTIES),
        ("aggregation", AGGREGATIONS),
    ):
        if part in known:
            return slot, part
    rule = parse_rule(part)
    if rule is None:
        raise CarinaError(
            f"variant {name!r}: {part!r} is no place, margin, rule, treatment of empty masks or aggregation"
        )
    return "rule", rule


def _filled(metric: Metric, found: dict[str, object]) -> Variant:
    kind = _KINDS[metric]
    place = found.get("place", "bilinear_full")
    aggregation = found.get("aggregation", "per_image")
    margin = found.get("margin", kind.margins[-1] if place in _FULL else None)
    empty = found.get("empty", kind.empties[0] if kind.empties and aggregation == "per_image" else None)
    return Variant(metric, place, margin, found.get("rule"), empty, aggregation)  # type: ignore[arg-type]


STANDARD_THRESHOLDS: Final[tuple[Threshold, ...]] = (
    Fixed("raw", (0.008,)),
    Fixed("minmax", (0.3,)),
    Fixed("minmax", (0.5,)),
    Fixed("symmetric", (0.1, 0.2, 0.3, 0.4, 0.5)),
    Fixed("sigmoid", (0.5,)),
    Otsu(filled=False),
    Otsu(filled=True),
    Oracle("area"),
    Oracle("image"),
    Oracle("grid"),
    *CHOSEN,
)
"""Of the thresholds without end that can be named, those that projects use."""
_STANDARD: Final[dict[type, tuple[Rule, ...]]] = {
    Ties: tuple(Ties(how) for how in get_args(Tie)),
    Within: (Within(15),),
    TopK: (TopK(1000),),
    Fixed: STANDARD_THRESHOLDS,
}


@cache
def all_variants() -> tuple[Variant, ...]:
    """Every variant with a standard rule. Thresholds, radii and numbers of pixels may be others, too."""
    return tuple(_every())


def _every() -> Iterator[Variant]:
    for metric, kind in _KINDS.items():
        rules: list[Rule | None] = [rule for of in kind.rules for rule in _STANDARD.get(of, ())]
        for rule, place in product(rules or [None], kind.places):
            if isinstance(rule, Oracle) and rule.how == "grid" and place != "nearest_full":
                continue
            several = isinstance(rule, Fixed) and len(rule.at) > 1
            for margin in kind.margins if place in _FULL else (None,):
                for empty in kind.empties or (None,):
                    if empty == "gated" and isinstance(rule, Chosen):
                        continue
                    yield Variant(metric, place, margin, rule, empty, "per_image")
                if kind.pooled and not several:
                    yield Variant(metric, place, margin, rule, None, "pooled")


def _listed(names: object) -> str:
    listed = [str(name) for name in names]  # type: ignore[attr-defined]
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} or {listed[-1]}"
