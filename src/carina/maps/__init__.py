"""Scores of localisation maps against expert regions, without torch. Every metric variant has a stable name."""

from carina.maps.areas import SIZE_EDGES, Shape, measure_shape, size_bin, size_bins
from carina.maps.boxes import Detection, any_point_in_boxes, box_iou, recall_at_rates, score_boxes
from carina.maps.file_scores import MapScores, ProfileComparison, compare_profiles, score_maps
from carina.maps.metrics import METRICS, MetricInfo, map_metric
from carina.maps.pair import Pair, Tally, tally_pixels
from carina.maps.pickles import ConvertedPickles, convert_pickles
from carina.maps.pointing import score_points
from carina.maps.profiles import PROFILES, MetricList, Profile, find_profile, list_metrics
from carina.maps.protocols import PROTOCOLS, Protocol, compare_protocols
from carina.maps.score import Scorer, Sensitivity, score_pair
from carina.maps.summary import Cell, Row, human_gap, summarise
from carina.maps.tuning import Thresholds, read_thresholds, tune_cutoff, write_thresholds
from carina.maps.variants import Variant, all_variants, parse_variant

__all__ = [
    "METRICS",
    "PROFILES",
    "PROTOCOLS",
    "SIZE_EDGES",
    "Cell",
    "ConvertedPickles",
    "Detection",
    "MapScores",
    "MetricInfo",
    "MetricList",
    "Pair",
    "Profile",
    "ProfileComparison",
    "Protocol",
    "Row",
    "Scorer",
    "Sensitivity",
    "Shape",
    "Tally",
    "Thresholds",
    "Variant",
    "all_variants",
    "any_point_in_boxes",
    "box_iou",
    "compare_profiles",
    "compare_protocols",
    "convert_pickles",
    "find_profile",
    "human_gap",
    "list_metrics",
    "map_metric",
    "measure_shape",
    "parse_variant",
    "read_thresholds",
    "recall_at_rates",
    "score_boxes",
    "score_maps",
    "score_pair",
    "score_points",
    "size_bin",
    "size_bins",
    "summarise",
    "tally_pixels",
    "tune_cutoff",
    "write_thresholds",
]
