"""Scores of localisation maps against expert regions: every metric by a stable name, without torch."""

from carina.ground.score.areas import SIZE_EDGES, Shape, shape_of, size_bin, size_bins
from carina.ground.score.boxes import Detection, box_iou, point_in_boxes, recall_at, score_boxes
from carina.ground.score.onepass import Tally, one_pass
from carina.ground.score.placed import Placed, place
from carina.ground.score.pointing import points_hit
from carina.ground.score.profiles import PROFILES, Profile, profile
from carina.ground.score.protocols import PROTOCOLS, Protocol, compare_protocols
from carina.ground.score.score import Scorer, Sensitivity, score_pair
from carina.ground.score.summary import Cell, Row, chexlocalize_summary, human_gap, summarise
from carina.ground.score.tuning import Thresholds, read_thresholds, tune_cutoff, write_thresholds
from carina.ground.score.variants import Variant, all_variants, parse

__all__ = [
    "PROFILES",
    "PROTOCOLS",
    "SIZE_EDGES",
    "Cell",
    "Detection",
    "Placed",
    "Profile",
    "Protocol",
    "Row",
    "Scorer",
    "Sensitivity",
    "Shape",
    "Tally",
    "Thresholds",
    "Variant",
    "all_variants",
    "box_iou",
    "chexlocalize_summary",
    "compare_protocols",
    "human_gap",
    "one_pass",
    "parse",
    "place",
    "point_in_boxes",
    "points_hit",
    "profile",
    "read_thresholds",
    "recall_at",
    "score_boxes",
    "score_pair",
    "shape_of",
    "size_bin",
    "size_bins",
    "summarise",
    "tune_cutoff",
    "write_thresholds",
]
