"""Score the same maps by the rules of several projects, to show how much of a score is due to the rule."""

from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np

from carina.maps.areas import SIZE_EDGES, size_bin, size_bins
from carina.maps.score import Scorer
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
"""Metric variants that are compared, by their titles."""


class Protocol(msgspec.Struct, frozen=True):
    """Mean score by one scoring rule, for all maps and by lesion size."""

    protocol: str
    """Title of the scoring rule."""
    variant: str
    """Name of the metric variant."""
    all: float | None
    """Mean over all maps; None where it is undefined."""
    by_size: dict[str, float | None]
    """Mean by size bin."""
    n: dict[str, int]
    """Number of maps with a score, under "all" and under each size bin."""


def compare_protocols(
    pairs: Iterable[tuple[Map, Region | Mask, Frame]], *, edges: tuple[float, ...] = SIZE_EDGES
) -> list[Protocol]:
    """Score the same maps by each rule of `PROTOCOLS`.

    Args:
        pairs: A map, its truth and the frame in which the model saw the image. A pair with an empty truth belongs to no
            size bin.
        edges: Shares of the image that divide the size bins.

    Returns:
        One row for each scoring rule.

    Example:
        >>> from carina.studies import Region
        >>> values, truth = np.eye(8, dtype=np.float32), Region.from_box(0, 0, 4, 4, height=8, width=8)
        >>> first = compare_protocols([(values, truth, Frame.stretched(8, 8, side=8))])[0]
        >>> first.protocol, first.all
        ('hit, bilinear, first argmax (cheXlocalize)', 1.0)
    """
    scorer = Scorer(tuple(PROTOCOLS.values()))
    for index, (values, truth, frame) in enumerate(pairs):
        scorer.add(str(index), "", values, truth, frame)
    rows = scorer.rows()
    sizes = np.array([size_bin(row.share, edges) for row in rows])
    protocols = []
    for title, variant in zip(PROTOCOLS, scorer.variants, strict=True):
        scores = np.array([row.values[variant.name] for row in rows])
        groups = {"all": scores, **{size: scores[sizes == size] for size in size_bins(edges)}}
        means = {name: _mean(values) for name, values in groups.items()}
        n = {name: int(np.count_nonzero(~np.isnan(values))) for name, values in groups.items()}
        protocols.append(Protocol(title, variant.name, means.pop("all"), means, n))
    return protocols


def _mean(values: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> float | None:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else None
