"""Which of the many variants of a profile a page tells, and what they are called there."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from carina.ground.score.variants import Metric, parse

_METRICS: Final[dict[Metric, str]] = {
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
"""Not shares: they have no place in a table of percents."""
MOST: Final = 8
"""Columns of a table."""


@dataclass(frozen=True)
class Measure:
    """One figure of a map."""

    title: str
    note: str
    variant: str
    definition: str = ""

    @property
    def metric(self) -> str:
        return self.variant.partition(".")[0]


def _own(title: str, note: str, short: str) -> Measure:
    return Measure(title, note, parse(short).name)


OURS: Final = (
    _own("Pointing game", "the peak lies in the truth", "hit.expected.bilinear_full.full_image"),
    _own("IoU, tuned", "threshold of another split", "iou.tuned_iou_minmax256.bilinear_full.full_image"),
    _own("IoU, Otsu", "threshold of the map itself", "iou.otsu.bilinear_full.full_image"),
    _own("Dice, tuned", "threshold of another split", "dice.tuned_iou_minmax256.bilinear_full.full_image"),
    _own("Dice, Otsu", "threshold of the map itself", "dice.otsu.bilinear_full.full_image"),
    _own("Pixel AUROC", "per image", "auroc.bilinear_full.full_image"),
    _own("Mass", "share of the map in the truth", "mass.bilinear_full.full_image"),
)
"""Of Carina's own profile."""
WHOLE_CELLS: Final = _own(
    "Whole cells, IoU", "best set of whole cells", "iou.oracle_grid.nearest_full.full_image"
)
"""What the best set of whole cells of the map's grid reaches; a smooth map can lie a little above it."""


def measures(variants: Iterable[tuple[str, str]], *, known: Sequence[str]) -> list[Measure]:
    """What is told of a profile's (variant, definition); `known` are variants that any run has a value of."""
    defined = dict(variants)
    ours = [one for one in OURS if one.variant in defined]
    chosen = ours or _apart([_named(name) for name in defined if not name.startswith(_BEYOND_ONE)])
    told = [
        Measure(one.title, one.note, one.variant, defined[one.variant])
        for one in chosen
        if one.variant in known
    ]
    return told[:MOST]


def _named(variant: str) -> Measure:
    parsed = parse(variant)
    return Measure(_METRICS[parsed.metric], variant.partition(".")[2].replace(".", " "), variant)


def _apart(told: Sequence[Measure]) -> list[Measure]:
    """Titles that differ: what comes several times has those words of its note that not all of them share."""
    made = []
    for one in told:
        alike = [set(other.note.split()) for other in told if other.title == one.title]
        own = [word for word in one.note.split() if word not in set.intersection(*alike)]
        made.append(replace(one, title=f"{one.title}, {' '.join(own)}") if own else one)
    return made


def shared(told: Iterable[Measure], held: Iterable[frozenset[str]]) -> list[Measure]:
    """Those that all have; `held` are the variants of each."""
    every = list(held)
    return [one for one in told if all(one.variant in variants for variants in every)]


def pointing(told: Sequence[Measure]) -> Measure | None:
    """The first pointing game."""
    return next((one for one in told if one.metric.startswith("hit")), None)


def overlap(told: Sequence[Measure]) -> Measure | None:
    """The first overlap of areas: with a tuned threshold where there is one."""
    found = [one for one in told if one.metric in ("iou", "dice")]
    return next((one for one in found if ".tuned" in one.variant), found[0] if found else None)


def lead(told: Sequence[Measure]) -> Measure | None:
    """The figure that sums a run up."""
    return pointing(told) or overlap(told) or (told[0] if told else None)
