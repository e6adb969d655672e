"""The variants of a profile's metrics that a page reports, and their titles there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from carina.maps.variants import parse_variant

_METRICS: Final[dict[str, str]] = {
    "hit": "Pointing game",
    "hit_weighted": "Pointing game, weighted",
    "hit_box": "Pointing game, boxes",
    "iou": "IoU",
    "dice": "Dice",
    "precision": "Precision",
    "recall": "Recall",
    "specificity": "Specificity",
    "accuracy": "Accuracy",
    "image_specificity": "Specificity over images",
    "auroc": "Pixel AUROC",
    "auprc": "Pixel AUPRC",
    "auroc_binned": "Pixel AUROC, binned",
    "auprc_binned": "Pixel AUPRC, binned",
    "cnr": "CNR",
    "cnr_abs": "|CNR|",
    "mass": "Mass",
    "mass_signed": "Mass, signed",
    "rank": "Rank",
    "topk": "Top k",
    "topk_gain": "Top k, gain",
}
_BEYOND_ONE: Final = ("cnr", "cnr_abs", "mass_signed", "topk_gain")
"""Metrics that are not shares, so that a table of percents cannot hold them."""
MOST: Final = 8
"""Largest number of columns of a table."""


@dataclass(frozen=True)
class Measure:
    """One measure of a map."""

    title: str
    note: str
    variant: str
    definition: str = ""

    @property
    def metric(self) -> str:
        return self.variant.partition(".")[0]


def _own(title: str, note: str, short: str) -> Measure:
    return Measure(title, note, parse_variant(short).name)


OURS: Final = (
    _own("Pointing game", "the peak lies in the truth", "hit.expected.bilinear_full.full_image"),
    _own("IoU, tuned", "threshold of another split", "iou.tuned_iou_minmax256.bilinear_full.full_image"),
    _own("IoU, Otsu", "threshold of the map itself", "iou.otsu.bilinear_full.full_image"),
    _own("Dice, tuned", "threshold of another split", "dice.tuned_iou_minmax256.bilinear_full.full_image"),
    _own("Dice, Otsu", "threshold of the map itself", "dice.otsu.bilinear_full.full_image"),
    _own("Pixel AUROC", "per image", "auroc.bilinear_full.full_image"),
    _own("Mass", "share of the map in the truth", "mass.bilinear_full.full_image"),
)
"""Measures of Carina's own profile."""
WHOLE_CELLS: Final = _own(
    "Whole cells, IoU", "best set of whole cells", "iou.oracle_grid.nearest_full.full_image"
)
"""The IoU of the best set of whole cells of the map's grid; a smooth map can lie a little above it."""


def select_measures(variants: Iterable[tuple[str, str]], *, known: Sequence[str]) -> list[Measure]:
    """The measures of a profile; `variants` are (name, definition), `known` those that any run has a value of."""
    defined = dict(variants)
    ours = [one for one in OURS if one.variant in defined]
    candidates = ours or _distinguish_titles(
        [_name_variant(name) for name in defined if not name.startswith(_BEYOND_ONE)]
    )
    reported = [
        Measure(one.title, one.note, one.variant, defined[one.variant])
        for one in candidates
        if one.variant in known
    ]
    return reported[:MOST]


def _name_variant(variant: str) -> Measure:
    parsed = parse_variant(variant)
    return Measure(_METRICS[parsed.metric], variant.partition(".")[2].replace(".", " "), variant)


def _distinguish_titles(measures: Sequence[Measure]) -> list[Measure]:
    """Make titles differ: a repeated title gets those words of its note that not all of them share."""
    distinct = []
    for one in measures:
        notes = [set(other.note.split()) for other in measures if other.title == one.title]
        own = [word for word in one.note.split() if word not in set.intersection(*notes)]
        distinct.append(replace(one, title=f"{one.title}, {' '.join(own)}") if own else one)
    return distinct


def shared_measures(measures: Iterable[Measure], held: Iterable[frozenset[str]]) -> list[Measure]:
    """The measures that all runs have; `held` are the variants of each run."""
    every = list(held)
    return [one for one in measures if all(one.variant in variants for variants in every)]


def pointing_measure(measures: Sequence[Measure]) -> Measure | None:
    """The first pointing game."""
    return next((one for one in measures if one.metric.startswith("hit")), None)


def overlap_measure(measures: Sequence[Measure]) -> Measure | None:
    """The first overlap of areas: with a tuned threshold where there is one."""
    overlaps = [one for one in measures if one.metric in ("iou", "dice")]
    return next((one for one in overlaps if ".tuned" in one.variant), overlaps[0] if overlaps else None)


def leading_measure(measures: Sequence[Measure]) -> Measure | None:
    """The measure that summarises a run."""
    return pointing_measure(measures) or overlap_measure(measures) or (measures[0] if measures else None)
