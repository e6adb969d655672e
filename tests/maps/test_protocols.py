import numpy as np
import pytest

from carina.maps import PROTOCOLS, compare_protocols
from carina.models.frame import Frame


def test_the_same_maps_score_differently_under_other_rules() -> None:
    """A cell of 32 pixels of 224 whose corner alone is true: a hit only for those who look at the whole cell."""
    values = np.full((7, 7), 0.001, np.float32)
    values[3, 3] = 0.5
    truth = np.zeros((56, 56), bool)
    truth[24:26, 24:26] = True
    frame = Frame.stretched(56, 56, side=224)
    rows = {row.protocol: row for row in compare_protocols([(values, truth, frame), (values, ~truth, frame)])}
    assert list(rows) == list(PROTOCOLS)
    by_rule = {row.variant.split(".positives")[0]: row for row in rows.values()}
    assert by_rule["hit.nearest_224.any_max"].by_size == {"< 1%": 1.0, "1-5%": None, "> 5%": 1.0}
    assert by_rule["hit.bilinear_full.full_image.first_argmax"].by_size["< 1%"] == 0.0
    assert by_rule["hit.bilinear_full.full_image.within_15"].by_size["< 1%"] == 1.0
    assert by_rule["hit.nearest_224.any_max"].n == {"all": 2, "< 1%": 1, "1-5%": 0, "> 5%": 1}
    iou = by_rule["iou.nearest_full.full_image.oracle_grid"]
    assert iou.by_size["< 1%"] == pytest.approx(4 / 64)
    assert iou.all == pytest.approx((4 / 64 + (56 * 56 - 4) / (56 * 56)) / 2)
