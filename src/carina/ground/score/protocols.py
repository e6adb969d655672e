"""The same maps under the rules of several projects: how much of a number is the rule?"""

from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from carina.ground.score.areas import SIZE_EDGES, size_bin, size_bins
from carina.ground.score.score import Scorer
from carina.models.frame import Frame, Map
from carina.studies import Region
from carina.studies.region import Mask

PROTOCOLS: Final[dict[str, str]] = {
    "hit, bilinear, first argmax (cheXlocalize)": "hit.bilinear_full.full_image.first_argmax",
    "hit, bilinear, ties by expectation (Carina)": "hit.bilinear_full.full_image.expected",
    "hit, nearest 224, first argmax": "hit.nearest_224.first_argmax",
    "hit, nearest 224, any maximum (MedKLIP, Quantus)": "hit.nearest_224.any_max",
    "hit, bilinear, 15 pixels of tolerance (TorchRay)": "hit.bilinear_full.full_image.within_15",
    "hit, bilinear 224 with aligned corners (MAVL)": "hit.corners_224.any_max",
    "hit, bilinear, boxes of the truth (RadZero)": "hit_box.bilinear_full.full_image.first_argmax",
    "IoU, raw > 0.008 at 224 (MedKLIP)": "iou.nearest_224.raw_0.008",
    "IoU, min-max > 0.5": "iou.bilinear_full.full_image.minmax_0.5",
    "IoU, min-max > 0.3": "iou.bilinear_full.full_image.minmax_0.3",
    "IoU, Otsu, filled, empty left out (cheXlocalize)": "iou.bilinear_full.full_image.otsu_filled.tp_only",
    "IoU, mean over five thresholds (AFLoc)": "iou.bilinear_full.visible_only.symmetric_0.1+0.2+0.3+0.4+0.5.tp_only",
    "IoU, area of the truth (oracle)": "iou.bilinear_full.full_image.oracle_area",
    "IoU, best threshold for each image (oracle)": "iou.bilinear_full.full_image.oracle_image",
    "IoU, best of 256 thresholds on the set (oracle)": "iou.bilinear_full.full_image.oracle_set_iou_minmax256",
    "IoU, best whole cells of the grid (oracle)": "iou.nearest_full.full_image.oracle_grid",
    "Dice, best of 9,990 thresholds on the set (MAVL, oracle)": "dice.corners_224.oracle_set_dice_raw9990",
}
"""What is compared: in words, and the variant."""


class Protocol(msgspec.Struct, frozen=True):
    """One rule's mean score, for all maps and by lesion size."""

    protocol: str
    variant: str
    all: float | None
    by_size: dict[str, float | None]
    n: dict[str, int]
    """Maps with a score, under `all` and each size."""


def compare_protocols(
    pairs: Iterable[tuple[Map, Region | Mask, Frame]], *, edges: tuple[float, ...] = SIZE_EDGES
) -> list[Protocol]:
    """A row for each of `PROTOCOLS`; pairs without truth are in no size and in no mean of positives."""
    scorer = Scorer(tuple(PROTOCOLS.values()))
    for at, (values, truth, frame) in enumerate(pairs):
        scorer.add(str(at), "", values, truth, frame)
    rows = scorer.rows()
    sizes = np.array([size_bin(row.share, edges) for row in rows])
    made = []
    for words, variant in zip(PROTOCOLS, scorer.variants, strict=True):
        scores = np.array([row.values[variant.name] for row in rows])
        groups = {"all": scores, **{size: scores[sizes == size] for size in size_bins(edges)}}
        means = {name: _mean(values) for name, values in groups.items()}
        n = {name: int(np.count_nonzero(~np.isnan(values))) for name, values in groups.items()}
        made.append(Protocol(words, variant.name, means.pop("all"), means, n))
    return made


def _mean(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float | None:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else None
