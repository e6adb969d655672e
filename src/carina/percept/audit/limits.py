"""Where the gates of percept draw the line, beyond the rules by which the benchmark was built."""

import msgspec

from carina.cases.audit import Thresholds
from carina.percept.rules import Rules


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that a benchmark states, and what the audit adds to them."""

    rules: Rules = Rules()
    common: Thresholds = Thresholds()
    least_piece: float = 25.0
    """Changed areas of fewer pixels (of the frame) are the raster's, not an edit's."""
    tolerance: float = 0.02
    """Share by which a recomputed area may fall short of what the builder measured before its last rounding."""
    separation: float = 0.60
    """Area under the ROC curve from which a measure of the contour tells the paths apart. An edit of a contour cannot
    leave its length quite as it was; up to here it gains less than seven points of balanced accuracy."""
